"""Checks of a checkpoint: kernels follow what is in it without looking, so it must be a state that a run can be in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.vector.holdings import busy_gpus, cells_lie, nodes_as_held
from gpusched_env.envs.vector.spared import spared_before
from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S
from gpusched_env.simulator.pace.interconnect import least_paces
from gpusched_env.simulator.placement.whole_nodes import MARK_MODULUS
from gpusched_env.simulator.rounds import round_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.simulator import State

GENERATOR_WORDS = 6
EXACT = 1e-9  # relative difference up to which two computations of one number are the same
MOST_ROUNDS = 2**53

KINDS: dict[str, tuple[type, int]] = {
    **dict.fromkeys(("jobs", "clock", "memory", "fate"), (np.float64, 1)),
    **dict.fromkeys(("nodes", "count", "active", "order", "cells"), (np.int64, 1)),
    "invalid": (np.int64, 1),
    "steps": (np.int64, 1),
    "ended": (np.bool_, 1),
    "instance_seed": (np.int64, 1),
    "generator": (np.uint64, 2),
    "arguments": (np.uint8, 1),
    "digest": (np.uint8, 1),
}
"""The arrays of a checkpoint, by name: type and number of axes."""

FIXED_JOB = (
    at.SUBMISSION, at.DUE, at.WEIGHT, at.MAX_EPOCHS, at.MIN_TAU, at.MAX_TAU, at.DISTRIBUTION, at.APPLICATION,
    at.RESTART_S, at.STARTING_S, at.RESUMING_S, at.CHEAPEST, at.CHEAPEST_TAU, at.EDGES, at.OPPORTUNISTIC,
    at.TENANT,
)  # fmt: skip
FIXED_CLOCK = (at.REVIEW, at.IDLE_REVIEW, at.PRICE, at.PUE)
FIXED_COUNT = (
    at.MILESTONES, at.LOGGING, at.LOGGED, at.DUE_WAKES, at.CONSOLIDATES, at.PREEMPTION, at.ORDER,
    at.DISTANCES,
)  # fmt: skip
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
    for name in ("invalid", "steps", "ended", "instance_seed", "generator"):
        if len(arrays[name]) != environments:
            raise InputError(f"state[{name!r}]", f"{len(arrays[name])} environments", f"{environments}")
    words = arrays["generator"]
    if words.shape[1] != GENERATOR_WORDS:
        raise InputError("state['generator']", f"{words.shape[1]} columns", f"{GENERATOR_WORDS}")
    if np.any((words[:, 3] % 2 == 0) | (words[:, 4] > 1) | (words[:, 5] >= 2**32)):
        raise InputError("state['generator']", "words of no generator", "what get_state gave")
    for name in ("instance_seed", "invalid", "steps"):
        if np.any(arrays[name] < 0):
            raise InputError(f"state[{name!r}]", int(arrays[name].min()), "whole numbers >= 0")
    return arrays


def check_run(i: int, run: State, fresh: State, ended: bool, cut_off: bool) -> None:
    """Check that `run`, of environment i, is in a state that a run of its instance can be in.

    What cannot be known without the past is only checked for its range: what jobs were charged one by one, how often
    they switched, and what those that hold nothing held before.

    Args:
        i: Number of the environment.
        run: The run, with the arrays of the checkpoint.
        fresh: A run of the same instance that has not begun.
        ended: Whether the checkpoint says that the episode is over.
        cut_off: Whether it has come to a limit.

    Raises:
        InputError: Its instance is another one, or it says something impossible; says what.
    """
    if not np.array_equal(run.hidden.fate[:, at.NEEDED], fresh.hidden.fate[:, at.NEEDED]):
        allowed = "a state whose instances this version makes again from scenario and seeds"
        raise InputError(f"state of environment {i}", "another instance", allowed)
    with np.errstate(all="ignore"):  # whatever the numbers are: what comes out is compared
        wrong = next((what for what, check in CHECKS.items() if not check(run, fresh)), None)
    if wrong is not None:
        raise InputError(f"state of environment {i}", f"an impossible run ({wrong})", "what get_state gave")
    if ended != (cut_off or _over(run)):
        raise InputError(f"state['ended'][{i}]", ended, "True where the episode is over, and only there")


def _counts_hold(run: State, fresh: State) -> bool:
    count, jobs = run.board.count, len(run.board.jobs)
    submitted, active, done, to_ask, asked = count[[at.SUBMITTED, at.ACTIVE, at.DONE, at.TO_ASK, at.ASKED]].tolist()
    return (
        0 <= asked <= to_ask <= active <= submitted <= jobs
        and done == submitted - active
        and (asked == to_ask) == (done == jobs)
        and 0 <= count[at.IDLE] <= count[at.ROUND] <= MOST_ROUNDS
        and (count[at.IDLE] == 0 or submitted == jobs)
        and np.array_equal(count[[*FIXED_COUNT]], fresh.board.count[[*FIXED_COUNT]])
    )


def _clock_holds(run: State, fresh: State) -> bool:
    clock, submitted = run.board.clock, run.board.count[at.SUBMITTED]
    now, busy, submissions = clock[at.NOW], clock[at.LAST_BUSY], run.hidden.jobs[:, at.SUBMISSION]
    return (
        np.array_equal(clock[[*FIXED_CLOCK]], fresh.board.clock[[*FIXED_CLOCK]])
        and bool(np.isfinite(clock[[at.NOW, at.BILL, at.LATENESS, at.BILL_RATE]]).all())
        and (busy == now if run.board.count[at.IDLE] == 0 else 0.0 <= busy <= now)
        and bool(np.all(submissions[:submitted] <= now) and np.all(submissions[submitted:] > now))
    )


def _rows_hold(run: State, _: State) -> bool:
    """Check the rows of the jobs one by one: what never changes, and the ranges of indices and numbers."""
    board, submitted = run.board, run.board.count[at.SUBMITTED]
    jobs, first = board.jobs[:submitted], run.hidden.jobs[:submitted]
    gpus = (board.nodes.shape[1] - at.NODE_COLUMNS) // 2
    home, wake = jobs[:, at.HOME], jobs[:, at.WAKE_S]
    last = np.append(board.nodes[:, at.NODE_GPUS], 0) - 1  # GPU of every node, and of none
    ended = ~np.isnan(jobs[:, at.END_S])
    return (
        bool(np.isnan(board.jobs[submitted:]).all())
        and np.array_equal(jobs[:, FIXED_JOB], first[:, FIXED_JOB])
        and _whole(jobs[:, [at.CONFIG, at.OLD_CONFIG]], -1, len(board.facts.configs) - 1)
        and _whole(jobs[:, [at.NODE, at.OLD_NODE]], -1, len(board.nodes) - 1)
        and _whole(jobs[:, [at.SLOT, at.OLD_SLOT]], -1, gpus - 1)
        and _whole(jobs[ended][:, [at.CONFIG, at.NODE, at.SLOT]], -1, -1)
        and _whole(jobs[:, at.MILESTONE], 1, max(1, board.count[at.MILESTONES]))
        and _whole(jobs[:, at.SWITCHES], 0, board.count[at.ROUND])
        and _whole(jobs[:, at.LAST_NODE], -1, len(board.nodes) - 1)
        and _whole(jobs[:, at.LAST_NODES], 0, MARK_MODULUS - 1)
        and _whole(home, -1, len(board.nodes) - 1)
        and _whole(jobs[:, at.HOME_SLOT], -1, last[home.astype(np.int64)])
        and bool(np.all((wake <= np.maximum(LONGEST_S, jobs[:, at.DUE])) | (wake == np.inf)))
    )


def _lists_hold(run: State, _: State) -> bool:
    """Check who is active, and who is asked in which order."""
    board, count = run.board, run.board.count
    active = board.active[: count[at.ACTIVE]]
    if not np.array_equal(active, np.flatnonzero(np.isnan(board.jobs[: count[at.SUBMITTED], at.END_S]))):
        return False
    round_keys(board, count[at.ORDER])
    asked = (board.jobs[active, at.OLD_CONFIG] < 0) | (count[at.PREEMPTION] > 0)
    order = active[asked][np.argsort(board.keys[: len(active)][asked], kind="stable")]
    rest = np.concatenate([board.active, board.order])
    return np.array_equal(board.order[: count[at.TO_ASK]], order) and _whole(rest, 0, len(board.jobs) - 1)


def _nodes_hold(run: State, fresh: State) -> bool:
    """Check that GPUs are free, now and when the round began, which no job holds."""
    nodes, fixed = run.board.nodes, [at.NODE_TYPE, at.NODE_GPUS]
    if not np.array_equal(nodes[:, fixed], fresh.board.nodes[:, fixed]):
        return False
    if not np.array_equal(run.board.cells[:, at.CELL_KIND], fresh.board.cells[:, at.CELL_KIND]):
        return False
    if not cells_lie(run.board, old=False) or not nodes_as_held(run.board, run.hidden.tau, old=False):
        return False
    if not _over(run):
        return cells_lie(run.board, old=True) and nodes_as_held(run.board, run.hidden.tau, old=True)
    last = nodes[:, at.NODE_COLUMNS + (nodes.shape[1] - at.NODE_COLUMNS) // 2 :]  # of a round whose jobs are all gone
    return (
        _whole(nodes[:, at.OLD_FREE], 0, nodes[:, at.NODE_GPUS])
        and _whole(nodes[:, at.OLD_NEXT], -1, len(nodes) - 1)
        and _whole(last, 0, at.UNITS)
    )


def _times_hold(run: State, _: State) -> bool:
    """Check when jobs began and ended, and when what they hold, and its pace, began."""
    jobs, now = run.board.jobs[: run.board.count[at.SUBMITTED]], run.board.clock[at.NOW]
    start, end, base, ready, anchor = jobs[:, [at.START_S, at.END_S, at.BASE_S, at.READY_S, at.ANCHOR_S]].T
    new, over, runs = np.isnan(start), ~np.isnan(end), _running(run)
    waited = _waits_as_told(run, jobs)
    as_told = (start <= base) & waited & (ready <= anchor) & (anchor <= np.maximum(now, ready))
    untouched = np.all(jobs[:, [at.EPOCHS, at.ENERGY, at.SWITCHES, at.BASE_S]] == 0.0, axis=1)
    return bool(
        np.all(new | ((jobs[:, at.SUBMISSION] <= start) & (start <= now)))
        and np.all(~over | ((start <= end) & (end <= now)))
        and np.all((base >= 0.0) & (base <= now) & np.isfinite(ready) & np.isfinite(anchor))
        and np.all(~runs | as_told)
        and np.all(~new | untouched)
    )


def _waits_as_told(run: State, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    """Say whose present wait is one that a switch can cost."""
    start, base, ready = jobs[:, [at.START_S, at.BASE_S, at.READY_S]].T
    board, costs = run.board, jobs[:, [at.STARTING_S, at.RESUMING_S, at.RESTART_S]]
    first, resumed, restarted = (ready == base + seconds for seconds in costs.T)
    known = jobs[:, at.LAST_NODE] >= 0.0
    first &= (base == start) | (jobs[:, at.STARTING_S] > 0.0)
    waited = np.where(known, restarted | (resumed & (board.count[at.DISTANCES] > 0)), first)
    shares = board.facts.configs[jobs[:, at.OLD_CONFIG].astype(np.int64), at.CONFIG_UNITS] > 0
    keeps = (base <= ready) & (ready <= base + costs.max(axis=1, initial=0.0)) & (base > start)
    return waited | (keeps & shares & (board.count[at.DISTANCES] > 0))


def _epochs_hold(run: State, _: State) -> bool:
    """Check epochs and completions against the times since which jobs have run at their pace."""
    board, fate, now = run.board, run.hidden.fate, run.board.clock[at.NOW]
    jobs = board.jobs[: board.count[at.SUBMITTED]]
    needed, runs, held = fate[: len(jobs), at.NEEDED], _running(run), jobs[:, at.OLD_CONFIG].astype(np.int64)
    least = np.where(runs, least_paces(board.facts)[jobs[:, at.APPLICATION].astype(np.int64), held], 0.0)
    pace = run.hidden.tau[np.arange(len(jobs)), held] * jobs[:, at.PACE]
    anchor_s, anchor = jobs[:, at.ANCHOR_S], jobs[:, at.ANCHOR_EPOCHS]
    finish = np.full(len(fate), np.inf)
    finish[: len(jobs)][runs] = (anchor_s + np.maximum(0.0, needed - anchor) * pace)[runs]
    epochs = np.where(runs, anchor + np.maximum(0.0, now - anchor_s) / pace, jobs[:, at.BASE_EPOCHS])
    epochs[~np.isnan(jobs[:, at.END_S])] = needed[~np.isnan(jobs[:, at.END_S])]
    counted = jobs[:, [at.EPOCHS, at.BASE_EPOCHS, at.ANCHOR_EPOCHS]]
    return (
        bool(np.all((jobs[:, at.PACE] >= least * (1.0 - EXACT)) & (jobs[:, at.PACE] <= 1.0 + EXACT)))
        and bool(np.all(fate[:, at.FINISH_S] > now + SAME_TIME_S + SAME_TIME * now))
        and _same(fate[:, at.FINISH_S], finish)
        and _same(jobs[:, at.EPOCHS], epochs)
        and bool(np.all((counted >= 0.0) & (counted <= needed[:, None] * (1.0 + EXACT))))
        and bool(np.all(~runs | (jobs[:, at.BASE_EPOCHS] <= anchor)))
    )


def _money_holds(run: State, _: State) -> bool:
    """Check tardiness, that what jobs are charged sums to the bill, and that its rate is that of the nodes in use."""
    board, clock, now = run.board, run.board.clock, run.board.clock[at.NOW]
    jobs = board.jobs[: board.count[at.SUBMITTED]]
    busy = busy_gpus(board, old=not _over(run))
    rate = board.node_rate[board.nodes[:, at.NODE_TYPE], busy].sum() - spared_before(board, _running(run))
    paid, weight = jobs[:, [at.ENERGY, at.TARDINESS]], jobs[:, at.WEIGHT]
    late = np.maximum(0.0, np.fmin(now, jobs[:, at.END_S]) - jobs[:, at.DUE])
    return (
        bool(np.all(paid >= 0.0))
        and bool(np.all(np.abs(jobs[:, at.TARDINESS] - weight * late) <= EXACT * weight * now))
        and _same(paid.sum(axis=0), clock[[at.BILL, at.LATENESS]])
        and _same(clock[at.BILL_RATE], rate)
    )


CHECKS = {  # each may count on those before it
    "counts": _counts_hold,
    "clock": _clock_holds,
    "jobs": _rows_hold,
    "order": _lists_hold,
    "nodes": _nodes_hold,
    "times": _times_hold,
    "epochs": _epochs_hold,
    "costs": _money_holds,
}


def _over(run: State) -> bool:
    return bool(run.board.count[at.DONE] == len(run.board.jobs))


def _running(run: State) -> NDArray[np.bool_]:
    """Say which of the submitted jobs ran until the present round."""
    jobs = run.board.jobs[: run.board.count[at.SUBMITTED]]
    return (jobs[:, at.OLD_CONFIG] >= 0) & np.isnan(jobs[:, at.END_S])


def _same(values: Any, expected: Any) -> bool:
    return bool(np.allclose(values, expected, rtol=EXACT, atol=1e-300))


def _whole(values: NDArray[Any], least: int, most: Any) -> bool:
    return bool(np.all((values >= least) & (values <= most) & (values == np.floor(values))))
