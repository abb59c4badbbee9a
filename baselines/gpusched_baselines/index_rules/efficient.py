"""What a configuration costs where others want its GPUs, and the one in which an epoch costs least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.placement.placement import may_have
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


@kernel
def prices(board: Board, gpu_price: float) -> Floats:
    """Give r_c + μ · ρ · g_c of every configuration [€/s], (C,): its power, and its GPUs as others would pay for them.

    r_c is the least rate, inf where the type has no node, g_c the GPUs held in all, ρ the rate of the full cluster per
    GPU. Where energy is free ρ is 1, so that GPU-seconds alone count.

    Args:
        gpu_price: μ, how much more than its rate a GPU is worth, in multiples of ρ.
    """
    nodes, configs = board.nodes, board.facts.configs
    rate, gpus = 0.0, 0
    for n in range(nodes.shape[0]):
        rate += board.node_rate[nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]]
        gpus += nodes[n, at.NODE_GPUS]
    each = gpu_price * (rate / gpus if rate > 0.0 else 1.0)
    price = np.empty(configs.shape[0])
    for c in range(configs.shape[0]):
        price[c] = board.least_rate[c] + each * (configs[c, at.CONFIG_SIZE] / at.UNITS)
    return price


@lean_kernel
def efficient(board: Board, job: int, price: Floats) -> int:
    """Find the configuration in which an epoch costs least; -1 if the job may use none that a node has."""
    best, least = -1, np.inf
    for c in range(price.shape[0]):
        if board.tau[job, c] < np.inf and board.tau[job, c] * price[c] < least:
            best, least = c, board.tau[job, c] * price[c]
    return best


@kernel
def cheapest_by(board: Board, job: int, left: float, price: Floats) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the cheapest.

    A change of configuration that costs the job a restart takes so much longer, and its GPUs are paid for meanwhile.

    Args:
        job: The job's index.
        left: The epochs that it is taken to have left.
        price: What configurations cost [€/s], (C,).

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    jobs, tau = board.jobs, board.tau
    time_left = jobs[job, at.DUE] - board.clock[at.NOW]
    best, least, late = -1, np.inf, True
    for c in range(price.shape[0]):
        if tau[job, c] == np.inf or not may_have(board, job, c):
            continue
        seconds = left * tau[job, c] + switch_s(board, job, c)
        cost, misses_it = seconds * price[c], misses(seconds, time_left)
        if best < 0 or (late and not misses_it) or (late == misses_it and cost < least):
            best, least, late = c, cost, misses_it
    return best
