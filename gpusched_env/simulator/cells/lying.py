"""Where the cells of tenants lie: bound to a block of a host when they are used, and let go when they are empty.

With cells the last `hosts.shape[0]` nodes are the hosts as opportunistic jobs see them: what of them is in no cell that
is bound. The nodes before them are the cells. A cell that was bound when the round began stays so until the next one
begins, unless a policy lets it go, so that a round that begins from an empty cluster moves nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cells import blocks
from gpusched_env.simulator.cells.blocks import choose_block, mask_of
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.whole_gpus import hold, let_go

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@lean_kernel
def first_host(board: Board) -> int:
    """Give the index of the node that stands for the first host; the nodes before it are cells."""
    return board.nodes.shape[0] - board.hosts.shape[0]


@lean_kernel
def is_lent(board: Board, config: int) -> bool:
    """Say whether a configuration is one of opportunistic jobs: on hosts, and in no cell."""
    if board.hosts.shape[0] == 0:
        return False
    return board.facts.configs[config, at.CONFIG_TYPE] >= board.nodes[first_host(board), at.NODE_TYPE]


@kernel
def survey(board: Board) -> None:
    """Write to `hosts` what of each is in bound cells, lent and busy."""
    nodes, hosts, cells = board.nodes, board.hosts, board.cells
    first = first_host(board)
    for h in range(hosts.shape[0]):
        held = nodes[first + h, at.NODE_GPUS] - nodes[first + h, at.FREE]
        hosts[h, blocks.TAKEN], hosts[h, blocks.LENT], hosts[h, blocks.BUSY] = 0, held, held
    for n in range(first if cells.shape[0] > 0 else 0):
        h, size = cells[n, at.CELL_HOST], nodes[n, at.NODE_GPUS]
        if h >= 0:
            hosts[h, blocks.TAKEN] |= mask_of(cells[n, at.CELL_BLOCK], size)
            hosts[h, blocks.LENT] -= size
            hosts[h, blocks.BUSY] -= nodes[n, at.FREE]


@kernel
def bind(board: Board, n: int) -> None:
    """Bind the cell `n` to a block of a host, if it is none yet; opportunistic jobs there make room.

    The last submitted go first. (Which GPUs of a host an opportunistic job has is not told: any that are in no cell.)
    """
    nodes, cells = board.nodes, board.cells
    if cells[n, at.CELL_HOST] >= 0:
        return
    survey(board)
    host, start = choose_block(board.hosts, cells[n, at.CELL_KIND], nodes[n, at.NODE_GPUS])
    lent = first_host(board) + host
    while nodes[lent, at.FREE] < nodes[n, at.NODE_GPUS]:
        release(board, _last_on(board, lent))
    hold(board, lent, nodes[n, at.NODE_GPUS])
    cells[n, at.CELL_HOST], cells[n, at.CELL_BLOCK] = host, start


@kernel
def _last_on(board: Board, node: int) -> int:
    """Give the job with the largest index that holds something of a node, of which there must be one."""
    jobs, nodes, active = board.jobs, board.nodes, board.active
    last = -1
    for i in range(board.count[at.ACTIVE]):
        n = int(jobs[active[i], at.NODE])
        while n >= 0 and n != node:
            n = nodes[n, at.NEXT]
        if n == node:
            last = max(last, active[i])
    return last


@kernel
def let_empty_cells_go(board: Board) -> None:
    """Unbind the cells in which nothing is held, so that opportunistic jobs can use their GPUs."""
    nodes, cells = board.nodes, board.cells
    for n in range(first_host(board) if cells.shape[0] > 0 else 0):
        host = cells[n, at.CELL_HOST]
        if host >= 0 and nodes[n, at.FREE] == nodes[n, at.NODE_GPUS]:
            let_go(board, first_host(board) + host, nodes[n, at.NODE_GPUS])
            cells[n, at.CELL_HOST] = -1


@kernel
def remember(board: Board) -> None:
    """Remember where the cells lie as a round begins."""
    cells = board.cells
    for n in range(cells.shape[0]):
        cells[n, at.CELL_OLD_HOST] = cells[n, at.CELL_HOST]


@kernel
def count_hosts_anew(board: Board) -> None:
    """Unbind empty cells that were bound in this round, and count what is free of the hosts from all that is held."""
    jobs, nodes, cells, configs = board.jobs, board.nodes, board.cells, board.facts.configs
    first, shared = first_host(board), (nodes.shape[1] - at.NODE_COLUMNS) // 2
    for n in range(first, nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.NODE_GPUS]
        for gpu in range(shared):
            nodes[n, at.FREE] -= 1 if nodes[n, at.NODE_COLUMNS + gpu] > 0 else 0
    for n in range(first):
        if nodes[n, at.FREE] == nodes[n, at.NODE_GPUS] and cells[n, at.CELL_HOST] != cells[n, at.CELL_OLD_HOST]:
            cells[n, at.CELL_HOST] = -1
        if cells[n, at.CELL_HOST] >= 0:
            nodes[first + cells[n, at.CELL_HOST], at.FREE] -= nodes[n, at.NODE_GPUS]
    for i in range(board.count[at.ACTIVE]):
        config, n = int(jobs[board.active[i], at.CONFIG]), int(jobs[board.active[i], at.NODE])
        while n >= first and configs[config, at.CONFIG_UNITS] == 0:
            nodes[n, at.FREE] -= configs[config, at.CONFIG_GPUS]
            n = nodes[n, at.NEXT]


@lean_kernel
def lies_as_before(board: Board, node: int) -> bool:
    """Say whether the chain of cells that begins with `node` lies where it lay when the round began."""
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
        total += board.node_rate[nodes[first_host(board) + h, at.NODE_TYPE], hosts[h, blocks.BUSY]]
    return total


@lean_kernel
def hosts_charge(board: Board, node: int, gpus: int) -> float:
    """Give the part of `gpus` GPUs on each node of a chain in what their hosts cost [€/s], after `hosts_rate`."""
    nodes, rate = board.nodes, 0.0
    n = node
    while n >= 0:
        busy = board.hosts[board.cells[n, at.CELL_HOST], blocks.BUSY]
        rate += board.node_rate[nodes[n, at.NODE_TYPE], busy] * gpus / busy
        n = nodes[n, at.NEXT]
    return rate
