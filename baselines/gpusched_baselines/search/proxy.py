"""The proxy cost of a round: what Random Greedy and its kin compare constructions by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

POSTPONED = 100.0  # how much heavier the lateness of a job that is left out counts


@kernel
def proxy_cost(jobs: Floats, nodes: Ints, tau: Floats, node_rate: Floats, order: Ints, now: float) -> float:
    """Give the proxy cost as `proxy_with` does, in the worst case: all epochs left are needed."""
    left = jobs[order, at.MAX_EPOCHS] - jobs[order, at.EPOCHS]
    return proxy_with(jobs, nodes, tau, node_rate, order, left, now)


@kernel
def proxy_with(
    jobs: Floats, nodes: Ints, tau: Floats, node_rate: Floats, order: Ints, left: Floats, now: float
) -> float:
    """Give the proxy cost of what the jobs of a round hold [€] (design, section 3).

    Energy of all nodes until the first completion, tardiness of the jobs that run up to then, and, for jobs left out,
    100 · ω · max(0, t + max execution time - d).

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS).
        nodes: State of the nodes, (N, columns of `layout`).
        tau: Seconds per epoch, (J, C).
        node_rate: r_v(u) [€/s], (V, G + 1).
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
        now: Present time [s].
    """
    first = np.inf
    for i in range(order.shape[0]):
        config = int(jobs[order[i], at.CONFIG])
        if config >= 0:
            first = min(first, left[i] * tau[order[i], config])
    if first == np.inf:
        first = 0.0
    cost = bill_rate(nodes, node_rate) * first
    for i in range(order.shape[0]):
        job = order[i]
        if jobs[job, at.CONFIG] >= 0:
            cost += jobs[job, at.WEIGHT] * max(0.0, now + first - jobs[job, at.DUE])
        else:
            cost += left_out_cost(jobs, job, left[i], now)
    return cost


@kernel
def left_out_cost(jobs: Floats, job: int, left: float, now: float) -> float:
    """Give what the proxy charges for a job that is left out [€]: a hundred times what it may come to cost."""
    late = now + left * jobs[job, at.MAX_TAU] - jobs[job, at.DUE]
    return POSTPONED * jobs[job, at.WEIGHT] * max(0.0, late)
