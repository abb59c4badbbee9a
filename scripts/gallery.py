"""Write the gallery of the tracks, docs/results/gallery.md, from the stored leaderboard, studies and front page.

python scripts/gallery.py             # writes the page, in seconds
python scripts/gallery.py --frames    # draws docs/results/gallery/NAME.png first, in minutes

Run it again when the leaderboard was run again; with --frames when a track, a scenario or the renderer has changed.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from gymnasium.spaces import Box, Dict, Discrete

from gpusched_baselines import make_policy
from gpusched_env import Instance, make_instance, simulate
from gpusched_env.files import write_atomically
from gpusched_env.observation import flat_space, observation_space
from gpusched_env.rendering import gantt_figure
from gpusched_env.rendering.plotting import Image
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload import Track, list_environments, list_tracks, load_track
from gpusched_experiments.cli.scenarios import TRACK_COLUMNS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"
RULES = ("edf", "sts", "sts-x")
NO_ENVIRONMENT = {
    "adaptation": "configurations differ: [`GpuAdaptation-v0`](../train.md#the-adaptation-environment) alone takes it",
    "none": "no environment: GPU types differ",
}
"""What the setting `environments` of a track means where it is not `all`."""
SIZE_INCHES, DPI, COLOURS = (10.0, 6.25), 64, 64
POLICY_OF = {"fleet": "edf"}
JOBS_OF = {"day-ahead": 25, "day-ahead-caiso": 25, "two-prices": 25, "fleet": 2000}
"""Policies of frames, and the jobs that are submitted then: by default STS-X and half of the jobs take long there."""
INTRODUCTION = """\
# Gallery of the tracks

After this page you know how each [track](../tracks.md) looks, what is hard about it, and what policies cost on it.
`python scripts/gallery.py` makes the page from the [leaderboard](leaderboard/table.md) of commit {}, {}.

- **Frame**: a run of STS-X (on `fleet` EDF) on the first test seed, when half of the jobs are submitted, or fewer if it
  takes long; the time shown begins at least 40 submissions earlier, or with the run.
- **Costs**: means over the test seeds. *Best known*: the least cost of the leaderboard. *Bound*: no policy costs less.
  *Agent*: the learned agent that costs least there. *PPO*: the mean of five trainings on the track
  ([record](front-page.json)); it is not in the leaderboard, so its ratio may be below 1.
- **Load, due, restart**: as on the page of the [tracks](../tracks.md).
- **Spaces**: shapes of the [observation](../environment.md#observation), as a dictionary and flat, and the
  [action](../environment.md#action) space.

| track | nodes | jobs | load | best known € | agent / STS-X |
|---|---:|---:|---:|---:|---:|"""


def main(arguments: list[str]) -> int:
    """Draw the frames if they are asked for, and write the page; return the exit status."""
    if arguments not in ([], ["--frames"]):
        print("usage: python scripts/gallery.py [--frames]", file=sys.stderr)
        return 2
    for name in list_environments() if arguments else ():
        write_atomically(RESULTS / f"gallery/{name}.png", png(name))
        print(f"drew {name}", flush=True)
    write_atomically(RESULTS / "gallery.md", page())
    return 0


def png(name: str) -> bytes:
    """Draw a run on the first test seed of a track, when some of its jobs are submitted."""
    track, content = load_track(name), io.BytesIO()
    instance = make_instance(track.scenario, track.seeds("test")[0])
    count = JOBS_OF.get(name, len(instance.jobs) // 2)
    begin_s = float(instance.jobs.submission_s[count - min(count, max(40, count // 4))])

    def draw(state: State) -> None:
        if state.board.count[at.SUBMITTED] >= count:
            figure = gantt_figure(state, window_s=(begin_s, None), size_inches=SIZE_INCHES, dpi=DPI)
            figure.savefig(content, dpi=DPI)
            raise StopIteration  # the rest of the run is not needed

    with suppress(StopIteration):
        simulate(instance, make_policy(POLICY_OF.get(name, "sts-x")), on_round=draw)
    picture, content = Image.open(content).convert("RGB"), io.BytesIO()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
    return content.getvalue()


def page(leaderboard: Path = RESULTS / "leaderboard") -> str:
    """Return the text of the page, with costs of a folder with `table.csv`, `tracks.csv` and `record.json`."""
    costs: dict[str, dict[str, float]] = {}
    for row in _rows(leaderboard / "table.csv"):
        costs.setdefault(row["track"], {})[row["policy"]] = float(row["total_eur"])
    best = {row["track"]: row for row in _rows(leaderboard / "tracks.csv")}
    made = json.loads((leaderboard / "record.json").read_text(encoding="utf-8"))["provenance"]
    trained, studies = trained_costs(), studies_of_tracks()
    overview, sections = [], []
    for track in map(load_track, list_tracks()):
        facts = {column.name: column.form(column.value(track)) for column in TRACK_COLUMNS}  # type: ignore[arg-type]
        known, policies = best.get(track.name), costs.get(track.name, {})
        picture = f"gallery/{track.name}.png"
        overview.append(overview_row(facts, known, policies))
        sections += [
            f"## {track.name}\n",
            *([f"![{track.name}: GPUs over time]({picture})\n"] if (RESULTS / picture).is_file() else []),
            f"Hard: {track.hard}\n",
            *cost_lines(known, policies, trained.get(track.name)),
            *fact_lines(track, facts, known, studies.get(track.name)),
        ]
    introduction = INTRODUCTION.format(made["facts"]["commit"][:8], made["made_utc"][:10])
    return "\n".join([introduction, *overview, "", *sections]).rstrip() + "\n"


def overview_row(facts: dict[str, str], known: dict[str, str] | None, policies: dict[str, float]) -> str:
    """Return the row of a track in the table of all tracks."""
    against = ratio(policies.get(best_agent(policies)), policies.get("sts-x"))
    cost = f"{float(known['best_eur']):,.2f}" if known else "not in the leaderboard"
    shown = " | ".join(facts[column] for column in ("nodes", "jobs", "load"))
    return f"| [{facts['track']}](#{facts['track']}) | {shown} | {cost} | {against} |"


def cost_lines(known: dict[str, str] | None, policies: dict[str, float], trained: float | None) -> list[str]:
    """Return the table of costs of a track, or that the leaderboard lacks it."""
    least = float(known["best_eur"]) if known else None
    shown = {f"`{name}`": policies[name] for name in (*RULES, best_agent(policies)) if name in policies}
    shown |= {} if trained is None else {"PPO, trained here": trained}
    rows = [f"| {name} | {cost:,.2f} | {ratio(cost, least)} |" for name, cost in shown.items()]
    table = ["| policy | test cost € | / best known |", "|---|---:|---:|", *rows, ""] if rows else []
    return [*([] if known else ["Costs: not in the leaderboard.\n"]), *table]


def fact_lines(track: Track, facts: dict[str, str], known: dict[str, str] | None, study: str | None) -> list[str]:
    """Return the list of a track: its cluster, its spaces, the best known cost and the commands."""
    instance, name = make_instance(track.scenario, track.seeds("test")[0]), track.name
    cluster = f"{facts['nodes']} nodes of {facts['gpu_types']}" if track.scenario.mixture else nodes_of(instance)
    lines = [f"- {cluster}; {facts['jobs']} jobs; load {facts['load']}; due {facts['due']}; restart {facts['restart']}"]
    if track.environments == "all":
        make = f'gymnasium.make("gpusched_env:gpusched_env/GpuCluster-v0", scenario="{name}")'
        lines += [f"- `{make}`: {spaces_of(instance)}"]
    else:
        lines += [f"- {NO_ENVIRONMENT[track.environments]}"]
    if known:
        bound = f"{float(known['bound_eur']):,.2f} €" if known["bound_eur"] else "none"
        lines += [f"- Best known: {float(known['best_eur']):,.2f} € (`{known['best_policy']}`); bound: {bound}"]
    curves = f"; agents trained here: [learning curves]({study}/curves.svg), [table]({study}/table.md)" if study else ""
    return [*lines, f"- `gpusched compare --track {name}`{curves}\n"]


def nodes_of(instance: Instance) -> str:
    """Return the nodes of a cluster by type, such as `2 nodes of 8 V100, 2 of 4 T4`."""
    kinds = Counter((node.gpus, node.gpu_type) for node in instance.nodes)
    parts = [f"{count:,} of {gpus} {gpu_type}" for (gpus, gpu_type), count in kinds.items()]
    return ", ".join(parts).replace(" of", " node of" if parts[0].startswith("1 ") else " nodes of", 1)


def spaces_of(instance: Instance) -> str:
    """Return the shapes of the spaces of the environment of an instance; making it would compile kernels."""
    space: Dict = observation_space(len(instance.configurations), len(instance.gpu_types))
    parts = ", ".join(f"`{name}` {box.shape}" for name, box in space.items() if isinstance(box, Box))
    return f"observation {parts}; flat {flat_space(space).shape}; action `{Discrete(1 + len(instance.configurations))}`"


def best_agent(policies: dict[str, float]) -> str:
    """Return the label of the agent that costs least; "" if there is none."""
    return min((name for name in policies if name.startswith("agent:")), key=policies.__getitem__, default="")


def ratio(cost: float | None, other: float | None) -> str:
    """Return a cost over another one as a text; "" where one is missing."""
    return "" if cost is None or not other else f"{cost / other:.{3 if cost < 10 * other else 1}f}"


def trained_costs() -> dict[str, float]:
    """Return the mean test cost [€] of the five PPO of README.md, by the track on which they were trained."""
    record = json.loads((RESULTS / "front-page.json").read_text(encoding="utf-8"))["costs_eur"]
    own = {track: policies for track, policies in record.items() if "edf" in policies}  # elsewhere they are not trained
    return {track: fmean(fmean(own[track][name].values()) for name in own[track] if "ppo-" in name) for track in own}


def studies_of_tracks() -> dict[str, str]:
    """Return the folder in docs/results of the study with learning curves, by track."""
    paths = sorted(RESULTS.glob("study-*/summary.json"))
    settings = {path.parent.name: json.loads(path.read_text("utf-8"))["provenance"]["facts"]["base"] for path in paths}
    return {place.removeprefix("track:"): name for name in settings for place in settings[name]["scenarios"]}


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
