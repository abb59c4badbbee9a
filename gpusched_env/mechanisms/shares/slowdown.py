"""Slow-downs of co-runners on one GPU, by pairs or by utilisation, and the speed with which policies plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

ROUNDED = 1e-12
"""Part of a minimum by which a limit may be below it by rounding."""


class Residents(NamedTuple):
    """The jobs on every shared GPU, as lists of places; a job has a place on each of its GPUs.

    Attributes:
        last: The last place on GPU g of node n, at n · G + g, (N · G,); -1: none.
        before: For every place the one before it on its GPU, (P,); -1: none.
        holder: The number in `active` of its job, (P,).
    """

    last: Ints
    before: Ints
    holder: Ints


@kernel
def residents(board: Board) -> Residents:
    """List the active jobs on every shared GPU."""
    jobs, nodes, count, active, configs = board.jobs, board.nodes, board.count, board.active, board.facts.configs
    per_node, places = (nodes.shape[1] - at.NODE_COLUMNS) // 2, 0
    for i in range(count[at.ACTIVE]):
        if jobs[active[i], at.CONFIG] >= 0 and jobs[active[i], at.SLOT] >= 0:
            config = int(jobs[active[i], at.CONFIG])
            places += configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES]
    on = Residents(np.full(nodes.shape[0] * per_node, -1), np.full(places, -1), np.empty(places, dtype=np.int64))
    places = 0
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] < 0 or jobs[job, at.SLOT] < 0:
            continue
        config, node, slot = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
        for n in range(node, node + configs[config, at.CONFIG_NODES]):
            for gpu in range(n * per_node + slot, n * per_node + slot + configs[config, at.CONFIG_GPUS]):
                on.before[places], on.holder[places] = on.last[gpu], i
                on.last[gpu] = places
                places += 1
    return on


@lean_kernel
def filled_part(board: Board, gpu: int, on: Residents, job: int, config: int) -> float:
    """Return the part that others can use of what the highest priority on a GPU leaves.

    Args:
        board: The run.
        gpu: The GPU, n · G + g.
        on: The jobs on every GPU.
        job: A job that counts with the share `config`, whether it is on the GPU or not; -1: none.
        config: That share.
    """
    jobs, active, configs, filled = board.jobs, board.active, board.facts.configs, board.facts.filled
    if filled.shape[0] == 0:
        return board.facts.sharing[at.FILLED]
    own = configs[config, at.CONFIG_PRIORITY] if job >= 0 else -1
    top, others, place = own, 0, on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job:
            top = max(top, configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY])
        place = on.before[place]
    place = on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job and configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY] < top:
            others += 1
        place = on.before[place]
    others += 1 if job >= 0 and own < top else 0
    column = min(max(others, 1), filled.shape[1]) - 1
    part = filled[int(jobs[job, at.APPLICATION]), column] if job >= 0 and own == top else 1.0
    place = on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job and configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY] == top:
            part = min(part, filled[int(jobs[other, at.APPLICATION]), column])
        place = on.before[place]
    return part


@lean_kernel
def speed_by_utilisation(demand: Floats, priority: int, filled: float, sharing: Floats) -> float:
    """Return the speed of the jobs of a priority on a GPU, 1 as alone.

    Args:
        demand: Sum of the utilisations of the jobs on it, by priority, (PRIORITIES,).
        priority: The priority, which some job has.
        filled: Part of what the highest priority leaves that others can use (`filled_part`).
        sharing: The numbers of the model, (SHARING_COLUMNS,).
    """
    top, lowest, others = -1, 0, 0.0
    for p in range(demand.shape[0] - 1, -1, -1):
        if demand[p] > 0.0:
            lowest = p
            if top < 0:
                top = p
            else:
                others += demand[p]
    left, speed = 1.0, 1.0
    for p in range(top, priority - 1, -1):
        if demand[p] == 0.0:
            continue
        part = min(1.0, left / demand[p])
        speed = part / (1.0 + sharing[at.OVERHEAD]) if p > lowest else part
        if p < top:
            speed = max(speed, sharing[at.LEAST_SPEED] / max(1.0, others))
        left -= demand[p] * part
        if p == top:
            left *= filled
    return speed


@kernel
def write_utilisation_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write true seconds per epoch over planned ones of the jobs on shared GPUs, by the slowest of a job's GPUs."""
    jobs, active, planned = board.jobs, board.active, board.facts.planned
    on, demand = residents(board), np.zeros(at.PRIORITIES)
    for place in range(on.holder.shape[0]):
        slowdowns[on.holder[place]] = 0.0
    for gpu in range(on.last.shape[0]):
        if on.last[gpu] < 0:
            continue
        write_demand(board, gpu, on, demand)
        place = on.last[gpu]
        while place >= 0:
            job = active[on.holder[place]]
            config = int(jobs[job, at.CONFIG])
            speed = speed_among(board, job, config, gpu, on, demand)
            slowdown = 1.0 / (speed * planned[int(jobs[job, at.APPLICATION]), config])
            slowdowns[on.holder[place]] = max(slowdowns[on.holder[place]], slowdown)
            place = on.before[place]


@lean_kernel
def speed_among(board: Board, job: int, config: int, gpu: int, on: Residents, demand: Floats) -> float:
    """Return the speed of `job` with a share of a GPU beside the jobs on it, 1 as alone.

    Args:
        job: The job; it need not be on the GPU.
        gpu: The GPU, n · G + g.
        demand: Sum of the utilisations of the jobs on it, its own included, by priority, (PRIORITIES,).
    """
    speed = _computing_speed(board, job, config, gpu, on, demand)
    return speed if board.facts.memory.shape[0] == 0 else _with_memory(board, job, config, gpu, on, speed)


@lean_kernel
def _with_memory(board: Board, job: int, config: int, gpu: int, on: Residents, speed: float) -> float:
    """Return the speed of `job`, `speed` by computing alone, with the memory that its co-runners leave."""
    facts, v, own = board.facts, board.facts.configs[config, at.CONFIG_TYPE], int(board.jobs[job, at.APPLICATION])
    need, limit = facts.memory[v, own, at.NEED], memory_limit(board, job, config, gpu, on)
    if limit < facts.memory[v, own, at.LEAST] * (1.0 - ROUNDED):
        return min(speed, facts.sharing[at.LEAST_SPEED])
    return 1.0 / (1.0 / speed + (need - limit) * facts.memory[v, own, at.ADDED])


@lean_kernel
def memory_limit(board: Board, job: int, config: int, gpu: int, on: Residents) -> float:
    """Return the memory that `job` has, or would have, with a share of a GPU beside the jobs on it [GiB]."""
    facts, v = board.facts, board.facts.configs[config, at.CONFIG_TYPE]
    need, priority = (
        facts.memory[v, int(board.jobs[job, at.APPLICATION]), at.NEED],
        facts.configs[config, at.CONFIG_PRIORITY],
    )
    above, equals, place = 0.0, need, on.last[gpu]
    while place >= 0:
        other = board.active[on.holder[place]]
        its = facts.configs[int(board.jobs[other, at.CONFIG]), at.CONFIG_PRIORITY]
        if other != job and its >= priority:
            wanted = facts.memory[v, int(board.jobs[other, at.APPLICATION]), at.NEED]
            above, equals = (above + wanted, equals) if its > priority else (above, equals + wanted)
        place = on.before[place]
    left = max(0.0, facts.gpu_gib[v] - above)
    return need if equals <= left else need * left / equals


@lean_kernel
def _computing_speed(board: Board, job: int, config: int, gpu: int, on: Residents, demand: Floats) -> float:
    """Return `speed_among` where memory is no matter."""
    filled = filled_part(board, gpu, on, job, config)
    return speed_by_utilisation(demand, board.facts.configs[config, at.CONFIG_PRIORITY], filled, board.facts.sharing)


@lean_kernel
def write_demand(board: Board, gpu: int, on: Residents, demand: Floats) -> None:
    """Write the sum of the utilisations of the jobs on a GPU, n · G + g, by priority."""
    jobs, active, configs, utilisation = board.jobs, board.active, board.facts.configs, board.facts.utilisation
    demand[:] = 0.0
    place = on.last[gpu]
    while place >= 0:
        job = active[on.holder[place]]
        config = int(jobs[job, at.CONFIG])
        own = utilisation[configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION])]
        demand[configs[config, at.CONFIG_PRIORITY]] += own
        place = on.before[place]


@kernel
def write_pair_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write the speeds of the jobs on shared GPUs: each takes 1 + Σ (slow-down - 1) times as long as alone."""
    jobs, active, configs = board.jobs, board.active, board.facts.configs
    slowdown, planned = board.facts.slowdown, board.facts.planned
    on = residents(board)
    for place in range(on.holder.shape[0]):
        slowdowns[on.holder[place]] = 0.0
    for gpu in range(on.last.shape[0]):
        place = on.last[gpu]
        while place >= 0:
            i = on.holder[place]
            config, own = int(jobs[active[i], at.CONFIG]), int(jobs[active[i], at.APPLICATION])
            factor, other = 1.0, on.last[gpu]
            while other >= 0:
                if on.holder[other] != i:
                    beside = int(jobs[active[on.holder[other]], at.APPLICATION])
                    factor += slowdown[configs[config, at.CONFIG_TYPE], own, beside] - 1.0
                other = on.before[other]
            slowdowns[i] = max(slowdowns[i], factor / planned[own, config])
            place = on.before[place]
