"""The arrays of cell bindings, hosts and their cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.cells import tree as tree_at
from gpusched_env.mechanisms.cells import binding as blocks
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.model.configuration import hardware_of
from gpusched_env.model.tenant import pieces
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class CellBoard(Board):
    """Adds the cells of tenants.

    Attributes:
        cells: The binding of the tenants' cells, (N, CELL_COLUMNS); (0, CELL_COLUMNS) without cells.
        hosts: The hosts to which they are bound, (H, columns of `binding`); none without cells.
        tree: Their GPUs as cells of all sizes, (P, columns of `gpusched_env.cells.tree`); written when a cell is bound.
    """

    together = ("cells", "hosts", "tree")

    cells: Annotated[Ints, 2]
    hosts: Annotated[Ints, 2]
    tree: Annotated[Ints, 2]


def arrays(instance: Instance) -> dict[str, NDArray[np.int64]]:
    """Make the arrays of cell bindings, hosts and their cells: hosts are their own hosts, and no cell is bound."""
    own = Tenants.of(instance)
    cells = np.full((len(instance.nodes) if own.hosts else 0, at.CELL_COLUMNS), -1, dtype=np.int64)
    hosts = np.zeros((own.hosts, blocks.HOST_COLUMNS), dtype=np.int64)
    if not own.hosts:
        return {"cells": cells, "hosts": hosts, "tree": np.zeros((0, tree_at.TREE_COLUMNS), dtype=np.int64)}
    hardware = hardware_of(instance.gpu_types)
    names = [hardware[node.gpu_type] for node in instance.nodes]
    known = sorted(set(names))
    kinds = np.array([known.index(name) for name in names], dtype=np.int64)
    gpus = np.array([node.gpus for node in instance.nodes], dtype=np.int64)
    first, together = instance.first_machine, pieces(instance.nodes, own.racks)
    for rack, nodes in enumerate(together):
        cells[nodes, at.CELL_RACK], cells[nodes, at.CELL_NODES] = rack, len(nodes)
    sizes = gpus * cells[:, at.CELL_NODES]
    levels = {int(kind): _levels(gpus[kinds == kind], sizes[kinds == kind]) for kind in set(kinds.tolist())}
    racks = [rack for rack in together if rack[0] >= first]
    tree, _ = tree_at.grow([(int(kinds[rack[0]]), int(sizes[rack[0]])) for rack in racks], levels)
    start = 0
    for host in (host for rack in racks for host in rack):
        within = (tree[:, tree_at.FIRST] >= start) & (tree[:, tree_at.FIRST] < start + gpus[host])
        inside = np.flatnonzero(within & (tree[:, tree_at.SIZE] <= gpus[host]))
        tree[inside, tree_at.NODE] = host - first
        hosts[host - first, blocks.TOP] = inside[0]
        start += int(gpus[host])
    hosts[:, blocks.GPUS] = gpus[first:]
    cells[first:, at.CELL_HOST] = cells[first:, at.CELL_OLD_HOST] = range(own.hosts)
    cells[:, at.CELL_BLOCK] = 0
    kind_of_row = kinds[[racks[piece][0] for piece in tree[:, tree_at.PIECE]]]
    for n in range(len(instance.nodes)):
        equal = np.flatnonzero((kind_of_row == kinds[n]) & (tree[:, tree_at.SIZE] == sizes[n]))
        cells[n, at.CELL_LEVEL] = tree[equal[0], tree_at.LIST]
    return {"cells": cells, "hosts": hosts, "tree": tree}


def _levels(gpus: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[int, ...]:
    low, high = int(gpus.min()), int(gpus.max())
    in_nodes = {low * 2**k for k in range((high // low).bit_length())}
    return tuple(sorted(in_nodes | set(sizes.tolist())))
