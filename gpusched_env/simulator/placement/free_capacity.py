"""Free capacity of the nodes of every GPU type, and an empty cluster."""

from __future__ import annotations

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cell_binding import recount_hosts
from gpusched_env.simulator.placement.node_index import clear_index, enter
from gpusched_env.simulator.placement.release import recount
from gpusched_env.simulator.placement.shared_gpus import largest_free_share, slots
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.site_power import measure_power


@kernel
def clear(board: Board, holders: Ints) -> None:
    """Empty the cluster; `holders` are all jobs that may hold something."""
    jobs, nodes = board.jobs, board.nodes
    shared = slots(board) if board.has_shares else 0
    for n in range(nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.USABLE]
        nodes[n, at.NEXT] = -1
        for gpu in range(shared):
            nodes[n, at.NODE_COLUMNS + gpu] = 0
    for job in holders:
        jobs[job, at.CONFIG] = -1.0
        jobs[job, at.NODE] = -1.0
        jobs[job, at.SLOT] = -1.0
    measure(board)


@kernel
def measure(board: Board) -> None:
    """Write the free capacity of every GPU type to `capacity`, what tenants hold to `quota`, and the site's power."""
    if board.has_quotas:
        recount(board)
    if board.has_site:
        measure_power(board)
    if board.has_cells and board.cells.shape[0] > 0:
        recount_hosts(board)
    nodes, capacity = board.nodes, board.capacity
    for v in range(capacity.shape[0]):
        for column in range(at.SIZES):
            capacity[v, column] = 0
        capacity[v, at.FREE_GPUS] = 0
        capacity[v, at.FREE_SHARE] = largest_free_share(board, v) if board.has_shares else 0
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
