"""The speed of jobs now: on a shared GPU and over a network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel
from gpusched_env.model import Instance
from gpusched_env.model.synchronisation import iteration_s
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts
from gpusched_env.simulator.sharing_slowdown import (
    filled_part,
    neighbours,
    speed_by_utilisation,
    write_demand,
    write_pair_slowdowns,
    write_utilisation_slowdowns,
)


@kernel
def speed_beside(board: Board, job: int, config: int, last: int, before: Ints) -> float:
    """Return the speed of `job` with a share beside the jobs on a GPU, 1 as alone; NaN without a model.

    Args:
        board: The run.
        job: The job; it counts once, whether it is on the GPU or not.
        config: The share.
        last: The last of the jobs on the GPU, a place in `active`; -1: none.
        before: The one before each job on its GPU, (A,) (`neighbours`).
    """
    jobs, active, configs, facts = board.jobs, board.active, board.facts.configs, board.facts
    v, own = configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION])
    if facts.utilisation.shape[0] > 0:
        demand = np.zeros(at.PRIORITIES)
        write_demand(board, last, before, demand)
        held = int(jobs[job, at.CONFIG])
        i = last
        while i >= 0:
            if active[i] == job:
                demand[configs[held, at.CONFIG_PRIORITY]] -= facts.utilisation[v, own]
            i = before[i]
        for p in range(at.PRIORITIES):
            demand[p] = demand[p] if demand[p] > 1e-12 else 0.0  # rounding of the subtraction
        priority = configs[config, at.CONFIG_PRIORITY]
        demand[priority] += facts.utilisation[v, own]
        filled = filled_part(board, last, before, job, config)
        return speed_by_utilisation(demand, priority, filled, facts.sharing)
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
    last, before = neighbours(board)
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or nodes[n, at.FREE] == nodes[n, at.USABLE]:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            used = nodes[n, at.NODE_COLUMNS + gpu]
            if used == 0 or used + units > at.UNITS:
                continue
            speed = speed_beside(board, job, config, last[n * per_node + gpu], before)
            if speed > best_speed or (speed == best_speed and used > best_used):
                best, best_gpu, best_speed, best_used = n, gpu, speed, used
    return best, best_gpu, best_speed


def iteration_table(instance: Instance) -> NDArray[np.float64]:
    """Return how long iterations compute and synchronise [s], (2, V, A); (0, 0, 0) if the instance has none."""
    own = instance.synchronisation
    return np.zeros((0, 0, 0)) if own is None else np.stack([own.compute_s, own.sync_s])


def helper_count(instance: Instance) -> NDArray[np.int64]:
    """Return the number of CPU machines that help to synchronise, (1,); (0,) if the instance has none."""
    own = instance.synchronisation
    return np.array([] if own is None else [own.cpu_machines], dtype=np.int64)


@kernel
def write_interconnect_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Multiply the speeds of jobs on several nodes by the factor of the spare machines, at most 1.

    Spare are the CPU machines, and the nodes that are on and have no job on several nodes. The jobs share them by the
    number of their nodes.
    """
    jobs, nodes, configs, active = board.jobs, board.nodes, board.facts.configs, board.active
    spread = 0
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            spread += configs[config, at.CONFIG_NODES]
    if spread == 0:
        return
    on = 0
    for n in range(nodes.shape[0]):
        on += 1 if nodes[n, at.FREE] < nodes[n, at.USABLE] else 0
    part = min(1.0, (board.facts.helpers[0] + on - spread) / spread)
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            slowdowns[i] *= interconnect_slowdown(board.facts, config, int(jobs[active[i], at.APPLICATION]), part)


@kernel
def interconnect_slowdown(facts: Facts, config: int, application: int, part: float) -> float:
    """Return the factor on an application's time with `part` spare machines for each of its nodes.

    Args:
        facts: The constants, with iterations.
        config: A configuration of several nodes.
        application: Index of the application.
        part: Spare machines for each node, from 0 to 1.
    """
    gpu_type, nodes = facts.configs[config, at.CONFIG_TYPE], float(facts.configs[config, at.CONFIG_NODES])
    compute_s, sync_s = facts.iteration[0, gpu_type, application], facts.iteration[1, gpu_type, application]
    return iteration_s(compute_s, sync_s, nodes, nodes * part) / iteration_s(compute_s, sync_s, nodes, 0.0)


def least_slowdowns(facts: Facts) -> NDArray[np.float64]:
    """Return the least speed that each application can have on every configuration, with any co-runners, (A, C)."""
    least = 1.0 / facts.planned
    if facts.iteration.shape[0] > 0:
        for config in np.flatnonzero(facts.configs[:, at.CONFIG_NODES] > 1):
            for application in range(len(least)):
                least[application, config] *= interconnect_slowdown(facts, int(config), application, 1.0)
    return least


@kernel
def write_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write the true seconds per epoch over the planned ones of every active job to `speeds`, (A,)."""
    slowdowns[:] = 1.0
    if board.facts.slowdown.shape[0] > 0:
        write_pair_slowdowns(board, slowdowns)
    if board.facts.utilisation.shape[0] > 0:
        write_utilisation_slowdowns(board, slowdowns)
    if board.facts.iteration.shape[0] > 0:
        write_interconnect_slowdowns(board, slowdowns)
