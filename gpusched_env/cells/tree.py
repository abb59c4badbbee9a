"""Physical cells as a tree in an array: which are free, splitting one and merging buddies.

HiveD (Zhao et al., OSDI 2020): a cell of one level consists of equal cells of the level below, its buddies: a rack of
nodes, a node of halves, down to GPUs. Who asks for a cell gets a free one of its level, or the lowest free cell above
it is split, again and again. When all buddies are free, they are one cell again. If all cells that were promised fit at
one time (`model.tenant.feasible`), no request within them is ever refused. The simulator and the allocator of requests
call these functions.

The free cells of a kind and a level are a list: what is removed, the last one replaces; what is added, stands last. Of
equal cells `order` decides: `PLACE`, their place in that list, as HiveD does; or `FIRST`, the order of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model.tenant import check_levels

# tree: int64 (P, TREE_COLUMNS), a row for each cell: by kind, then from large to small, then by its first GPU.
PARENT = 0  # row of the cell above it, or -1
CHILD = 1  # row of the first cell that it consists of; the others follow it. -1 for a GPU
CHILDREN = 2  # number of these cells
SIZE = 3  # its GPUs
FIRST = 4  # number of its first GPU, of all kinds
LIST = 5  # row of the first cell of its kind and size, where their list of free cells begins
ABOVE = 6  # the same of the next larger cells of its kind, or -1
PLACE = 7  # its place in the list of free cells, or -1: bound, split, or part of one that is bound or free
FREE = 8  # in row LIST: the number of free cells in the list
MEMBER = 9  # in row LIST + i: row of the i-th free cell
OPPORTUNISTIC_GPUS = 10  # GPUs in it that opportunistic jobs hold
IDLE = 11  # 1 if nothing runs on its node, else 0: of equal cells those on a node in use come first
PIECE = 12  # index of its whole piece
NODE = 13  # index of its node, or -1 for a rack; `simulator.state` writes it
TREE_COLUMNS = 14


def grow(tops: Sequence[tuple[int, int]], levels: Mapping[int, Sequence[int]]) -> tuple[Ints, list[int]]:
    """Return the cells of a cluster, of which none is bound, and the row of every whole piece.

    Args:
        tops: Kind of hardware and GPUs of every whole piece: a node, or a rack of nodes.
        levels: Sizes of the cells of every kind, rising; each is a multiple of the one below.
    """
    rows: list[tuple[int, int, int, int]] = []  # kind, -size, first GPU, piece
    start, firsts = 0, []
    for piece, (kind, gpus) in enumerate(tops):
        sizes = [size for size in check_levels(levels[kind]) if size <= gpus]
        firsts.append(start)
        rows += [(kind, -size, start + k * size, piece) for size in sizes for k in range(gpus // size)]
        start += gpus
    rows.sort()
    row_of = {(-size, first): row for row, (_, size, first, _) in enumerate(rows)}
    tree = np.full((len(rows), TREE_COLUMNS), -1, dtype=np.int64)
    tree[:, [CHILDREN, FREE, OPPORTUNISTIC_GPUS, IDLE]] = 0
    for row, (kind, size, first, piece) in enumerate(rows):
        tree[row, SIZE], tree[row, FIRST], tree[row, PIECE] = -size, first, piece
        same = row > 0 and rows[row - 1][:2] == (kind, size)
        tree[row, LIST] = tree[row - 1, LIST] if same else row
        is_below = row > 0 and rows[row - 1][0] == kind
        tree[row, ABOVE] = tree[row - 1, ABOVE] if same else tree[row - 1, LIST] if is_below else -1
    for (kind, gpus), top in zip(tops, firsts, strict=True):
        sizes = [size for size in levels[kind] if size <= gpus]
        for low, high in pairwise(sizes):
            for first in range(top, top + gpus, high):
                parent, child = row_of[high, first], row_of[low, first]
                tree[parent, [CHILD, CHILDREN]] = child, high // low
                tree[child : child + high // low, PARENT] = parent
    clear(tree)
    return tree, [row_of[gpus, first] for (_, gpus), first in zip(tops, firsts, strict=True)]


@lean_kernel
def clear(tree: Ints) -> None:
    for cell in range(tree.shape[0]):
        tree[cell, PLACE], tree[cell, FREE], tree[cell, MEMBER] = -1, 0, -1
    for cell in range(tree.shape[0]):
        if tree[cell, PARENT] < 0:
            add(tree, cell)


@lean_kernel
def add(tree: Ints, cell: int) -> None:
    first = tree[cell, LIST]
    place = tree[first, FREE]
    tree[cell, PLACE] = place
    tree[first + place, MEMBER] = cell
    tree[first, FREE] = place + 1


@lean_kernel
def remove(tree: Ints, cell: int) -> None:
    first, place = tree[cell, LIST], tree[cell, PLACE]
    last = tree[first, FREE] - 1
    other = tree[first + last, MEMBER]
    tree[first + place, MEMBER], tree[other, PLACE] = other, place
    tree[first + last, MEMBER], tree[cell, PLACE] = -1, -1
    tree[first, FREE] = last


@lean_kernel
def free_around(tree: Ints, cell: int) -> int:
    """Return the free cell in which a cell lies, itself perhaps; -1 if something in it, or all around it, is bound."""
    above = cell
    while above >= 0 and tree[above, PLACE] < 0:
        above = tree[above, PARENT]
    return above


@kernel
def take(tree: Ints, cell: int) -> None:
    while tree[cell, PLACE] < 0:
        parent = tree[cell, PARENT]
        for k in range(tree[parent, CHILDREN]):
            add(tree, tree[parent, CHILD] + k)
        remove(tree, cell)
        cell = parent
    remove(tree, cell)


@kernel
def give_back(tree: Ints, cell: int) -> None:
    """Free a cell that is bound; buddies that are all free become one cell."""
    while tree[cell, PARENT] >= 0:
        parent = tree[cell, PARENT]
        first, count = tree[parent, CHILD], tree[parent, CHILDREN]
        free = 0
        for other in range(first, first + count):
            free += 1 if other != cell and tree[other, PLACE] >= 0 else 0
        if free < count - 1:
            break
        for other in range(first, first + count):
            if other != cell:
                remove(tree, other)
        cell = parent
    add(tree, cell)


@lean_kernel
def count_opportunistic(tree: Ints, cell: int, gpus: int) -> None:
    """Count so many GPUs more, or fewer, that opportunistic jobs hold in a cell and in those around it."""
    while cell >= 0:
        tree[cell, OPPORTUNISTIC_GPUS] += gpus
        cell = tree[cell, PARENT]


@lean_kernel
def lowest(tree: Ints, level: int) -> int:
    """Return the lowest level that has a free cell, at or above one; levels are rows LIST. -1 if there is none."""
    while level >= 0 and tree[level, FREE] == 0:
        level = tree[level, ABOVE]
    return level


@lean_kernel
def comes_before(tree: Ints, one: int, other: int, order: int) -> bool:
    """Whether a cell is chosen before another: fewer opportunistic GPUs, its node in use, then by `order`."""
    if tree[one, OPPORTUNISTIC_GPUS] != tree[other, OPPORTUNISTIC_GPUS]:
        return tree[one, OPPORTUNISTIC_GPUS] < tree[other, OPPORTUNISTIC_GPUS]
    if tree[one, IDLE] != tree[other, IDLE]:
        return tree[one, IDLE] < tree[other, IDLE]
    return tree[one, order] < tree[other, order]


@lean_kernel
def next_free(tree: Ints, level: int, order: int, after: int) -> int:
    """Return the first of a level's free cells, or with `after` >= 0 the first behind that one; -1 if there is none."""
    best = -1
    for place in range(tree[level, FREE]):
        cell = tree[level + place, MEMBER]
        is_behind = after < 0 or comes_before(tree, after, cell, order)
        if is_behind and (best < 0 or comes_before(tree, cell, best, order)):
            best = cell
    return best


@lean_kernel
def next_child(tree: Ints, parent: int, after: int) -> int:
    """Return the first of the cells of which a cell consists, or with `after` >= 0 the first behind that one; or -1."""
    best = -1
    for cell in range(tree[parent, CHILD], tree[parent, CHILD] + tree[parent, CHILDREN]):
        is_behind = after < 0 or comes_before(tree, after, cell, FIRST)
        if is_behind and (best < 0 or comes_before(tree, cell, best, FIRST)):
            best = cell
    return best


@kernel
def choose(tree: Ints, level: int, order: int) -> int:
    """Choose a cell of a level, which may have to be split off; -1 if there is none. `take` binds it.

    It lies in the first free cell of the lowest level that has one, of whose parts the first is taken, and so on.
    """
    above = lowest(tree, level)
    if above < 0:
        return -1
    cell = next_free(tree, above, order, -1)
    while tree[cell, LIST] != level:
        cell = next_child(tree, cell, -1)
    return cell
