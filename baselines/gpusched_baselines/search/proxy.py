"""The proxy cost of a round: what Random Greedy and its kin compare constructions by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board

POSTPONED = 100.0  # how much heavier the lateness of a job that is left out counts


@kernel
def proxy_cost(board: Board, order: Ints) -> float:
    """Give the proxy cost as `proxy_with` does, in the worst case: all epochs left are needed."""
    jobs = board.jobs
    left = jobs[order, at.MAX_EPOCHS] - jobs[order, at.EPOCHS]
    return proxy_with(board, order, left)


@kernel
def proxy_with(board: Board, order: Ints, left: Floats) -> float:
    """Give the proxy cost of what the jobs of a round hold [€] (design, section 3).

    Energy of all nodes until the first completion, tardiness of the jobs that run up to then, and, for jobs left out,
    100 · ω · max(0, t + max execution time - d).

    Args:
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
    """
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    first = np.inf
    for i in range(order.shape[0]):
        config = int(jobs[order[i], at.CONFIG])
        if config >= 0:
            first = min(first, left[i] * tau[order[i], config])
    if first == np.inf:
        first = 0.0
    cost = bill_rate(board) * first
    for i in range(order.shape[0]):
        job = order[i]
        if jobs[job, at.CONFIG] >= 0:
            cost += jobs[job, at.WEIGHT] * max(0.0, now + first - jobs[job, at.DUE])
        else:
            cost += left_out_cost(board, job, left[i])
    return cost


@kernel
def left_out_cost(board: Board, job: int, left: float) -> float:
    """Give what the proxy charges for a job that is left out [€]: a hundred times what it may come to cost."""
    jobs, now = board.jobs, board.clock[at.NOW]
    late = now + left * jobs[job, at.MAX_TAU] - jobs[job, at.DUE]
    return POSTPONED * jobs[job, at.WEIGHT] * max(0.0, late)
