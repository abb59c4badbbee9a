"""Tenants of a shared cluster: their guaranteed cells, and the checks of quotas and cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import hardware_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import GpuType, Node

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


def check_tenants(
    tenants: Sequence[Tenant], tenancy: str, of_jobs: NDArray[np.int64], gpu_types: Sequence[GpuType]
) -> None:
    """Check the tenants of an instance.

    Args:
        of_jobs: The index of the tenant of every job, (J,).

    Raises:
        InputError: There is no such tenancy, it needs tenants and there are none, two have one name, one has no
            cells with a tenancy or cells of an unknown GPU type, or a job is of a tenant that is not there.
    """
    if tenancy not in TENANCIES:
        raise InputError("tenancy", tenancy, f"one of {', '.join(TENANCIES)}")
    names = [tenant.name for tenant in tenants]
    if (tenancy != "none" and not names) or len(set(names)) != len(names):
        raise InputError("tenants", names, "with a tenancy one or more, all with different names")
    most = int(of_jobs.max())
    if names and most >= len(names):
        job = int(of_jobs.argmax())
        raise InputError(f"jobs[{job}].tenant", most, f"the index of one of the {len(names)} tenants")
    known = set(hardware_of(gpu_types).values())
    for t, tenant in enumerate(tenants):
        if tenancy != "none" and not tenant.cells:
            raise InputError(f"tenants[{t}].cells", [], "at least one kind of cells, with a tenancy")
        for i, cells in enumerate(tenant.cells):
            if cells.gpu_type not in known and tenancy != "private":  # there they are nodes already
                allowed = f"one of the GPU types {', '.join(sorted(known))}"
                raise InputError(f"tenants[{t}].cells[{i}].gpu_type", cells.gpu_type, allowed)


def check_racks(nodes: Sequence[Node], racks: Sequence[int]) -> None:
    """Check that each node has a rack, with nodes of the same kind and size, if there are racks."""
    if racks and len(racks) != len(nodes):
        raise InputError("racks", len(racks), f"a number for each of the {len(nodes)} nodes")
    first: dict[int, Node] = {}
    for n, (rack, node) in enumerate(zip(racks, nodes, strict=False)):
        checks.whole(f"racks[{n}]", rack, lowest=0)
        if first.setdefault(rack, node) != node:
            raise InputError(f"racks[{n}]", rack, "the rack of nodes of the same GPU type and size")


def pieces(nodes: Sequence[Node], racks: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for n in range(len(nodes)):
        found.setdefault(racks[n] if racks else n, []).append(n)
    return list(found.values())


def check_hosts(
    nodes: Sequence[Node],
    racks: Sequence[int],
    hosts: int,
    tenancy: str,
    tenants: Sequence[Tenant],
    gpu_types: Sequence[GpuType],
) -> None:
    """Check that there are hosts with cells only, and that these can all be bound to them at one time.

    Raises:
        InputError: A cell has no owner, or a host has one or too many GPUs, or the cells do not fit on the hosts.
    """
    if (tenancy == "cells") != (hosts > 0) or not 0 <= hosts < len(nodes):
        raise InputError("hosts", hosts, "the number of physical nodes with cells, else 0")
    if hosts == 0:
        return
    first, hardware, places = len(nodes) - hosts, hardware_of(gpu_types), [v.name for v in gpu_types]
    names, types = [tenant.name for tenant in tenants], [places.index(node.gpu_type) for node in nodes]
    for n, v in enumerate(types):
        owner = gpu_types[v].owner
        if owner not in names if n < first else owner:
            allowed = f"one of {', '.join(names)}: nodes[{n}] is a cell" if n < first else f"none: nodes[{n}] is a host"
            raise InputError(f"gpu_types[{v}].owner", owner, allowed)
    if max(types[:first]) >= types[first] or min(types[first:]) < types[first]:
        raise InputError("gpu_types", places, "those without an owner last")
    for kind in sorted({hardware[node.gpu_type] for node in nodes}):
        sizes = [Counter[int](), Counter[int]()]
        largest = 0
        for piece in pieces(nodes, racks):
            node = nodes[piece[0]]
            if hardware[node.gpu_type] == kind:
                sizes[piece[0] >= first][node.gpus * len(piece)] += 1
                largest = max(largest, node.gpus)
                if piece[0] < first <= piece[-1]:
                    raise InputError(f"racks[{piece[-1]}]", racks[piece[0]], "no rack of cells and hosts")
        check_fit("nodes", sizes[0], sizes[1], largest)


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
