"""Tenants of a shared cluster and their guaranteed cells: whether these fit into its nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusched_env.model.configuration import Node

Tenancy = Literal["none", "quota", "private", "cells"]
"""How tenants share a cluster: names only; GPUs counted by a quota; nodes of their own; or virtual clusters of cells
that are bound to nodes when they are used."""
TENANCIES: tuple[Tenancy, ...] = ("none", "quota", "private", "cells")


@dataclass(frozen=True, slots=True)
class Cells:
    """Some cells of one size.

    Args:
        gpu_type: Name of the GPU type.
        gpus: GPUs of each, ≥ 1: of a node, a half of one, a half of that, and so on; or of some nodes in one rack.
        count: How many, ≥ 1.

    Raises:
        InputError: A number is out of its range.
    """

    gpu_type: str
    gpus: int
    count: int

    def __post_init__(self) -> None:
        checks.whole("cells.gpus", self.gpus)
        checks.whole("cells.count", self.count)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: a name, and its guaranteed cells. Its quota of a GPU type is the sum of their GPUs.

    Args:
        name: Name, which is not empty.
        cells: The cells of its virtual cluster; without any it is a name only, by which results are grouped.

    Raises:
        InputError: The name is empty.
    """

    name: str
    cells: tuple[Cells, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("tenant.name", self.name, "a text that is not empty")

    def gpus(self, gpu_type: str) -> int:
        """Count its guaranteed GPUs of a type."""
        return sum(cells.gpus * cells.count for cells in self.cells if cells.gpu_type == gpu_type)

    def sizes(self, gpu_type: str) -> Counter[int]:
        """Count its cells of a type by size."""
        found: Counter[int] = Counter()
        for cells in self.cells:
            if cells.gpu_type == gpu_type:
                found[cells.gpus] += cells.count
        return found


LEVELS = tuple(2**k for k in range(11))
"""Default sizes of cells, in GPUs: one GPU, and each next size twice the one below it."""


def check_levels(levels: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of cells from the smallest to the largest; each must be a multiple of the one below it."""
    sizes = tuple(checks.whole(f"levels[{i}]", size) for i, size in enumerate(levels))
    if not sizes or any(low >= high or high % low for low, high in pairwise(sizes)):
        raise InputError("levels", list(levels), "sizes that rise, each a multiple of the one below")
    return sizes


def feasible(wanted: Mapping[int, int], tops: Mapping[int, int], levels: Sequence[int] = LEVELS) -> bool:
    """Whether so many cells of every size can be cut out of the largest ones at the same time.

    A cell of one level splits into equal cells of the level below. The largest are cut first: that leaves as much as
    any other order, since what is left of a cell is always whole cells of the levels below.

    Args:
        tops: Number of whole pieces of the cluster by size: nodes, or racks of nodes.
        levels: All sizes, from the smallest to the largest.
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


MOST_GPUS = 32
"""GPUs that a node with cells may have: `mechanisms.cells.binding` has a bit for each."""


def pieces(nodes: Sequence[Node], racks: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for n in range(len(nodes)):
        found.setdefault(racks[n] if racks else n, []).append(n)
    return list(found.values())


def check_fit(field: str, wanted: Mapping[int, int], tops: Mapping[int, int], node: int) -> None:
    """Check that cells fit into racks at one time: each is a node, or half of one, and so on, or a number of nodes.

    Args:
        tops: Number of racks by size; a node that is alone is one.
    """
    levels = sorted({*wanted, *tops, node})
    if node > MOST_GPUS:
        raise InputError(field, node, f"at most {MOST_GPUS} GPUs on a node with cells")
    for low, high in pairwise(levels):
        if high % low or (high <= node and (high // low) & (high // low - 1)):
            halves = f"a half of {high} GPUs, a half of that, and so on"
            raise InputError(field, low, halves if high <= node else f"a part of {high} GPUs")
    if wanted and not feasible(wanted, tops, levels):
        raise InputError(field, dict(sorted(wanted.items())), f"cells that fit into {dict(sorted(tops.items()))}")
