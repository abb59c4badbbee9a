"""The speed of a job if it were placed now."""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.interconnect import slowdown_if_placed
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.placement.release import can_resize
from gpusched_env.simulator.placement.shared_gpus import best_slot, of_several, slots
from gpusched_env.simulator.placement.spread_gpus import factor_now
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.sharing_slowdown import memory_limit, residents
from gpusched_env.simulator.slowdown import speed_beside, speed_in_place


@kernel
def speed_now(board: Board, job: int, config: int) -> float:
    """Return the speed that `job` would have with `config` if it were placed now, 1 as alone; 0 if it does not fit.

    It is 1 on whole GPUs, of a spread configuration that would be consolidated the ratio of its times spread and so,
    and on shared GPUs without an interference model. On several nodes it is 1 without help and with all nodes of the
    cluster sending; with a model of the network it is what the machines that are on now give.
    """
    nodes, facts, held = board.nodes, board.facts, int(board.jobs[job, at.CONFIG])
    units, v = facts.configs[config, at.CONFIG_UNITS], facts.configs[config, at.CONFIG_TYPE]
    if facts.configs[config, at.CONFIG_NODES] > 1 and units == 0:
        fits = held == config or can_place(board, job, config)
        return _speed_on_several(board, job, config) if fits else 0.0
    if of_several(board, config) or (held >= 0 and of_several(board, held)):
        return _speed_of_several(board, job, config)
    if units == 0 or (facts.slowdown.shape[0] == 0 and facts.utilisation.shape[0] == 0):
        return 1.0 if held == config or can_place(board, job, config) else 0.0
    node, gpu = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
    beside = 0
    if gpu >= 0:
        beside = nodes[node, at.NODE_COLUMNS + gpu] - facts.configs[held, at.CONFIG_UNITS]
    if gpu < 0 or nodes[node, at.NODE_TYPE] != v or beside + units > at.UNITS:
        if not can_place(board, job, config):
            return 0.0
        node, gpu = best_slot(board, job, config)
    elif not can_resize(board, job, config):
        return 0.0
    return speed_beside(board, job, config, node * slots(board) + gpu, residents(board))


@kernel
def _speed_of_several(board: Board, job: int, config: int) -> float:
    held, modelled = int(board.jobs[job, at.CONFIG]), board.facts.utilisation.shape[0] + board.facts.slowdown.shape[0]
    if held != config and not can_place(board, job, config):
        return 0.0
    if board.facts.configs[config, at.CONFIG_UNITS] == 0 or modelled == 0:
        return 1.0
    node, slot = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
    if held != config:
        node, slot = best_slot(board, job, config)
    return speed_in_place(board, job, config, node, slot, residents(board))


@kernel
def memory_now(board: Board, job: int, config: int) -> tuple[float, float]:
    """Return what part of the memory that it needs `job` would have with `config` now, and how many jobs beside it.

    On several GPUs the least and the most count. `config` must fit. Where memory does not move the part is 1.
    """
    jobs, configs, facts = board.jobs, board.facts.configs, board.facts
    if configs[config, at.CONFIG_UNITS] == 0:
        return 1.0, 0.0
    node, slot = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    if int(jobs[job, at.CONFIG]) != config:
        node, slot = best_slot(board, job, config)
    on, part, most = residents(board), 1.0, 0.0
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(n * slots(board) + slot, n * slots(board) + slot + configs[config, at.CONFIG_GPUS]):
            beside, place = 0.0, on.last[gpu]
            while place >= 0:
                beside += 1.0 if board.active[on.holder[place]] != job else 0.0
                place = on.before[place]
            most = max(most, beside)
            if facts.memory.shape[0] > 0:
                need = facts.memory[configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION]), at.NEED]
                part = min(part, memory_limit(board, job, config, gpu, on) / need if need > 0.0 else 1.0)
    return part, most


@lean_kernel
def _speed_on_several(board: Board, job: int, config: int) -> float:
    if board.facts.configs[config, at.CONFIG_SPREAD] > 0:
        return 1.0 / factor_now(board, job, config)
    return 1.0 / slowdown_if_placed(board, job, config) if board.facts.iteration.shape[0] > 0 else 1.0


@kernel
def seconds_now(board: Board, job: int, config: int) -> float:
    """Return the seconds per epoch of `job` with `config` if it were placed now; inf if it does not fit."""
    speed = speed_now(board, job, config)
    if speed == 0.0:
        return float("inf")
    own = int(board.jobs[job, at.APPLICATION])
    return board.tau[job, config] / (board.facts.planned[own, config] * speed)
