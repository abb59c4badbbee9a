"""Buddy allocation of cells of any levels, racks of nodes included, as plain Python.

HiveD (Zhao et al., OSDI 2020): a cell of level k consists of equal cells of level k - 1, its buddies. Whoever takes one
splits the free cell in which it lies, again and again. When all buddies are free, they are one cell again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpusched_env.model.tenant import LEVELS, check_levels


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
    """

    def __init__(self, tops: Iterable[int], levels: Sequence[int] = LEVELS) -> None:
        self.levels = check_levels(levels)
        self._level_of = {size: level for level, size in enumerate(self.levels)}
        self._is_free: list[set[int]] = [set() for _ in self.levels]
        self._top: dict[int, int] = {}
        self._starts: list[int] = []
        start = 0
        for size in tops:
            self._is_free[self._level_of[size]].add(start)
            self._top[start] = size
            self._starts.append(start)
            start += size
        self.gpus = start

    def allocate_at(self, cell: Cell) -> bool:
        """Take just this cell, splitting what it lies in; False, and nothing changes, if some of it is held."""
        wanted = self._level_of[cell.size]
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
                return True
        return False

    def release(self, cell: Cell) -> None:
        """Give a cell back; buddies that are all free become one cell."""
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

    def _add(self, start: int, level: int) -> None:
        self._is_free[level].add(start)

    def _piece(self, start: int) -> int:
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
