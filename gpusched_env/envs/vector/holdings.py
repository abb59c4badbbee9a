"""What jobs hold against what nodes say is free: in a state from outside, one must follow from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cells import blocks

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


def nodes_as_held(board: Board, tau: Floats, *, old: bool) -> bool:
    """Say whether free GPUs, shared GPUs and chains of nodes are those that the jobs' holdings leave.

    Args:
        board: The state; its constant columns, who is active, and the ranges of indices must be right.
        tau: Seconds per epoch of every job, (J, C); inf where not allowed.
        old: Whether to look at what was held when the round began, or at what is held now.
    """
    columns = (at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT) if old else (at.CONFIG, at.NODE, at.SLOT)
    nodes, active = board.nodes, board.active[: board.count[at.ACTIVE]]
    shared = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    used = nodes[:, at.NODE_COLUMNS + shared :] if old else nodes[:, at.NODE_COLUMNS : at.NODE_COLUMNS + shared]
    following = nodes[:, at.OLD_NEXT if old else at.NEXT]
    whole, units, chained = np.zeros(len(nodes), np.int64), np.zeros_like(used), np.full(len(nodes), -1)
    for job, (config, node, slot) in zip(active, board.jobs[active][:, columns].astype(np.int64), strict=True):
        if config < 0:
            if node != -1 or slot != -1:
                return False
        elif not np.isfinite(tau[job, config]) or not _hold(
            board, (config, node, slot), following, whole, units, chained
        ):
            return False
    free = nodes[:, at.NODE_GPUS] - whole - (units > 0).sum(axis=1) - _in_cells(board, old=old)
    return (
        bool(np.all(free >= 0) and np.all(units <= at.UNITS))
        and np.array_equal(nodes[:, at.OLD_FREE if old else at.FREE], free)
        and np.array_equal(used, units)
        and np.array_equal(following, chained)
    )


def cells_lie(board: Board, *, old: bool) -> bool:
    """Say whether cells lie on hosts of their kind, each on a block of its own, and whatever is in use lies somewhere.

    Args:
        board: The state; its constant columns must be right.
        old: Whether to look at when the round began, or at now.
    """
    cells, nodes, hosts = board.cells, board.nodes, board.hosts
    first, taken = len(nodes) - len(hosts), [0] * len(hosts)
    column = cells[:, at.CELL_OLD_HOST if old else at.CELL_HOST]
    if len(cells) and not np.array_equal(column[first:], np.arange(len(hosts))):
        return False
    for n in range(first if len(cells) else 0):
        h, start, size = int(column[n]), int(cells[n, at.CELL_BLOCK]), int(nodes[n, at.NODE_GPUS])
        if h == -1:
            if nodes[n, at.OLD_FREE if old else at.FREE] < size:
                return False
            continue
        if not 0 <= h < len(hosts) or hosts[h, blocks.KIND] != cells[n, at.CELL_KIND]:
            return False
        if old:  # where on the host is not remembered
            continue
        if not 0 <= start <= hosts[h, blocks.GPUS] - size or start % size:
            return False
        mask = ((1 << size) - 1) << start
        if taken[h] & mask:
            return False
        taken[h] |= mask
    return True


def busy_gpus(board: Board, *, old: bool) -> Ints:
    """Count the busy GPUs of every node, with cells those of hosts alone, in their cells too, (N,).

    Args:
        board: The state.
        old: Whether to look at when the round began, or at now.
    """
    nodes = board.nodes
    free = nodes[:, at.OLD_FREE if old else at.FREE]
    busy: Ints = nodes[:, at.NODE_GPUS] - free
    first = len(nodes) - len(board.hosts)
    for n in range(first if len(board.cells) else 0):
        host = int(board.cells[n, at.CELL_OLD_HOST if old else at.CELL_HOST])
        busy[n] = 0
        if host >= 0:
            busy[first + host] -= free[n]
    return busy


def _in_cells(board: Board, *, old: bool) -> Ints:
    """Count the GPUs of every node that are in cells bound to it, (N,)."""
    count = np.zeros(len(board.nodes), np.int64)
    first = len(board.nodes) - len(board.hosts)
    for n in range(first if len(board.cells) else 0):
        host = int(board.cells[n, at.CELL_OLD_HOST if old else at.CELL_HOST])
        if 0 <= host < len(board.hosts):
            count[first + host] += board.nodes[n, at.NODE_GPUS]
    return count


def _hold(board: Board, held: tuple[int, int, int], following: Ints, whole: Ints, units: Ints, chained: Ints) -> bool:
    """Count what one job holds; False if it cannot hold that there."""
    config, (node, slot) = board.facts.configs[held[0]], held[1:]
    shares, several = config[at.CONFIG_UNITS] > 0, config[at.CONFIG_NODES] > 1
    for k in range(config[at.CONFIG_NODES]):
        gpus = board.nodes[node, at.NODE_GPUS]
        if node < 0 or board.nodes[node, at.NODE_TYPE] != config[at.CONFIG_TYPE]:
            return False
        if (several and gpus != config[at.CONFIG_GPUS]) or not (0 <= slot < gpus if shares else slot == -1):
            return False
        if shares:
            units[node, slot] += config[at.CONFIG_UNITS]
        else:
            whole[node] += config[at.CONFIG_GPUS]
        if k + 1 < config[at.CONFIG_NODES]:
            after = int(following[node])
            if not node < after < len(following):  # they form a chain by index
                return False
            chained[node] = node = after
    return True
