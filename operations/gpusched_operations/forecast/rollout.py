"""Rollouts: a policy decides on copies of a state, in which jobs need what was drawn, until those there now are over.

D is the number of draws, A that of the jobs that are there, K that of jobs to come in a draw.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.hooks import expected_arrays
from gpusched_env.model.own_state import drawn_future, new_job_rows, with_state
from gpusched_env.named_arrays import added_fields
from gpusched_env.simulator import Board, Hidden, State, View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.stepping import begin_round
from gpusched_operations.forecast.compiled import GOES_ON, STALLED, compiled_run, to_next_round
from gpusched_operations.forecast.draws import FUTURE

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import Policy
    from gpusched_operations.forecast.draws import Draws

PRICES_S = 7 * 86_400.0
"""How far ahead rollouts take forecasts of prices; beyond it the last one holds [s]."""

BY_JOB = ("jobs", "tau", "memory")
CHANGED = ("nodes", "capacity", "edges", "survival", "tail", "clock", "count")
"""The arrays of a board, besides those by job and the lists of active jobs, that a run changes."""


COLUMNS = [at.START_S, at.END_S, at.ENERGY, at.TARDINESS]
"""What is read of every job at the end of a rollout."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What came of the jobs that were there, draw by draw.

    Attributes:
        start_s: First start [s], (D, A); inf: not until the horizon.
        end_s: End [s], (D, A); inf: not until the horizon.
        energy_eur: Energy cost attributed to each from now on [€], (D, A).
        tardiness_eur: Tardiness cost of each from now on [€], (D, A).
        until_s: When the rollout stopped [s], (D,).
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
    """Rollouts from a state, of which nothing changes.

    Args:
        state: The state, before the round at its present time.
        policy: The policy; it needs the number of columns of memory that the state has.
        rng: The policy's randomness in that round and after it, as it is then.
        coming: Most jobs to come in a draw, ≥ 0.
        horizon_s: How long after the present time rollouts stop at the latest [s], > 0.
    """

    def __init__(self, state: State, policy: Policy, rng: Generator, coming: int, horizon_s: float = np.inf) -> None:
        self._state, self._policy, self._rng = state, policy, rng
        self._until = float(state.board.clock[at.NOW]) + horizon_s
        self._start = _start(state.board, coming)

    def run_all(self, draws: Draws, longest_s: float = np.inf, threads: int = 1) -> Outcomes:
        """Make the rollouts of `draws`, or at least one of them and what there is time for.

        Args:
            draws: What was drawn for this state.
            longest_s: Time after which no other rollout begins [s].
            threads: Rollouts at one time, where they are compiled as a whole; what comes out does not depend on it.
        """
        begin, numbers = time.perf_counter(), iter(range(len(draws.needed)))

        def run(copy: _Copy) -> list[tuple[int, Floats, float, int, bool]]:
            found: list[tuple[int, Floats, float, int, bool]] = []
            while time.perf_counter() - begin <= longest_s or not found:
                draw = next(numbers, None)  # one thread at a time takes a number: the interpreter's lock
                if draw is None:
                    break
                found.append((draw, *copy.run(draws, draw)))
            return found

        first = self._copy()
        most = min(threads, len(draws.needed)) if first.is_compiled else 1
        copies = [first, *(self._copy() for _ in range(most - 1))]
        if most == 1:
            each = run(first)
        else:
            with ThreadPoolExecutor(most, "rollout") as pool:
                each = sorted((one for some in pool.map(run, copies) for one in some), key=itemgetter(0))
        _, rows, until, came, stalled = zip(*each, strict=True)
        found = np.array(rows).reshape(len(each), len(first.present), len(COLUMNS))
        times = np.where(np.isnan(found[..., :2]), np.inf, found[..., :2])
        spent = self._start.jobs[first.present][:, COLUMNS]
        return Outcomes(
            times[..., 0],
            times[..., 1],
            found[..., 2] - spent[:, 2],
            found[..., 3] - spent[:, 3],
            np.array(until),
            np.array(came, dtype=np.int64),
            np.array(stalled, dtype=np.int64),
        )

    def _copy(self) -> _Copy:
        return _Copy(self._state, self._start, self._policy, self._rng, self._until)


class _Copy:
    """A copy of a state on which rollouts run, one after the other.

    Args:
        state: The state.
        start: Its board, with rows for jobs to come; never changed.
        policy: The policy.
        rng: Its randomness.
        until: When rollouts stop at the latest [s].
    """

    def __init__(self, state: State, start: Board, policy: Policy, rng: Generator, until: float) -> None:
        self._policy, self._rng, self._start, self._until = policy, rng, start, until
        count = state.board.count
        self._known = int(count[at.SUBMITTED])
        self.present: Ints = start.active[: count[at.ACTIVE]].copy()
        self._done_before = int(count[at.DONE] - start.count[at.DONE])  # before what the board tells
        self._work = start.replaced(**{n: a.copy() for n, a in start.__getstate__().items() if n != "facts"})
        changed = (*BY_JOB, "active", *CHANGED, *added_fields(start))
        self._pairs = [(getattr(start, name), getattr(self._work, name)) for name in changed]
        self._hidden = _hidden(state, start)
        self._view = View(self._work, state.instance.configurations)
        self._compiled = compiled_run(policy, self._work)

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    def run(self, draws: Draws, draw: int) -> tuple[Floats, float, int, bool]:
        """Make one rollout.

        Returns:
            The `COLUMNS` of the jobs that were there, when it stopped [s], how many jobs came, whether it stalled.
        """
        for begin, work in self._pairs:
            work[...] = begin
        board, hidden, known = self._work, self._hidden, self._known
        if with_state(board.mechanisms) is not None:
            rng = np.random.default_rng([draws.seed, FUTURE, draw])
            hidden = hidden.replaced(**drawn_future(self._start, self._until, rng))
        hidden.outcome[...] = np.inf
        hidden.outcome[self.present, at.NEEDED] = draws.needed[draw]
        hidden.outcome[self.present, at.FINISH_S] = draws.finish_s[draw]
        hidden.jobs[known:], hidden.tau[known:] = draws.rows[draw], draws.tau[draw]
        hidden.outcome[known:, at.NEEDED] = draws.needed_later[draw]
        begin_round(board, self._policy.preemption)
        run = self._compiled or self._run_in_python
        stalled = run(board, hidden, self.present, self._until)
        came = int(board.count[at.SUBMITTED]) - known
        return board.jobs[self.present][:, COLUMNS], float(board.clock[at.NOW]), came, bool(stalled)

    def _run_in_python(self, board: Board, hidden: Hidden, present: Ints, until: float) -> bool:
        policy, rng, count, state = self._policy, deepcopy(self._rng), board.count, GOES_ON
        while state == GOES_ON:
            count[at.DONE] += self._done_before
            policy.decide(self._view, rng)
            count[at.DONE] -= self._done_before
            state = to_next_round(board, hidden, present, policy.preemption, until)
        return state == STALLED


def _start(board: Board, coming: int) -> Board:
    """Copy a board, with rows for `coming` jobs in place of those that are not submitted yet.

    Raises:
        InputError: A mechanism keeps state of its own, and cannot draw a future.
    """
    known, active = int(board.count[at.SUBMITTED]), int(board.count[at.ACTIVE])
    values: dict[str, Any] = board.__getstate__()
    values |= {name: values[name].copy() for name in (*CHANGED, *added_fields(board))}
    for name in BY_JOB:
        fill = 0.0 if name == "memory" else np.nan
        more = np.full((coming, values[name].shape[1]), fill)
        values[name] = np.concatenate([values[name][:known], more])
    values |= {n: np.concatenate([values[n][:known], more]) for n, more in new_job_rows(board, coming).items()}
    places = np.zeros(known + coming, dtype=np.int64)
    places[:active] = board.active[:active]
    values |= {"active": places, "keys": np.zeros(len(places)), "order": np.zeros_like(places)}
    start = board.replaced(**values)
    start.count[[at.LOGGING, at.LOGGED, at.DONE]] = 0, 0, known - active
    return start


def _hidden(state: State, start: Board) -> Hidden:
    """Make what is hidden from the policy: nothing of the true outcome, of later jobs, prices or caps not told yet."""
    board, hidden = state.board, state.hidden
    now = board.clock[at.NOW]
    return type(hidden)(
        outcome=np.full((len(start.jobs), at.OUTCOME_COLUMNS), np.inf),
        jobs=start.jobs.copy(),
        tau=start.tau.copy(),
        edges=hidden.edges,
        survival=hidden.survival,
        tail=hidden.tail,
        log=np.empty((0, hidden.log.shape[1])),
        **expected_arrays(board, hidden, now + PRICES_S),
        **drawn_future(board, now, np.random.default_rng(0)),
    )
