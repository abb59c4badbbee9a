"""Whole GPUs and whole nodes: holding and releasing them, and the counts of free GPUs."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import enter, most_free, take_out
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.site_power import count_power


@kernel
def hold(board: Board, node: int, gpus: int) -> None:
    """Hold `gpus` free GPUs of a node."""
    nodes, capacity = board.nodes, board.capacity
    gpu_type, before = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
    if capacity[gpu_type, at.SIZES] > 0:
        take_out(board, node)
    nodes[node, at.FREE] = before - gpus
    if board.has_site:
        count_power(board, node, before, before - gpus)
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
    if board.has_site:
        count_power(board, node, nodes[node, at.FREE] - gpus, nodes[node, at.FREE])
    capacity[gpu_type, at.FREE_GPUS] += gpus
    if capacity[gpu_type, at.SIZES] > 0:
        enter(board, node)
    capacity[gpu_type, at.FREE_BLOCK] = max(capacity[gpu_type, at.FREE_BLOCK], nodes[node, at.FREE])
    if nodes[node, at.FREE] == capacity[gpu_type, at.LARGEST]:
        capacity[gpu_type, at.EMPTY] += 1


@kernel
def choose_nodes(board: Board, gpu_type: int, wanted: int, preferred: int) -> int:
    """Chain `wanted` empty nodes of the largest size of a type, which must be there; return the first.

    Nodes that the job held before the round come first, then, with racks, those of the smallest cell, or rack, that has
    enough for all, then nodes that were empty before it, then by index. (The chain
    of those begins at `preferred`; on one node it ends there.)
    """
    nodes = board.nodes
    chosen = np.zeros(nodes.shape[0], dtype=np.bool_)
    left = wanted
    n = preferred
    while n >= 0 and left > 0:
        if _is_empty(board, gpu_type, n):
            chosen[n] = True
            left -= 1
        n = nodes[n, at.OLD_NEXT]
    rack = _smallest_rack(board, gpu_type, wanted) if left == wanted else -1
    for turn in range(3):
        for n in range(nodes.shape[0] if turn > 0 or rack >= 0 else 0):
            if left == 0:
                break
            was_empty = nodes[n, at.OLD_FREE] == nodes[n, at.NODE_GPUS]
            is_next = board.cells[n, at.CELL_RACK] == rack if turn == 0 else turn == 2 or was_empty
            if not chosen[n] and is_next and _is_empty(board, gpu_type, n):
                chosen[n] = True
                left -= 1
    following = -1
    for n in range(nodes.shape[0] - 1, -1, -1):
        if chosen[n]:
            nodes[n, at.NEXT] = following
            following = n
    return following


@kernel
def _smallest_rack(board: Board, gpu_type: int, wanted: int) -> int:
    """Return the cell of several nodes, or the rack, with fewest empty nodes of those with enough; -1 if none has."""
    cells = board.cells
    empty = np.zeros(cells.shape[0], dtype=np.int64)
    best = -1
    for n in range(cells.shape[0]):
        if cells[n, at.CELL_NODES] > 1 and _is_empty(board, gpu_type, n):
            empty[cells[n, at.CELL_RACK]] += 1
    for rack in range(cells.shape[0]):
        if empty[rack] >= wanted and (best < 0 or empty[rack] < empty[best]):
            best = rack
    return best


@kernel
def _is_empty(board: Board, gpu_type: int, n: int) -> bool:
    nodes, capacity = board.nodes, board.capacity
    return nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] == capacity[gpu_type, at.LARGEST]


@kernel
def hold_nodes(board: Board, first: int) -> None:
    nodes = board.nodes
    n = first
    while n >= 0:
        hold(board, n, nodes[n, at.NODE_GPUS])
        n = nodes[n, at.NEXT]


@kernel
def let_nodes_go(board: Board, first: int) -> None:
    nodes = board.nodes
    n = first
    while n >= 0:
        following = nodes[n, at.NEXT]
        let_go(board, n, nodes[n, at.NODE_GPUS])
        nodes[n, at.NEXT] = -1
        n = following
