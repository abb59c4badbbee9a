"""A run, finished or not, as bars on GPUs, for charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle, pairwise
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.rendering.colours import colour_numbers
from gpusched_env.rendering.lanes import GanttBar, bars_of
from gpusched_env.simulator import Result, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import gpus_on, next_node
from gpusched_env.simulator.rounds import stays

LATE_TOLERANCE_S = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """All bars of a run, with the known facts of its jobs.

    Attributes:
        instance: The instance that is run.
        policy: Name of the policy; empty if not known.
        now_s: Present time [s]; the last completion if the run is finished.
        running: Whether the run has not finished.
        bars: The bars, by start: one for each node that a job held.
        submitted: Whether each job is submitted by now, (J,).
        completion_s: Completion times [s], NaN before them, (J,).
        energy_eur: Energy cost so far [€].
        tardiness_eur: Tardiness cost so far [€].
        colours: Numbers of the colours of jobs, by which neighbours differ; empty where later bars are not known.
    """

    instance: Instance
    policy: str
    now_s: float
    running: bool
    bars: tuple[GanttBar, ...]
    submitted: NDArray[np.bool_]
    completion_s: NDArray[np.float64]
    energy_eur: float
    tardiness_eur: float
    colours: Mapping[int, int] = field(default_factory=dict)

    def down_times(self) -> list[tuple[int, float, float]]:
        """Return when nodes were down until now: the node, from and until when [s]."""
        found = (each for mechanism in self.instance.mechanisms for each in mechanism.down_times())
        return [(node, start, min(end, self.now_s)) for node, start, end in found if start < self.now_s]

    @classmethod
    def of(cls, run: State | Result, ahead_s: float = 0.0, since_s: float = 0.0) -> Timeline:
        """Make the timeline of a finished run, or of a state in or just after a decision round.

        Args:
            ahead_s: Of an unfinished run: how far beyond the present to draw what jobs hold [s], ≥ 0.
            since_s: Of an unfinished run: bars that ended before are left out [s].
        """
        if isinstance(run, Result):
            bars, ends = bars_of(run.instance, run.log), run.completion_s
            known = float(np.max(ends)), False, bars, np.ones(len(ends), np.bool_), ends.copy()
            return cls(run.instance, run.policy, *known, run.energy_eur, run.tardiness_eur, colour_numbers(bars))
        jobs, count, clock = run.view.jobs, run.board.count, run.board.clock
        log = run.hidden.log[: count[at.LOGGED]]
        log = np.concatenate([log[log[:, at.LOG_END] >= since_s], _held(run, ahead_s)])
        bars, running = bars_of(run.instance, log), bool(count[at.DONE] < len(jobs))
        known = run.view.now_s, running, bars, np.arange(len(jobs)) < count[at.SUBMITTED], jobs[:, at.END_S].copy()
        return cls(run.instance, "", *known, float(clock[at.BILL]), float(clock[at.TARDINESS_COST]))

    def colour(self, job: int) -> int:
        """Return the number of a job's colour, for `colour_of`."""
        return self.colours.get(job, job)

    def on_nodes(self, nodes: Container[int]) -> Timeline:
        return replace(self, bars=tuple(bar for bar in self.bars if bar.node in nodes))

    def of_jobs(self, jobs: Container[int]) -> Timeline:
        return replace(self, bars=tuple(bar for bar in self.bars if bar.job in jobs))

    @property
    def late(self) -> NDArray[np.bool_]:
        end_s = np.where(np.isnan(self.completion_s), self.now_s, self.completion_s)
        late: NDArray[np.bool_] = self.submitted & (end_s > self.instance.jobs.due_s + LATE_TOLERANCE_S)
        return late

    def bars_of_jobs(self) -> dict[int, list[GanttBar]]:
        """Group the bars by job, each in order of time; of several nodes held at once, the first one's bar."""
        groups: dict[int, list[GanttBar]] = defaultdict(list)
        for bar in self.bars:
            if bar.is_first:
                groups[bar.job].append(bar)
        return dict(groups)

    def moves(self) -> Iterator[tuple[int, GanttBar, GanttBar]]:
        """Yield job, old bar and new bar of each change of place and of each pause."""
        for job, bars in self.bars_of_jobs().items():
            for old, new in pairwise(bars):
                if new.start_s > old.end_s or not new.in_the_place_of(old):
                    yield job, old, new

    def usage(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Count busy GPUs, a shared one once, and waiting jobs over time.

        Returns:
            Times [s], and from each time on the GPUs held and the jobs that are submitted but hold nothing, all (T,).
        """
        submissions = self.instance.jobs.submission_s[self.submitted]
        completions = self.completion_s[~np.isnan(self.completion_s)]
        changes = [(time, 0, 1) for time in submissions] + [(time, 0, -1) for time in completions]
        held = [(start_s, end_s, gpus, 0) for _, start_s, end_s, gpus in self.busy()]
        held += [(bar.start_s, bar.end_s, 0, 1) for bar in self.bars if bar.is_first]
        for start_s, end_s, gpus, jobs in held:
            changes += [(start_s, gpus, -jobs)]
            if not (self.running and end_s > self.now_s):
                changes += [(end_s, -gpus, jobs)]
        table = np.array(sorted(changes)).reshape(-1, 3)
        times, first = np.unique(table[:, 0], return_index=True)
        last = np.append(first[1:], len(table)) - 1
        counts = np.cumsum(table[:, 1:], axis=0)[last].astype(np.int64)
        return times, counts[:, 0], counts[:, 1]

    def busy(self) -> Iterator[tuple[int, float, float, int]]:
        """Yield node, start and end [s], and number of busy GPUs of each period with busy ones, shared ones once."""
        until: dict[tuple[int, int], float] = {}
        for bar in self.bars:
            if bar.gpu < 0:
                yield bar.node, bar.start_s, bar.end_s, round(sum(height for _, height in bar.runs))
                continue
            # Of a share, what others on the GPU have not covered yet.
            start_s = max(bar.start_s, until.get((bar.node, bar.gpu), -np.inf))
            if start_s < bar.end_s:
                yield bar.node, start_s, bar.end_s, 1
                until[bar.node, bar.gpu] = bar.end_s


def _held(state: State, ahead_s: float) -> NDArray[np.float64]:
    """Return rows of the log's form for what jobs hold up to now, and from now on for `ahead_s` seconds."""
    now, view = state.view.now_s, state.view
    rows: list[list[float]] = []
    for job in view.active.tolist():
        row = view.jobs[job]
        # In an open round, CONFIG is what the job will hold; OLD_CONFIG is what it has held since BASE_S.
        goes_on = False
        if row[at.OLD_CONFIG] >= 0 and row[at.BASE_S] < now:
            goes_on = bool(stays(view.board, job))
            times = (row[at.BASE_S], min(row[at.READY_S], now), now + ahead_s if goes_on else now)
            rows += _rows_of(state, job, times, old=True)
        if row[at.CONFIG] >= 0 and not goes_on and ahead_s > 0.0:
            rows += _rows_of(state, job, (now, now, now + ahead_s), old=False)
    return np.array(rows, dtype=np.float64).reshape(-1, state.hidden.log.shape[1])


def _rows_of(state: State, job: int, times: tuple[float, float, float], *, old: bool) -> list[list[float]]:
    """Return a row for each node that a job holds, or held when the round began; `times` are start, ready and end."""
    row, board = state.view.jobs[job], state.board
    config, slot = int(row[at.OLD_CONFIG if old else at.CONFIG]), row[at.OLD_SLOT if old else at.SLOT]
    node, rows = int(row[at.OLD_NODE if old else at.NODE]), []
    while node >= 0:
        gpus = int(gpus_on(board, job, config, node, old))
        row = [job, node, config, *times, 0.0, slot, -1.0, gpus]  # a bar needs no host
        rows.append(row[: state.hidden.log.shape[1]])
        node = int(next_node(board, job, config, node, old))
    return rows


HOUR_S = 3600.0
SPAN_IN_DUE_TIMES = 1.5  # widest window, in the usual time from submission to due date
SMALLEST = 256  # how many times wider the widest window is than the first one
STEPS = 4  # parts of its width by which a window moves
PRESENT = 0.88  # where on the window the present is at most
FEW_JOBS = 10  # whose due dates are too few to compute the usual time
MOST_JOBS = 100  # whose due dates set the usual time: the first ones, so that it becomes constant


@dataclass(frozen=True, slots=True)
class Window:
    """A period from `start_s` ≥ 0 to `end_s` > start_s [s]."""

    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.start_s) and self.start_s >= 0.0):
            raise InputError("start_s", self.start_s, "a number of seconds, at least 0")
        if not (np.isfinite(self.end_s) and self.end_s > self.start_s):
            raise InputError(
                "end_s", self.end_s, f"a number of seconds above {self.start_s:g}, where the window begins"
            )

    @property
    def width_s(self) -> float:
        return self.end_s - self.start_s


def window_of(run: State | Result) -> Window:
    """Choose the window: all of a finished run; of an unfinished one, the last period up to the present and a bit.

    The window of an unfinished run grows by a half or a third, and moves by quarters of its width, so that it seldom
    changes from round to round. Its greatest width follows from the due dates of the jobs submitted so far.
    """
    jobs = run.instance.jobs
    if isinstance(run, Result):
        last_s = float(run.completion_s.max())
        near = jobs.due_s[jobs.due_s <= 1.15 * last_s]  # due dates far beyond the end would squeeze the bars
        return Window(0.0, 1.01 * max(last_s, float(near.max(initial=0.0)), 1.0))
    first = min(int(run.board.count[at.SUBMITTED]), MOST_JOBS)
    return moving_window(run.view.now_s, widest_s(jobs.due_s[:first] - jobs.submission_s[:first]))


def moving_window(now_s: float, span_s: float) -> Window:
    """Return the window at `now_s` of a run whose widest window is `span_s` wide; all in seconds."""
    width_s, larger = span_s / SMALLEST, cycle((1.5, 4.0 / 3.0))
    while width_s < 0.99 * span_s and now_s > PRESENT * width_s:
        width_s *= next(larger)
    step_s = width_s / STEPS
    start_s = step_s * max(0, ceil((now_s - PRESENT * width_s) / step_s))
    return Window(start_s, start_s + width_s)


def widest_s(until_due_s: NDArray[np.float64]) -> float:
    """Choose the widest window [s]: a power of two of an hour.

    Returns:
        The width for the median time, from `FEW_JOBS` jobs on the greatest so far: it never falls as jobs come.
    """
    known = len(until_due_s)
    counts = range(min(known, FEW_JOBS), known + 1) if known else ()
    usual_s = max((float(np.median(until_due_s[:count])) for count in counts), default=0.0)
    hours = max(SPAN_IN_DUE_TIMES * usual_s / HOUR_S, 2.0**-6)
    return HOUR_S * 2.0 ** ceil(log2(hours))
