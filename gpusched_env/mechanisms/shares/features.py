"""Features of configurations that depend on the jobs beside: speed, cost of a switch, and memory."""

from __future__ import annotations

from gpusched_env.arrays import Mask, Singles
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.network.kernels import interconnect_slowdown
from gpusched_env.mechanisms.shares.placement import best_slot, slots
from gpusched_env.mechanisms.shares.slowdown import memory_limit, residents
from gpusched_env.observation.features import (
    BESIDE,
    CO_RUNNER_FEATURES,
    MEMORY_LIMIT,
    OPPORTUNISTIC,
    PRIORITY,
    SPEED_NOW,
    SWITCH,
)
from gpusched_env.observation.observe import OPTION_FEATURES
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.speed_now import speed_now
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.switching import switch_s


@lean_kernel
def write_features(board: Board, job: int, mask: Mask, out: Singles) -> None:
    """Write the features behind the others of every row; a configuration that is not allowed has only zeros."""
    jobs, tau, first = board.jobs, board.tau, len(OPTION_FEATURES)
    left = max(jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], 1e-12 * jobs[job, at.MAX_EPOCHS])
    fastest = left * jobs[job, at.MIN_TAU]
    for c in range(tau.shape[1]):
        out[c, first:] = 0.0
        if tau[job, c] == float("inf"):
            continue
        change = switch_s(board, job, c)
        out[c, first + SPEED_NOW] = 0.0
        if mask[c + 1]:
            out[c, first + SPEED_NOW] = min(1.0, speed_now(board, job, c) * _least_part(board, job, c))
        out[c, first + PRIORITY] = board.facts.configs[c, at.CONFIG_PRIORITY] / (at.PRIORITIES - 1)
        out[c, first + SWITCH] = change / (fastest + change)
        out[c, first + OPPORTUNISTIC] = jobs[job, at.OPPORTUNISTIC]
        last = first + len(CO_RUNNER_FEATURES)
        if out.shape[1] > last and mask[c + 1]:
            part, beside = memory_now(board, job, c)
            out[c, last + MEMORY_LIMIT], out[c, last + BESIDE] = part, beside / (1.0 + beside)


@lean_kernel
def _least_part(board: Board, job: int, c: int) -> float:
    """Return the part of its time that the job takes on several nodes with the most help; else 1."""
    if not board.has_network:
        return 1.0
    facts, nodes = board.facts, board.facts.configs[c, at.CONFIG_NODES]
    if facts.iteration.shape[0] == 0 or nodes < 2:
        return 1.0
    busy = nodes * facts.network[at.BUSY_PER_NODE]
    return interconnect_slowdown(facts, c, int(board.jobs[job, at.APPLICATION]), 1.0, busy)


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
