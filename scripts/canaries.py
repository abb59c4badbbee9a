"""Check that the results on the pages are those of the present code: the cost of one run of each policy on each track.

python scripts/canaries.py            # runs them (2 minutes), prints the costs that changed; exit status 1 if one did
python scripts/canaries.py --write    # runs them, and stores the costs that changed, with the present commit
python scripts/canaries.py --old      # prints which tables of docs/results are old; exit status 1 if one is

A run is that of the first test seed of a track, on the tracks with prices by period with 30 jobs, on `fleet` with 49
nodes. A table is old if the cost of a policy that it shows has changed after the commit of the table's record.
"""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines.registry import POLICIES
from gpusched_env import InputError, make_instance, simulate
from gpusched_env.files import write_atomically
from gpusched_env.workload import list_tracks, load_track
from gpusched_experiments.leaderboard import default_policies
from gpusched_experiments.report.code_version import commit

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"
STORED = RESULTS / "canaries.csv"
LEFT_OUT = ("failures",)
"""Tracks without a canary: a mechanism that compiles a build of its own."""
_PRICED: dict[str, object] = {"jobs.count": 30}
PRICED = ("day-ahead", "day-ahead-caiso", "two-prices")
"""Tracks with prices by period. A table without a column of tracks is of workloads without such prices."""
FEWER: dict[str, dict[str, object]] = dict.fromkeys(PRICED, _PRICED)
"""Settings of a smaller workload of tracks whose runs take long: each round plans by many prices, or 20,000 jobs."""
FEWER["fleet"] = {
    "cluster.pools": [
        {"gpu_type": "P100", "nodes": 26, "gpus_per_node": 2},
        {"gpu_type": "T4", "nodes": 16, "gpus_per_node": 2},
        {"gpu_type": "V100", "nodes": 7, "gpus_per_node": 8},
    ],
    "arrivals.mean_gap_s": 394.0,
    "jobs.count": 1000,
}
SAME = 1e-9
"""Relative deviation of costs that are equal: processors may differ in the last digits."""
TIED = {("philly", "atc"): 0.01, ("philly", "atc:co-located"): 0.01}
"""That of runs in which two jobs rank equally but for the last digit, which processors compute differently."""
RECORDS = ("record.json", "summary.json")


class Canary(NamedTuple):
    """The cost of a run.

    Attributes:
        track: Name of the track; the run is that of its first test seed.
        policy: Name of the policy.
        total_eur: Cost of the run [€].
        since: The first commit with this cost, as far as is known.
    """

    track: str
    policy: str
    total_eur: float
    since: str


def main(arguments: list[str]) -> int:
    """Run the canaries, or list old tables; return the exit status."""
    if arguments == ["--old"]:
        old = old_tables()
        for name, policies in old.items():
            print(f"docs/results/{name}: {described(policies)}")
        return int(bool(old))
    if arguments not in ([], ["--write"]):
        print("usage: python scripts/canaries.py [--write | --old]", file=sys.stderr)
        return 2
    head = commit() or ""
    if arguments and (not head or head.endswith("+")):
        print("canaries: commit the changes of the sources first, or undo them", file=sys.stderr)
        return 2
    now = compared(stored(), costs(), head)
    changed, gone = [each for each in now if each.since == head], missing(stored(), now)
    for each in changed:
        print(f"{each.track}, {each.policy}: now {each.total_eur:.6f} €")
    for track, policy in gone:
        print(f"{track}, {policy}: no longer runs")
    if arguments:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([Canary._fields, *(each._replace(total_eur=repr(each.total_eur)) for each in now)])
        write_atomically(STORED, text.getvalue())
        return 0
    return int(bool(changed or gone))


def stored() -> list[Canary]:
    with STORED.open(encoding="utf-8", newline="") as file:
        return [
            Canary(row["track"], row["policy"], float(row["total_eur"]), row["since"]) for row in csv.DictReader(file)
        ]


def costs() -> list[tuple[str, str, float]]:
    """Run every policy of the leaderboard on every track that it can decide on: track, policy, cost [€]."""
    tracks = (track for track in list_tracks() if track not in LEFT_OUT)
    return [(track, policy, cost) for track in tracks for policy, cost in costs_on(track)]


def costs_on(track: str) -> list[tuple[str, float]]:
    """Run every policy on the first test seed of a track; those that cannot decide there are left out."""
    known, found = load_track(track), []
    instance = make_instance(known.scenario.replace(FEWER.get(track, {})), known.seeds("test")[0])
    for name in default_policies():
        try:
            found.append((name, simulate(instance, make_any_policy(name), record=False).total_eur))
        except InputError:
            continue
    return found


def compared(before: list[Canary], now: list[tuple[str, str, float]], head: str) -> list[Canary]:
    """Return the present costs: where one is as it was, with the commit since which it is so, else with `head`."""
    known = {(each.track, each.policy): each for each in before}
    found = []
    for track, policy, cost in now:
        was = known.get((track, policy))
        most = TIED.get((track, policy), SAME)
        same = was is not None and math.isclose(was.total_eur, cost, rel_tol=most, abs_tol=SAME)
        found.append(was if same and was else Canary(track, policy, cost, head))
    return found


def missing(before: list[Canary], now: list[Canary]) -> list[tuple[str, str]]:
    """Return the tracks and policies that are stored, and were not run now."""
    ran = {(each.track, each.policy) for each in now}
    return [(each.track, each.policy) for each in before if (each.track, each.policy) not in ran]


def old_tables() -> dict[str, dict[str, str]]:
    """Return the folders of old tables, each with the policies whose costs changed, and with which commit."""
    return {
        table.parent.name: old for table in sorted(RESULTS.glob("*/table.csv")) if (old := old_policies(table.parent))
    }


def old_policies(folder: Path) -> dict[str, str]:
    """Return the policies of a table whose costs changed after its record, each with the commit of the change."""
    made = next((_commit_of(folder / name) for name in RECORDS if (folder / name).is_file()), "")
    shown, tracks = _shown(folder / "table.csv")
    known = [each for each in stored() if each.policy in shown]
    own = [each for each in known if (each.track in tracks if tracks else each.track not in PRICED)]
    return {each.policy: each.since for each in own if not (made and _is_before(each.since, made))}


def described(policies: dict[str, str]) -> str:
    """Return a sentence on the policies of an old table."""
    named = ", ".join(f"{policy} ({since[:8]})" for policy, since in policies.items())
    return f"costs of these policies have changed since the table was made: {named}"


def _shown(table: Path) -> tuple[set[str], set[str]]:
    """Return the policies and tracks of a table; a table of trained controls is one of STS-X."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    named = {row.get("policy", "sts-x" if "variant" in row else "") for row in rows}
    return named | set(map(_whole, named)), {row["track"] for row in rows if "track" in row}


def _whole(policy: str) -> str:
    """Return the policy with whose costs those of `policy` change: of an ablation, also a former one, the whole."""
    return (POLICIES[policy].ablation_of or policy) if policy in POLICIES else policy.partition(":")[0]


def _commit_of(record: Path) -> str:
    facts = json.loads(record.read_text(encoding="utf-8"))["provenance"]["facts"]
    return str(facts.get("commit") or "").removesuffix("+")


@cache
def _is_before(earlier: str, later: str) -> bool:
    """Return whether a commit is another one or before it."""
    command = ["git", "merge-base", "--is-ancestor", earlier, later]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0  # noqa: S603 - git, with stored commits


def on_page_markdown(markdown: str, page: object, **_: object) -> str:
    """Mark a page with an old table; called by mkdocs for every page."""
    path = ROOT / "docs" / str(page.file.src_path)  # type: ignore[attr-defined]
    old = old_policies(path.parent) if path.name == "table.md" and (path.parent / "table.csv").is_file() else {}
    return f'!!! warning "Old"\n    The {described(old)}.\n\n{markdown}' if old else markdown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
