"""The speed of jobs now: on a shared GPU and over a network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.interconnect import interconnect_slowdown, write_interconnect_slowdowns
from gpusched_env.simulator.placement.held_nodes import most_spread, nodes_held
from gpusched_env.simulator.placement.spread_gpus import consolidated_factor
from gpusched_env.simulator.run import Board, Facts
from gpusched_env.simulator.sharing_slowdown import (
    Residents,
    residents,
    speed_among,
    write_demand,
    write_pair_slowdowns,
    write_utilisation_slowdowns,
)


@kernel
def speed_beside(board: Board, job: int, config: int, gpu: int, on: Residents) -> float:
    """Return the speed of `job` with a share beside the jobs on a GPU, 1 as alone; NaN without a model.

    Args:
        board: The run.
        job: The job; it counts once, whether it is on the GPU or not.
        config: The share.
        gpu: The GPU, n · G + g.
        on: The jobs on every GPU.
    """
    jobs, active, configs, facts = board.jobs, board.active, board.facts.configs, board.facts
    v, own = configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION])
    if facts.utilisation.shape[0] > 0:
        demand = np.zeros(at.PRIORITIES)
        write_demand(board, gpu, on, demand)
        held = int(jobs[job, at.CONFIG])
        place = on.last[gpu]
        while place >= 0:
            if active[on.holder[place]] == job:
                demand[configs[held, at.CONFIG_PRIORITY]] -= facts.utilisation[v, own]
            place = on.before[place]
        for p in range(at.PRIORITIES):
            demand[p] = demand[p] if demand[p] > 1e-12 else 0.0  # rounding of the subtraction
        priority = configs[config, at.CONFIG_PRIORITY]
        demand[priority] += facts.utilisation[v, own]
        return speed_among(board, job, config, gpu, on, demand)
    if facts.slowdown.shape[0] == 0:
        return np.nan
    factor = 1.0
    place = on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job:
            factor += facts.slowdown[v, own, int(jobs[other, at.APPLICATION])] - 1.0
        place = on.before[place]
    return 1.0 / factor


@kernel
def speed_in_place(board: Board, job: int, config: int, node: int, slot: int, on: Residents) -> float:
    """Return the speed of `job` with a share, which fits on its GPUs from `slot` of `node` on: that on the slowest."""
    configs, per_node = board.facts.configs, (board.nodes.shape[1] - at.NODE_COLUMNS) // 2
    speed = np.inf
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(n * per_node + slot, n * per_node + slot + configs[config, at.CONFIG_GPUS]):
            each = speed_beside(board, job, config, gpu, on)
            speed = each if np.isnan(each) else min(speed, each)
    return speed


@kernel
def fastest_open_gpu(board: Board, job: int, config: int) -> tuple[int, int, float]:
    """Choose the shared GPU with enough free units on which `job` is fastest; among equals the fullest, the first.

    Returns:
        Node, number of the GPU on it, and the speed there, 1 as alone; -1, -1 and 0 if it fits on none.
    """
    nodes, configs, capacity = board.nodes, board.facts.configs, board.capacity
    v, units = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_UNITS]
    best, best_gpu, best_speed, best_used = -1, -1, 0.0, 0
    if capacity[v, at.FREE_SHARE] < units:
        return best, best_gpu, best_speed
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    on = residents(board)
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or nodes[n, at.FREE] == nodes[n, at.USABLE]:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            used = nodes[n, at.NODE_COLUMNS + gpu]
            if used == 0 or used + units > at.UNITS:
                continue
            speed = speed_beside(board, job, config, n * per_node + gpu, on)
            if speed > best_speed or (speed == best_speed and used > best_used):
                best, best_gpu, best_speed, best_used = n, gpu, speed, used
    return best, best_gpu, best_speed


@kernel
def write_spread_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Multiply the times of jobs whose spread GPUs are on as few nodes as can be: they are as fast as consolidated."""
    for i in range(board.count[at.ACTIVE]):
        job, config = board.active[i], int(board.jobs[board.active[i], at.CONFIG])
        if config >= 0 and board.facts.configs[config, at.CONFIG_SPREAD] > 0:
            slowdowns[i] *= consolidated_factor(board, job, config, nodes_held(board, job, config))


def least_slowdowns(facts: Facts) -> NDArray[np.float64]:
    """Return the least slowdown that each application can have on every configuration, with any co-runners, (A, C)."""
    least = 1.0 / facts.planned
    if facts.iteration.shape[0] > 0:
        for config in np.flatnonzero(facts.configs[:, at.CONFIG_NODES] > 1):
            busy = float(facts.network[at.BUSY_PER_NODE] * facts.configs[config, at.CONFIG_NODES])
            for application in range(len(least)):
                least[application, config] *= interconnect_slowdown(facts, int(config), application, 1.0, busy)
    return least


@kernel
def write_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write the true seconds per epoch over the planned ones of every active job to `slowdowns`, (A,)."""
    slowdowns[:] = 1.0
    if board.has_interference and board.facts.slowdown.shape[0] > 0:
        write_pair_slowdowns(board, slowdowns)
    if board.has_interference and board.facts.utilisation.shape[0] > 0:
        write_utilisation_slowdowns(board, slowdowns)
    if board.has_spread and most_spread(board) > 0:
        write_spread_slowdowns(board, slowdowns)
    if board.has_network and board.facts.iteration.shape[0] > 0:
        write_interconnect_slowdowns(board, slowdowns)
