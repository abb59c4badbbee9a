"""Whole GPUs and whole nodes: holding and releasing them, and the counts of free GPUs."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
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
    if capacity[gpu_type, at.SIZES] > 0:
        enter(board, node)
    capacity[gpu_type, at.FREE_BLOCK] = max(capacity[gpu_type, at.FREE_BLOCK], nodes[node, at.FREE])
    if nodes[node, at.FREE] == capacity[gpu_type, at.LARGEST]:
        capacity[gpu_type, at.EMPTY] += 1


MARK_FACTOR, MARK_MODULUS = 1_000_003, 2**41 - 21  # products of a mark and the factor fit 64 bits


@kernel
def choose_nodes(board: Board, gpu_type: int, wanted: int, preferred: int) -> int:
    """Chain `wanted` empty nodes of the largest size of a type, which must be there; return the first.

    Nodes that the job held before the round come first, then nodes that were empty before it, then by index. (The chain
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
    for turn in range(2):
        for n in range(nodes.shape[0]):
            if left == 0:
                break
            was_empty = nodes[n, at.OLD_FREE] == nodes[n, at.NODE_GPUS]
            if not chosen[n] and (turn == 1 or was_empty) and _is_empty(board, gpu_type, n):
                chosen[n] = True
                left -= 1
    following = -1
    for n in range(nodes.shape[0] - 1, -1, -1):
        if chosen[n]:
            nodes[n, at.NEXT] = following
            following = n
    return following


@kernel
def _is_empty(board: Board, gpu_type: int, n: int) -> bool:
    nodes, capacity = board.nodes, board.capacity
    return nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] == capacity[gpu_type, at.LARGEST]


@kernel
def hold_nodes(board: Board, first: int) -> None:
    """Hold all GPUs of the chain of empty nodes that begins with `first`."""
    nodes = board.nodes
    n = first
    while n >= 0:
        hold(board, n, nodes[n, at.NODE_GPUS])
        n = nodes[n, at.NEXT]


@kernel
def let_nodes_go(board: Board, first: int) -> None:
    """Release the chain of nodes that begins with `first`, and undo the chain."""
    nodes = board.nodes
    n = first
    while n >= 0:
        following = nodes[n, at.NEXT]
        let_go(board, n, nodes[n, at.NODE_GPUS])
        nodes[n, at.NEXT] = -1
        n = following


@kernel
def mark(board: Board, first: int, old: bool) -> int:
    """Return a number that identifies the set of nodes of a chain, or of one node.

    One node and two have a number of their own in clusters of up to a million nodes; two sets of more nodes have the
    same one with a probability of 1e-12.

    Args:
        first: The first node of the chain.
        old: Whether it is the chain at the start of the round.
    """
    nodes = board.nodes
    total, n = 0, first
    while n >= 0:
        total = (total * MARK_FACTOR + n + 1) % MARK_MODULUS
        n = nodes[n, at.OLD_NEXT if old else at.NEXT]
    return total


@lean_kernel
def mark_of_consecutive(first: int, nodes: int) -> int:
    """Return the number, as `mark` does, of a set of consecutive nodes."""
    total = 0
    for n in range(first, first + nodes):
        total = (total * MARK_FACTOR + n + 1) % MARK_MODULUS
    return total


@kernel
def same_chain(board: Board, first: int, old_first: int) -> bool:
    """Whether the chain that begins with `first` is the one that began with `old_first` before the round."""
    nodes = board.nodes
    n, old = first, old_first
    while n >= 0 and n == old:
        n, old = nodes[n, at.NEXT], nodes[old, at.OLD_NEXT]
    return n == old
