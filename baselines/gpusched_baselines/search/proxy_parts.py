"""The proxy cost of a round, whole and in parts: with the parts the value of a change needs no sum over all jobs.

`order`, (A,), are the jobs of the round, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

POSTPONED = 100.0  # factor on the tardiness cost of a job that is left out


@kernel
def proxy_cost(board: Board, order: Ints) -> float:
    """Return the proxy cost as `proxy_with` does, in the worst case: all epochs left are needed."""
    jobs = board.jobs
    left = jobs[order, at.MAX_EPOCHS] - jobs[order, at.EPOCHS]
    return proxy_with(board, order, left)


@kernel
def proxy_with(board: Board, order: Ints, left: Floats) -> float:
    """Return the proxy cost of what the jobs of a round hold [€] (theory, section 5).

    Energy of all nodes until the first completion, tardiness of the jobs that run up to then, and, for jobs left out,
    100 · ω · max(0, t + max execution time - d).
    """
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    first = np.inf
    for i in range(order.shape[0]):
        config = int(jobs[order[i], at.CONFIG])
        if config >= 0:
            first = min(first, left[i] * tau[order[i], config])
    if first == np.inf:
        first = 0.0
    cost = sim.bill_rate(board) * first
    for i in range(order.shape[0]):
        job = order[i]
        if jobs[job, at.CONFIG] >= 0:
            cost += jobs[job, at.WEIGHT] * max(0.0, now + first - jobs[job, at.DUE])
        else:
            cost += left_out_cost(board, job, left[i])
    return cost


@kernel
def left_out_cost(board: Board, job: int, left: float) -> float:
    """Return the proxy cost of a job that is left out [€]: a hundred times the tardiness cost that it may have."""
    jobs, now = board.jobs, board.clock[at.NOW]
    late = now + left * jobs[job, at.MAX_TAU] - jobs[job, at.DUE]
    return POSTPONED * jobs[job, at.WEIGHT] * max(0.0, late)


# Columns of `SeenRound.jobs`.
HOLDS = 0  # configuration held, or -1
ENDS_IN = 1  # seconds until it completes; inf while it waits
DUE_IN = 2  # seconds until its due date
WEIGHT = 3  # tardiness weight [€/s]
IF_LEFT_OUT = 4  # its part of the proxy cost while it waits [€]
LEAST = 5  # seconds it takes in its fastest configuration
SEEN_COLUMNS = 6


class SeenRound(NamedTuple):
    """The parts of the proxy cost of a round.

    Attributes:
        jobs: Its jobs, (A, SEEN_COLUMNS).
        soonest: The three running jobs that complete first, (3,); -1 where fewer run.
        by_due: The jobs by due date, (3, A + 1). The rows: seconds until the due date, then inf; the sum of the weights
            of the running jobs before; and that of their weight · seconds until the due date.
    """

    jobs: Floats
    soonest: Ints
    by_due: Floats


@kernel
def see(board: Board, order: Ints, left: Floats) -> SeenRound:
    """Compute the parts of the proxy cost of a round; `left`, (A,), are the estimated epochs left of its jobs."""
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    seen = np.empty((order.shape[0], SEEN_COLUMNS))
    for i in range(order.shape[0]):
        job = order[i]
        config = int(jobs[job, at.CONFIG])
        seen[i, HOLDS] = config
        seen[i, ENDS_IN] = left[i] * tau[job, config] if config >= 0 else np.inf
        seen[i, DUE_IN] = jobs[job, at.DUE] - now
        seen[i, WEIGHT] = jobs[job, at.WEIGHT]
        seen[i, IF_LEFT_OUT] = left_out_cost(board, job, left[i])
        seen[i, LEAST] = left[i] * jobs[job, at.MIN_TAU]
    soonest = np.empty(3, dtype=np.int64)
    _write_soonest(seen, soonest)
    return SeenRound(seen, soonest, _by_due(seen))


@lean_kernel
def left_out_sum(seen: SeenRound) -> float:
    total = 0.0
    for i in range(seen.jobs.shape[0]):
        if seen.jobs[i, HOLDS] < 0:
            total += seen.jobs[i, IF_LEFT_OUT]
    return total


@lean_kernel
def _write_soonest(jobs: Floats, soonest: Ints) -> None:
    soonest[0], soonest[1], soonest[2] = -1, -1, -1
    for i in range(jobs.shape[0]):
        if jobs[i, HOLDS] < 0:
            continue
        rank = 3
        while rank > 0 and (soonest[rank - 1] < 0 or jobs[i, ENDS_IN] < jobs[soonest[rank - 1], ENDS_IN]):
            if rank < 3:
                soonest[rank] = soonest[rank - 1]
            rank -= 1
        if rank < 3:
            soonest[rank] = i


@lean_kernel
def first_beside(seen: SeenRound, i: int, k: int) -> float:
    """Return the time until the first completion among the running jobs but `i` and `k` [s]; inf if no other runs."""
    for rank in range(3):
        s = seen.soonest[rank]
        if s >= 0 and s != i and s != k:  # noqa: PLR1714 - a set would be made
            return seen.jobs[s, ENDS_IN]
    return np.inf


@kernel
def _by_due(seen: Floats) -> Floats:
    jobs = seen.shape[0]
    ranks = np.argsort(seen[:, DUE_IN], kind="mergesort")
    table = np.zeros((3, jobs + 1))
    table[0, jobs] = np.inf
    for r in range(jobs):
        i = ranks[r]
        weight = seen[i, WEIGHT] if seen[i, HOLDS] >= 0 else 0.0
        table[0, r] = seen[i, DUE_IN]
        table[1, r + 1] = table[1, r] + weight
        table[2, r + 1] = table[2, r] + weight * seen[i, DUE_IN]
    return table


@lean_kernel
def give(seen: SeenRound, i: int, config: int, seconds: float) -> None:
    """Record that job `i` runs for `seconds` on `config`, in place of what it holds, if anything."""
    jobs, table = seen.jobs, seen.by_due
    if jobs[i, HOLDS] < 0:
        for rank in range(_due_before(table, jobs[i, DUE_IN]) + 1, table.shape[1]):
            table[1, rank] += jobs[i, WEIGHT]
            table[2, rank] += jobs[i, WEIGHT] * jobs[i, DUE_IN]
    jobs[i, HOLDS], jobs[i, ENDS_IN] = config, seconds
    _write_soonest(jobs, seen.soonest)


@lean_kernel
def tardiness(seen: SeenRound, first: float) -> float:
    """Return the tardiness cost of the running jobs up to the first completion, `first` seconds from now [€]."""
    before = _due_before(seen.by_due, first)
    return seen.by_due[1, before] * first - seen.by_due[2, before]


@lean_kernel
def _due_before(table: Floats, seconds: float) -> int:
    low, high = 0, table.shape[1] - 1
    while low < high:
        middle = (low + high) // 2
        if table[0, middle] < seconds:
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def own_tardiness(seen: SeenRound, i: int, first: float) -> float:
    return seen.jobs[i, WEIGHT] * max(0.0, first - seen.jobs[i, DUE_IN])


@lean_kernel
def may_take(seen: SeenRound, i: int, seconds: float) -> bool:
    """Return whether a search may run job `i` for `seconds` more: no slower than now, or still by its due date.

    The proxy cost has no tardiness after the first completion, so without this rule a search would slow all jobs down.
    """
    if seconds == np.inf:
        return False
    return seconds <= seen.jobs[i, ENDS_IN] or not sim.misses(seconds, seen.jobs[i, DUE_IN])
