"""The `cluster` section of a scenario, and the nodes that it stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, GpuType, Node, single_node_configurations
from gpusched_env.workload.scenario.settings import Count, NotNegative, Positive, Settings, as_tuple, whole
from gpusched_env.workload.tables.applications import builtin_gpu_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Kind
    from gpusched_env.workload.scenario.scenario import Scenario


def _known_gpu_type(name: str) -> str:
    if name not in builtin_gpu_types():
        raise InputError("", name, f"one of the GPU types {', '.join(builtin_gpu_types())}")
    return name


MOST_NODES = 100_000
"""Nodes that a cluster may have: more than any has, and few enough to be made in a moment."""

GpuTypeName = Annotated[str, AfterValidator(_known_gpu_type)]


class GpuTypeOverride(Settings):
    """Figures of one GPU type that replace the built-in ones."""

    gpu_power_w: Positive | None = Field(default=None, description="Power of one busy GPU [W].")
    node_base_power_w: NotNegative | None = Field(
        default=None, description="Power of a switched-on node beside its busy GPUs [W]."
    )
    memory_gib: Positive | None = Field(default=None, description="Memory of one GPU [GiB].")


class Cluster(Settings):
    """The nodes: node i has the GPU type i mod the number of types."""

    nodes: Annotated[int, whole(1, MOST_NODES)] = Field(default=10, description="Number of nodes.")
    gpu_types: Annotated[tuple[GpuTypeName, ...], BeforeValidator(as_tuple)] = Field(
        default=("V100", "A100", "T4"), description="GPU types; node i has the type i mod their number."
    )
    gpus_per_node: Count | None = Field(
        default=None, description="GPUs of every node; by default the maximum of its GPU type."
    )
    node_base_power_w: NotNegative | None = Field(
        default=None,
        description="Power of every switched-on node beside its busy GPUs [W]; by default the figure of its GPU type.",
    )
    overrides: dict[GpuTypeName, GpuTypeOverride] = Field(
        default_factory=dict, description="Your own figures, by GPU type; they win over node_base_power_w."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.gpu_types or len(set(self.gpu_types)) != len(self.gpu_types):
            raise InputError("gpu_types", list(self.gpu_types), "one GPU type or more, each once")
        known = builtin_gpu_types()
        for name in self.gpu_types:
            most = known[name].max_gpus_per_node
            if self.gpus_per_node is not None and self.gpus_per_node > most:
                raise InputError("gpus_per_node", self.gpus_per_node, f"at most {most}, the maximum of {name}")
        for name in self.overrides:
            if name not in self.gpu_types:
                raise InputError(f"overrides.{name}", name, f"a GPU type of this cluster: {', '.join(self.gpu_types)}")
        return self


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
        gpu_types = tuple(_gpu_type(cluster, name) for name in cluster.gpu_types)
        of_node = [gpu_types[i % len(gpu_types)] for i in range(cluster.nodes)]
        nodes = tuple(Node(v.name, cluster.gpus_per_node or v.max_gpus_per_node) for v in of_node)
        single = [c for c in single_node_configurations(gpu_types, nodes) if c.gpus_per_node in jobs.gpu_counts]
        if not single:
            most = max(node.gpus for node in nodes)
            raise InputError("jobs.gpu_counts", list(jobs.gpu_counts), f"at least one that a node has (1 to {most})")
        with_node = {node.gpu_type for node in nodes}
        fractions = sorted(scenario.sharing.fractions, reverse=True)
        shared = [Configuration(v.name, 1, share=f) for v in gpu_types if v.name in with_node for f in fractions]
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


def _several_nodes(
    gpu_types: tuple[GpuType, ...], nodes: tuple[Node, ...], counts: tuple[int, ...]
) -> list[Configuration]:
    """List the numbers of whole nodes, above one, that a type has; all nodes of a type have the same GPUs here."""
    asked = sorted(set(counts) - {1})
    has = Counter(node.gpu_type for node in nodes)
    gpus = {node.gpu_type: node.gpus for node in nodes}
    several = [Configuration(v.name, gpus[v.name], k) for v in gpu_types for k in asked if k <= has[v.name]]
    if asked and not several:
        allowed = f"at most the nodes that a GPU type has: {', '.join(f'{v.name} {has[v.name]}' for v in gpu_types)}"
        raise InputError("jobs.node_counts", list(counts), allowed)
    return several


def _gpu_type(cluster: Cluster, name: str) -> GpuType:
    figures: dict[str, float] = {}
    if cluster.node_base_power_w is not None:
        figures["node_base_power_w"] = cluster.node_base_power_w
    if name in cluster.overrides:
        figures |= cluster.overrides[name].model_dump(exclude_none=True)
    return replace(builtin_gpu_types()[name], **figures)  # type: ignore[arg-type]
