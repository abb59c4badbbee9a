"""Binding of virtual cells to physical ones by buddy allocation, with backtracking where nodes are not allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_reproductions.systems.hived.packing import OPPORTUNISTIC

if TYPE_CHECKING:
    from collections import Counter

    from gpusched_reproductions.systems.hived.forest import Cell, Forest


class Binding:
    """The free physical cells of every chain and kind.

    Args:
        forest: The physical cells; those that are pinned are bound already, and not free.
        promised: By chain, how many of its largest cells virtual clusters were promised.
    """

    def __init__(self, forest: Forest, promised: Counter[str]) -> None:
        self.levels = {chain: forest.levels(chain) for chain in forest.tops}
        self.free: dict[str, dict[str, list[Cell]]] = {
            chain: {kind: [] for kind in kinds} for chain, kinds in self.levels.items()
        }
        for chain, tops in forest.tops.items():
            self.free[chain][chain] = list(tops)
        for cell in forest.pinned.values():
            self._take_out(cell)
        for chain, tops in forest.tops.items():
            if tops[0].is_node:
                self.free[chain][chain] = as_found_healthy(self.free[chain][chain], promised[chain])

    def bind(self, wanted: list[Cell], allowed: set[str] | None) -> bool:
        """Bind virtual GPUs and the cells above them; False, and nothing is bound, if none of the allowed will do."""
        new: list[Cell] = []
        for gpu in wanted:
            if gpu.bound is not None:
                continue
            lowest = gpu
            while lowest.parent is not None and lowest.parent.bound is None:
                lowest = lowest.parent
            need = {id(cell) for leaf in wanted if leaf.bound is None for cell in _up_to(leaf, lowest)}
            above = lowest.parent.bound if lowest.parent is not None else None
            done = self._lay([lowest], above.children, need, allowed) if above else self._split(lowest, need, allowed)
            if not done:
                for cell in new:
                    self.unbind(cell)
                return False
            new += [leaf for leaf in lowest.gpus if leaf.bound is not None and leaf in wanted]
        return True

    def unbind(self, gpu: Cell) -> None:
        """Unbind a virtual GPU, and the cells above it that nothing else binds; pinned cells stay."""
        cell: Cell | None = gpu
        while cell is not None and cell.bound is not None and not any(child.bound for child in cell.children):
            physical = cell.bound
            if self._is_pinned(physical):
                return
            cell.bound = physical.bound = None
            if cell.parent is None:
                self._give_back(physical)
            cell = cell.parent

    def _is_pinned(self, physical: Cell) -> bool:
        virtual = physical.bound
        return virtual is not None and virtual.top.bound is not None and id(virtual.top.bound) in self._pinned

    _pinned: frozenset[int] = frozenset()

    def _split(self, virtual: Cell, need: set[int], allowed: set[str] | None) -> bool:
        """Bind a promised cell to a free one, splitting the lowest that there is."""
        kinds, free = self.levels[virtual.chain], self.free[virtual.chain]
        lowest = kinds.index(virtual.kind)
        while lowest >= 0 and not free[kinds[lowest]]:
            lowest -= 1
        return lowest >= 0 and self._descend(virtual, lowest, need, allowed)

    def _descend(self, virtual: Cell, level: int, need: set[int], allowed: set[str] | None) -> bool:
        kinds, free = self.levels[virtual.chain], self.free[virtual.chain]
        if kinds[level] == virtual.kind:
            if not self._lay([virtual], free[virtual.kind], need, allowed):
                return False
            if virtual.bound is not None:
                _remove(free[virtual.kind], virtual.bound)
            return True
        for cell in _usable(free[kinds[level]], allowed):
            below = free[kinds[level + 1]]
            kept = list(below)
            below += cell.children
            if self._descend(virtual, level + 1, need, allowed):
                _remove(free[kinds[level]], cell)
                return True
            below[:] = kept
        return False

    def _lay(self, cells: list[Cell], candidates: list[Cell], need: set[int], allowed: set[str] | None) -> bool:
        """Lay virtual cells, of which `need` are wanted, on different candidates, and the cells below them likewise."""
        if not cells:
            return True
        first, *rest = cells
        for physical in _usable(candidates, allowed):
            below = [child for child in first.children if id(child) in need]
            first.bound, physical.bound = physical, first
            if self._lay(below, physical.children, need, allowed) and self._lay(rest, candidates, need, allowed):
                return True
            for cell in first.walk():
                other, cell.bound = cell.bound, None
                if other is not None:
                    other.bound = None
        return False

    def _take_out(self, cell: Cell) -> None:
        """Take a cell out of what is free, splitting what it lies in; it is pinned."""
        self._pinned |= {id(cell)}
        path = [cell]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        free = self.free[cell.chain]
        _remove(free[path[-1].kind], path[-1])
        for above, below in zip(reversed(path), reversed(path[:-1]), strict=False):
            free[below.kind] += [child for child in above.children if child is not below]

    def _give_back(self, cell: Cell) -> None:
        """Make a cell free; buddies that are all free become one cell."""
        free = self.free[cell.chain]
        while cell.parent is not None:
            buddies = [child for child in cell.parent.children if child is not cell]
            if not all(buddy in free[cell.kind] for buddy in buddies):
                break
            for buddy in buddies:
                _remove(free[cell.kind], buddy)
            cell = cell.parent
        free[cell.kind].append(cell)


def as_found_healthy(cells: list[Cell], promised: int) -> list[Cell]:
    """Give the order in which nodes are free once HiveD has found all of them healthy.

    When it starts it takes every node for bad, one after the other. Whenever fewer good ones are left than virtual
    clusters were promised, the first of the bad ones is bound, so that the tenant sees it; as it is found healthy it is
    free again, behind the others.
    """
    free, bad, doomed = list(cells), list[object](), list[object]()
    for cell in cells:
        bad.append(cell)
        if promised - len(doomed) > len(free) - len(bad):
            first = bad.pop(0)
            doomed.append(first)
            _remove(free, first)  # type: ignore[arg-type]
    return free + [cell for cell in cells if cell in doomed]


def _remove(cells: list[Cell], cell: Cell) -> None:
    """Take a cell out of a list; the last takes its place."""
    place = cells.index(cell)
    cells[place] = cells[-1]
    cells.pop()


def _up_to(cell: Cell, top: Cell) -> list[Cell]:
    path = [cell]
    while path[-1] is not top and path[-1].parent is not None:
        path.append(path[-1].parent)
    return path


def _usable(cells: list[Cell], allowed: set[str] | None) -> list[Cell]:
    """List the cells that nothing is bound to, those with fewest opportunistic GPUs first."""
    usable = [cell for cell in cells if cell.bound is None and _may_use(cell, allowed)]
    return sorted(usable, key=_lent)


def _lent(cell: Cell) -> int:
    return sum(gpu.pod is not None and gpu.pod.gang.priority == OPPORTUNISTIC for gpu in cell.gpus)


def _may_use(cell: Cell, allowed: set[str] | None) -> bool:
    if allowed is None or not (cell.is_node or cell.children):
        return True
    nodes = [below.address for below in cell.walk() if below.is_node]
    return not nodes or any(node in allowed for node in nodes)
