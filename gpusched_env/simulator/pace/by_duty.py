"""The pace of jobs that divide the time of a GPU by duty and priority (`gpusched_env.model.Duty`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.neighbours import neighbours

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@lean_kernel
def pace_by_duty(demand: Floats, priority: int, sharing: Floats) -> float:
    """Give the pace of the jobs of a priority on a GPU, 1 as alone.

    Args:
        demand: Sum of the duties of the jobs on it, by priority, (PRIORITIES,).
        priority: The priority, which some job has.
        sharing: The numbers of the model, (SHARING_COLUMNS,).
    """
    top, lowest, guests = -1, 0, 0.0
    for p in range(demand.shape[0] - 1, -1, -1):
        if demand[p] > 0.0:
            lowest = p
            if top < 0:
                top = p
            else:
                guests += demand[p]
    left, pace = 1.0, 1.0
    for p in range(top, priority - 1, -1):
        if demand[p] == 0.0:
            continue
        part = min(1.0, left / demand[p])
        pace = part / (1.0 + sharing[at.OVERHEAD]) if p > lowest else part
        if p < top:
            pace = max(pace, sharing[at.LEAST_PACE] / max(1.0, guests))
        left -= demand[p] * part
        if p == top:
            left *= sharing[at.FILLED]
    return pace


@kernel
def write_duty_paces(board: Board, paces: Floats) -> None:
    """Write the paces of the jobs on shared GPUs: true seconds per epoch over planned ones."""
    jobs, active, configs, planned = board.jobs, board.active, board.facts.configs, board.facts.planned
    last, before = neighbours(board)
    demand = np.zeros(at.PRIORITIES)
    for gpu in range(last.shape[0]):
        if last[gpu] < 0:
            continue
        write_demand(board, last[gpu], before, demand)
        i = last[gpu]
        while i >= 0:
            job = active[i]
            config = int(jobs[job, at.CONFIG])
            pace = pace_by_duty(demand, configs[config, at.CONFIG_PRIORITY], board.facts.sharing)
            paces[i] = 1.0 / (pace * planned[int(jobs[job, at.APPLICATION]), config])
            i = before[i]


@lean_kernel
def write_demand(board: Board, last: int, before: Ints, demand: Floats) -> None:
    """Write the sum of the duties of the jobs on a GPU, by priority; `last` is the last of them in `active`."""
    jobs, active, configs, duty = board.jobs, board.active, board.facts.configs, board.facts.duty
    demand[:] = 0.0
    i = last
    while i >= 0:
        config = int(jobs[active[i], at.CONFIG])
        own = duty[configs[config, at.CONFIG_TYPE], int(jobs[active[i], at.APPLICATION])]
        demand[configs[config, at.CONFIG_PRIORITY]] += own
        i = before[i]
