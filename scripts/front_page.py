"""Make the figures of README.md: run what it shows, record the value of each seed, and write its blocks.

python scripts/front_page.py            # runs all (15 minutes on two cores), writes the record and README.md
python scripts/front_page.py --write    # writes README.md from the record

The same command resumes. It refuses a checkout with changes, except of what it writes.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance
from gpusched_env.workload import load_track
from gpusched_experiments import compare
from gpusched_experiments.report.code_version import code_version, machine
from gpusched_experiments.report.store import document_json

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RECORD = ROOT / "docs/results/front-page.json"
RULES = ("edf", "random-greedy", "sts", "sts-x")
ROWS = {"edf": "EDF (earliest due date first)", "random-greedy": "Random Greedy", "sts": "STS", "sts-x": "STS-X"}
TRACKS = {"published-1": "Published1", "slack": "Slack"}
ELSEWHERE = "busy"  # where the agents of `slack` run too
TRAINING_SEEDS = tuple(range(100_000, 100_500, 100))
SEEDS_AT_ONCE = 25
BLOCK = re.compile(r"(^```python\n(.*?)^```\n)(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\| \| published inputs.*?\n\n(?:In brackets.*?\n\n)?", re.MULTILINE | re.DOTALL)


def main(arguments: list[str]) -> int:
    """Run what is not run yet, and write the record and README.md; return the exit status."""
    if arguments not in ([], ["--write"]):
        print("usage: python scripts/front_page.py [--write]", file=sys.stderr)
        return 2
    if not arguments:
        changed = _git("status", "--porcelain", "--", ".", ":!README.md", f":!{RECORD.relative_to(ROOT)}")
        if changed:
            print(f"front_page: commit these changes first, or undo them:\n{changed}", file=sys.stderr)
            return 2
        write_atomically(RECORD, record(_git("rev-parse", "HEAD")))
    write_atomically(README, filled(README.read_text(encoding="utf-8"), json.loads(RECORD.read_text(encoding="utf-8"))))
    return 0


def record(commit: str) -> str:
    """Return the text of the record: output of the boxes, and costs [€] by track, policy and seed."""
    work = ROOT / "results/front-page" / commit
    train_all(work)
    boxes = {number: printed(box(number)) for number in (1, 3)}
    costs = {track: costs_on(track, (*RULES, *_agents(work, track)), work) for track in TRACKS}
    costs[ELSEWHERE] = costs_on(ELSEWHERE, ("sts-x", *_agents(work, "slack")), work)
    facts: dict[str, Any] = {
        "commit": commit,
        "code": code_version(),
        "machine": machine(),
        "libraries": {name: version(name) for name in ("torch", "stable-baselines3")},
        "training_seeds": TRAINING_SEEDS,
        "training": box(2),
        "test_seeds": {track: load_track(track).test for track in costs},
    }
    made = provenance("python scripts/front_page.py", **facts)
    return document_json("gpusched front page", made, boxes=boxes, costs_eur=costs)


def box(number: int) -> str:
    """Return the Python code of a box of README.md, the first is 1."""
    return str(BLOCK.findall(README.read_text(encoding="utf-8"))[number - 1][1])


def printed(code: str) -> str:
    """Run Python code and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        exec(compile(code, "README.md", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - our page
    return text.getvalue()


def train_all(work: Path) -> None:
    """Train the agents of box 2, one for each track and training seed, in two processes."""
    work.mkdir(parents=True, exist_ok=True)
    every = [(work, track, seed) for track in TRACKS for seed in TRAINING_SEEDS]
    left = [each for each in every if not _model(*each).exists()]
    with ProcessPoolExecutor(2) as pool:
        for name in pool.map(train, left):
            print(f"trained {name}", flush=True)


def train(what: tuple[Path, str, int]) -> str:
    """Run box 2 with another track and seed; return the name of the folder with the agent."""
    work, track, seed = what
    target = _model(work, track, seed)
    draft = target.parent.with_suffix(f".{seed}.draft")
    draft.mkdir(exist_ok=True)
    code = box(2)
    for shown, other in (
        ("/Slack", f"/{TRACKS[track]}"),
        ("seed=100_000", f"seed={seed}"),
        (", progress_bar=True", ""),
        ('"slack.zip"', repr(str(draft / target.name))),
    ):
        if shown not in code:
            raise ValueError(f"box 2 of README.md lacks {shown}")
        code = code.replace(shown, other)
    printed(code)
    draft.replace(target.parent)
    return target.parent.name


def costs_on(track: str, policies: tuple[str, ...], work: Path) -> dict[str, dict[str, float]]:
    """Return the cost of each test seed of a track [€], by policy; what an earlier call has kept is not run again."""
    seeds = load_track(track).seeds("test")
    costs: dict[str, dict[str, float]] = {_name(policy): {} for policy in policies}
    for begin in range(0, len(seeds), SEEDS_AT_ONCE):
        kept = work / f"{track}.{begin}.json"
        if not kept.exists():
            runs = compare(policies, track, seeds[begin : begin + SEEDS_AT_ONCE], workers=2)
            rows = [(_name(run.policy), str(run.seed), round(run.total_eur, 4)) for run in runs]
            write_atomically(kept, json.dumps(rows))
            print(f"ran {kept.stem}", flush=True)
        for name, seed, cost in json.loads(kept.read_text(encoding="utf-8")):
            costs[name][seed] = cost
    return costs


def filled(page: str, made: dict[str, Any]) -> str:
    """Return the text of README.md with the outputs and the table of a record."""
    blocks = BLOCK.findall(page)
    for number, text in made["boxes"].items():
        whole, shown = blocks[int(number) - 1][0], blocks[int(number) - 1][2]
        page = page.replace(f"{whole}\n```text\n{shown}```\n", f"{whole}\n```text\n{text}```\n")
    return TABLE.sub(lambda _: table(made["costs_eur"]), page)


def table(costs: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the table of README.md, with the mean cost of each policy and of the five agents, and what it shows."""
    counts = {track: len(costs[track]["edf"]) for track in TRACKS}
    slack, published, elsewhere = (_against(costs[track]) for track in ("slack", "published-1", ELSEWHERE))
    five = [_five(agents(costs[track])) for track in TRACKS]
    rows = [
        f"| | published inputs (`published-1`, {counts['published-1']} seeds) | `slack` ({counts['slack']} seeds) |",
        "|---|---:|---:|",
        *(f"| {ROWS[rule]} | " + " | ".join(f"{mean(costs[t][rule]):,.2f}" for t in TRACKS) + " |" for rule in RULES),
        f"| PPO as above, trained on the track | {five[0]} | {five[1]} |",
        "",
        "In brackets the least and the largest of five trainings. The agents cost, compared with STS-X,",
        f"{slack} on `slack`, {published} on the published inputs, and, trained on `slack`,",
        f"{elsewhere} on `{ELSEWHERE}`.",
    ]
    return "\n".join(rows) + "\n\n"


def mean(costs: dict[str, float]) -> float:
    """Return the mean cost over the seeds [€]."""
    return fmean(costs.values())


def agents(costs: dict[str, dict[str, float]]) -> list[float]:
    """Return the mean cost of each trained agent [€]."""
    return [mean(each) for name, each in costs.items() if name.startswith("ppo-")]


def _five(means: list[float]) -> str:
    return f"{fmean(means):,.2f} [{min(means):,.2f}, {max(means):,.2f}]"


def _against(costs: dict[str, dict[str, float]]) -> str:
    parts = [100 * (each / mean(costs["sts-x"]) - 1) for each in agents(costs)]
    return f"{fmean(parts):+.1f} % [{min(parts):+.1f}, {max(parts):+.1f}]".replace("-", "\N{MINUS SIGN}")


def _agents(work: Path, track: str) -> tuple[str, ...]:
    return tuple(f"sb3:{_model(work, track, seed)}" for seed in TRAINING_SEEDS)


def _model(work: Path, track: str, seed: int) -> Path:
    return work / f"{track}.{seed}" / "slack.zip"


def _name(policy: str) -> str:
    return f"ppo-{Path(policy).parent.suffix[1:]}" if policy.startswith("sb3:") else policy


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603, S607


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*is unpickled")  # the archives that this script has made
    sys.exit(main(sys.argv[1:]))
