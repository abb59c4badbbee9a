"""A run, finished or not, as bars on GPUs: what charts draw."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.lanes import Run, pick_lanes, runs_of
from gpusched_env.simulator import Result, State
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

LATE_TOLERANCE_S = 1e-6


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval in which a job held GPUs of one node.

    Attributes:
        job: The job's index.
        node: The node's index.
        runs: The GPUs, as runs of neighbours.
        start_s: When it began [s].
        ready_s: From when on it made progress [s]: later than `start_s` after a restart.
        end_s: When it ended, or the present time [s].
    """

    job: int
    node: int
    runs: tuple[Run, ...]
    start_s: float
    ready_s: float
    end_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """All bars of a run, with what is known of its jobs.

    Attributes:
        instance: The instance that is run.
        policy: Name of the policy; empty if not known.
        now_s: Present time [s]; the last completion if the run is finished.
        running: Whether the run goes on.
        bars: The bars, by start, then job.
        submitted: Whether each job is submitted by now, (J,).
        completion_s: Completion times [s], NaN before them, (J,).
        energy_eur: Energy cost so far [€].
        tardiness_eur: Tardiness cost so far [€].
    """

    instance: Instance
    policy: str
    now_s: float
    running: bool
    bars: tuple[Bar, ...]
    submitted: NDArray[np.bool_]
    completion_s: NDArray[np.float64]
    energy_eur: float
    tardiness_eur: float

    @classmethod
    def of(cls, run: State | Result, ahead_s: float = 0.0) -> Timeline:
        """Make the timeline of a finished run, or of a state in or just after a decision round.

        Args:
            run: The run.
            ahead_s: Of a run that goes on: how far to draw what jobs hold from now on [s], ≥ 0.
        """
        return _of_result(run) if isinstance(run, Result) else _of_state(run, ahead_s)

    @property
    def late(self) -> NDArray[np.bool_]:
        """Say of each job whether it ended, or is still unfinished, after its due date, (J,)."""
        end_s = np.where(np.isnan(self.completion_s), self.now_s, self.completion_s)
        late: NDArray[np.bool_] = self.submitted & (end_s > self.instance.jobs.due_s + LATE_TOLERANCE_S)
        return late

    def bars_of_jobs(self) -> dict[int, list[Bar]]:
        """Group the bars by job, each in order of time."""
        groups: dict[int, list[Bar]] = defaultdict(list)
        for bar in self.bars:
            groups[bar.job].append(bar)
        return dict(groups)

    def usage(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Count busy GPUs and waiting jobs over time.

        Returns:
            Times [s], and from each time on the GPUs held and the jobs that are submitted but hold nothing, all (T,).
        """
        submissions = self.instance.jobs.submission_s[self.submitted]
        completions = self.completion_s[~np.isnan(self.completion_s)]
        changes = [(time, 0, 1) for time in submissions] + [(time, 0, -1) for time in completions]
        for bar in self.bars:
            gpus = sum(count for _, count in bar.runs)
            changes += [(bar.start_s, gpus, -1)]
            if not (self.running and bar.end_s >= self.now_s):
                changes += [(bar.end_s, -gpus, 1)]
        table = np.array(sorted(changes)).reshape(-1, 3)
        times, first = np.unique(table[:, 0], return_index=True)
        last = np.append(first[1:], len(table)) - 1
        counts = np.cumsum(table[:, 1:], axis=0)[last].astype(np.int64)
        return times, counts[:, 0], counts[:, 1]


def _of_result(result: Result) -> Timeline:
    return Timeline(
        instance=result.instance,
        policy=result.policy,
        now_s=float(np.max(result.completion_s)),
        running=False,
        bars=_bars(result.instance, result.log),
        submitted=np.ones(len(result.completion_s), dtype=np.bool_),
        completion_s=result.completion_s.copy(),
        energy_eur=result.energy_eur,
        tardiness_eur=result.tardiness_eur,
    )


def _of_state(state: State, ahead_s: float) -> Timeline:
    jobs = state.view.jobs
    running = bool(state.count[at.DONE] < len(jobs))
    log = np.concatenate([state.log[: state.count[at.LOGGED]], _held(state, ahead_s)])
    return Timeline(
        instance=state.instance,
        policy="",
        now_s=state.view.now_s,
        running=running,
        bars=_bars(state.instance, log),
        submitted=np.arange(len(jobs)) < state.count[at.SUBMITTED],
        completion_s=jobs[:, at.END_S].copy(),
        energy_eur=float(state.clock[at.BILL]),
        tardiness_eur=float(state.clock[at.LATENESS]),
    )


def _held(state: State, ahead_s: float) -> NDArray[np.float64]:
    """Give rows of the log's form for what jobs hold up to now, and from now on for `ahead_s` seconds."""
    now, jobs = state.view.now_s, state.view.jobs
    rows = []
    for job in state.view.active:
        row = jobs[job]
        # In an open round, CONFIG is what the job will hold; OLD_CONFIG is what it has held since BASE_S.
        config, node, goes_on = row[at.CONFIG], row[at.NODE], False
        if row[at.OLD_CONFIG] >= 0 and row[at.BASE_S] < now:
            goes_on = bool(config == row[at.OLD_CONFIG] and node == row[at.OLD_NODE])
            end = now + ahead_s if goes_on else now
            start, ready = row[at.BASE_S], min(row[at.READY_S], now)
            rows.append([job, row[at.OLD_NODE], row[at.OLD_CONFIG], start, ready, end, 0.0])
        if config >= 0 and not goes_on and ahead_s > 0.0:
            rows.append([job, node, config, now, now, now + ahead_s, 0.0])
    return np.array(rows, dtype=np.float64).reshape(-1, at.LOG_COLUMNS)


def _bars(instance: Instance, log: NDArray[np.float64]) -> tuple[Bar, ...]:
    """Give every row of the log its lanes, in order of time: first those free again, then first fit."""
    free = [[True] * node.gpus for node in instance.nodes]
    by_start = sorted(log.tolist(), key=lambda row: (row[at.LOG_START], row[at.LOG_JOB]))
    open_bars: list[tuple[float, int, int, list[int]]] = []
    last: dict[int, tuple[int, list[int]]] = {}
    bars: list[Bar] = []
    for start, rows in groupby(by_start, key=lambda row: row[at.LOG_START]):
        while open_bars and open_bars[0][0] <= start:
            _, _, node, lanes = heappop(open_bars)
            for lane in lanes:
                free[node][lane] = True
        # Jobs that stay on their node choose first, so that they keep their GPUs.
        for row in sorted(rows, key=lambda row: last.get(int(row[at.LOG_JOB]), (-1, []))[0] != row[at.LOG_NODE]):
            job, node, config = int(row[at.LOG_JOB]), int(row[at.LOG_NODE]), int(row[at.LOG_CONFIG])
            before = last[job][1] if job in last and last[job][0] == node else []
            lanes = pick_lanes(free[node], instance.configurations[config].gpus_per_node, before)
            last[job] = (node, lanes)
            heappush(open_bars, (row[at.LOG_END], len(bars), node, lanes))
            bars.append(Bar(job, node, runs_of(lanes), start, row[at.LOG_READY], row[at.LOG_END]))
    return tuple(bars)
