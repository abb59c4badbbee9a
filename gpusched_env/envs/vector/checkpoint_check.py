"""Checks of a checkpoint: kernels follow what is in it without looking, so it must be a state that a run can be in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.vector.holdings import nodes_as_held
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.simulator import State

GENERATOR_WORDS = 6
EXACT = 1e-9  # relative difference up to which two computations of one number are the same

KINDS: dict[str, tuple[type, int]] = {
    **dict.fromkeys(("jobs", "clock", "memory", "fate"), (np.float64, 1)),
    **dict.fromkeys(("nodes", "count", "active", "order"), (np.int64, 1)),
    "invalid": (np.int64, 1),
    "ended": (np.bool_, 1),
    "instance_seed": (np.int64, 1),
    "generator": (np.uint64, 2),
    "arguments": (np.uint8, 1),
}
"""The arrays of a checkpoint, by name: type and number of axes."""

FIXED_JOB = (
    at.SUBMISSION, at.DUE, at.WEIGHT, at.MAX_EPOCHS, at.MIN_TAU, at.MAX_TAU, at.DISTRIBUTION, at.APPLICATION,
    at.RESTART_S, at.CHEAPEST, at.CHEAPEST_TAU, at.EDGES,
)  # fmt: skip
FIXED_CLOCK = (at.REVIEW, at.IDLE_REVIEW, at.PRICE, at.PUE)
FIXED_COUNT = (at.MILESTONES, at.LOGGING, at.LOGGED, at.DUE_WAKES, at.CONSOLIDATES, at.PREEMPTION, at.ORDER)
"""Columns that never change in a run."""


def checked_arrays(state: Mapping[str, NDArray[Any]], environments: int) -> dict[str, NDArray[Any]]:
    """Give the arrays by name, once their types and numbers of axes are checked; a file of them is read once.

    Raises:
        InputError: It is no checkpoint of so many environments.
    """
    arrays: dict[str, Any] = {name: state.get(name) if hasattr(state, "get") else None for name in KINDS}
    for name, (kind, axes) in KINDS.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != axes:
            raise InputError(f"state[{name!r}]", array, f"an array of {np.dtype(kind)} with {axes} axes")
    for name in ("invalid", "ended", "instance_seed", "generator"):
        if len(arrays[name]) != environments:
            raise InputError(f"state[{name!r}]", f"{len(arrays[name])} environments", f"{environments}")
    words = arrays["generator"]
    if words.shape[1] != GENERATOR_WORDS:
        raise InputError("state['generator']", f"{words.shape[1]} columns", f"{GENERATOR_WORDS}")
    if np.any((words[:, 3] % 2 == 0) | (words[:, 4] > 1) | (words[:, 5] >= 2**32)):
        raise InputError("state['generator']", "words of no generator", "what get_state gave")
    for name in ("instance_seed", "invalid"):
        if np.any(arrays[name] < 0):
            raise InputError(f"state[{name!r}]", int(arrays[name].min()), "whole numbers >= 0")
    return arrays


def check_run(i: int, run: State, fresh: State, ended: bool) -> None:
    """Check that `run`, of environment i, is in a state that a run of its instance can be in.

    Args:
        i: Number of the environment.
        run: The run, with the arrays of the checkpoint.
        fresh: A run of the same instance that has not begun.
        ended: Whether the checkpoint says that the run is over.

    Raises:
        InputError: Its instance is another one, or it says something impossible; says what.
    """
    if not np.array_equal(run.hidden.fate[:, at.NEEDED], fresh.hidden.fate[:, at.NEEDED]):
        allowed = "a state whose instances this version makes again from scenario and seeds"
        raise InputError(f"state of environment {i}", "another instance", allowed)
    checks = (_counts_hold, _lists_hold, _clock_holds, _jobs_hold, _progress_holds, _nodes_hold, _money_holds)
    for check in checks:
        if not check(run, fresh):
            wrong = check.__name__.strip("_").partition("_")[0]
            raise InputError(f"state of environment {i}", f"an impossible run ({wrong})", "what get_state gave")
    if ended != (run.board.count[at.DONE] == len(run.board.jobs)):
        raise InputError(f"state['ended'][{i}]", ended, "True where the episode is over, and only there")


def _counts_hold(run: State, fresh: State) -> bool:
    count, jobs = run.board.count, len(run.board.jobs)
    submitted, active, done, to_ask, asked = count[[at.SUBMITTED, at.ACTIVE, at.DONE, at.TO_ASK, at.ASKED]].tolist()
    return (
        0 <= asked <= to_ask <= active <= submitted <= jobs
        and done == submitted - active
        and (asked == to_ask) == (done == jobs)
        and np.array_equal(count[[*FIXED_COUNT]], fresh.board.count[[*FIXED_COUNT]])
        and bool(np.all(count >= 0))
    )


def _lists_hold(run: State, _: State) -> bool:
    """Check who is active, and who is asked: each once, and those to be asked yet hold nothing."""
    board, count = run.board, run.board.count
    active = board.active[: count[at.ACTIVE]]
    order, waiting = board.order[: count[at.TO_ASK]], board.order[count[at.ASKED] : count[at.TO_ASK]]
    not_done = np.flatnonzero(np.isnan(board.jobs[: count[at.SUBMITTED], at.END_S]))
    return (
        np.array_equal(active, not_done)
        and len(np.unique(order)) == len(order)
        and bool(np.isin(order, active).all())
        and bool(np.all(board.jobs[waiting, at.CONFIG] == -1))
    )


def _clock_holds(run: State, fresh: State) -> bool:
    clock, submitted = run.board.clock, run.board.count[at.SUBMITTED]
    now, submissions = clock[at.NOW], run.hidden.jobs[:, at.SUBMISSION]
    return (
        np.array_equal(clock[[*FIXED_CLOCK]], fresh.board.clock[[*FIXED_CLOCK]])
        and bool(np.isfinite(clock[[at.NOW, at.BILL, at.LATENESS, at.BILL_RATE, at.LAST_BUSY]]).all())
        and 0.0 <= clock[at.LAST_BUSY] <= now
        and bool(np.all(submissions[:submitted] <= now))
        and bool(np.all(submissions[submitted:] >= now))
    )


def _jobs_hold(run: State, _: State) -> bool:
    """Check the rows of the jobs one by one: what never changes, times, and what they do not hold."""
    board, now = run.board, run.board.clock[at.NOW]
    submitted = board.count[at.SUBMITTED]
    jobs, first = board.jobs[:submitted], run.hidden.jobs[:submitted]
    done, started = ~np.isnan(jobs[:, at.END_S]), ~np.isnan(jobs[:, at.START_S])
    home, old = jobs[:, [at.HOME, at.HOME_SLOT]], jobs[:, [at.OLD_NODE, at.OLD_SLOT]]
    times = jobs[:, [at.START_S, at.END_S, at.BASE_S]]
    return (
        bool(np.isnan(board.jobs[submitted:]).all())
        and np.array_equal(jobs[:, FIXED_JOB], first[:, FIXED_JOB])
        and bool(np.all(np.isnan(times) | ((times >= 0.0) & (times <= now))))
        and bool(np.all(started[done]))
        and bool(np.all(jobs[done][:, at.CONFIG] == -1))
        and not np.isnan(jobs[:, at.WAKE_S]).any()
        and _whole(jobs[:, at.MILESTONE], 1)
        and _whole(jobs[:, at.SWITCHES], 0)
        and bool(np.all(np.all(home == old, axis=1) | np.all(home == -1, axis=1) | done))
    )


def _progress_holds(run: State, _: State) -> bool:
    """Check epochs and completions against the times since which jobs have run at their pace."""
    board, fate, now = run.board, run.hidden.fate, run.board.clock[at.NOW]
    submitted = board.count[at.SUBMITTED]
    jobs, needed = board.jobs[:submitted], fate[:submitted, at.NEEDED]
    done, held = ~np.isnan(jobs[:, at.END_S]), jobs[:, at.OLD_CONFIG].astype(np.int64)
    runs = (held >= 0) & ~done
    pace = run.hidden.tau[np.arange(submitted), held] * jobs[:, at.PACE]
    anchor_s, anchor = jobs[:, at.ANCHOR_S], jobs[:, at.ANCHOR_EPOCHS]
    if not (np.all(np.isfinite(pace[runs])) and np.all(jobs[:, at.PACE] > 0.0) and np.isfinite(anchor_s[runs]).all()):
        return False
    finish = np.full(len(fate), np.inf)
    finish[:submitted][runs] = (anchor_s + np.maximum(0.0, needed - anchor) * pace)[runs]
    epochs = np.where(runs, anchor + np.maximum(0.0, now - anchor_s) / pace, jobs[:, at.BASE_EPOCHS])
    epochs[done] = needed[done]
    return (
        bool(np.all(finish >= now - SAME_TIME_S - SAME_TIME * now))
        and _same(fate[:, at.FINISH_S], finish)
        and _same(jobs[:, at.EPOCHS], epochs)
        and bool(np.all((jobs[:, at.EPOCHS] >= 0.0) & (jobs[:, at.EPOCHS] <= needed * (1.0 + EXACT))))
    )


def _nodes_hold(run: State, fresh: State) -> bool:
    """Check that GPUs are free, now and when the round began, which no job holds."""
    board = run.board
    fixed = [at.NODE_TYPE, at.NODE_GPUS]
    same = np.array_equal(board.nodes[:, fixed], fresh.board.nodes[:, fixed])
    return same and all(nodes_as_held(board, old=old) for old in (False, True))


def _money_holds(run: State, _: State) -> bool:
    """Check that what jobs are charged sums to the bill, and that the rate is that of the nodes in use."""
    board, clock = run.board, run.board.clock
    jobs = board.jobs[: board.count[at.SUBMITTED]]
    busy = board.nodes[:, at.NODE_GPUS] - board.nodes[:, at.OLD_FREE]
    over = board.count[at.DONE] == len(board.jobs)
    rate = 0.0 if over else board.node_rate[board.nodes[:, at.NODE_TYPE], busy].sum()
    paid = jobs[:, [at.ENERGY, at.TARDINESS]]
    return (
        bool(np.all(paid >= 0.0))
        and _same(paid.sum(axis=0), clock[[at.BILL, at.LATENESS]])
        and _same(clock[at.BILL_RATE], rate)
    )


def _same(values: Any, expected: Any) -> bool:
    return bool(np.allclose(values, expected, rtol=EXACT, atol=1e-300))


def _whole(values: NDArray[np.float64], least: int) -> bool:
    return bool(np.all((values >= least) & (values == np.floor(values)) & np.isfinite(values)))
