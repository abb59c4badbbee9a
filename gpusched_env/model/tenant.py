"""Tenants of a shared cluster: their guaranteed cells, and the checks of quotas and cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Node
    from gpusched_env.model.instance import Instance

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


def hardware_of(instance: Instance) -> dict[str, str]:
    """Return the name of the hardware of each GPU type by the name of the type, in their order."""
    return {v.name: v.hardware or v.name for v in instance.gpu_types}


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


def machines(instance: Instance) -> tuple[Node, ...]:
    """Return the physical nodes: with cells the hosts, to which the nodes before them are bound; else all nodes."""
    return instance.nodes[-instance.hosts :]


def check_tenants(instance: Instance) -> None:
    """Check the tenants of an instance.

    Raises:
        InputError: There is no such tenancy, it needs tenants and there are none, two have one name, one has no
            cells with a tenancy or cells of an unknown GPU type, or a job is of a tenant that is not there.
    """
    if instance.tenancy not in TENANCIES:
        raise InputError("tenancy", instance.tenancy, f"one of {', '.join(TENANCIES)}")
    names = [tenant.name for tenant in instance.tenants]
    if (instance.tenancy != "none" and not names) or len(set(names)) != len(names):
        raise InputError("tenants", names, "with a tenancy one or more, all with different names")
    most = int(instance.jobs.tenant.max())
    if names and most >= len(names):
        job = int(instance.jobs.tenant.argmax())
        raise InputError(f"jobs[{job}].tenant", most, f"the index of one of the {len(names)} tenants")
    if (instance.tenancy == "cells") != (instance.hosts > 0) or not 0 <= instance.hosts < len(instance.nodes):
        raise InputError("hosts", instance.hosts, "the number of physical nodes with cells, else 0")
    known = set(hardware_of(instance).values())
    for t, tenant in enumerate(instance.tenants):
        if instance.tenancy != "none" and not tenant.cells:
            raise InputError(f"tenants[{t}].cells", [], "at least one kind of cells, with a tenancy")
        for i, cells in enumerate(tenant.cells):
            if cells.gpu_type not in known and instance.tenancy != "private":  # there they are nodes already
                allowed = f"one of the GPU types {', '.join(sorted(known))}"
                raise InputError(f"tenants[{t}].cells[{i}].gpu_type", cells.gpu_type, allowed)
    check_racks(instance)
    if instance.hosts:
        check_cells(instance)


def check_racks(instance: Instance) -> None:
    """Check that each node has a rack, with nodes of the same kind and size, if there are racks."""
    if instance.racks and len(instance.racks) != len(instance.nodes):
        raise InputError("racks", len(instance.racks), f"a number for each of the {len(instance.nodes)} nodes")
    first: dict[int, Node] = {}
    for n, (rack, node) in enumerate(zip(instance.racks, instance.nodes, strict=False)):
        checks.whole(f"racks[{n}]", rack, lowest=0)
        if first.setdefault(rack, node) != node:
            raise InputError(f"racks[{n}]", rack, "the rack of nodes of the same GPU type and size")


def pieces(nodes: Sequence[Node], racks: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for n in range(len(nodes)):
        found.setdefault(racks[n] if racks else n, []).append(n)
    return list(found.values())


def check_cells(instance: Instance) -> None:
    """Check that the cells of an instance with hosts can all be bound to them at one time.

    Raises:
        InputError: A cell has no owner, or a host has one or too many GPUs, or the cells do not fit on the hosts.
    """
    first, types, hardware = len(instance.nodes) - instance.hosts, instance.type_of_node, hardware_of(instance)
    names = [tenant.name for tenant in instance.tenants]
    for n, v in enumerate(types.tolist()):
        owner = instance.gpu_types[v].owner
        if owner not in names if n < first else owner:
            allowed = f"one of {', '.join(names)}: nodes[{n}] is a cell" if n < first else f"none: nodes[{n}] is a host"
            raise InputError(f"gpu_types[{v}].owner", owner, allowed)
    if np.any(types[:first] >= types[first]) or np.any(types[first:] < types[first]):
        raise InputError("gpu_types", [v.name for v in instance.gpu_types], "those without an owner last")
    for kind in sorted({hardware[node.gpu_type] for node in instance.nodes}):
        sizes = [Counter[int](), Counter[int]()]
        largest = 0
        for piece in pieces(instance.nodes, instance.racks):
            node = instance.nodes[piece[0]]
            if hardware[node.gpu_type] == kind:
                sizes[piece[0] >= first][node.gpus * len(piece)] += 1
                largest = max(largest, node.gpus)
                if piece[0] < first <= piece[-1]:
                    raise InputError(f"racks[{piece[-1]}]", instance.racks[piece[0]], "no rack of cells and hosts")
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


def kinds_of_nodes(instance: Instance) -> NDArray[np.int64]:
    """Return the index of every node's hardware, whichever tenant has it, (N,)."""
    hardware = hardware_of(instance)
    names = [hardware[node.gpu_type] for node in instance.nodes]
    known = sorted(set(names))
    return np.array([known.index(name) for name in names], dtype=np.int64)


def largest_billed(instance: Instance) -> dict[str, int]:
    """Return the GPUs of the largest node of every GPU type, or with cells of the largest host that can hold one."""
    if not instance.hosts:
        return instance.largest_node
    largest, hardware = dict[str, int](), hardware_of(instance)
    for host in machines(instance):
        kind = hardware[host.gpu_type]
        largest[kind] = max(largest.get(kind, 0), host.gpus)
    return {name: largest[hardware[name]] for name in instance.largest_node}


def quotas(instance: Instance) -> NDArray[np.int64]:
    """Return the GPUs of every type that each tenant's jobs may hold at one time, (T, V); (0, V) without quotas."""
    types = [v.name for v in instance.gpu_types]
    if instance.tenancy != "quota":
        return np.zeros((0, len(types)), dtype=np.int64)
    return np.array([[tenant.gpus(name) for name in types] for tenant in instance.tenants], dtype=np.int64)


def beyond_quota(instance: Instance) -> NDArray[np.bool_]:
    """Return which configurations take more than the whole quota of a job's tenant, (J, C)."""
    limits = quotas(instance)
    if not len(limits):
        return np.zeros((1, 1), dtype=np.bool_)
    gpus = np.array([c.gpus_per_node * c.nodes * c.share for c in instance.configurations])
    beyond: NDArray[np.bool_] = (gpus[None, :] > limits[:, instance.type_of_configuration])[instance.jobs.tenant]
    return beyond
