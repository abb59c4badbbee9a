"""`forecasts`: how often the intervals of forecasts hold what then happens, on tracks and on a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from gpusched_env.workload import Scenario, load_scenario, load_track
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate, share
from gpusched_experiments.report.experiment import Experiment, Selection
from gpusched_experiments.report.run import Group, Runs
from gpusched_experiments.report.table import COUNT, RATIO, SHARE, Column, Table
from gpusched_reproductions.data_sources import DATA
from gpusched_reproductions.published.forecast_check import CHANCES, HORIZONS, MEASURES, MODELLED, NONE, SETTINGS

LABELS = ("workload", "arrivals")
TRACKS = (
    "slack", "busy", "full", "restarts-600", "few-jobs", "two-point", "lognormal", "flow-time", "whole-nodes", "philly",
    "surge", "shift", "published-1",
)  # fmt: skip
TRACE = "trace of Philly"
TRACE_FILE = DATA / "philly" / "philly.csv"
TRACE_JOBS = 300
SEEDS, QUICK_SEEDS = 6, 1


def _workloads() -> dict[str, tuple[Scenario, tuple[int, ...]]]:
    """Return the scenarios by name, with their test seeds; the trace where its file is."""
    found = {name: (load_track(name).scenario, tuple(load_track(name).seeds("test"))) for name in TRACKS}
    if TRACE_FILE.is_file():
        replay = {
            "trace.path": str(TRACE_FILE),
            "trace.format": "philly",
            "jobs.count": TRACE_JOBS,
            "cluster.nodes": 24,
        }
        found[TRACE] = load_scenario("default").replace(replay), tuple(range(30_000, 30_000 + SEEDS))
    return found


def _cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for (name, (scenario, tests)), policy, (mode, measure) in product(_workloads().items(), policies, MEASURES.items()):
        labels = (("workload", name), ("arrivals", mode))
        seeds = choice.seeds or tests[: QUICK_SEEDS if choice.quick else SEEDS]
        cells += [Cell(labels, scenario, policy, seed, measure=measure) for seed in seeds]
    return tuple(cells)


def _share(name: str, title: str, part: str, whole: str = "jobs") -> Column[Group]:
    return Column(name, title, lambda group: share(group.own, part, whole), SHARE, interval=True)


def _value(part: str, whole: str) -> Any:
    return lambda group: share(group.own, part, whole).value


def _summary(runs: Runs) -> Table:
    columns: tuple[Column[Group], ...] = (
        Column("workload", "workload", lambda group: group.labels["workload"]),
        of.POLICY,
        *(Column(mode, f"arrivals {mode}", partial(_of_mode, mode), SHARE, interval=True) for mode in MEASURES),
        Column("start", "starts", lambda group: _coverage(group.beside(arrivals=MODELLED), "start_inside", "waiting"),
               SHARE, interval=True),
    )  # fmt: skip
    first = [group for group in runs.groups(*LABELS) if group.labels["arrivals"] == NONE]
    notes = (
        "Share of ends from the 10 % to the 90 % quantile, by what is assumed of jobs to come.",
        "Starts: of jobs that waited, with arrivals modelled.",
        "Modelled: as those so far, in pieces of their history, and at most as many as the run still has.",
        "Known: the jobs that really come; only needs are drawn.",
    )
    return Table.of("Coverage of 80 % intervals", columns, first, notes)


def _of_mode(mode: str, group: Group) -> Estimate | None:
    return _coverage(group.beside(arrivals=mode))


def _of_horizon(name: str, group: Group) -> Estimate | None:
    return _coverage(group.own, f"{name}_inside", f"{name}_jobs")


def _coverage(runs: Runs, part: str = "inside", whole: str = "jobs") -> Estimate | None:
    return share(runs, part, whole) if len(runs) and sum(runs.by_seed(whole).values()) > 0 else None


def _details(runs: Runs) -> Table:
    columns: tuple[Column[Group], ...] = (
        *of.places(*LABELS),
        Column("jobs", "ends", lambda group: sum(group.own.by_seed("jobs").values()), COUNT),
        _share("inside", "inside", "inside"),
        _share("before", "before", "before"),
        _share("after", "after", "after"),
        *(
            Column(name, f"inside, {text}", partial(_of_horizon, name), SHARE, interval=True)
            for (name, _, _), text in zip(HORIZONS, ("< 1 h", "1 to 6 h", "> 6 h"), strict=True)
        ),
        Column("error", "error of the median / time left", _value("error_s", "left_s"), RATIO),
        Column("width", "width / time left", _value("width_s", "left_s"), RATIO),
        Column("chance", "chance of being late", _value("chance", "jobs"), SHARE),
        Column("late", "late", _value("late", "jobs"), SHARE),
        Column("brier", "Brier score", _value("brier", "jobs"), "{:.3f}".format),
    )  # fmt: skip
    return Table.of("Every workload", columns, runs.groups(*LABELS))


@dataclass(frozen=True, slots=True, eq=False)
class _Chance:
    """The forecasts of one mode whose chance of being late lies in a range."""

    mode: str
    number: int
    runs: Runs

    def of(self, name: str = "") -> float:
        return sum(self.runs.by_seed(f"chance{self.number}{name}").values())


def _reliability(runs: Runs) -> Table:
    rows = [
        _Chance(mode, i, runs.where(arrivals=mode))
        for mode in MEASURES
        for i in range(len(CHANCES) - 1)
        if len(runs.where(arrivals=mode))
    ]
    columns: tuple[Column[_Chance], ...] = (
        Column("arrivals", "arrivals", lambda row: row.mode),
        Column("range", "forecast", lambda row: f"{CHANCES[row.number]:.0%} to {CHANCES[row.number + 1]:.0%}"),
        Column("jobs", "jobs", lambda row: row.of("_jobs"), COUNT),
        Column("chance", "mean chance", lambda row: row.of() / max(1.0, row.of("_jobs")), SHARE),
        Column("late", "late", lambda row: row.of("_late") / max(1.0, row.of("_jobs")), SHARE),
    )
    return Table.of("Chance of being late, all workloads and policies", columns, rows)


def _chart(runs: Runs) -> Chart:
    workloads = tuple(str(each) for each in runs.labels("workload"))
    panels = []
    for policy in runs.policies:
        dots = []
        for mode in MEASURES:
            points = [(name, _coverage(runs.where(policy, workload=name, arrivals=mode))) for name in workloads]
            dots.append(series(mode, [(name, each) for name, each in points if each is not None]))
        panels.append(
            Panel(policy, "ends in 80 % intervals", "", tuple(dots), kind="dots", percent=True, categories=workloads)
        )
    return Chart("Coverage of 80 % intervals, by what is assumed of jobs to come", (tuple(panels),), (5.0, 4.6))


FORECASTS = Experiment(
    name="forecasts",
    title="Do intervals of forecasts hold what happens?",
    question=(
        "Every policy runs on test seeds of tracks, and on a replay of the trace of Philly (if it is in "
        f"`{TRACE_FILE.parent}`). When 25, 50 and 70 % of the jobs are submitted, {SETTINGS.samples} rollouts "
        "forecast the end of every job that is there; then the run goes on, and shows what happens. Jobs to come are "
        "left out, modelled as those so far, or known."
    ),
    policies=("edf", "sts"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(),
    more={"chance": _reliability},
)
