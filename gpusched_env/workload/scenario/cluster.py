"""The `cluster` section of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import Count, NotNegative, Positive, Settings, as_tables, as_tuple, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model import GpuType

MOST_NODES = 100_000
"""Nodes that a cluster may have: more than any has, and few enough to be made in a moment."""


class GpuTypeOverride(Settings):
    """Figures of one GPU type that replace the built-in ones."""

    gpu_power_w: Positive | None = Field(default=None, description="Power of one busy GPU [W].")
    node_base_power_w: NotNegative | None = Field(
        default=None, description="Power of a switched-on node beside its busy GPUs [W]."
    )
    idle_gpu_power_w: NotNegative | None = Field(
        default=None, description="Power of an idle GPU of a switched-on node [W]."
    )
    memory_gib: Positive | None = Field(default=None, description="Memory of one GPU [GiB].")


class Pool(Settings):
    """Nodes of one kind, in `[[cluster.pools]]`."""

    gpu_type: str = Field(description="GPU type, built-in or one of gpu_types.")
    nodes: Annotated[int, whole(1, MOST_NODES)] = Field(description="Number of nodes.")
    gpus_per_node: Count | None = Field(default=None, description="GPUs of each; by default the most of the GPU type.")


class Cluster(Settings):
    """The nodes: as many of every kind as `pools` say, or else node i has the GPU type i mod the number of types."""

    pools: Annotated[tuple[Pool, ...], BeforeValidator(as_tables(Pool))] = Field(
        default=(), description="Pools of nodes, in place of nodes, gpu_types and gpus_per_node."
    )
    nodes: Annotated[int, whole(1, MOST_NODES)] = Field(default=10, description="Number of nodes.")
    gpu_types: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=("V100", "A100", "T4"), description="GPU types; node i has the type i mod their number."
    )
    gpus_per_node: Count | None = Field(
        default=None, description="GPUs of every node; by default the maximum of its GPU type."
    )
    node_base_power_w: NotNegative | None = Field(
        default=None,
        description="Power of every switched-on node beside its GPUs [W]; by default the figure of its GPU type.",
    )
    overrides: dict[str, GpuTypeOverride] = Field(
        default_factory=dict, description="Your own figures, by GPU type; they win over node_base_power_w."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_pools(cls, values: Any) -> Any:
        """Give `nodes` and `gpu_types` what the pools say, so that both ways read alike; refuse what contradicts."""
        if not isinstance(values, dict):
            return values
        try:
            made: Any = as_tables(Pool)(values.get("pools"))
        except InputError as error:
            raise InputError(f"pools{error.field}", error.value, error.allowed) from None
        if not made or not isinstance(made, tuple):
            return values
        said = {"nodes": sum(p.nodes for p in made), "gpu_types": tuple(dict.fromkeys(p.gpu_type for p in made))}
        for name, value in said.items():
            given = as_tuple(values.get(name, value))
            if given != value:
                shown = list(given) if isinstance(given, tuple) else given
                raise InputError(name, shown, "nothing beside cluster.pools, which say it: change the pools")
        if values.get("gpus_per_node") is not None:
            raise InputError("gpus_per_node", values["gpus_per_node"], "nothing beside cluster.pools: each has its own")
        return {**values, **said, "pools": made}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.gpu_types or len(set(self.gpu_types)) != len(self.gpu_types):
            raise InputError("gpu_types", list(self.gpu_types), "one GPU type or more, each once")
        for name in self.overrides:
            if name not in self.gpu_types:
                raise InputError(f"overrides.{name}", name, f"a GPU type of this cluster: {', '.join(self.gpu_types)}")
        return self

    def check_names(self, known: Mapping[str, GpuType]) -> None:
        """Check the names of GPU types, and that no node has more GPUs than its type allows.

        Raises:
            InputError: One is not in `known`, or a node is too large.
        """
        places = [(f"pools[{i}].gpu_type", pool.gpu_type) for i, pool in enumerate(self.pools)]
        for field, name in places or [(f"gpu_types[{i}]", name) for i, name in enumerate(self.gpu_types)]:
            if name not in known:
                raise InputError(field, name, f"one of the GPU types {', '.join(known)}")
        sizes = [(f"pools[{i}].gpus_per_node", p.gpu_type, p.gpus_per_node) for i, p in enumerate(self.pools)]
        for field, name, gpus in sizes or [("gpus_per_node", name, self.gpus_per_node) for name in self.gpu_types]:
            most = known[name].max_gpus_per_node
            if gpus is not None and gpus > most:
                allowed = (
                    f"at most {most}, the maximum of {name}; larger nodes are a type of their own: [[gpu_types]] with "
                    f'name = "{name}-{gpus}", like = "{name}", gpus_per_node = {gpus}'
                )
                raise InputError(field, gpus, allowed)
