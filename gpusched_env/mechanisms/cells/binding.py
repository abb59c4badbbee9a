"""Cell binding: a tenant's cell is bound to a block of a host when it is used, and unbound when it is empty.

Which block, `gpusched_env.cells.tree` says. Of blocks that do as well, one on the host with fewest opportunistic GPUs
is chosen, then on one that is in use, since cells of two tenants on one host share the power that it draws anyway, then
by index.

With cells the last `hosts.shape[0]` nodes are the hosts as opportunistic jobs see them: their GPUs that are in no
bound cell. The nodes before them are the cells. A cell that was bound when the round began stays so until the next one
begins, unless a policy unbinds it, so that a round that begins from an empty cluster moves no job.
"""

from __future__ import annotations

from gpusched_env.cells import tree as cells_at
from gpusched_env.cells.tree import choose, clear, comes_before, free_around, take
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import gpus_on, next_node
from gpusched_env.simulator.placement.whole_gpus import hold, let_go, release
from gpusched_env.simulator.run import Board

MOST_GPUS = 32  # on a node with cells: bits of a mask, with room for sums of them

# hosts: int64 (H, HOST_COLUMNS). The physical nodes to which the cells of tenants are bound.
TOP = 0  # row of the host in the tree of cells
GPUS = 1  # number of GPUs
TAKEN = 2  # mask of the GPUs in cells that are bound
OPPORTUNISTIC_GPUS = 3  # GPUs held by opportunistic jobs
BUSY = 4  # GPUs held by any job
HOST_COLUMNS = 5


@lean_kernel
def mask_of(start: int, size: int) -> int:
    return ((1 << size) - 1) << start


@lean_kernel
def first_host(board: Board) -> int:
    """Return the index of the node that stands for the first host; the nodes before it are cells."""
    return board.nodes.shape[0] - (board.hosts.shape[0] if board.has_cells else 0)


@lean_kernel
def is_opportunistic_config(board: Board, config: int) -> bool:
    """Whether a configuration is one of opportunistic jobs: on hosts, and in no cell."""
    if not board.has_cells or board.hosts.shape[0] == 0:
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
def _plant(board: Board) -> None:
    """Write to `tree` which cells are free, and where opportunistic jobs and any jobs run, after `survey`.

    Which GPUs of a host an opportunistic job holds is not modelled: any that are in no cell. So all cells of a host
    count the same.
    """
    tree, hosts, cells = board.tree, board.hosts, board.cells
    clear(tree)
    for row in range(tree.shape[0]):
        h = tree[row, cells_at.NODE]
        tree[row, cells_at.OPPORTUNISTIC_GPUS] = hosts[h, OPPORTUNISTIC_GPUS] if h >= 0 else 0
        tree[row, cells_at.IDLE] = 1 if h < 0 or hosts[h, BUSY] == 0 else 0
    for h in range(hosts.shape[0]):
        row = tree[hosts[h, TOP], cells_at.PARENT]
        while row >= 0:
            tree[row, cells_at.OPPORTUNISTIC_GPUS] += hosts[h, OPPORTUNISTIC_GPUS]
            tree[row, cells_at.IDLE] &= 1 if hosts[h, BUSY] == 0 else 0
            row = tree[row, cells_at.PARENT]
    for n in range(first_host(board)):
        if cells[n, at.CELL_HOST] >= 0:
            row = _bound_to(board, n)
            if free_around(tree, row) >= 0:  # else another node of the same cell was before it
                take(tree, row)


@kernel
def _bound_to(board: Board, n: int) -> int:
    """Return the row of the block, or of the part of a rack, to which the cell is bound of which a node is a part."""
    tree, cells = board.tree, board.cells
    row, gpus = board.hosts[cells[n, at.CELL_HOST], TOP], board.nodes[n, at.NODE_GPUS]
    while tree[row, cells_at.LIST] != cells[n, at.CELL_LEVEL] and cells[n, at.CELL_NODES] > 1:
        row = tree[row, cells_at.PARENT]
    gpu = tree[row, cells_at.FIRST] + cells[n, at.CELL_BLOCK]
    while tree[row, cells_at.SIZE] > gpus * cells[n, at.CELL_NODES]:
        child = tree[row, cells_at.CHILD]
        row = child + (gpu - tree[child, cells_at.FIRST]) // tree[child, cells_at.SIZE]
    return row


@kernel
def _place_for(board: Board, n: int) -> int:
    """Choose the row of the block, or of the host, to which a node is bound.

    The nodes of a cell of several are in one part of a rack, which is chosen with the first that is bound; the others
    keep to it while that one is used.
    """
    tree, cells = board.tree, board.cells
    around = -1
    for m in range(first_host(board) if cells[n, at.CELL_NODES] > 1 else 0):
        if cells[m, at.CELL_RACK] == cells[n, at.CELL_RACK] and cells[m, at.CELL_HOST] >= 0:
            around = _bound_to(board, m)
    if around < 0:
        around = choose(tree, cells[n, at.CELL_LEVEL], cells_at.FIRST)
    if cells[n, at.CELL_NODES] == 1:
        return around
    best, end = -1, tree[around, cells_at.FIRST] + tree[around, cells_at.SIZE]
    for h in range(board.hosts.shape[0]):
        row = board.hosts[h, TOP]
        inside = tree[around, cells_at.FIRST] <= tree[row, cells_at.FIRST] < end
        if inside and board.hosts[h, TAKEN] == 0 and (best < 0 or comes_before(tree, row, best, cells_at.FIRST)):
            best = row
    return best


@kernel
def bind(board: Board, n: int) -> None:
    """Bind the cell `n` to a block of a host, if it is not bound yet; opportunistic jobs there are preempted.

    The last submitted go first.
    """
    nodes, cells, tree = board.nodes, board.cells, board.tree
    if cells[n, at.CELL_HOST] >= 0:
        return
    survey(board)
    _plant(board)
    row = _place_for(board, n)
    host = tree[row, cells_at.NODE]
    opportunistic = first_host(board) + host
    while nodes[opportunistic, at.FREE] < nodes[n, at.NODE_GPUS]:
        release(board, _last_on(board, opportunistic))
    hold(board, opportunistic, nodes[n, at.NODE_GPUS])
    cells[n, at.CELL_HOST] = host
    cells[n, at.CELL_BLOCK] = tree[row, cells_at.FIRST] - tree[board.hosts[host, TOP], cells_at.FIRST]


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
