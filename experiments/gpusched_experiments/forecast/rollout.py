"""Roll-outs: a policy decides on copies of a state, in which jobs need what was drawn, until those there now are over.

D is the number of draws, A that of the jobs that are there, K that of jobs to come in a draw.
"""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import Board, Hidden, StalledError, State, View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.stepping import (
    accrue,
    advance,
    begin_round,
    check_stalled,
    commit_round,
    expected_rows,
    next_event,
)

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import Policy
    from gpusched_experiments.forecast.draws import Draws

PRICES_S = 7 * 86_400.0
"""How far ahead roll-outs take forecasts of prices; beyond it the last one holds [s]."""

BY_JOB = ("jobs", "tau", "memory")
CHANGED = (
    "nodes",
    "capacity",
    "quota",
    "cells",
    "hosts",
    "tree",
    "edges",
    "survival",
    "tail",
    "prices",
    "clock",
    "count",
)
"""The arrays of a board, besides those by job and the lists of active jobs, that a run changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What came of the jobs that were there, draw by draw.

    Attributes:
        start_s: First start [s], (D, A); inf: not until the horizon.
        end_s: End [s], (D, A); inf: not until the horizon.
        energy_eur: Energy cost attributed to each from now on [€], (D, A).
        tardiness_eur: Tardiness cost of each from now on [€], (D, A).
        until_s: When the roll-out stopped [s], (D,).
        came: Jobs that came meanwhile, (D,).
        stalled: Whether the policy left all jobs waiting for ever, (D,).
    """

    start_s: Floats
    end_s: Floats
    energy_eur: Floats
    tardiness_eur: Floats
    until_s: Floats
    came: Ints
    stalled: Ints


class RollOuts:
    """The copy of a state on which roll-outs run, one after the other; nothing of the state changes.

    Args:
        state: The state, before the round at its present time.
        policy: The policy; it needs the number of columns of memory that the state has.
        rng: The policy's randomness in that round and after it, as it is then.
        coming: Most jobs to come in a draw, ≥ 0.
        horizon_s: How long after the present time roll-outs stop at the latest [s], > 0.
    """

    def __init__(self, state: State, policy: Policy, rng: Generator, coming: int, horizon_s: float = np.inf) -> None:
        board = state.board
        self._policy, self._rng = policy, rng
        self._known = int(board.count[at.SUBMITTED])
        self.present: Ints = board.active[: board.count[at.ACTIVE]].copy()
        self._until = float(board.clock[at.NOW]) + horizon_s
        self._start = _start(board, coming)
        self._done_before = int(board.count[at.DONE]) - (self._known - len(self.present))
        self._work = Board(**{n: a if n == "facts" else a.copy() for n, a in self._start.__getstate__().items()})
        self._pairs = [
            (getattr(self._start, name), getattr(self._work, name)) for name in (*BY_JOB, "active", *CHANGED)
        ]
        self._hidden = _hidden(state, self._start)
        self._view = View(self._work, state.instance.configurations)

    def run_all(self, draws: Draws, longest_s: float = np.inf) -> Outcomes:
        """Make the roll-outs of `draws`, or at least one of them and what there is time for.

        Args:
            draws: What was drawn for this state.
            longest_s: Time after which no other roll-out begins [s].
        """
        begin, jobs = time.perf_counter(), self._work.jobs
        stop: list[tuple[float, int, bool]] = []
        rows: list[Floats] = []
        columns = [at.START_S, at.END_S, at.ENERGY, at.TARDINESS]
        for draw in range(len(draws.needed)):
            if draw and time.perf_counter() - begin > longest_s:
                break
            stalled = self._run(draws, draw)
            came = int(self._work.count[at.SUBMITTED]) - self._known
            stop.append((float(self._work.clock[at.NOW]), came, stalled))
            rows.append(jobs[self.present[:, None], columns])
        found = np.array(rows).reshape(len(rows), len(self.present), len(columns))
        spent = self._start.jobs[self.present]
        times = np.where(np.isnan(found[..., :2]), np.inf, found[..., :2])
        until, came_by, still = zip(*stop, strict=True)
        return Outcomes(
            times[..., 0],
            times[..., 1],
            found[..., 2] - spent[:, at.ENERGY],
            found[..., 3] - spent[:, at.TARDINESS],
            np.array(until),
            np.array(came_by, dtype=np.int64),
            np.array(still, dtype=np.int64),
        )

    def _run(self, draws: Draws, draw: int) -> bool:
        """Make one roll-out; return whether it stalled."""
        for start, work in self._pairs:
            work[...] = start
        board, hidden, policy = self._work, self._hidden, self._policy
        hidden.outcome[...] = np.inf
        hidden.outcome[self.present, at.NEEDED] = draws.needed[draw]
        hidden.outcome[self.present, at.FINISH_S] = draws.finish_s[draw]
        hidden.jobs[self._known :], hidden.tau[self._known :] = draws.rows[draw], draws.tau[draw]
        hidden.outcome[self._known :, at.NEEDED] = draws.needed_later[draw]
        rng, count = deepcopy(self._rng), board.count
        begin_round(board, policy.preemption)
        while True:
            count[at.DONE] += self._done_before  # a run may have begun before what the board tells
            policy.decide(self._view, rng)
            count[at.DONE] -= self._done_before
            if not to_next_round(board, hidden, self.present, policy.preemption, self._until):
                return False
            try:
                check_stalled(board, policy.name)
            except StalledError:
                return True


@kernel
def to_next_round(board: Board, hidden: Hidden, present: Ints, preemption: bool, until: float) -> bool:
    """Close the round, run to the next one, and open it; return False if `present` are over or it is `until` [s]."""
    jobs, clock, count = board.jobs, board.clock, board.count
    commit_round(board, hidden)
    while True:
        time = next_event(board, hidden)
        if time == np.inf:
            time = clock[at.NOW] + clock[at.IDLE_REVIEW]
        if time > until:
            accrue(board, hidden, until)
            return False
        done = count[at.DONE]
        if not advance(board, hidden):
            return False
        if count[at.DONE] > done:
            over = True
            for job in present:
                over = over and not np.isnan(jobs[job, at.END_S])
            if over:
                return False
        if count[at.ACTIVE] > 0:
            begin_round(board, preemption)
            return True


def _start(board: Board, coming: int) -> Board:
    """Copy a board, with rows for `coming` jobs in place of those that are not submitted yet."""
    known, active = int(board.count[at.SUBMITTED]), int(board.count[at.ACTIVE])
    values: dict[str, Any] = board.__getstate__()
    values |= {name: values[name].copy() for name in CHANGED}
    for name in BY_JOB:
        fill = 0.0 if name == "memory" else np.nan
        more = np.full((coming, values[name].shape[1]), fill)
        values[name] = np.concatenate([values[name][:known], more])
    places = np.zeros(known + coming, dtype=np.int64)
    places[:active] = board.active[:active]
    values |= {"active": places, "keys": np.zeros(len(places)), "order": np.zeros_like(places)}
    start = Board(**values)
    start.count[[at.LOGGING, at.LOGGED, at.DONE]] = 0, 0, known - active
    return start


def _hidden(state: State, start: Board) -> Hidden:
    """Make what is hidden from the policy: nothing of the true outcome, of later jobs, prices or caps not told yet."""
    board, hidden = state.board, state.hidden
    now = board.clock[at.NOW]
    noticed = np.minimum(hidden.caps[:, at.CAP_NOTICED_S], hidden.caps[:, at.CAP_START_S]) <= now
    return Hidden(
        outcome=np.full((len(start.jobs), at.OUTCOME_COLUMNS), np.inf),
        jobs=start.jobs.copy(),
        tau=start.tau.copy(),
        edges=hidden.edges,
        survival=hidden.survival,
        tail=hidden.tail,
        prices=expected_rows(board, now + PRICES_S),
        log=np.empty((0, hidden.log.shape[1])),
        caps=np.ascontiguousarray(hidden.caps[noticed]),
    )
