"""Whole GPUs of one node: holding them, and the books of what is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import enter, most_free, take_out

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@kernel
def hold(board: Board, node: int, gpus: int) -> None:
    """Hold `gpus` free GPUs of a node."""
    nodes, room = board.nodes, board.room
    gpu_type, before = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
    if room[gpu_type, at.SIZES] > 0:
        take_out(board, node)
    nodes[node, at.FREE] = before - gpus
    if room[gpu_type, at.SIZES] > 0:
        enter(board, node)
    if before == room[gpu_type, at.LARGEST]:
        room[gpu_type, at.EMPTY] -= 1
    if before == room[gpu_type, at.GAP]:
        room[gpu_type, at.GAP] = most_free(board, gpu_type, before)


@kernel
def let_go(board: Board, node: int, gpus: int) -> None:
    """Let go of `gpus` GPUs of a node."""
    nodes, room = board.nodes, board.room
    gpu_type = nodes[node, at.NODE_TYPE]
    if room[gpu_type, at.SIZES] > 0:
        take_out(board, node)
    nodes[node, at.FREE] += gpus
    if room[gpu_type, at.SIZES] > 0:
        enter(board, node)
    room[gpu_type, at.GAP] = max(room[gpu_type, at.GAP], nodes[node, at.FREE])
    if nodes[node, at.FREE] == room[gpu_type, at.LARGEST]:
        room[gpu_type, at.EMPTY] += 1
