"""Cells and racks at the hooks: binding of the cells that are used, what their hosts cost, and groups of nodes."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.cells.arrays import CellBoard, arrays
from gpusched_env.mechanisms.cells.binding import (
    bind,
    binding_unchanged,
    hosts_charge,
    hosts_rate,
    let_empty_cells_go,
    recount_hosts,
)
from gpusched_env.mechanisms.cells.binding import remember as remember_hosts
from gpusched_env.mechanisms.nodes.kernels import is_empty
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import next_node
from gpusched_env.simulator.run import Board


@kernel
def open_round(board: Board) -> None:
    if board.cells.shape[0] > 0:
        let_empty_cells_go(board)
        remember_hosts(board)


@kernel
def recount(board: Board) -> None:
    if board.cells.shape[0] > 0:
        recount_hosts(board)


@kernel
def keeps_place(board: Board, job: int, same: bool) -> bool:
    n = int(board.jobs[job, at.NODE]) if board.cells.shape[0] > 0 else -1
    while n >= 0 and same:
        same = binding_unchanged(board, n)
        n = next_node(board, job, int(board.jobs[job, at.CONFIG]), n, False)
    return same


@lean_kernel
def use_node(board: Board, node: int) -> None:
    if board.cells.shape[0] > 0:
        bind(board, node)


@lean_kernel
def node_charge(board: Board, node: int, gpus: int, rate: float) -> float:
    return hosts_charge(board, node, gpus) if board.cells.shape[0] > 0 else rate


@kernel
def nodes_rate(board: Board, rate: float) -> float:
    return hosts_rate(board) if board.cells.shape[0] > 0 else rate


@lean_kernel
def write_interval(board: Board, job: int, config: int, node: int, old: bool, row: Floats) -> None:  # noqa: ARG001
    if board.cells.shape[0] > 0:
        row[at.LOG_HOST] = board.cells[node, at.CELL_OLD_HOST if old else at.CELL_HOST]


@kernel
def smallest_rack(board: Board, gpu_type: int, wanted: int) -> int:
    """Return the cell of several nodes, or the rack, with fewest empty nodes of those with enough; -1 if none has."""
    cells = board.cells
    empty = np.zeros(cells.shape[0], dtype=np.int64)
    best = -1
    for n in range(cells.shape[0]):
        if cells[n, at.CELL_NODES] > 1 and is_empty(board, gpu_type, n):
            empty[cells[n, at.CELL_RACK]] += 1
    for rack in range(cells.shape[0]):
        if empty[rack] >= wanted and (best < 0 or empty[rack] < empty[best]):
            best = rack
    return best


@kernel
def group_for(board: Board, gpu_type: int, wanted: int, group: int) -> int:
    return smallest_rack(board, gpu_type, wanted) if board.cells.shape[0] > 0 else group


@lean_kernel
def in_group(board: Board, node: int, group: int, inside: bool) -> bool:
    return inside or (board.cells.shape[0] > 0 and board.cells[node, at.CELL_RACK] == group)


@lean_kernel
def takes_from_others(board: Board, takes: bool) -> bool:
    return takes or board.cells.shape[0] > 0


@kernel
def copy_arrays(board: Board, source: Board) -> None:
    board.cells[:, :] = source.cells
    board.hosts[:, :] = source.hosts


register(
    "cells",
    {
        hooks.open_round: open_round,
        hooks.recount: recount,
        hooks.keeps_place: keeps_place,
        hooks.use_node: use_node,
        hooks.node_charge: node_charge,
        hooks.nodes_rate: nodes_rate,
        hooks.write_interval: write_interval,
        hooks.group_for: group_for,
        hooks.in_group: in_group,
        hooks.takes_from_others: takes_from_others,
        hooks.copy_arrays: copy_arrays,
    },
    (CellBoard,),
    arrays,
)
