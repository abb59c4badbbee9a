"""Whole GPUs of a node: holding and releasing them, the counts of free GPUs, and what a job holds."""

from __future__ import annotations

from gpusched_env.kernel import kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import enter, most_free, take_out
from gpusched_env.simulator.run import Board


@kernel
def hold(board: Board, node: int, gpus: int) -> None:
    """Hold `gpus` free GPUs of a node."""
    nodes, capacity = board.nodes, board.capacity
    gpu_type, before = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
    if capacity[gpu_type, at.SIZES] > 0:
        take_out(board, node)
    nodes[node, at.FREE] = before - gpus
    hooks.count_busy(board, node, before, before - gpus)
    capacity[gpu_type, at.FREE_GPUS] -= gpus
    if capacity[gpu_type, at.SIZES] > 0:
        enter(board, node)
    if before == capacity[gpu_type, at.LARGEST]:
        capacity[gpu_type, at.EMPTY] -= 1
    if before == capacity[gpu_type, at.FREE_BLOCK]:
        capacity[gpu_type, at.FREE_BLOCK] = most_free(board, gpu_type, before)


@kernel
def let_go(board: Board, node: int, gpus: int) -> None:
    """Release `gpus` GPUs of a node."""
    nodes, capacity = board.nodes, board.capacity
    gpu_type = nodes[node, at.NODE_TYPE]
    if capacity[gpu_type, at.SIZES] > 0:
        take_out(board, node)
    nodes[node, at.FREE] += gpus
    hooks.count_busy(board, node, nodes[node, at.FREE] - gpus, nodes[node, at.FREE])
    capacity[gpu_type, at.FREE_GPUS] += gpus
    if capacity[gpu_type, at.SIZES] > 0:
        enter(board, node)
    capacity[gpu_type, at.FREE_BLOCK] = max(capacity[gpu_type, at.FREE_BLOCK], nodes[node, at.FREE])
    if nodes[node, at.FREE] == capacity[gpu_type, at.LARGEST]:
        capacity[gpu_type, at.EMPTY] += 1


@kernel
def release(board: Board, job: int) -> None:
    """Release what `job` holds in this round, if anything."""
    jobs = board.jobs
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    if not hooks.let_kind_go(board, job, config, False):
        let_go(board, int(jobs[job, at.NODE]), board.facts.configs[config, at.CONFIG_GPUS])
    hooks.count_in(board, job, config, -1)
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0
    jobs[job, at.SLOT] = -1.0
