"""Cells: aligned blocks of GPUs, and whether those that are promised fit into the nodes that there are."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVELS = tuple(2**k for k in range(11))
"""Sizes of cells, in GPUs, where nothing else is said: a GPU, and again and again two of what is below."""


def check_levels(levels: Sequence[int]) -> tuple[int, ...]:
    """Give the sizes of cells from the smallest to the largest; each must be a multiple of the one below it.

    Raises:
        InputError: They do not rise, or one is no multiple of the one below.
    """
    sizes = tuple(checks.whole(f"levels[{i}]", size) for i, size in enumerate(levels))
    if not sizes or any(low >= high or high % low for low, high in pairwise(sizes)):
        raise InputError("levels", list(levels), "sizes that rise, each a multiple of the one below")
    return sizes


def feasible(wanted: Mapping[int, int], tops: Mapping[int, int], levels: Sequence[int] = LEVELS) -> bool:
    """Say whether so many cells of every size can be cut out of the largest ones at the same time.

    A cell of one level splits into equal cells of the level below. The largest are cut first: that leaves as much as
    any other order, since what is left of a cell is always whole cells of the levels below.

    Args:
        wanted: Number of cells by size.
        tops: Number of whole pieces of the cluster by size: nodes, or racks of nodes.
        levels: All sizes, from the smallest to the largest.

    Raises:
        InputError: A size is not among the levels.
    """
    sizes = check_levels(levels)
    for size in (*wanted, *tops):
        if size not in sizes:
            raise InputError("cells", size, f"a size among the levels {', '.join(map(str, sizes))}")
    have: Counter[int] = Counter(tops)
    for level in range(len(sizes) - 1, -1, -1):
        size = sizes[level]
        left = have[size] - wanted.get(size, 0)
        if left < 0:
            return False
        if level > 0:
            have[sizes[level - 1]] += left * (size // sizes[level - 1])
    return True
