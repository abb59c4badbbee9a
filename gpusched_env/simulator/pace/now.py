"""The pace that a job would have on a shared GPU, given who is there now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.by_duty import pace_by_duty, write_demand
from gpusched_env.simulator.pace.neighbours import neighbours

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board


@kernel
def pace_beside(board: Board, job: int, config: int, last: int, before: Ints) -> float:
    """Give the pace of `job` with a share beside the jobs on a GPU, 1 as alone; NaN if no model says it.

    Args:
        board: The run.
        job: The job; it counts once, whether it is on the GPU or not.
        config: The share.
        last: The last of the jobs on the GPU, a place in `active`; -1: none.
        before: The one before each job on its GPU, (A,) (`neighbours`).
    """
    jobs, active, configs, facts = board.jobs, board.active, board.facts.configs, board.facts
    v, own = configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION])
    if facts.duty.shape[0] > 0:
        demand = np.zeros(at.PRIORITIES)
        write_demand(board, last, before, demand)
        held = int(jobs[job, at.CONFIG])
        i = last
        while i >= 0:
            if active[i] == job:
                demand[configs[held, at.CONFIG_PRIORITY]] -= facts.duty[v, own]
            i = before[i]
        for p in range(at.PRIORITIES):
            demand[p] = demand[p] if demand[p] > 1e-12 else 0.0  # what taking a sum apart leaves
        priority = configs[config, at.CONFIG_PRIORITY]
        demand[priority] += facts.duty[v, own]
        return pace_by_duty(demand, priority, facts.sharing)
    if facts.slowdown.shape[0] == 0:
        return np.nan
    factor = 1.0
    i = last
    while i >= 0:
        if active[i] != job:
            factor += facts.slowdown[v, own, int(jobs[active[i], at.APPLICATION])] - 1.0
        i = before[i]
    return 1.0 / factor


@kernel
def fastest_open_gpu(board: Board, job: int, config: int) -> tuple[int, int, float]:
    """Choose the shared GPU that is open and has room on which `job` is fastest; among equals the fullest, the first.

    Returns:
        Node, number of the GPU on it, and the pace there, 1 as alone; -1, -1 and 0 if none has room.
    """
    nodes, configs, room = board.nodes, board.facts.configs, board.room
    v, units = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_UNITS]
    best, best_gpu, best_pace, best_used = -1, -1, 0.0, 0
    if room[v, at.OPENING] < units:
        return best, best_gpu, best_pace
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    last, before = neighbours(board)
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or nodes[n, at.FREE] == nodes[n, at.NODE_GPUS]:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            used = nodes[n, at.NODE_COLUMNS + gpu]
            if used == 0 or used + units > at.UNITS:
                continue
            pace = pace_beside(board, job, config, last[n * per_node + gpu], before)
            if pace > best_pace or (pace == best_pace and used > best_used):
                best, best_gpu, best_pace, best_used = n, gpu, pace, used
    return best, best_gpu, best_pace
