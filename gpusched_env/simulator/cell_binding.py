"""Cell binding: a tenant's cell is bound to a block of a host when it is used, and unbound when it is empty.

With cells the last `hosts.shape[0]` nodes are the hosts as opportunistic jobs see them: their GPUs that are in no
bound cell. The nodes before them are the cells. A cell that was bound when the round began stays so until the next one
begins, unless a policy unbinds it, so that a round that begins from an empty cluster moves no job.
"""

from __future__ import annotations

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.spread_gpus import gpus_on, next_node
from gpusched_env.simulator.placement.whole_gpus import hold, let_go
from gpusched_env.simulator.run import Board

MOST_GPUS = 32  # on a node with cells: bits of a mask, with room for sums of them

# hosts: int64 (H, HOST_COLUMNS). The physical nodes to which the cells of tenants are bound.
KIND = 0  # index of the kind of hardware, the same for hosts and cells that fit
GPUS = 1  # number of GPUs, a power of two
TAKEN = 2  # mask of the GPUs in cells that are bound
OPPORTUNISTIC_GPUS = 3  # GPUs held by opportunistic jobs
BUSY = 4  # GPUs held by any job
HOST_COLUMNS = 5


@lean_kernel
def mask_of(start: int, size: int) -> int:
    """Return the mask of a block."""
    return ((1 << size) - 1) << start


@lean_kernel
def free_around(taken: int, gpus: int, start: int, size: int) -> int:
    """Return the size of the free cell that holds a block, on a node of `gpus` GPUs; 0 if it is not free itself."""
    if taken & mask_of(start, size) != 0:
        return 0
    while size < gpus:
        above = start // (2 * size) * (2 * size)
        if taken & mask_of(above, 2 * size) != 0:
            break
        start, size = above, 2 * size
    return size


@lean_kernel
def choose_block(hosts: Ints, kind: int, size: int) -> tuple[int, int]:
    """Choose the block for a cell: from the smallest free cell that holds it, so that none is split without need.

    Among those the one on the host with fewest opportunistic GPUs, then on one that is in use, then by index: cells of
        two
    tenants on one host share the power that it draws anyway.

    Args:
        hosts: The hosts, (H, HOST_COLUMNS).
        kind: The kind of hardware.
        size: GPUs of the cell, a power of two.

    Returns:
        The host and the first GPU of the block; -1, -1 if there is none.
    """
    best, first = -1, -1
    best_key = (0, 0, 0)
    for h in range(hosts.shape[0]):
        if hosts[h, KIND] != kind or hosts[h, GPUS] < size:
            continue
        for start in range(0, hosts[h, GPUS], size):
            around = free_around(hosts[h, TAKEN], hosts[h, GPUS], start, size)
            key = (around, hosts[h, OPPORTUNISTIC_GPUS], 1 if hosts[h, BUSY] == 0 else 0)
            if around > 0 and (best < 0 or key < best_key):
                best, first, best_key = h, start, key
    return best, first


@lean_kernel
def first_host(board: Board) -> int:
    """Return the index of the node that stands for the first host; the nodes before it are cells."""
    return board.nodes.shape[0] - board.hosts.shape[0]


@lean_kernel
def is_opportunistic_config(board: Board, config: int) -> bool:
    """Whether a configuration is one of opportunistic jobs: on hosts, and in no cell."""
    if board.hosts.shape[0] == 0:
        return False
    return board.facts.configs[config, at.CONFIG_TYPE] >= board.nodes[first_host(board), at.NODE_TYPE]


@kernel
def survey(board: Board) -> None:
    """Write to `hosts` which GPUs of each are in bound cells, opportunistic and busy."""
    nodes, hosts, cells = board.nodes, board.hosts, board.cells
    first = first_host(board)
    for h in range(hosts.shape[0]):
        held = nodes[first + h, at.USABLE] - nodes[first + h, at.FREE]
        hosts[h, TAKEN], hosts[h, OPPORTUNISTIC_GPUS], hosts[h, BUSY] = 0, held, held
    for n in range(first if cells.shape[0] > 0 else 0):
        h, size = cells[n, at.CELL_HOST], nodes[n, at.NODE_GPUS]
        if h >= 0:
            hosts[h, TAKEN] |= mask_of(cells[n, at.CELL_BLOCK], size)
            hosts[h, OPPORTUNISTIC_GPUS] -= size
            hosts[h, BUSY] -= nodes[n, at.FREE]


@kernel
def bind(board: Board, n: int) -> None:
    """Bind the cell `n` to a block of a host, if it is not bound yet; opportunistic jobs there are preempted.

    The last submitted go first. (Which GPUs of a host an opportunistic job holds is not modelled: any that are in no
    cell.)
    """
    nodes, cells = board.nodes, board.cells
    if cells[n, at.CELL_HOST] >= 0:
        return
    survey(board)
    host, start = choose_block(board.hosts, cells[n, at.CELL_KIND], nodes[n, at.NODE_GPUS])
    opportunistic = first_host(board) + host
    while nodes[opportunistic, at.FREE] < nodes[n, at.NODE_GPUS]:
        release(board, _last_on(board, opportunistic))
    hold(board, opportunistic, nodes[n, at.NODE_GPUS])
    cells[n, at.CELL_HOST], cells[n, at.CELL_BLOCK] = host, start


@kernel
def _last_on(board: Board, node: int) -> int:
    """Return the job with the largest index that holds something of a node, of which there must be one."""
    jobs, active = board.jobs, board.active
    last = -1
    for i in range(board.count[at.ACTIVE]):
        n, config = int(jobs[active[i], at.NODE]), int(jobs[active[i], at.CONFIG])
        while n >= 0 and n != node:
            n = next_node(board, active[i], config, n, False)
        if n == node:
            last = max(last, active[i])
    return last


@kernel
def let_empty_cells_go(board: Board) -> None:
    """Unbind the cells in which nothing is held, so that opportunistic jobs can use their GPUs."""
    nodes, cells = board.nodes, board.cells
    for n in range(first_host(board) if cells.shape[0] > 0 else 0):
        host = cells[n, at.CELL_HOST]
        if host >= 0 and nodes[n, at.FREE] == nodes[n, at.USABLE]:
            let_go(board, first_host(board) + host, nodes[n, at.NODE_GPUS])
            cells[n, at.CELL_HOST] = -1


@kernel
def remember(board: Board) -> None:
    """Store the binding of the cells as a round begins."""
    cells = board.cells
    for n in range(cells.shape[0]):
        cells[n, at.CELL_OLD_HOST] = cells[n, at.CELL_HOST]


@kernel
def recount_hosts(board: Board) -> None:
    """Unbind empty cells that were bound in this round, and recount the free GPUs of the hosts."""
    jobs, nodes, cells, configs = board.jobs, board.nodes, board.cells, board.facts.configs
    first, shared = first_host(board), (nodes.shape[1] - at.NODE_COLUMNS) // 2
    for n in range(first, nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.USABLE]
        for gpu in range(shared):
            nodes[n, at.FREE] -= 1 if nodes[n, at.NODE_COLUMNS + gpu] > 0 else 0
    for n in range(first):
        if nodes[n, at.FREE] == nodes[n, at.USABLE] and cells[n, at.CELL_HOST] != cells[n, at.CELL_OLD_HOST]:
            cells[n, at.CELL_HOST] = -1
        if cells[n, at.CELL_HOST] >= 0:
            nodes[first + cells[n, at.CELL_HOST], at.FREE] -= nodes[n, at.NODE_GPUS]
    for i in range(board.count[at.ACTIVE]):
        config, n = int(jobs[board.active[i], at.CONFIG]), int(jobs[board.active[i], at.NODE])
        while n >= first and configs[config, at.CONFIG_UNITS] == 0:
            nodes[n, at.FREE] -= gpus_on(board, board.active[i], config, n, False)
            n = next_node(board, board.active[i], config, n, False)


@lean_kernel
def binding_unchanged(board: Board, node: int) -> bool:
    """Whether the chain of cells that begins with `node` is bound as when the round began."""
    nodes, cells = board.nodes, board.cells
    n = node
    while n >= 0 and cells.shape[0] > 0:
        if cells[n, at.CELL_HOST] != cells[n, at.CELL_OLD_HOST]:
            return False
        n = nodes[n, at.NEXT]
    return True


@kernel
def hosts_rate(board: Board) -> float:
    """Sum r_v(u) over the hosts [€/s]: cells of several tenants on one share its power."""
    nodes, hosts = board.nodes, board.hosts
    survey(board)
    total = 0.0
    for h in range(hosts.shape[0]):
        total += board.node_rate[nodes[first_host(board) + h, at.NODE_TYPE], hosts[h, BUSY]]
    return total


@lean_kernel
def hosts_charge(board: Board, node: int, gpus: int) -> float:
    """Return the part of `gpus` GPUs on each node of a chain in their hosts' cost rate [€/s], after `hosts_rate`."""
    nodes, rate = board.nodes, 0.0
    n = node
    while n >= 0:
        busy = board.hosts[board.cells[n, at.CELL_HOST], BUSY]
        rate += board.node_rate[nodes[n, at.NODE_TYPE], busy] * gpus / busy
        n = nodes[n, at.NEXT]
    return rate
