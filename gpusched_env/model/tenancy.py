"""What an instance's tenants must be, and what they close to jobs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model.cells import feasible
from gpusched_env.model.tenant import LENT, TENANCIES, hardware, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance
    from gpusched_env.model.node import Node

MOST_GPUS = 32
"""GPUs that a node with cells may have: `simulator.cells.blocks` has a bit for each."""


def machines(instance: Instance) -> tuple[Node, ...]:
    """Give the physical nodes: with cells the hosts, on which the nodes before them lie; else all nodes."""
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
    known = {hardware(v.name) for v in instance.gpu_types}
    for t, tenant in enumerate(instance.tenants):
        if instance.tenancy != "none" and not tenant.cells:
            raise InputError(f"tenants[{t}].cells", [], "at least one kind of cells, with a tenancy")
        for i, cells in enumerate(tenant.cells):
            if cells.gpu_type not in known:
                allowed = f"one of the GPU types {', '.join(sorted(known))}"
                raise InputError(f"tenants[{t}].cells[{i}].gpu_type", cells.gpu_type, allowed)
    if instance.hosts:
        check_cells(instance)


def check_cells(instance: Instance) -> None:
    """Check that the cells of an instance with hosts can lie on them at one time.

    Raises:
        InputError: A host is no node for opportunistic jobs or has too many GPUs, or the cells do not fit on the hosts.
    """
    first = len(instance.nodes) - instance.hosts
    for n, node in enumerate(instance.nodes):
        if (node.gpu_type == name_of(LENT, hardware(node.gpu_type))) != (n >= first):
            raise InputError(f"nodes[{n}].gpu_type", node.gpu_type, f"{LENT}/..., for the last {instance.hosts} only")
    types = instance.type_of_node
    if np.any(types[:first] >= types[first]) or np.any(types[first:] < types[first]):
        raise InputError("gpu_types", [v.name for v in instance.gpu_types], f"those of {LENT}/ last")
    for kind in sorted({hardware(node.gpu_type) for node in instance.nodes}):
        sizes = [Counter[int](), Counter[int]()]
        for n, node in enumerate(instance.nodes):
            if hardware(node.gpu_type) == kind:
                sizes[n >= first][node.gpus] += 1
        check_fit("nodes", sizes[0], sizes[1])


def check_fit(field: str, wanted: Mapping[int, int], tops: Mapping[int, int]) -> None:
    """Check that cells fit into nodes at one time: each is a node, or half of one, half of that, and so on.

    Raises:
        InputError: A node has too many GPUs, a size is not such a part of every larger node, or they do not fit.
    """
    levels = sorted({*wanted, *tops})
    for size in tops:
        if size > MOST_GPUS:
            raise InputError(field, size, f"at most {MOST_GPUS} GPUs on a node with cells")
    for low, high in pairwise(levels):
        if high % low or (high // low) & (high // low - 1):
            raise InputError(field, low, f"a half of {high} GPUs, a half of that, and so on")
    if wanted and not feasible(wanted, tops, levels):
        raise InputError(field, dict(sorted(wanted.items())), f"cells that fit into {dict(sorted(tops.items()))}")


def kinds_of_nodes(instance: Instance) -> NDArray[np.int64]:
    """Give the index of every node's hardware, whosever it is, (N,)."""
    names = [hardware(node.gpu_type) for node in instance.nodes]
    known = sorted(set(names))
    return np.array([known.index(name) for name in names], dtype=np.int64)


def largest_billed(instance: Instance) -> dict[str, int]:
    """Give the GPUs of the largest node of every GPU type, or with cells of the largest host on which one can lie."""
    if not instance.hosts:
        return instance.largest_node
    largest: dict[str, int] = {}
    for host in instance.nodes[-instance.hosts :]:
        kind = hardware(host.gpu_type)
        largest[kind] = max(largest.get(kind, 0), host.gpus)
    return {name: largest[hardware(name)] for name in instance.largest_node}


def quotas(instance: Instance) -> NDArray[np.int64]:
    """Give the GPUs of every type that each tenant's jobs may hold at one time, (T, V); (0, V) without quotas."""
    types = [v.name for v in instance.gpu_types]
    if instance.tenancy != "quota":
        return np.zeros((0, len(types)), dtype=np.int64)
    return np.array([[tenant.gpus(name) for name in types] for tenant in instance.tenants], dtype=np.int64)


def beyond_quota(instance: Instance) -> NDArray[np.bool_]:
    """Say which configurations take more than the whole quota of a job's tenant, (J, C)."""
    limits = quotas(instance)
    if not len(limits):
        return np.zeros((1, 1), dtype=np.bool_)
    gpus = np.array([c.gpus_per_node * c.nodes * c.share for c in instance.configurations])
    beyond: NDArray[np.bool_] = (gpus[None, :] > limits[:, instance.type_of_configuration])[instance.jobs.tenant]
    return beyond
