"""Free capacity of the nodes of every GPU type, and an empty cluster."""

from __future__ import annotations

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import clear_index, enter
from gpusched_env.simulator.run import Board


@kernel
def clear(board: Board, holders: Ints) -> None:
    """Empty the cluster; `holders` are all jobs that may hold something."""
    jobs, nodes = board.jobs, board.nodes
    for n in range(nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.USABLE]
        nodes[n, at.NEXT] = -1
    hooks.clear_nodes(board)
    for job in holders:
        jobs[job, at.CONFIG] = -1.0
        jobs[job, at.NODE] = -1.0
        jobs[job, at.SLOT] = -1.0
    measure(board)


@kernel
def measure(board: Board) -> None:
    """Write the free capacity of every GPU type to `capacity`; mechanisms count what they need again."""
    nodes, capacity = board.nodes, board.capacity
    for v in range(capacity.shape[0]):
        for column in range(at.SIZES):
            capacity[v, column] = 0
        capacity[v, at.FREE_GPUS] = 0
    hooks.recount(board)
    for n in range(nodes.shape[0]):
        v, free = nodes[n, at.NODE_TYPE], nodes[n, at.FREE]
        capacity[v, at.LARGEST] = max(capacity[v, at.LARGEST], nodes[n, at.NODE_GPUS])
        capacity[v, at.FREE_BLOCK] = max(capacity[v, at.FREE_BLOCK], free)
        capacity[v, at.FREE_GPUS] += free
    for n in range(nodes.shape[0]):
        v = nodes[n, at.NODE_TYPE]
        capacity[v, at.EMPTY] += 1 if nodes[n, at.FREE] == capacity[v, at.LARGEST] else 0
    if capacity[0, at.SIZES] > 0:
        clear_index(board)
        for n in range(nodes.shape[0]):
            enter(board, n)
