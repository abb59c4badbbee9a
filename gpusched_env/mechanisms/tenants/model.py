"""The tenants of a cluster, how they share it, and the racks of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import value_of
from gpusched_env.model import checks
from gpusched_env.model.configuration import hardware_of
from gpusched_env.model.mechanism import Mechanism
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.model.tenant import TENANCIES, Cells, Tenancy, Tenant, check_fit, pieces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Node
    from gpusched_env.model.instance import Instance


@dataclass(frozen=True, slots=True)
class Tenants(Mechanism):
    """The tenants of a cluster, or the racks of its nodes.

    Args:
        tenants: The tenants; `jobs.tenant` are indices of them.
        tenancy: How they share the cluster: `none` (names only), `quota` (the GPUs of every type that a tenant's jobs
            hold at one time are at most those of its cells), `private` or `cells` (what `workload.with_tenancy` makes).
        hosts: With `cells` the last so many nodes are the physical ones: opportunistic jobs run on them, and the nodes
            before them are the tenants' cells, which are bound to them when they are used. Else 0.
        racks: Number of the rack of every node, if there are racks: cells of tenants may be larger than a node. With
            `cells`, of the nodes before the physical ones: of the tenant's cell of which each is a part.
    """

    mechanism: ClassVar[str] = "tenants"
    schema: ClassVar[Mapping[str, Any]] = {
        "tenancy?": str,
        "tenants?": [{"name": str, "cells": [[None]]}],
        "racks?": [int],
        "hosts?": int,
    }
    constants_from: ClassVar[Any] = "nothing"

    tenants: tuple[Tenant, ...] = ()
    tenancy: Tenancy = "none"
    hosts: int = 0
    racks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, allowed in (("tenants", "a sequence of Tenant"), ("racks", "a sequence of whole numbers")):
            given = getattr(self, name)
            if not isinstance(given, Iterable):
                raise InputError(name, given, allowed)
            object.__setattr__(self, name, tuple(given))
        if odd := [each for each in self.tenants if not isinstance(each, Tenant)]:
            raise InputError("tenants", odd[0], "a sequence of Tenant")
        checks.whole("hosts", self.hosts, lowest=0)

    @classmethod
    def of(cls, instance: Instance) -> Tenants:
        """Return the tenants of an instance; none where it has no model of them."""
        return instance.of(cls) or cls()

    @property
    def machines(self) -> int:
        """How many of the last nodes are the physical ones; 0: all."""
        return self.hosts

    def quotas(self, instance: Instance) -> NDArray[np.int64]:
        """Return the GPUs of every type that each tenant's jobs may hold at one time, (T, V); (0, V) without quotas."""
        tenants = self.tenants if self.tenancy == "quota" else ()
        each = [tenant.gpus(v.name) for tenant in tenants for v in instance.gpu_types]
        return np.array(each, dtype=np.int64).reshape(len(tenants), len(instance.gpu_types))

    def open_seconds(self, instance: Instance, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the seconds per epoch of jobs, (J, C); inf also where one takes more than its tenant's whole quota.

        Raises:
            InputError: The cluster cannot be shared so, or a job has nothing left.
        """
        for index, c in enumerate(instance.configurations if self.hosts else ()):
            if c.kind == "shared" and c.gpus_per_node * c.nodes > 1:
                raise InputError(f"configurations[{index}]", c.name, "shares of one GPU with tenancy = 'cells'")
        self._check_tenants(instance)
        self._check_racks(instance)
        self._check_hosts(instance)
        limits, jobs = self.quotas(instance), instance.jobs
        if not len(limits):
            return seconds
        gpus = np.array([c.gpus_per_node * c.nodes * c.share for c in instance.configurations])
        beyond = (gpus[None, :] > limits[:, instance.type_of_configuration])[jobs.tenant]
        within = np.where(beyond, np.inf, seconds)
        for job in np.flatnonzero(np.isinf(within).all(axis=1)):
            allowed = f"one within the quota of {self.tenants[int(jobs.tenant[job])].name}"
            raise InputError(f"jobs[{job}].seconds_per_epoch", "inf for all", allowed)
        return within if (beyond & np.isfinite(seconds)).any() else seconds

    def _check_tenants(self, instance: Instance) -> None:
        if self.tenancy not in TENANCIES:
            raise InputError("tenancy", self.tenancy, f"one of {', '.join(TENANCIES)}")
        names = [tenant.name for tenant in self.tenants]
        may_lack = self.tenancy == "none" and (self.racks or self.hosts)
        if (not names and not may_lack) or len(set(names)) != len(names):
            raise InputError("tenants", names, "with a tenancy one or more, all with different names")
        of_jobs = instance.jobs.tenant
        if names and of_jobs.max() >= len(names):
            job, allowed = int(of_jobs.argmax()), f"the index of one of the {len(names)} tenants"
            raise InputError(f"jobs[{job}].tenant", int(of_jobs.max()), allowed)
        known = set(hardware_of(instance.gpu_types).values())
        for t, tenant in enumerate(self.tenants):
            if self.tenancy != "none" and not tenant.cells:
                raise InputError(f"tenants[{t}].cells", [], "at least one kind of cells, with a tenancy")
            for i, cells in enumerate(tenant.cells):
                if cells.gpu_type not in known and self.tenancy != "private":  # there they are nodes already
                    allowed = f"one of the GPU types {', '.join(sorted(known))}"
                    raise InputError(f"tenants[{t}].cells[{i}].gpu_type", cells.gpu_type, allowed)

    def _check_racks(self, instance: Instance) -> None:
        """Check that each node has a rack, with nodes of the same kind and size, if there are racks."""
        nodes, racks = instance.nodes, self.racks
        if racks and len(racks) != len(nodes):
            raise InputError("racks", len(racks), f"a number for each of the {len(nodes)} nodes")
        first: dict[int, Node] = {}
        for n, (rack, node) in enumerate(zip(racks, nodes, strict=False)):
            checks.whole(f"racks[{n}]", rack, lowest=0)
            if first.setdefault(rack, node) != node:
                raise InputError(f"racks[{n}]", rack, "the rack of nodes of the same GPU type and size")

    def _check_hosts(self, instance: Instance) -> None:
        """Check that there are hosts with cells only, and that these can all be bound to them at one time."""
        gpu_types, nodes, first = instance.gpu_types, instance.nodes, len(instance.nodes) - self.hosts
        if (self.tenancy == "cells") != (self.hosts > 0) or not 0 <= self.hosts < len(nodes):
            raise InputError("hosts", self.hosts, "the number of physical nodes with cells, else 0")
        if self.hosts == 0:
            return
        names, types = [tenant.name for tenant in self.tenants], instance.type_of_node.tolist()
        for n, v in enumerate(types):
            owner = gpu_types[v].owner
            if owner not in names if n < first else owner:
                one = f"one of {', '.join(names)}: nodes[{n}] is a cell"
                raise InputError(f"gpu_types[{v}].owner", owner, one if n < first else f"none: nodes[{n}] is a host")
        if max(types[:first]) >= types[first] or min(types[first:]) < types[first]:
            raise InputError("gpu_types", [v.name for v in gpu_types], "those without an owner last")
        self._check_cells(instance, first)
        if rent := rent_eur_per_h(instance):
            raise InputError("gpu_hour_eur", rent, "0 with cells, which are on whole hosts")

    def _check_cells(self, instance: Instance, first: int) -> None:
        nodes, hardware = instance.nodes, hardware_of(instance.gpu_types)
        for kind in sorted({hardware[node.gpu_type] for node in nodes}):
            sizes = [Counter[int](), Counter[int]()]
            largest = 0
            for piece in pieces(nodes, self.racks):
                node = nodes[piece[0]]
                if hardware[node.gpu_type] == kind:
                    sizes[piece[0] >= first][node.gpus * len(piece)] += 1
                    largest = max(largest, node.gpus)
                    if piece[0] < first <= piece[-1]:
                        raise InputError(f"racks[{piece[-1]}]", self.racks[piece[0]], "no rack of cells and hosts")
            check_fit("nodes", sizes[0], sizes[1], largest)

    def fields(self) -> dict[str, Any]:
        """Return the fields in files, those that have a value: each stands on its own in a document."""
        tenants = [
            {"name": own.name, "cells": [[each.gpu_type, int(each.gpus), int(each.count)] for each in own.cells]}
            for own in self.tenants
        ]
        named = {"tenancy": self.tenancy, "tenants": tenants} if tenants else {}
        numbers = {"racks": [int(rack) for rack in self.racks], "hosts": self.hosts}
        return named | {name: value for name, value in numbers.items() if value}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Make it from the fields of a file: names of tenants and how they share the cluster come together."""
        for name, other in (("tenancy", "tenants"), ("tenants", "tenancy"), ("tenancy", "hosts"), ("tenants", "hosts")):
            if name not in fields and other in fields:
                raise InputError(name, None, "a value: the field is missing")
        tenants = tuple(_tenant(f"tenants[{i}]", entry) for i, entry in enumerate(fields.get("tenants", ())))
        return cls(**{**fields, "tenants": tenants})


def _tenant(where: str, entry: Mapping[str, Any]) -> Tenant:
    cells = []
    for i, row in enumerate(entry["cells"]):
        place = f"{where}.cells[{i}]"
        if len(row) != 3:
            raise InputError(place, f"{len(row)} values", "3: gpu_type, gpus, count")
        cells.append(tuple(value_of(place, value, kind) for value, kind in zip(row, (str, int, int), strict=True)))
    try:
        return Tenant(entry["name"], tuple(Cells(*each) for each in cells))
    except InputError as error:
        raise InputError(f"{where}.{error.field.rpartition('.')[2]}", error.value, error.allowed) from error


MODEL = Tenants
