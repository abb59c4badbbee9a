"""Where virtual cells are laid: a search through the free physical cells, and the cells inside those that are bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from gpusched_env.cells import tree as at
from gpusched_reproductions.systems.hived.cells.binding import Binding
from gpusched_reproductions.systems.hived.cells.gang import Placement


@dataclass(eq=False)
class Wanted:
    """A virtual cell that must be bound, and those of its parts that must be."""

    cell: int
    parts: list[Wanted] = field(default_factory=list)


@dataclass(eq=False)
class CellSearch:
    """The search for physical GPUs, for the virtual ones of a gang.

    Args:
        binding: The cells; they are as before when the search ends.
        usable: Whether a physical cell may be used: whether one of its nodes is suggested.
    """

    binding: Binding
    usable: Callable[[int], bool]
    found: dict[int, int] = field(default_factory=dict)

    def run(self, cells: Placement) -> Placement | None:
        """Return the physical GPUs for the virtual ones of each pod; None if none of the usable will do."""
        promised, inside = self._wanted(cells)
        tree = self.binding.physical.tree
        before = tree.copy()
        left = self.binding.unbound()
        try:
            for wanted in promised:
                cell = self._split(wanted)
                if cell is None:
                    cell = self._split_higher(wanted, left)
                else:
                    left[self.binding.level_of(wanted.cell)] -= 1
                if cell is None:
                    return None
                at.take(tree, cell)
        finally:
            tree[:] = before
        for around, parts in inside.items():
            if not self._lay_all(parts, int(self.binding.virtual.bound[around]), ()):
                return None
        return [[self.found[gpu] for gpu in of_pod] for of_pod in cells]

    def _wanted(self, cells: Placement) -> tuple[list[Wanted], dict[int, list[Wanted]]]:
        """Return the promised cells to be bound, and by the bound cell around them those that lie in one."""
        virtual, seen = self.binding.virtual, dict[int, Wanted]()
        promised: list[Wanted] = []
        inside: dict[int, list[Wanted]] = {}
        for gpu in (gpu for of_pod in cells for gpu in of_pod):
            if virtual.bound[gpu] >= 0:
                self.found[gpu] = int(virtual.bound[gpu])
                continue
            below: Wanted | None = None
            for cell in virtual.path(gpu):
                known = seen.get(cell)
                if known is None and virtual.bound[cell] < 0:
                    below = seen[cell] = Wanted(cell, [] if below is None else [below])
                    continue
                if below is not None and known is not None:
                    known.parts.append(below)
                elif below is not None:
                    inside.setdefault(cell, []).append(below)
                below = None
                break
            if below is not None:
                promised.append(below)
        return promised, inside

    def _split(self, wanted: Wanted) -> int | None:
        """Return the cell for a promised one: in a free cell of the lowest level that has one."""
        size = self.binding.virtual.size(wanted.cell)
        level = at.lowest(self.binding.physical.tree, self.binding.level_of(wanted.cell))
        return None if level < 0 else self._in_one_of(wanted, size, self._ordered(level))

    def _split_higher(self, wanted: Wanted, left: Counter[int]) -> int | None:
        """Return the cell for a promised one in a larger free cell than needed, if all that is promised still fits.

        Args:
            wanted: The promised cell; none of the lowest free cells that hold it may be used.
            left: Promised cells that are not bound, by the list of their free physical ones.
        """
        tree, size = self.binding.physical.tree, self.binding.virtual.size(wanted.cell)
        levels = [self.binding.level_of(wanted.cell)]
        while tree[levels[-1], at.ABOVE] >= 0:
            levels.append(int(tree[levels[-1], at.ABOVE]))
        spare, above = dict[int, int](), 0
        for level in reversed(levels[1:]):
            spare[level] = int(tree[level, at.FREE]) - left[level] + above
            parts = int(tree[level, at.CHILDREN])
            above = spare[level] * parts
        for level in levels[1:]:
            number = min(int(tree[level, at.FREE]), spare[level])
            members = [int(tree[level + place, at.MEMBER]) for place in range(max(0, number))]
            inside = [cell for member in members for cell in self.binding.physical.parts(member, size)]
            inside.sort(key=lambda cell: int(tree[cell, at.OPPORTUNISTIC_GPUS]))
            found = self._in_one_of(wanted, size, filter(self.usable, inside))
            if found is not None:
                return found
        return None

    def _ordered(self, level: int) -> Iterator[int]:
        tree = self.binding.physical.tree
        cell = at.next_free(tree, level, at.PLACE, -1)
        while cell >= 0:
            if self.usable(cell):
                yield cell
            cell = at.next_free(tree, level, at.PLACE, cell)

    def _inside(self, parent: int) -> Iterator[int]:
        tree, bound = self.binding.physical.tree, self.binding.physical.bound
        cell = at.next_child(tree, parent, -1)
        while cell >= 0:
            if bound[cell] < 0 and self.usable(cell):
                yield cell
            cell = at.next_child(tree, parent, cell)

    def _in_one_of(self, wanted: Wanted, size: int, candidates: Iterator[int]) -> int | None:
        """Return the cell of a size on which a wanted one lies, in the first of some candidates in which it can lie."""
        for cell in candidates:
            if self.binding.physical.size(cell) == size:
                if self._lay(wanted, cell):
                    return cell
            else:
                found = self._in_one_of(wanted, size, self._inside(cell))
                if found is not None:
                    return found
        return None

    def _lay(self, wanted: Wanted, cell: int) -> bool:
        if not wanted.parts:
            self.found[wanted.cell] = cell
            return True
        return self._lay_all(wanted.parts, cell, ())

    def _lay_all(self, parts: Sequence[Wanted], around: int, taken: tuple[int, ...]) -> bool:
        if not parts:
            return True
        return any(
            self._lay(parts[0], cell) and self._lay_all(parts[1:], around, (*taken, cell))
            for cell in self._inside(around)
            if cell not in taken
        )
