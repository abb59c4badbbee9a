"""The speed of a job if it were placed now."""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.interconnect import slowdown_if_placed
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.placement.release import can_resize
from gpusched_env.simulator.placement.shared_gpus import best_slot, slots
from gpusched_env.simulator.placement.spread_gpus import factor_now
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.sharing_slowdown import neighbours
from gpusched_env.simulator.slowdown import speed_beside


@kernel
def speed_now(board: Board, job: int, config: int) -> float:
    """Return the speed that `job` would have with `config` if it were placed now, 1 as alone; 0 if it does not fit.

    It is 1 on whole GPUs, of a spread configuration that would be consolidated the ratio of its times spread and so,
    and on shared GPUs without an interference model. On several nodes it is 1 without help and with all nodes of the
    cluster sending; with a model of the network it is what the machines that are on now give.
    """
    nodes, facts, held = board.nodes, board.facts, int(board.jobs[job, at.CONFIG])
    if facts.configs[config, at.CONFIG_NODES] > 1 or facts.configs[config, at.CONFIG_SPREAD] > 0:
        fits = held == config or can_place(board, job, config)
        return _speed_on_several(board, job, config) if fits else 0.0
    units, v = facts.configs[config, at.CONFIG_UNITS], facts.configs[config, at.CONFIG_TYPE]
    if held != config and units == 0:
        return 1.0 if can_place(board, job, config) else 0.0
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
    last, before = neighbours(board)
    return speed_beside(board, job, config, last[node * slots(board) + gpu], before)


@lean_kernel
def _speed_on_several(board: Board, job: int, config: int) -> float:
    """Return the speed that `job` would have with a configuration of several nodes, or of spread GPUs, which fits."""
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
