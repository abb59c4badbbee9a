"""The proxy cost of a round in parts, so that a search sees what a change is worth without adding up all jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search.proxy import left_out_cost
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board

# What a search knows of the jobs of a round: float64 (A, SEEN_COLUMNS).
HOLDS = 0  # configuration held, or -1
ENDS_IN = 1  # seconds until it completes; inf while it waits
DUE_IN = 2  # seconds until its due date
WEIGHT = 3  # tardiness weight [€/s]
IF_LEFT_OUT = 4  # what the proxy charges for it while it waits [€]
LEAST = 5  # seconds it takes in its fastest configuration
SEEN_COLUMNS = 6


@kernel
def see(board: Board, order: Ints, left: Floats) -> Floats:
    """Write down what a search knows of the jobs of a round, (A, SEEN_COLUMNS)."""
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
    return seen


@kernel
def left_out_sum(seen: Floats) -> float:
    """Sum what the proxy charges for the jobs that wait [€]."""
    total = 0.0
    for i in range(seen.shape[0]):
        if seen[i, HOLDS] < 0:
            total += seen[i, IF_LEFT_OUT]
    return total


@kernel
def soonest_jobs(seen: Floats) -> Ints:
    """List the three running jobs that complete first, (3,); -1 where fewer run."""
    soonest = np.full(3, -1)
    for i in range(seen.shape[0]):
        if seen[i, HOLDS] < 0:
            continue
        rank = 3
        while rank > 0 and (soonest[rank - 1] < 0 or seen[i, ENDS_IN] < seen[soonest[rank - 1], ENDS_IN]):
            if rank < 3:
                soonest[rank] = soonest[rank - 1]
            rank -= 1
        if rank < 3:
            soonest[rank] = i
    return soonest


@kernel
def first_beside(seen: Floats, soonest: Ints, i: int, k: int) -> float:
    """Give the time until the first completion among the running jobs but `i` and `k` [s]; inf if no other runs."""
    for s in soonest:
        if s >= 0 and s not in {i, k}:
            return seen[s, ENDS_IN]
    return np.inf


@kernel
def lateness_table(seen: Floats) -> Floats:
    """Sort the jobs by due date, (3, A + 1).

    The rows: seconds until the due date, then inf; the sum of the weights of the running jobs before; and that of their
    weight · seconds until the due date.
    """
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


@kernel
def count_in(table: Floats, seen: Floats, i: int) -> None:
    """Let job `i`, which waited, run in a table of `lateness_table`."""
    rank = int(np.searchsorted(table[0], seen[i, DUE_IN]))
    table[1, rank + 1 :] += seen[i, WEIGHT]
    table[2, rank + 1 :] += seen[i, WEIGHT] * seen[i, DUE_IN]


@kernel
def lateness(table: Floats, first: float) -> float:
    """Give what the running jobs cost by their lateness up to the first completion, `first` seconds from now [€]."""
    before = int(np.searchsorted(table[0], first))
    return table[1, before] * first - table[2, before]


@kernel
def own_lateness(seen: Floats, i: int, first: float) -> float:
    """Give what job `i` costs by its lateness up to the first completion, if it runs [€]."""
    return seen[i, WEIGHT] * max(0.0, first - seen[i, DUE_IN])


@kernel
def may_take(seen: Floats, i: int, seconds: float) -> bool:
    """Say whether a search may let job `i` run for `seconds` more: no slower than now, or still by its due date.

    The proxy does not see lateness beyond the first completion, so without this rule a search would slow all jobs down.
    """
    if seconds == np.inf:
        return False
    return seconds <= seen[i, ENDS_IN] or not misses(seconds, seen[i, DUE_IN])
