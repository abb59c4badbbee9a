"""`forecasts`: how often the intervals of forecasts hold what then happens, on tracks and on a trace."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.model import Instance
from gpusched_env.simulator import Policy, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S
from gpusched_env.simulator.policy import memory_columns
from gpusched_env.workload import Scenario, load_scenario, load_track
from gpusched_experiments.forecast import ArrivalModel, Forecast, ForecastSettings, forecast
from gpusched_experiments.forecast.forecast import jobs_to_come
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.cell import Cell, Measure
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate, share
from gpusched_experiments.report.experiment import Experiment, Selection
from gpusched_experiments.report.run import Group, Runs
from gpusched_experiments.report.table import COUNT, RATIO, SHARE, Column, Table

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_experiments.report.run import Values

LABELS = ("workload", "arrivals")
NONE, MODELLED, KNOWN = "none", "modelled", "known"
TRACKS = (
    "slack", "busy", "full", "restarts-600", "few-jobs", "two-point", "lognormal", "flow-time", "whole-nodes", "philly",
    "surge", "shift", "published-1",
)  # fmt: skip
TRACE = "trace of Philly"
TRACE_FILE = Path("../shared/data/philly/philly.csv")
TRACE_JOBS, TRACE_NODES = 300, 24
MOMENTS = (0.25, 0.5, 0.7)
"""When forecasts are made: when so many of the jobs are submitted."""
SETTINGS = ForecastSettings(samples=79)
"""Of 79 samples the 8th and the 72nd: a further one lies between them with a probability of 0.8."""
SEEDS, QUICK_SEEDS = 6, 1
HOUR = 3600.0
HORIZONS = (("short", 0.0, HOUR), ("medium", HOUR, 6.0 * HOUR), ("long", 6.0 * HOUR, np.inf))
"""By the median of the time from the forecast to the end: name, least, most [s]."""
CHANCES = (0.0, 0.05, 0.25, 0.75, 0.95, 1.0 + 1e-9)
SAME_S = 1e-3
"""Times that differ by less are the same: needs are edges of bins, so that many ends are equal but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The jobs that really come, of which only the needs are drawn: what a forecast would be that knew arrivals."""

    state: State

    def __len__(self) -> int:
        return len(self.state.hidden.jobs) - int(self.state.board.count[at.SUBMITTED])

    def drawn(self, state: State, draws: int, coming: int, seed: int) -> tuple[Floats, Floats, Floats]:
        """Give them, as `ArrivalModel` does."""
        rows, tau = state.hidden.jobs[-coming:], state.hidden.tau[-coming:]
        quantiles = np.random.default_rng([seed, 2]).random((draws, coming))
        return np.broadcast_to(rows, (draws, *rows.shape)), np.broadcast_to(tau, (draws, *tau.shape)), quantiles


def _forecast(state: State, policy: Policy, rng: np.random.Generator, mode: str) -> Forecast:
    known = _Known(state)
    if mode == NONE or not len(known):
        return forecast(state, policy, rng, SETTINGS)
    if mode == KNOWN:
        of_all: Any = known
        return forecast(state, policy, rng, SETTINGS, of_all, coming=len(known))
    like = ArrivalModel.of_history(state.board)
    if like is None:
        return forecast(state, policy, rng, SETTINGS)
    most = jobs_to_come(state, policy, rng, like, np.inf, SETTINGS.samples)
    return forecast(state, policy, rng, SETTINGS, like, coming=min(most, len(known)))


def check_forecasts(mode: str, instance: Instance, policy: Policy, seed: int) -> Values:
    """Run the policy, forecast at some moments, and count how often what then happened lay in the intervals."""
    begin = time.perf_counter()
    state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
    rng, count = np.random.default_rng(seed), state.board.count
    wanted = [max(1, round(part * len(instance.jobs))) for part in MOMENTS]
    made: list[tuple[Ints, Ints, Forecast]] = []
    while state.advance():
        if count[at.ACTIVE] == 0:
            continue
        if wanted and count[at.SUBMITTED] >= wanted[0]:
            wanted.pop(0)
            present = state.board.active[: count[at.ACTIVE]].copy()
            waits = np.isnan(state.board.jobs[present, at.START_S])
            made.append((present, waits, _forecast(state, policy, rng, mode)))
        state.begin_round(policy.preemption)
        policy.decide(state.view, rng)
        state.commit_round()
    counts: dict[str, float] = {}
    for present, waits, each in made:
        for name, value in _counts(each, state.board.jobs[present], waits).items():
            counts[name] = counts.get(name, 0.0) + value
    return counts | {"run_s": time.perf_counter() - begin}


def _counts(made: Forecast, jobs: Floats, waits: Ints) -> dict[str, float]:
    """Compare one forecast with what happened to its jobs, rows of the board at the end."""
    low, median, high = made.end_s
    end, due = jobs[:, at.END_S], jobs[:, at.DUE]
    low, high = low - SAME_S, high + SAME_S
    inside = (low <= end) & (end <= high)
    first, _, last = made.start_s
    started = waits & (first - SAME_S <= jobs[:, at.START_S]) & (jobs[:, at.START_S] <= last + SAME_S)
    late, chance = end > due + MISSED_S, made.late
    found = {
        "jobs": float(len(end)),
        "inside": float(inside.sum()),
        "before": float((end < low).sum()),
        "after": float((end > high).sum()),
        "waiting": float(waits.sum()),
        "start_inside": float(started.sum()),
        "error_s": float(np.abs(end - median).sum()),
        "left_s": float((end - made.now_s).sum()),
        "width_s": float((high - low).sum()),
        "late": float(late.sum()),
        "chance": float(chance.sum()),
        "brier": float(((chance - late) ** 2).sum()),
    }
    ahead = median - made.now_s
    for name, least, most in HORIZONS:
        own = (least <= ahead) & (ahead < most)
        found |= {f"{name}_jobs": float(own.sum()), f"{name}_inside": float((own & inside).sum())}
    for i, (least, most) in enumerate(pairwise(CHANCES)):
        own = (least <= chance) & (chance < most)
        found |= {f"chance{i}_jobs": float(own.sum()), f"chance{i}_late": float((own & late).sum())}
        found[f"chance{i}"] = float(chance[own].sum())
    return found


MEASURES = {mode: Measure(f"forecasts {mode}", partial(check_forecasts, mode)) for mode in (NONE, MODELLED, KNOWN)}


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
        """Sum one of their counts."""
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
