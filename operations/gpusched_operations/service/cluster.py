"""The cluster of a request: GPU types, nodes and configurations by name, and distributions of epochs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Node,
    Tenant,
    single_node_configurations,
)
from gpusched_env.workload import OwnGpuType, Prices, Scenario
from gpusched_env.workload.catalogue import Catalogue
from gpusched_env.workload.scenario.cluster import of_size
from gpusched_operations.service.fields import (
    LARGEST,
    MOST_CONFIGURATIONS,
    DecideRequest,
    DistributionFields,
    TenantFields,
)
from gpusched_operations.service.gpu_names import known_type, suggestion

_NAME = re.compile(
    r"(?:(?P<nodes>\d{1,6})\*)?(?P<type>.+)x(?P<gpus>\d{1,6}|0?\.\d{1,12})(?P<mark>!(?P<priority>\d)?)?", re.ASCII
)
_LIMIT = re.compile(r"0?\.\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """A cluster, and what the names of a request stand for.

    Attributes:
        gpu_types: The GPU types.
        nodes: The nodes.
        configurations: The configurations.
        tenants: The tenants.
        node: Index of every node, by its name.
        configuration: Index of every configuration, by its name.
        catalogue: Built-in applications, with their times on the GPU types.
    """

    gpu_types: tuple[GpuType, ...]
    nodes: tuple[Node, ...]
    configurations: tuple[Configuration, ...]
    tenants: tuple[Tenant, ...]
    node: Mapping[str, int]
    configuration: Mapping[str, int]
    catalogue: Catalogue

    @classmethod
    def of(cls, request: DecideRequest) -> ClusterNames:
        """Look up what a request names."""
        cluster = request.cluster
        own = tuple(given for given in cluster.gpu_types if isinstance(given, OwnGpuType))
        try:
            catalogue = _catalogue(own, request.prices.energy_eur_per_kwh, request.prices.pue)
        except InputError as error:
            raise InputError(_own_type(error.field, request), error.value, error.allowed) from None
        nodes = tuple(Node(**node.model_dump(exclude={"name"})) for node in cluster.nodes)
        gpu_types = tuple(_gpu_type(i, given, catalogue, nodes) for i, given in enumerate(cluster.gpu_types))
        types = [v.name for v in gpu_types]
        for index, node in enumerate(nodes):
            if node.gpu_type not in types:
                raise InputError(f"cluster.nodes[{index}].gpu_type", node.gpu_type, f"one of {', '.join(types)}")
        configurations = _configurations(request, gpu_types, nodes)
        return cls(
            gpu_types,
            nodes,
            configurations,
            tuple(_tenant(i, given, types) for i, given in enumerate(cluster.tenants)),
            _index([node.name for node in cluster.nodes], "cluster.nodes[{}].name"),
            _index([c.name for c in configurations], "configurations[{}]"),
            catalogue,
        )

    def index_of(self, configuration: str) -> int | None:
        """Return the index of a configuration by its name, whose GPU type may be named as a cluster manager does."""
        if configuration not in self.configuration:
            with suppress(InputError):
                configuration = self.known(configuration).name
        return self.configuration.get(configuration)

    def known(self, name: str) -> Configuration:
        found = configuration_of(name)
        return replace(found, gpu_type=known_type(found.gpu_type, [v.name for v in self.gpu_types]))


@lru_cache(maxsize=64)
def _catalogue(own: tuple[OwnGpuType, ...], eur_per_kwh: float, pue: float) -> Catalogue:
    return Scenario(gpu_types=own, prices=Prices(energy_price_eur_per_kwh=eur_per_kwh, pue=pue)).catalogue()


def _own_type(field: str, request: DecideRequest) -> str:
    given = request.cluster.gpu_types
    places = [i for i, gpu_type in enumerate(given) if isinstance(gpu_type, OwnGpuType)]
    return "cluster." + re.sub(r"^gpu_types\[(\d+)\]", lambda found: f"gpu_types[{places[int(found[1])]}]", field)


def _tenant(index: int, given: TenantFields, types: Sequence[str]) -> Tenant:
    try:
        return Tenant(given.name, tuple(Cells(known_type(name, types), *sizes) for name, *sizes in given.cells))
    except InputError as error:
        part = error.field.partition(".")[2]
        raise InputError(f"cluster.tenants[{index}].{part}", error.value, error.allowed) from None


def _gpu_type(index: int, given: str | OwnGpuType, catalogue: Catalogue, nodes: tuple[Node, ...]) -> GpuType:
    """Return a GPU type as large as its largest node, unless the request says how large its nodes are."""
    name = given if isinstance(given, str) else given.name
    if name not in catalogue.gpu_types:
        there = ", ".join(catalogue.gpu_types)
        allowed = f"one of the built-in GPU types {there}, a name with one of these as a word, or {suggestion(name)}"
        raise InputError(f"cluster.gpu_types[{index}]", name, allowed)
    gpu_type = catalogue.gpu_types[name]
    if max(gpu_type.power_w(busy) for busy in range(1, gpu_type.max_gpus_per_node + 1)) > LARGEST:
        raise InputError(f"cluster.gpu_types[{index}]", name, f"a type whose nodes draw at most {LARGEST:g} W")
    if isinstance(given, OwnGpuType) and given.gpus_per_node is not None:
        return gpu_type
    largest = max((node.gpus for node in nodes if node.gpu_type == name), default=gpu_type.max_gpus_per_node)
    try:
        return of_size(gpu_type, largest)
    except InputError as error:
        place = next(i for i, node in enumerate(nodes) if (node.gpu_type, node.gpus) == (name, largest))
        raise InputError(f"cluster.nodes[{place}].gpus", largest, error.allowed) from None


def _configurations(
    request: DecideRequest, gpu_types: tuple[GpuType, ...], nodes: tuple[Node, ...]
) -> tuple[Configuration, ...]:
    if not request.configurations:
        many = sum(max((node.gpus for node in nodes if node.gpu_type == v.name), default=0) for v in gpu_types)
        if many > MOST_CONFIGURATIONS:
            allowed = f"{MOST_CONFIGURATIONS:,} of these that jobs may be given"
            raise InputError("configurations", f"every number of GPUs: {many:,}", allowed)
        return single_node_configurations(gpu_types, nodes)
    made, known = [], [v.name for v in gpu_types]
    for index, given in enumerate(request.configurations):
        where = f"configurations[{index}]"
        try:
            if isinstance(given, str):
                made.append(configuration_of(given))
            else:
                made.append(Configuration(**given.model_dump()))
            made[-1] = replace(made[-1], gpu_type=known_type(made[-1].gpu_type, known))
        except InputError as error:
            raise InputError(error.field.replace("configuration", where), error.value, error.allowed) from None
        if made[-1].gpu_type not in known:
            raise InputError(f"{where}.gpu_type", made[-1].gpu_type, f"one of {', '.join(known)}")
    return tuple(made)


def configuration_of(name: str) -> Configuration:
    """Read the name of a configuration, as `Configuration.name` writes it."""
    whole, at_limit, limit = name.rpartition("@")
    if at_limit and _LIMIT.fullmatch(limit):
        return replace(configuration_of(whole), power_limit=float(limit))
    found = _NAME.fullmatch(name)
    if found is None:
        gpu_type, spread, count = name.rpartition("~")
        if spread and gpu_type and count.isdigit():
            return Configuration(gpu_type, 1, int(count), spread=True)
        raise InputError(
            "configuration", name, "a name such as V100x4, 2*V100x8, V100~4, V100x0.5, V100x0.6! or V100x4@0.7"
        )
    gpus, nodes = found["gpus"], int(found["nodes"] or 1)
    if "." not in gpus:
        return Configuration(found["type"], int(gpus), nodes)
    priority = int(found["priority"] or 1) if found["mark"] else 0
    return Configuration(found["type"], 1, nodes, float(gpus), priority)


def no_node_now(name: str, names: ClusterNames) -> bool:
    try:
        configuration = names.known(name)
    except InputError:
        return False
    return configuration.gpu_type in {v.name for v in names.gpu_types} and not _held(names, [configuration])[0]


def _index(names: list[str], where: str) -> dict[str, int]:
    index = {name: i for i, name in enumerate(names)}
    if len(index) < len(names):
        twice = next(i for i, name in enumerate(names) if index[name] != i)
        raise InputError(where.format(index[names[twice]]), names[twice], "each name once")
    return index


WAYS = ("masses", "survival", "quantiles", "history_epochs")


def distribution_of(where: str, given: DistributionFields, most: tuple[float, str]) -> EpochDistribution:
    """Make the distribution of an entry; `where`: the entry's path, for errors."""
    ways = [name for name in WAYS if getattr(given, name) is not None]
    if len(ways) != 1:
        raise InputError(where, ways, f"one of {', '.join(WAYS)}")
    if given.edges is not None and ways[0] not in WAYS[:2]:
        raise InputError(f"{where}.edges", "...", "nothing beside " + ways[0])
    try:
        return _MAKE[ways[0]](given, most)
    except InputError as error:
        field = error.field.replace("distribution.fractions", ways[0]).rpartition(".")[2]
        raise InputError(f"{where}.{field}", error.value, error.allowed) from None


def _masses(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    masses = np.array(given.masses, dtype=np.float64)
    if given.edges is not None and len(given.edges) != len(masses) + 1:
        raise InputError("edges", len(given.edges), f"{len(masses) + 1} numbers, one more than masses")
    return EpochDistribution.from_masses(masses, given.edges)


def _survival(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    survival = np.array(given.survival, dtype=np.float64)
    edges = np.linspace(0.0, 1.0, len(survival) + 1) if given.edges is None else np.array(given.edges)
    return EpochDistribution(edges, survival)


def _quantiles(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    """Take the mass between two quantiles to lie at the end of the piece between them, as every bin's does."""
    pairs = np.array(given.quantiles, dtype=np.float64).reshape(-1, 2)
    if not len(pairs) or pairs[-1, 1] < 1.0:
        pairs = np.vstack([pairs, [1.0, 1.0]])
    probability, fraction = np.concatenate([[0.0], pairs[:, 0]]), np.concatenate([[0.0], pairs[:, 1]])
    if np.any(np.diff(fraction) <= 0.0) or np.any(np.diff(probability) < 0.0) or probability[-1] != 1.0:
        allowed = "pairs (probability, fraction): fractions rising from above 0 to 1, probabilities never falling, to 1"
        raise InputError("quantiles", given.quantiles, allowed)
    return EpochDistribution(fraction, 1.0 - probability[:-1])


def _history(given: DistributionFields, most: tuple[float, str]) -> EpochDistribution:
    largest, whose = most if given.max_epochs is None else (given.max_epochs, "the history")
    epochs = np.array(given.history_epochs)
    if np.any(epochs > largest):
        first = int(np.argmax(epochs > largest))
        allowed = f"at most {largest:g}, the max_epochs of {whose}; a history may have max_epochs of its own"
        raise InputError(f"history_epochs[{first}]", float(epochs[first]), allowed)
    return EpochDistribution.from_runs(epochs / largest, given.bins)


_MAKE = {"masses": _masses, "survival": _survival, "quantiles": _quantiles, "history_epochs": _history}


def _held(names: ClusterNames, configurations: Sequence[Configuration]) -> NDArray[np.bool_]:
    """Return which configurations the nodes that are there could hold if they were empty, (C,)."""
    gpus = {v.name: np.array([n.gpus for n in names.nodes if n.gpu_type == v.name]) for v in names.gpu_types}
    none = np.zeros(0)
    able = [
        (
            gpus.get(c.gpu_type, none).sum()
            if c.spread
            else np.count_nonzero(gpus.get(c.gpu_type, none) >= c.gpus_per_node)
        )
        >= c.nodes
        for c in configurations
    ]
    return np.array(able, dtype=np.bool_)


def usable(
    request: DecideRequest,
    names: ClusterNames,
    seconds: NDArray[np.float64],
    needs_gib: NDArray[np.float64],
    tenant: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return on which configurations each job could be if the cluster were empty, (J, C).

    Args:
        seconds: Seconds per epoch, (J, C); inf: not on this one.
        needs_gib: What each job needs on every GPU [GiB], (J,).
    """
    of_type = {v.name: v.memory_gib for v in names.gpu_types}
    moves = bool((request.interference or {}).get("memory"))  # then a share leaves a job all memory of its GPUs
    memory_gib = np.array([of_type.get(c.gpu_type, 0.0) * (1.0 if moves else c.share) for c in names.configurations])
    found: NDArray[np.bool_] = np.isfinite(seconds) & _held(names, names.configurations)
    found &= needs_gib[:, None] <= memory_gib
    if request.cluster.tenancy == "quota" and names.tenants:
        quota = np.array([[each.gpus(c.gpu_type) for c in names.configurations] for each in names.tenants])
        found &= (np.array([c.gpus for c in names.configurations]) <= quota)[tenant]
    return found
