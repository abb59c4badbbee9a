"""The tree of cells: splitting and merging, its order of choice, and the same cells as an allocator in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from buddies import Buddies, Cell
from gpusched_env.cells import tree as at
from gpusched_env.cells.tree import choose, count_opportunistic, free_around, give_back, grow, lowest, take
from refusals import refused

IN_NODE = (1, 2, 4, 8)
WITH_RACKS = (1, 2, 4, 8, 24)


def cell_of(tree: np.ndarray, start: int, size: int) -> int:
    """Return the row of a cell, by its first GPU and its GPUs."""
    return int(np.flatnonzero((tree[:, at.FIRST] == start) & (tree[:, at.SIZE] == size))[0])


def level_of(tree: np.ndarray, size: int) -> int:
    """Return the row where the list of the free cells of a size begins."""
    return int(tree[np.flatnonzero(tree[:, at.SIZE] == size)[0], at.LIST])


def free(tree: np.ndarray) -> list[Cell]:
    """List the free cells by their start."""
    rows = tree[tree[:, at.PLACE] >= 0]
    return sorted(Cell(int(start), int(size)) for start, size in rows[:, [at.FIRST, at.SIZE]])


def in_list(tree: np.ndarray, size: int) -> list[int]:
    """List the first GPUs of the free cells of a size in the order of their list."""
    level = level_of(tree, size)
    members = tree[level : level + tree[level, at.FREE], at.MEMBER]
    return [int(first) for first in tree[members, at.FIRST]]


def test_a_cell_is_cut_from_the_lowest_free_one_that_holds_it() -> None:
    tree, _ = grow([(0, 8), (0, 8)], {0: IN_NODE})
    take(tree, cell_of(tree, 8, 2))
    assert free(tree) == [Cell(0, 8), Cell(10, 2), Cell(12, 4)]
    assert choose(tree, level_of(tree, 1), at.FIRST) == cell_of(tree, 10, 1)
    assert choose(tree, level_of(tree, 4), at.FIRST) == cell_of(tree, 12, 4)
    assert choose(tree, level_of(tree, 8), at.FIRST) == cell_of(tree, 0, 8)
    take(tree, cell_of(tree, 0, 8))
    assert choose(tree, level_of(tree, 8), at.FIRST) == -1
    assert lowest(tree, level_of(tree, 8)) == -1


def test_buddies_merge_when_all_are_free_and_not_before() -> None:
    tree, _ = grow([(0, 24)], {0: WITH_RACKS})
    for start in (0, 8, 16):
        take(tree, cell_of(tree, start, 8))
    assert free(tree) == []
    give_back(tree, cell_of(tree, 0, 8))
    give_back(tree, cell_of(tree, 16, 8))
    assert free(tree) == [Cell(0, 8), Cell(16, 8)]
    assert free_around(tree, cell_of(tree, 18, 2)) == cell_of(tree, 16, 8)
    assert free_around(tree, cell_of(tree, 8, 1)) == free_around(tree, cell_of(tree, 0, 24)) == -1
    give_back(tree, cell_of(tree, 8, 8))
    assert free(tree) == [Cell(0, 24)]


def test_free_cells_are_a_list_in_which_the_last_replaces_what_is_removed() -> None:
    tree, _ = grow([(0, 8)] * 4, {0: IN_NODE})
    take(tree, cell_of(tree, 0, 8))
    assert in_list(tree, 8) == [24, 8, 16]
    give_back(tree, cell_of(tree, 0, 8))
    assert in_list(tree, 8) == [24, 8, 16, 0]
    take(tree, cell_of(tree, 12, 4))
    assert (in_list(tree, 8), in_list(tree, 4)) == ([24, 0, 16], [8])
    assert choose(tree, level_of(tree, 8), at.PLACE) == cell_of(tree, 24, 8)
    assert choose(tree, level_of(tree, 8), at.FIRST) == cell_of(tree, 0, 8)


def test_cells_without_opportunistic_gpus_come_first_and_then_those_on_a_node_in_use() -> None:
    tree, _ = grow([(0, 4)] * 3, {0: (1, 2, 4)})
    count_opportunistic(tree, cell_of(tree, 2, 1), 1)
    assert tree[cell_of(tree, 2, 2), at.OPPORTUNISTIC_GPUS] == tree[cell_of(tree, 0, 4), at.OPPORTUNISTIC_GPUS] == 1
    assert choose(tree, level_of(tree, 4), at.FIRST) == cell_of(tree, 4, 4)
    tree[:, at.IDLE] = tree[:, at.PIECE] < 2
    assert choose(tree, level_of(tree, 4), at.FIRST) == cell_of(tree, 8, 4)
    take(tree, cell_of(tree, 4, 4))
    take(tree, cell_of(tree, 8, 4))
    assert choose(tree, level_of(tree, 1), at.FIRST) == cell_of(tree, 0, 1)
    take(tree, cell_of(tree, 0, 1))
    take(tree, cell_of(tree, 1, 1))
    assert choose(tree, level_of(tree, 1), at.FIRST) == cell_of(tree, 3, 1)


def test_kinds_of_hardware_have_cells_of_their_own() -> None:
    tree, tops = grow([(1, 4), (0, 8), (1, 4)], {0: IN_NODE, 1: (2, 4)})
    assert tree[tops, at.FIRST].tolist() == [0, 4, 12]
    assert tree[tops, at.PIECE].tolist() == [0, 1, 2]
    take(tree, tops[0])
    level = int(tree[cell_of(tree, 12, 2), at.LIST])
    assert choose(tree, level, at.FIRST) == cell_of(tree, 12, 2)
    take(tree, tops[2])
    assert choose(tree, level, at.FIRST) == -1
    with refused("levels", [2, 3], "multiple"):
        grow([(0, 3)], {0: (2, 3)})


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_free_cells_are_those_of_the_buddies_in_python(data: st.DataObject) -> None:
    levels = data.draw(st.sampled_from([IN_NODE, WITH_RACKS, (1, 3, 6)]))
    tops = data.draw(st.lists(st.sampled_from(levels), min_size=1, max_size=4))
    cells, held = Buddies(tops, levels), list[Cell]()
    tree, _ = grow([(0, gpus) for gpus in tops], {0: levels})
    for _ in range(40):
        if held and data.draw(st.booleans()):
            cell = held.pop(data.draw(st.integers(0, len(held) - 1)))
            cells.release(cell)
            give_back(tree, cell_of(tree, cell.start, cell.size))
        else:
            size = data.draw(st.sampled_from([size for size in levels if size <= max(tops)]))
            row = choose(tree, level_of(tree, size), data.draw(st.sampled_from([at.PLACE, at.FIRST])))
            if row < 0:
                assert all(cell.size < size for cell in cells.free_cells())
                continue
            take(tree, row)
            cell = Cell(int(tree[row, at.FIRST]), size)
            assert cells.allocate_at(cell)
            held.append(cell)
        assert free(tree) == cells.free_cells()
