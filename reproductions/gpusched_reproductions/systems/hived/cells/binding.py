"""The binding of virtual cells to physical ones, and the priorities at which their GPUs are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Ints
from gpusched_env.cells import tree as at
from gpusched_reproductions.systems.hived.cells.cluster import CellCluster, Chain

NOBODY = -2
OPPORTUNISTIC = -1
HIGHEST = 1000
"""Priorities: of a GPU that nobody holds, of opportunistic gangs, and the highest one of guaranteed gangs."""


@dataclass(eq=False)
class Side:
    """The physical cells, or the virtual cells of all tenants.

    Attributes:
        tree: The cells, (P, TREE_COLUMNS); of virtual cells its lists of free cells are not used.
        tops: Row of every whole piece, or of every promised cell.
        bound: By row, the cell of the other side to which a cell is bound, or -1, (P,).
        priority: By number, the priority at which a GPU is held, (G,).
        gpus: By number, the row of a GPU, (G,).
    """

    tree: Ints
    tops: list[int]
    bound: Ints = field(init=False)
    priority: Ints = field(init=False)
    gpus: Ints = field(init=False)

    def __post_init__(self) -> None:
        leaves = np.flatnonzero(self.tree[:, at.CHILDREN] == 0)
        self.gpus = leaves[np.argsort(self.tree[leaves, at.FIRST])]
        self.bound = np.full(len(self.tree), -1, dtype=np.int64)
        self.priority = np.full(len(leaves), NOBODY, dtype=np.int64)

    def span(self, cell: int) -> slice:
        first = int(self.tree[cell, at.FIRST])
        return slice(first, first + int(self.tree[cell, at.SIZE]))

    def held(self, cell: int) -> Ints:
        return self.priority[self.span(cell)]

    def highest(self, cell: int) -> int:
        return int(self.held(cell).max())

    def gpus_of(self, cell: int) -> NDArray[np.int64]:
        return self.gpus[self.span(cell)]

    def parent(self, cell: int) -> int:
        return int(self.tree[cell, at.PARENT])

    def size(self, cell: int) -> int:
        return int(self.tree[cell, at.SIZE])

    def path(self, cell: int) -> Iterator[int]:
        while cell >= 0:
            yield cell
            cell = self.parent(cell)

    def top(self, cell: int) -> int:
        """Return the whole piece, or the promised cell, of which a cell is a part."""
        return list(self.path(cell))[-1]

    def children(self, cell: int) -> range:
        first = int(self.tree[cell, at.CHILD])
        return range(first, first + int(self.tree[cell, at.CHILDREN]))

    def parts(self, cell: int, size: int) -> list[int]:
        inside = [c for gpu in self.gpus_of(cell) for c in self.path(int(gpu)) if self.size(c) == size]
        return list(dict.fromkeys(inside))

    def nodes(self, tops: list[int], node: int) -> list[int]:
        """List the nodes in some cells, then those of the cells that are less than a node, the largest first."""
        inside = [cell for top in tops for cell in self.parts(top, node)]
        smaller = [top for top in tops if self.size(top) < node]
        return inside + sorted(smaller, key=self.size, reverse=True)


@dataclass(eq=False)
class Binding:
    """The cells of both sides, and which lie where.

    Attributes:
        physical: The cells of the cluster.
        virtual: Those of the tenants.
        promised: Rows of a tenant's virtual cells by chain, in the order of its promises.
        pinned: Row of each pinned virtual cell, by tenant and name.
        fixed: Rows of the physical cells that are pinned.
        names: Node, and number there, of each physical GPU.
    """

    cluster: CellCluster
    physical: Side = field(init=False)
    virtual: Side = field(init=False)
    promised: dict[str, dict[str, list[int]]] = field(init=False)
    pinned: dict[str, dict[str, int]] = field(init=False)
    fixed: set[int] = field(init=False, default_factory=set)
    names: list[tuple[str, int]] = field(init=False)
    _kinds: list[int] = field(init=False)

    def __post_init__(self) -> None:
        cluster, names = self.cluster, [chain.name for chain in self.cluster.chains]
        levels = {kind: chain.sizes for kind, chain in enumerate(cluster.chains)}
        self.physical = Side(*at.grow([(names.index(p.chain), len(p.gpus)) for p in cluster.pieces], levels))
        where = {name: (p, *cell) for p, piece in enumerate(cluster.pieces) for name, cell in piece.pinned.items()}
        tops: list[tuple[int, int]] = []
        for tenant in cluster.tenants.values():
            tops += [(names.index(chain), size) for chain, size in tenant.promised]
            tops += [(names.index(cluster.pieces[where[name][0]].chain), where[name][2]) for name in tenant.pinned]
        self.virtual = Side(*at.grow(tops, levels))
        self._kinds = [kind for kind, _ in tops]
        rows, self.promised, self.pinned = iter(self.virtual.tops), {}, {}
        for name, tenant in cluster.tenants.items():
            self.promised[name], self.pinned[name] = {}, {}
            for chain, _ in tenant.promised:
                self.promised[name].setdefault(chain, []).append(next(rows))
            for cell in tenant.pinned:
                self.pinned[name][cell] = next(rows)
                self._fix(self.pinned[name][cell], *where[cell])
        self.names = [gpu for piece in cluster.pieces for gpu in piece.gpus]
        for name in names:
            self._as_found_healthy(name)

    def chain_of_piece(self, top: int) -> Chain:
        return self.cluster.chain(self.cluster.pieces[self.physical.tops.index(top)].chain)

    def chain_of(self, virtual: int) -> Chain:
        return self.cluster.chains[self._kinds[self.virtual.tops.index(self.virtual.top(virtual))]]

    def level_of(self, virtual: int) -> int:
        """Return the row where the list of the free physical cells of a virtual cell's kind and size begins."""
        tree, size = self.physical.tree, self.virtual.size(virtual)
        chain = self.chain_of(virtual).name
        of_chain = [p for p, piece in enumerate(self.cluster.pieces) if piece.chain == chain]
        equal = np.flatnonzero(np.isin(tree[:, at.PIECE], of_chain) & (tree[:, at.SIZE] == size))
        return int(tree[equal[0], at.LIST])

    def unbound(self) -> Counter[int]:
        promised = (top for of_tenant in self.promised.values() for cells in of_tenant.values() for top in cells)
        return Counter(self.level_of(top) for top in promised if self.virtual.bound[top] < 0)

    def _fix(self, virtual: int, piece: int, start: int, size: int) -> None:
        """Bind a pinned virtual cell for good, by the place of its physical one."""
        physical = self.physical
        first = physical.tree[physical.tops[piece], at.FIRST] + start
        cell = next(cell for cell in physical.path(int(physical.gpus[first])) if physical.size(cell) == size)
        at.take(physical.tree, cell)
        physical.bound[cell], self.virtual.bound[virtual] = virtual, cell
        self.fixed.add(cell)

    def _as_found_healthy(self, chain: str) -> None:
        """Bring the free nodes of a chain into the order in which HiveD has them once it has found all healthy.

        When it starts it takes every node for bad, one after the other. Whenever fewer good ones are left than virtual
        clusters were promised, the first of the bad ones is bound, so that the tenant sees it; as it is found healthy
        it is free again, behind the others. (Of chains of racks their order stays.)
        """
        tree, node = self.physical.tree, self.cluster.chain(chain).node
        tops = [top for top, p in zip(self.physical.tops, self.cluster.pieces, strict=True) if p.chain == chain]
        cells = [top for top in tops if tree[top, at.PLACE] >= 0 and tree[top, at.SIZE] == node]
        promised = sum(promise == (chain, node) for t in self.cluster.tenants.values() for promise in t.promised)
        bad, doomed, free = list[int](), list[int](), len(cells)
        for cell in cells:
            bad.append(cell)
            if promised - len(doomed) > free - len(bad):
                doomed.append(bad.pop(0))
                free -= 1
                at.take(tree, doomed[-1])
        for cell in cells:
            if cell in doomed:
                at.give_back(tree, cell)

    def allocate(self, gpu: int, virtual: int, priority: int) -> None:
        """Let a physical GPU be held at a priority: through a virtual one, to which it is bound; -1: opportunistic."""
        physical = self.physical
        physical.priority[physical.tree[gpu, at.FIRST]] = priority if virtual >= 0 else OPPORTUNISTIC
        if virtual < 0:
            at.count_opportunistic(physical.tree, gpu, 1)
            return
        self.virtual.priority[self.virtual.tree[virtual, at.FIRST]] = priority
        top = self.virtual.top(virtual)
        is_new = self.virtual.bound[top] < 0
        if physical.bound[gpu] < 0:
            for cell, around in zip(self.virtual.path(virtual), physical.path(gpu), strict=False):
                if self.virtual.bound[cell] >= 0:
                    break
                self.virtual.bound[cell], physical.bound[around] = around, cell
        if is_new:
            at.take(physical.tree, int(self.virtual.bound[top]))

    def release(self, gpu: int) -> None:
        """Let go of a physical GPU; the cells in which nothing is held are unbound, and free if they were promised."""
        physical, virtual = self.physical, self.virtual
        cell = int(physical.bound[gpu])
        if cell >= 0:
            virtual.priority[virtual.tree[cell, at.FIRST]] = NOBODY
            top = virtual.top(cell)
            place = int(virtual.bound[top])
            self._unbind(cell)
            if place not in self.fixed and virtual.highest(top) < 0:
                at.give_back(physical.tree, place)
        elif physical.priority[physical.tree[gpu, at.FIRST]] == OPPORTUNISTIC:
            at.count_opportunistic(physical.tree, gpu, -1)
        physical.priority[physical.tree[gpu, at.FIRST]] = NOBODY

    def _unbind(self, virtual: int) -> None:
        for cell in self.virtual.path(virtual):
            place = int(self.virtual.bound[cell])
            if place in self.fixed or any(self.virtual.bound[child] >= 0 for child in self.virtual.children(cell)):
                return
            self.virtual.bound[cell] = self.physical.bound[place] = -1
