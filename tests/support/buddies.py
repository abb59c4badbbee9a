"""Buddy allocation of cells of any levels, racks of nodes included, as plain Python.

HiveD (Zhao et al., OSDI 2020): a cell of level k consists of equal cells of level k - 1, its buddies. Whoever asks for
one gets a free cell of that level, or else the lowest free one above it is split, again and again. When all buddies are
free, they are one cell again. If the cells promised to all tenants fit into the cluster at one time (`feasible`), every
request within what a tenant was promised succeeds, whatever came and went before.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.tenant import LEVELS, check_levels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """GPUs `start` to `start` + `size` - 1 of all, in the order of pieces, nodes and GPUs."""

    start: int
    size: int


class Buddies:
    """The free cells of one kind of hardware.

    Args:
        tops: GPUs of every whole piece, racks or nodes, in their order.
        levels: Sizes of cells from the smallest to the largest, each a multiple of the one below.

    Raises:
        InputError: The levels do not nest, or a piece is no level.
    """

    def __init__(self, tops: Iterable[int], levels: Sequence[int] = LEVELS) -> None:
        self.levels = check_levels(levels)
        self._level_of = {size: level for level, size in enumerate(self.levels)}
        self._free: list[list[int]] = [[] for _ in self.levels]
        self._top: dict[int, int] = {}
        self._starts: list[int] = []
        start = 0
        for size in tops:
            self._free[self._level("tops", size)].append(start)
            self._top[start] = size
            self._starts.append(start)
            start += size
        self.gpus = start
        self._held: dict[int, int] = {}
        self._is_free = [set(starts) for starts in self._free]

    def allocate(self, size: int) -> Cell | None:
        """Take a free cell, the first of the lowest level that has one; None if there is none to be had.

        Raises:
            InputError: No level has that size.
        """
        wanted = self._level("size", size)
        for level in range(wanted, len(self.levels)):
            start = self._first(level)
            if start is not None:
                return self._split(start, level, wanted)
        return None

    def allocate_at(self, cell: Cell) -> bool:
        """Take just this cell, splitting what it lies in; False, and nothing changes, if some of it is held.

        Raises:
            InputError: It is no cell.
        """
        wanted = self._level("cell.size", cell.size)
        self._check(cell)
        for level in range(wanted, len(self.levels)):
            start = self._corner(cell.start, level)
            if start in self._is_free[level]:
                self._is_free[level].discard(start)
                for below in range(level - 1, wanted - 1, -1):
                    inside = self._corner(cell.start, below)
                    for other in range(start, start + self.levels[below + 1], self.levels[below]):
                        if other != inside:
                            self._add(other, below)
                    start = inside
                self._held[cell.start] = cell.size
                return True
        return False

    def release(self, cell: Cell) -> None:
        """Give a cell back; buddies that are all free become one cell.

        Raises:
            InputError: It is not held.
        """
        if self._held.get(cell.start) != cell.size:
            raise InputError("cell", cell, "one that is held")
        del self._held[cell.start]
        start, level = cell.start, self._level_of[cell.size]
        while self.levels[level] < self._top_size(start):
            size, above = self.levels[level], self.levels[level + 1]
            corner = self._corner(start, level + 1)
            buddies = set(range(corner, corner + above, size)) - {start}
            if not buddies <= self._is_free[level]:
                break
            self._is_free[level] -= buddies
            start, level = corner, level + 1
        self._add(start, level)

    def free_cells(self) -> list[Cell]:
        """List the free cells, none of which could be merged, by their start."""
        return sorted(Cell(s, self.levels[level]) for level, starts in enumerate(self._is_free) for s in starts)

    def _level(self, field: str, size: int) -> int:
        if checks.whole(field, size) not in self._level_of:
            raise InputError(field, size, f"one of the levels {', '.join(map(str, self.levels))}")
        return self._level_of[size]

    def _first(self, level: int) -> int | None:
        """Take the first free cell of a level out; None if there is none."""
        heap, free = self._free[level], self._is_free[level]
        while heap:
            start = heapq.heappop(heap)
            if start in free:  # others were merged meanwhile, or stand twice in the heap
                free.discard(start)
                return start
        return None

    def _split(self, start: int, level: int, wanted: int) -> Cell:
        """Split a cell taken out down to the level wanted, and hold its first part."""
        for below in range(level - 1, wanted - 1, -1):
            size = self.levels[below]
            for other in range(start + size, start + self.levels[below + 1], size):
                self._add(other, below)
        self._held[start] = self.levels[wanted]
        return Cell(start, self.levels[wanted])

    def _add(self, start: int, level: int) -> None:
        self._is_free[level].add(start)
        heapq.heappush(self._free[level], start)

    def _piece(self, start: int) -> int:
        """Return the start of the piece in which a GPU lies."""
        low, high = 0, len(self._starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._starts[middle] <= start else (low, middle - 1)
        return self._starts[low]

    def _top_size(self, start: int) -> int:
        return self._top[self._piece(start)]

    def _corner(self, start: int, level: int) -> int:
        """Return the start of the cell of a level in which a GPU lies, counted from the start of its piece."""
        piece = self._piece(start)
        return piece + (start - piece) // self.levels[level] * self.levels[level]

    def _check(self, cell: Cell) -> None:
        inside = 0 <= cell.start < self.gpus
        if not inside or self._corner(cell.start, self._level_of[cell.size]) != cell.start:
            raise InputError("cell", cell, "a cell: its start a multiple of its size within a piece")
        if cell.size > self._top_size(cell.start):
            raise InputError("cell", cell, "a cell no larger than its piece")
