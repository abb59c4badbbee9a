"""The values of a scenario's names: GPU types and applications, and the site: nodes and configurations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, GpuType, Node, single_node_configurations
from gpusched_env.workload.network import SwitchingCosts, switching_costs
from gpusched_env.workload.power_limits import with_limits
from gpusched_env.workload.tables import read_table
from gpusched_env.workload.tables.applications import Application, builtin_applications, builtin_gpu_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Kind
    from gpusched_env.workload.scenario.cluster import Cluster, OwnGpuType
    from gpusched_env.workload.scenario.scenario import Scenario

APPLICATION_TABLES = {
    "published": "published_applications.csv",
    "published-inhouse": "published_inhouse_applications.csv",
    "mlperf": "mlperf_applications.csv",
}
NAMED_TABLES = ("measured", *APPLICATION_TABLES)
"""Tables of the package that a scenario's `applications` may name; any other text is the path of a CSV file."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The values of a scenario's names.

    Attributes:
        gpu_types: GPU types, by name.
        applications: Applications, by name.
        names: Names of the applications that jobs draw from.
        switching: Seconds without progress at a start and after changes, by application.
    """

    gpu_types: Mapping[str, GpuType]
    applications: Mapping[str, Application]
    names: tuple[str, ...]
    switching: Mapping[str, SwitchingCosts]

    @classmethod
    def of(cls, scenario: Scenario) -> Catalogue:
        """Look up the names of a scenario; a file of applications is read here."""
        gpu_types = gpu_types_of(scenario)
        built_in, own = builtin_applications(), _own_applications(scenario)
        _check_gpu_types(scenario, own, gpu_types)
        for v in scenario.gpu_types:
            built_in = {name: _like(application, v, replaces=True) for name, application in built_in.items()}
        known = built_in | {name: _added(built_in.get(name), application) for name, application in own.items()}
        for v in scenario.gpu_types:
            known = {name: _like(application, v, replaces=False) for name, application in known.items()}
        names = scenario.jobs.applications or tuple(own or built_in)
        for index, name in enumerate(names):
            if name not in known:
                raise InputError(f"jobs.applications[{index}]", name, f"one of the applications {', '.join(known)}")
        for name in scenario.restart_by_application:
            if name not in known:
                raise InputError(f"restart_by_application.{name}", name, f"one of the applications {', '.join(known)}")
        costs = {
            name: switching_costs(scenario.switching, known[name], _restart_s(scenario, known[name], name in own))
            for name in names
        }
        return cls(gpu_types, known, names, costs)

    def chosen(self) -> tuple[Application, ...]:
        return tuple(self.applications[name] for name in self.names)


def gpu_types_of(scenario: Scenario) -> dict[str, GpuType]:
    """Return all GPU types that a scenario may name: its own, and the built-in ones."""
    known = builtin_gpu_types()
    eur_per_kwh = scenario.prices.energy_price_eur_per_kwh * scenario.prices.pue
    own: dict[str, GpuType] = {}
    for index, given in enumerate(scenario.gpu_types):
        try:
            own[given.name] = given.gpu_type(known, eur_per_kwh)
        except InputError as error:
            field = error.field.removeprefix(f"gpu_types.{given.name}.")
            raise InputError(f"gpu_types[{index}].{field}", error.value, error.allowed) from None
    return known | own


@cache
def _table(name: str) -> Mapping[str, Application]:
    from gpusched_env.workload.tables.own_applications import applications_of  # noqa: PLC0415 - few need it

    file = APPLICATION_TABLES[name]
    return MappingProxyType(applications_of(list(enumerate(read_table(file), start=2)), file))


def _own_applications(scenario: Scenario) -> dict[str, Application]:
    """Return the applications of the scenario or of the table that it names; none with `measured`."""
    given = scenario.applications
    if given is None or given == "measured":
        return {}
    from gpusched_env.workload.tables.own_applications import read_applications  # noqa: PLC0415 - few need it

    if isinstance(given, str):
        return dict(_table(given)) if given in APPLICATION_TABLES else read_applications(given, names=NAMED_TABLES)
    made = {}
    for index, application in enumerate(given):
        if application.name in made:
            raise InputError(f"applications[{index}].name", application.name, "each name once")
        made[application.name] = application.application()
    return made


def _added(built_in: Application | None, own: Application) -> Application:
    """Add the times of a user's application to those of the built-in application of the same name."""
    if built_in is None:
        return own
    return replace(
        own,
        memory_gib=own.memory_gib or built_in.memory_gib,
        restart_s=own.restart_s or built_in.restart_s,
        state_gib=own.state_gib or built_in.state_gib,
        batches_per_epoch=own.batches_per_epoch or built_in.batches_per_epoch,
        seconds_per_epoch=dict(built_in.seconds_per_epoch) | dict(own.seconds_per_epoch),
        whole_nodes_s=dict(built_in.whole_nodes_s) | dict(own.whole_nodes_s),
        spread_factor=dict(built_in.spread_factor) | dict(own.spread_factor),
    )


def _like(application: Application, own: OwnGpuType, *, replaces: bool) -> Application:
    """Copy to a GPU type the times of the type that it is `like`: in place of its own, or where it has none.

    Of a type that it is `part_of` it has the times on one GPU: a job cannot use several parts together.
    """
    if own.source is None:
        return application

    def moved(table: Mapping[Any, float]) -> dict[Any, float]:
        times = {key: seconds for key, seconds in table.items() if key[0] == own.source}
        times = {key: seconds for key, seconds in times.items() if own.part_of is None or key[1:] == (1,)}
        alike = {(own.name, *key[1:]): seconds / own.factor for key, seconds in times.items()}
        return alike | {key: seconds for key, seconds in table.items() if not replaces or key[0] != own.name}

    times, whole_nodes = moved(application.seconds_per_epoch), moved(application.whole_nodes_s)
    slower = {(own.name, gpus): factor for (v, gpus), factor in application.spread_factor.items() if v == own.like}
    return replace(
        application,
        seconds_per_epoch=times,
        whole_nodes_s=whole_nodes,
        spread_factor=dict(application.spread_factor) | slower,
    )


def _check_gpu_types(scenario: Scenario, own: Mapping[str, Application], known: Mapping[str, GpuType]) -> None:
    """Check that users' applications have times on known GPU types: a misspelt name would leave them out."""
    if isinstance(scenario.applications, str) and scenario.applications in APPLICATION_TABLES:
        return
    for application in own.values():
        for gpu_type, *_ in (*application.seconds_per_epoch, *application.whole_nodes_s):
            if gpu_type not in known:
                allowed = f"one of the GPU types {', '.join(known)}; [[gpu_types]] adds others"
                raise InputError(f"applications.{application.name}: gpu_type", gpu_type, allowed)


def _restart_s(scenario: Scenario, application: Application, own: bool) -> float | None:
    if application.name in scenario.restart_by_application:
        return scenario.restart_by_application[application.name]
    if scenario.restart_s == "measured":
        return application.restart_s
    if scenario.restart_s is None and own:
        return application.restart_s or None
    return scenario.restart_s


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster as the model's values.

    Attributes:
        gpu_types: The GPU types.
        nodes: The nodes.
        configurations: The configurations that jobs may be offered, of types that have a node.
        memory_moves: Whether a share leaves a job all memory of its GPUs, which moves between the jobs on them.
    """

    gpu_types: tuple[GpuType, ...]
    nodes: tuple[Node, ...]
    configurations: tuple[Configuration, ...]
    memory_moves: bool = False

    @classmethod
    def of(cls, scenario: Scenario) -> Site:
        """Build the cluster of a scenario, and the configurations on offer.

        Single-node configurations come first, then shares of GPUs, then whole nodes, then spread GPUs, each by GPU
        type; shares by the number of GPUs, from the largest to the smallest. Then all follow again with each power
        limit.

        Raises:
            InputError: No node has as many GPUs as the least of `jobs.gpu_counts`, or no GPU type has as many nodes as
                the least of `jobs.node_counts` above one.
        """
        cluster, jobs = scenario.cluster, scenario.jobs
        known = gpu_types_of(scenario)
        gpu_types, nodes = _built(cluster, {name: _with_figures(cluster, known[name]) for name in cluster.gpu_types})
        parts = {own.name for own in scenario.gpu_types if own.part_of is not None}
        single = [c for c in single_node_configurations(gpu_types, nodes) if c.gpus_per_node in jobs.gpu_counts]
        single = [c for c in single if c.gpus_per_node == 1 or c.gpu_type not in parts]
        if not single:
            most = max(node.gpus for node in nodes)
            raise InputError("jobs.gpu_counts", list(jobs.gpu_counts), f"at least one that a node has (1 to {most})")
        with_node = {node.gpu_type for node in nodes}
        offers = sorted(scenario.sharing.offers(), reverse=True)
        shared = [
            Configuration(v.name, gpus, share=fraction, priority=priority)
            for v in gpu_types
            if v.name in with_node
            for gpus in scenario.sharing.gpu_counts
            if gpus <= max(node.gpus for node in nodes if node.gpu_type == v.name)
            for fraction, priority in offers
        ]
        several = _several_nodes(gpu_types, nodes, jobs.node_counts)
        spread = _spread(gpu_types, nodes, jobs.spread_counts)
        configurations = with_limits(scenario, (*single, *shared, *several, *spread))
        return cls(gpu_types, nodes, configurations, scenario.sharing.memory == "moves")

    @property
    def unlimited(self) -> NDArray[np.bool_]:
        """Return which configurations have no power limit, shape (C,)."""
        return np.array([c.power_limit == 1.0 for c in self.configurations])

    def of_kind(self, kind: Kind) -> NDArray[np.bool_]:
        """Return which configurations are of a kind, shape (C,)."""
        return np.array([c.kind == kind for c in self.configurations])

    @property
    def memory_gib(self) -> NDArray[np.float64]:
        """Return the memory that every configuration leaves to a job on each GPU [GiB]: its share of it, shape (C,)."""
        of_type = {v.name: v.memory_gib for v in self.gpu_types}
        return np.array([(1.0 if self.memory_moves else c.share) * of_type[c.gpu_type] for c in self.configurations])

    @property
    def most_gpus(self) -> int:
        return max(node.gpus for node in self.nodes)

    @property
    def most_gpus_of_a_job(self) -> int:
        return max(self.most_gpus, *(c.gpus_per_node * c.nodes for c in self.configurations))

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)


def of_size(gpu_type: GpuType, gpus: int) -> GpuType:
    """Return the type of nodes with so many GPUs; a table of powers ends there."""
    table = gpu_type.node_power_w
    if table is not None and gpus > len(table):
        raise InputError("gpus_per_node", gpus, f"at most {len(table)}, for which {gpu_type.name} has powers")
    return replace(gpu_type, max_gpus_per_node=gpus, node_power_w=None if table is None else table[:gpus])


def _built(cluster: Cluster, types: Mapping[str, GpuType]) -> tuple[tuple[GpuType, ...], tuple[Node, ...]]:
    if cluster.pools:
        sizes = [(p.gpu_type, p.gpus_per_node or types[p.gpu_type].max_gpus_per_node) for p in cluster.pools]
        nodes = [Node(*size) for size, pool in zip(sizes, cluster.pools, strict=True) for _ in range(pool.nodes)]
        largest = {name: max(gpus for v, gpus in sizes if v == name) for name in types}
    else:
        largest = {name: cluster.gpus_per_node or v.max_gpus_per_node for name, v in types.items()}
        names = list(types)
        nodes = [Node(name, largest[name]) for name in (names[i % len(names)] for i in range(cluster.nodes))]
    return tuple(of_size(v, largest[name]) for name, v in types.items()), tuple(nodes)


def _several_nodes(
    gpu_types: tuple[GpuType, ...], nodes: tuple[Node, ...], counts: tuple[int, ...]
) -> list[Configuration]:
    """List the numbers of whole nodes, above one, that a type has: those of its largest nodes."""
    asked = sorted(set(counts) - {1})
    gpus = {v.name: max((node.gpus for node in nodes if node.gpu_type == v.name), default=0) for v in gpu_types}
    has = Counter(node.gpu_type for node in nodes if node.gpus == gpus[node.gpu_type])
    several = [Configuration(v.name, gpus[v.name], k) for v in gpu_types for k in asked if k <= has[v.name]]
    if asked and not several:
        allowed = f"at most the nodes that a GPU type has: {', '.join(f'{v.name} {has[v.name]}' for v in gpu_types)}"
        raise InputError("jobs.node_counts", list(counts), allowed)
    return several


def _spread(gpu_types: tuple[GpuType, ...], nodes: tuple[Node, ...], counts: tuple[int, ...]) -> list[Configuration]:
    """List the numbers of GPUs on any nodes that a type has in all."""
    has: Counter[str] = Counter()
    for node in nodes:
        has[node.gpu_type] += node.gpus
    spread = [Configuration(v.name, 1, g, spread=True) for v in gpu_types for g in sorted(counts) if g <= has[v.name]]
    if counts and not spread:
        raise InputError("jobs.spread_counts", list(counts), f"at most the GPUs of a type: {dict(has)}")
    return spread


def _with_figures(cluster: Cluster, gpu_type: GpuType) -> GpuType:
    """Put the cluster's own figures in place of those of the type; they replace a table of powers as a whole."""
    figures: dict[str, float] = {}
    if cluster.node_base_power_w is not None:
        figures["node_base_power_w"] = cluster.node_base_power_w
    if gpu_type.name in cluster.overrides:
        figures |= cluster.overrides[gpu_type.name].model_dump(exclude_none=True, exclude={"power_limits"})
    powers = figures.keys() - {"memory_gib"}
    if powers and gpu_type.node_power_w is not None:
        field = f"overrides.{gpu_type.name}" if gpu_type.name in cluster.overrides else "node_base_power_w"
        raise InputError(f"cluster.{field}", min(powers), f"no power: {gpu_type.name} has those of its whole node")
    return replace(gpu_type, **figures)  # type: ignore[arg-type]
