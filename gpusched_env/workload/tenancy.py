"""Private clusters, or virtual clusters of cells, from a cluster that tenants share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import GpuType, Instance, Node, Tenancy, Tenant
from gpusched_env.model.mechanism import model_of
from gpusched_env.model.tenant import TENANCIES, check_fit, pieces


def with_tenancy(instance: Instance, tenancy: Tenancy) -> Instance:
    """Return the same cluster and jobs with another tenancy.

    `private` and `cells` give every tenant GPU types of its own (`GpuType.owner`): a node for each of its cells, or
    several for a cell that is a part of a rack, and the configurations that fit there; a job may use those of its
    tenant only. With `cells`, the physical nodes come after them, as GPU types of no tenant: opportunistic jobs run
    there, on the GPUs that are in no cell in use. Tenant a's type is called `a/V100`, the other `opportunistic/V100`.

    Args:
        instance: A cluster whose tenants share its nodes: its tenancy is `none` or `quota`.
        tenancy: How the tenants share it.

    Raises:
        InputError: There are no tenants, its nodes are not shared, cells do not fit into the nodes, or a job fits
            nothing that its tenant has.
    """
    if tenancy not in TENANCIES:
        raise InputError("tenancy", tenancy, f"one of {', '.join(TENANCIES)}")
    kind: Any = model_of("tenants")
    shared = kind.of(instance)
    if shared.tenancy not in {"none", "quota"}:
        raise InputError("instance.tenancy", shared.tenancy, "none or quota: a cluster that tenants share")
    if tenancy == shared.tenancy:
        return instance
    if tenancy in {"none", "quota"}:
        return instance.with_mechanisms(replace(shared, tenancy=tenancy))
    _check(instance, shared)
    jobs, opportunistic = instance.jobs, instance.jobs.opportunistic & (tenancy == "cells")
    owned = [
        (tenant.name, gpu_type, _cells(instance, tenant, gpu_type.name), (jobs.tenant == t) & ~opportunistic)
        for t, tenant in enumerate(shared.tenants)
        for gpu_type in instance.gpu_types
    ]
    if tenancy == "cells":
        owned += [("", v, _racks(instance, shared.racks, v.name), opportunistic) for v in instance.gpu_types]
    return _made(instance, replace(shared, tenancy=tenancy), [each for each in owned if each[2]])


def racks_of(nodes: Sequence[Node], nodes_per_rack: int) -> tuple[int, ...]:
    """Return the rack of every node: `nodes_per_rack` of one type and size in a row, the rest alone; empty with 1."""
    if nodes_per_rack == 1:
        return ()
    racks = [0] * len(nodes)
    number = 0
    for kind in dict.fromkeys(nodes):
        alike = [n for n, node in enumerate(nodes) if node == kind]
        whole = len(alike) // nodes_per_rack * nodes_per_rack
        for place, n in enumerate(alike):
            racks[n] = number + (place // nodes_per_rack if place < whole else whole // nodes_per_rack + place - whole)
        number = max(racks[n] for n in alike) + 1
    return tuple(racks)


def _cells(instance: Instance, tenant: Tenant, gpu_type: str) -> list[list[Node]]:
    sizes = sorted(tenant.sizes(gpu_type).items(), reverse=True)
    most = instance.largest_node.get(gpu_type, 0)
    return [[Node(gpu_type, min(size, most))] * -(-size // most) for size, count in sizes for _ in range(count)]


def _racks(instance: Instance, racks: Sequence[int], gpu_type: str) -> list[list[Node]]:
    nodes = instance.nodes
    return [[nodes[n] for n in rack] for rack in pieces(nodes, racks) if nodes[rack[0]].gpu_type == gpu_type]


def _check(instance: Instance, shared: Any) -> None:
    if not shared.tenants:
        raise InputError("tenants", [], "at least one tenant")
    if instance.find("network") is not None:
        raise InputError("synchronisation", "...", "none: there is no model of spare machines with tenants")
    for gpu_type in instance.gpu_types:
        wanted: Counter[int] = Counter()
        for tenant in shared.tenants:
            wanted += tenant.sizes(gpu_type.name)
        tops = Counter(sum(node.gpus for node in rack) for rack in _racks(instance, shared.racks, gpu_type.name))
        largest = instance.largest_node.get(gpu_type.name, 0)
        if wanted or tops:
            check_fit(f"tenants' cells of {gpu_type.name}", wanted, tops, largest)


def _made(
    instance: Instance, shared: Any, owned: list[tuple[str, GpuType, list[list[Node]], NDArray[np.bool_]]]
) -> Instance:
    """Make the instance in which each owner has cells of a type, on whose nodes some jobs may run, shape (J,)."""
    with_cells = shared.tenancy == "cells"
    gpu_types, nodes, configurations, columns, racks = [], [], [], [], list[int]()
    sources: list[int] = []
    for owner, gpu_type, cells, jobs in owned:
        own_nodes = [node for cell in cells for node in cell]
        for cell in cells:
            racks += [racks[-1] + 1 if racks else 0] * len(cell)
        name, largest = f"{owner or 'opportunistic'}/{gpu_type.name}", max(node.gpus for node in own_nodes)
        gpu_types.append(replace(gpu_type, name=name, owner=owner, hardware=gpu_type.name))
        nodes += [Node(name, node.gpus) for node in own_nodes]
        for column, configuration in enumerate(instance.configurations):
            several = configuration.kind == "multi-node"
            fits = configuration.gpus_per_node == largest if several else configuration.gpus_per_node <= largest
            able = [
                node.gpus if configuration.spread else 1
                for node in own_nodes
                if node.gpus >= configuration.gpus_per_node
            ]
            enough = sum(able) >= configuration.nodes
            if configuration.gpu_type == gpu_type.name and fits and enough:
                configurations.append(replace(configuration, gpu_type=name))
                sources.append(column)
                columns.append(np.where(jobs, instance.jobs.seconds_per_epoch[:, column], np.inf))
    base = [instance.type_index("gpu_type", gpu_type.name) for _, gpu_type, *_ in owned]
    # A traced configuration is not that of one tenant.
    traced: dict[str, Any] = {"traced_start_s": None, "traced_config": None, "traced_type_known": None}
    kept = (own.alike(base, sources) for own in instance.mechanisms if own.mechanism != "tenants")
    tenants = replace(
        shared, hosts=len(instance.nodes) * with_cells, racks=tuple(racks) if shared.racks and with_cells else ()
    )
    return replace(
        instance,
        gpu_types=tuple(gpu_types),
        nodes=tuple(nodes),
        configurations=tuple(configurations),
        jobs=replace(instance.jobs, seconds_per_epoch=np.stack(columns, axis=1), **traced),
        mechanisms=(*kept, tenants),
    )
