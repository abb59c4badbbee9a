"""The nodes that a scenario stands for, and what its jobs are offered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, Node, single_node_configurations
from gpusched_env.workload.catalogue import gpu_types_of
from gpusched_env.workload.scenario.cluster import of_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model import GpuType
    from gpusched_env.model.configuration import Kind
    from gpusched_env.workload.scenario.cluster import Cluster
    from gpusched_env.workload.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster as the model's values.

    Attributes:
        gpu_types: The GPU types.
        nodes: The nodes.
        configurations: What jobs may be offered, of types that have a node.
    """

    gpu_types: tuple[GpuType, ...]
    nodes: tuple[Node, ...]
    configurations: tuple[Configuration, ...]

    @classmethod
    def of(cls, scenario: Scenario) -> Site:
        """Build the cluster of a scenario, and what its jobs are offered.

        Single-node configurations come first, then shares of a GPU, then whole nodes, each by GPU type; shares from the
        largest to the smallest.

        Raises:
            InputError: No node has as many GPUs as the least of `jobs.gpu_counts`, or no GPU type has as many nodes as
                the least of `jobs.node_counts` above one.
        """
        cluster, jobs = scenario.cluster, scenario.jobs
        known = gpu_types_of(scenario)
        gpu_types, nodes = _built(cluster, {name: _with_figures(cluster, known[name]) for name in cluster.gpu_types})
        single = [c for c in single_node_configurations(gpu_types, nodes) if c.gpus_per_node in jobs.gpu_counts]
        if not single:
            most = max(node.gpus for node in nodes)
            raise InputError("jobs.gpu_counts", list(jobs.gpu_counts), f"at least one that a node has (1 to {most})")
        with_node = {node.gpu_type for node in nodes}
        offers = sorted(scenario.sharing.offers(), reverse=True)
        shared = [
            Configuration(v.name, 1, share=fraction, priority=priority)
            for v in gpu_types
            if v.name in with_node
            for fraction, priority in offers
        ]
        several = _several_nodes(gpu_types, nodes, jobs.node_counts)
        return cls(gpu_types, nodes, (*single, *shared, *several))

    def of_kind(self, kind: Kind) -> NDArray[np.bool_]:
        """Say which configurations are of a kind, shape (C,)."""
        return np.array([c.kind == kind for c in self.configurations])

    @property
    def memory_gib(self) -> NDArray[np.float64]:
        """Give the memory that every configuration leaves to a job on each GPU [GiB]: its share of it, shape (C,)."""
        of_type = {v.name: v.memory_gib for v in self.gpu_types}
        return np.array([c.share * of_type[c.gpu_type] for c in self.configurations])

    @property
    def most_gpus(self) -> int:
        """Count the GPUs of the largest node."""
        return max(node.gpus for node in self.nodes)

    @property
    def most_gpus_of_a_job(self) -> int:
        """Count the GPUs of the largest node, or of the largest configuration over several nodes."""
        return max(self.most_gpus, *(c.gpus_per_node * c.nodes for c in self.configurations))

    @property
    def gpus(self) -> int:
        """Count all GPUs."""
        return sum(node.gpus for node in self.nodes)


def _built(cluster: Cluster, types: Mapping[str, GpuType]) -> tuple[tuple[GpuType, ...], tuple[Node, ...]]:
    """Make the nodes of a cluster, and its GPU types as large as their largest nodes."""
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


def _with_figures(cluster: Cluster, gpu_type: GpuType) -> GpuType:
    """Put the cluster's own figures in place of those of the type; they replace a table of powers as a whole."""
    figures: dict[str, float] = {}
    if cluster.node_base_power_w is not None:
        figures["node_base_power_w"] = cluster.node_base_power_w
    if gpu_type.name in cluster.overrides:
        figures |= cluster.overrides[gpu_type.name].model_dump(exclude_none=True)
    powers = figures.keys() - {"memory_gib"}
    if powers and gpu_type.node_power_w is not None:
        field = f"overrides.{gpu_type.name}" if gpu_type.name in cluster.overrides else "node_base_power_w"
        raise InputError(f"cluster.{field}", min(powers), f"no power: {gpu_type.name} has those of its whole node")
    return replace(gpu_type, **figures)  # type: ignore[arg-type]
