"""The speed of jobs on shared GPUs now."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.mechanisms.shares.slowdown import Residents, residents, speed_among, write_demand
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board


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
    if not board.has_shares:
        return np.nan
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
