"""The site: nodes and configurations of a scenario, and the times of applications on these."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model.configuration import Configuration, GpuType, Node, single_node_configurations
from gpusched_env.workload.scenario.cluster import of_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Kind
    from gpusched_env.workload.scenario.cluster import Cluster
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.tables.applications import Application


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
        known = scenario.known_gpu_types()
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
        configurations = (*single, *shared, *several, *spread)
        if jobs.power_limits != (1.0,) or any(own.power_limits for own in cluster.overrides.values()):
            from gpusched_env.workload.power_limits import with_limits  # noqa: PLC0415 - few need it

            configurations = with_limits(scenario, configurations)
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


def application_times(applications: tuple[Application, ...], site: Site) -> NDArray[np.float64]:
    """Return τ of every application on every configuration, shape (A, C); inf where its memory does not fit.

    Raises:
        InputError: An application fits no single-node configuration, no application fits a fraction, or none was
            measured on several nodes though some are offered.
    """
    table = np.array([[application.time_s(c) for c in site.configurations] for application in applications])
    memory = np.array([application.memory_gib for application in applications])
    table[memory[:, None] > site.memory_gib[None, :]] = np.inf
    known = np.isfinite(table)
    single = site.of_kind("single-node")
    for row, application in enumerate(applications):
        if not np.any(known[row, single]):
            raise _fits_nowhere(application, site)
    for fraction in sorted({c.share for c in site.configurations if c.kind == "shared"}):
        if not np.any(known[:, [c.share == fraction for c in site.configurations]]):
            least = min(applications, key=lambda application: application.memory_gib)
            allowed = (
                f"fractions that one of the applications fits: {least.name} needs least, {least.memory_gib:g} GiB; the "
                f"GPUs have {_list(_memory_of_types(site))}"
            )
            raise InputError("sharing.fractions", fraction, allowed)
    spread = site.of_kind("spread")
    if np.any(spread) and not np.any(known[:, spread]):
        factors = sorted({f"{v}~{g}" for application in applications for v, g in application.spread_factor})
        allowed = f"numbers of GPUs that one of the applications was measured on: {', '.join(factors) or 'none'}"
        raise InputError("jobs.spread_counts", sorted({c.nodes for c in site.configurations if c.spread}), allowed)
    several = site.of_kind("multi-node")
    if np.any(several) and not np.any(known[:, several]):
        counts = [1, *sorted({c.nodes for c in site.configurations if c.nodes > 1})]
        on_nodes = sorted({(v, g, k) for application in applications for v, k, g in application.whole_nodes_s})
        names = ", ".join(f"{k}*{v}x{g}" for v, g, k in on_nodes) or "none"
        allowed = f"numbers of nodes that one of the applications was measured on: {names}"
        raise InputError("jobs.node_counts", counts, allowed)
    return table


def _fits_nowhere(application: Application, site: Site) -> InputError:
    has = _memory_of_types(site)
    if application.memory_gib > max(has.values()):
        allowed = f"applications whose memory fits: it needs {application.memory_gib:g} GiB, the GPUs have {_list(has)}"
    else:
        names = ", ".join(c.name for c in site.configurations if c.kind == "single-node")
        allowed = f"applications measured, and with memory enough, on what the cluster offers: {names}"
    return InputError("jobs.applications", application.name, allowed)


def _memory_of_types(site: Site) -> dict[str, float]:
    """Return the memory of a GPU of every type that offers something [GiB]."""
    offers = {c.gpu_type for c in site.configurations}
    return {v.name: v.memory_gib for v in site.gpu_types if v.name in offers}


def _list(memory: dict[str, float]) -> str:
    return ", ".join(f"{name} {gib:g}" for name, gib in memory.items())
