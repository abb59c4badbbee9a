"""A neighbourhood of Local Search: two jobs of a round exchange what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search import proxy_parts as its
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def best_exchange(
    board: Board, order: Ints, left: Floats, seen: its.Seen, bill: float, cost: float
) -> tuple[int, int, float]:
    """Find the two jobs whose exchange makes the proxy cost of the round least.

    Two running jobs swap configurations and places, or one that waits takes those of a running one of no higher
    pressure, which waits then. The nodes do not notice.

    Args:
        order: The jobs of the round by decreasing pressure, (A,).
        left: The epochs that they are taken to have left, (A,).
        seen: What is known of them.
        bill: Cost rate of all nodes [€/s].
        cost: Proxy cost of the round [€].

    Returns:
        Their positions in `order`, that of the higher pressure first, and the proxy cost then; -1, -1 and `cost` if no
        exchange is cheaper.
    """
    jobs, left_out, now_first = seen.jobs, its.left_out_sum(seen), its.first_beside(seen, -1, -1)
    best = (-1, -1, cost)
    for k in range(order.shape[0]):
        for i in range(k):
            if not _may_help(seen, now_first, i, k):
                continue
            first = _first_after(board, order, left, seen, i, k)
            waits = jobs[i, its.HOLDS] < 0
            out = left_out + (jobs[k, its.IF_LEFT_OUT] - jobs[i, its.IF_LEFT_OUT] if waits else 0.0)
            if first == np.inf or bill * first + out >= best[2]:
                continue
            value = bill * first + out + _lateness_after(seen, first, i, k)
            if value < best[2]:
                best = (i, k, value)
    return best


@lean_kernel
def _may_help(seen: its.Seen, first: float, i: int, k: int) -> bool:
    """Tell at a glance the exchanges that cannot make the round cheaper, most of them.

    Two running jobs leave the cost rate of the nodes as it is, so they must bring the first completion forward.
    """
    if seen.jobs[k, its.HOLDS] < 0 or seen.jobs[i, its.HOLDS] == seen.jobs[k, its.HOLDS]:
        return False
    return seen.jobs[i, its.HOLDS] < 0 or min(seen.jobs[i, its.LEAST], seen.jobs[k, its.LEAST]) < first


@kernel
def exchange(board: Board, job: int, other: int) -> None:
    """Let two jobs exchange what they hold in this round; one of them may hold nothing."""
    jobs = board.jobs
    for column in (at.CONFIG, at.NODE, at.SLOT):
        jobs[job, column], jobs[other, column] = jobs[other, column], jobs[job, column]


@lean_kernel
def _first_after(board: Board, order: Ints, left: Floats, seen: its.Seen, i: int, k: int) -> float:
    """Give the time until the first completion after the exchange [s]; inf if it may not be."""
    tau = board.tau
    ends = left[i] * tau[order[i], int(seen.jobs[k, its.HOLDS])]
    if not its.may_take(seen, i, ends):
        return np.inf
    if seen.jobs[i, its.HOLDS] >= 0:
        other = left[k] * tau[order[k], int(seen.jobs[i, its.HOLDS])]
        if not its.may_take(seen, k, other):
            return np.inf
        ends = min(ends, other)
    return min(ends, its.first_beside(seen, i, k))


@lean_kernel
def _lateness_after(seen: its.Seen, first: float, i: int, k: int) -> float:
    """Give what the running jobs cost by their lateness up to the first completion, after the exchange [€]."""
    late = its.lateness(seen, first)
    if seen.jobs[i, its.HOLDS] < 0:
        late += its.own_lateness(seen, i, first) - its.own_lateness(seen, k, first)
    return late
