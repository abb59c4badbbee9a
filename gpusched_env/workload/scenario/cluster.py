"""The `cluster` section of a scenario, and `[[gpu_types]]` of your own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model.configuration import MOST_ON_A_NODE, GpuType
from gpusched_env.workload.scenario.settings import (
    Count,
    Limit,
    Many,
    NotNegative,
    Positive,
    Settings,
    as_tables,
    as_tuple,
    setting,
    whole,
)

MOST_NODES = 100_000
"""Most nodes of a cluster: more than any real one has, and few enough to be made quickly."""


class GpuTypeOverride(Settings):
    """Figures of one GPU type that replace the built-in ones."""

    gpu_power_w: Positive | None = setting(None, "Power of one busy GPU [W].")
    node_base_power_w: NotNegative | None = setting(None, "Power of a switched-on node beside its busy GPUs [W].")
    idle_gpu_power_w: NotNegative | None = setting(None, "Power of an idle GPU of a switched-on node [W].")
    memory_gib: Positive | None = setting(None, "Memory of one GPU [GiB].")
    power_limits: Many[Limit] | None = setting(None, "Power limits on offer, in place of jobs.power_limits.")


class Pool(Settings):
    """Nodes of one kind, in `[[cluster.pools]]`."""

    gpu_type: str = Field(description="GPU type, built-in or one of gpu_types.")
    nodes: Annotated[int, whole(1, MOST_NODES)] = Field(description="Number of nodes.")
    gpus_per_node: Count | None = setting(None, "GPUs of each; by default the most of the GPU type.")


class Cluster(Settings):
    """The nodes: those of the `pools`, or else node i has the GPU type i mod the number of types."""

    pools: Annotated[tuple[Pool, ...], BeforeValidator(as_tables(Pool))] = setting(
        (), "Pools of nodes, in place of nodes, gpu_types and gpus_per_node."
    )
    nodes: Annotated[int, whole(1, MOST_NODES)] = setting(10, "Number of nodes.")
    gpu_types: Many[str] = setting(("V100", "A100", "T4"), "GPU types; node i has the type i mod their number.")
    gpus_per_node: Count | None = setting(None, "GPUs of every node; by default the maximum of its GPU type.")
    nodes_per_rack: Count = setting(
        1, "Nodes of a rack, one type's one after the other: tenants' cells may be racks; the rest are alone."
    )
    node_base_power_w: NotNegative | None = setting(
        None, "Power of every switched-on node beside its GPUs [W]; by default the figure of its GPU type."
    )
    overrides: dict[str, GpuTypeOverride] = Field(
        default_factory=dict, description="Your own figures, by GPU type; they take precedence over node_base_power_w."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_pools(cls, values: Any) -> Any:
        """Fill `nodes` and `gpu_types` from the pools, so that both forms read alike; refuse contradictions."""
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


Powers = Many[Positive]

_PROFILE = re.compile(r"(?<!\d)([1-7])g\.(\d+)gb$", re.IGNORECASE)
"""The end of a name of MIG: how many of the GPU's parts, and its memory [GiB]."""
FIGURES = ("gpu_power_w", "node_base_power_w", "idle_gpu_power_w", "memory_gib")
USUAL_GPUS_PER_NODE = 8


def of_size(gpu_type: GpuType, gpus: int) -> GpuType:
    """Return the type of nodes with so many GPUs; a table of powers ends there."""
    table = gpu_type.node_power_w
    if table is not None and gpus > len(table):
        raise InputError("gpus_per_node", gpus, f"at most {len(table)}, for which {gpu_type.name} has powers")
    return replace(gpu_type, max_gpus_per_node=gpus, node_power_w=None if table is None else table[:gpus])


class OwnGpuType(Settings):
    """A GPU type of your own; one with the name of a built-in type replaces it.

    The cost of a node is given in one of three ways: by powers of a GPU and of the node, by the power of the node with
        1,
    2, ... busy GPUs, or by the cost of such a node. With the power of the node, that of a busy GPU may be given: a GPU
    that is shared by utilisation saves a part of it while idle.
    """

    name: str = Field(description="Name, such as B200.")
    like: str | None = setting(
        None, "Built-in type whose figures, and times of applications, it has where none are given."
    )
    part_of: str | None = setting(
        None,
        "Or built-in type of which it is a part, as of MIG: a job has one part, with that of speed and power.",
    )
    part: Limit | None = setting(
        None,
        "How large a part. By default n sevenths for a name that ends with ng.mgb (A30: fourths).",
    )
    speed: Positive | None = setting(
        None, "Speed in units of `like` or `part_of`: its times are divided by this. By default 1, or `part`."
    )
    memory_gib: Positive | None = setting(None, "Memory of one GPU [GiB].")
    gpus_per_node: Annotated[int, whole(1, MOST_ON_A_NODE)] | None = setting(
        None, "Most GPUs of a node. By default those of `like`, of the list of powers, or 8."
    )
    gpu_power_w: Positive | None = setting(None, "Power of one busy GPU [W].")
    node_base_power_w: NotNegative | None = setting(None, "Power of a switched-on node beside its GPUs [W].")
    idle_gpu_power_w: NotNegative | None = setting(None, "Power of an idle GPU of a switched-on node [W].")
    node_power_w: Powers | None = setting(None, "Power of a node with 1, 2, ... busy GPUs [W].")
    node_eur_per_h: Powers | None = setting(None, "Or what such a node costs [€/h], whatever energy costs.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name:
            raise InputError("name", self.name, "a text that is not empty")
        self._check_part()
        if self.source is None and self.speed not in {None, 1.0}:
            raise InputError("speed", self.speed, "1 without `like`, the type that it is a factor on")
        if self.like == self.name:
            raise InputError("like", self.like, "another type; cluster.overrides changes figures of a built-in one")
        if self.source is None and self.memory_gib is None:
            raise InputError("memory_gib", None, "a number > 0, or `like`, a built-in type to take it from")
        given = [name for name in ("node_power_w", "node_eur_per_h") if getattr(self, name) is not None]
        own = FIGURES[1:3] if self.node_power_w is not None else FIGURES[:3]
        powers = [name for name in own if getattr(self, name) is not None]
        if len(given) + bool(powers) > 1:
            ways = "gpu_power_w, node_base_power_w and idle_gpu_power_w; node_power_w; or node_eur_per_h"
            raise InputError(given[-1], list(getattr(self, given[-1])), f"only one way to tell costs: {ways}")
        if not given and self.gpu_power_w is None and self.source is None:
            raise InputError("gpu_power_w", None, "a number > 0; or node_power_w, node_eur_per_h, or `like`")
        for name in given:
            values = getattr(self, name)
            if not values or (self.gpus_per_node is not None and len(values) != self.gpus_per_node):
                number = self.gpus_per_node or "1 or more"
                raise InputError(name, list(values), f"{number} numbers > 0, one for each number of busy GPUs")
        return self

    def _check_part(self) -> None:
        own_power = (self.gpu_power_w, self.node_power_w, self.node_eur_per_h) != (None, None, None)
        if self.part_of is None and self.part is not None:
            raise InputError("part", self.part, "nothing without part_of, the type that it is a part of")
        if self.part_of is not None and self.like is not None:
            raise InputError("part_of", self.part_of, "nothing beside `like`: it is a part of a GPU, or a whole one")
        if self.part_of is not None and self.size is None:
            raise InputError("part", None, "a number > 0 and <= 1 with part_of, or a name that ends with ng.mgb")
        if self.like is not None and _PROFILE.search(self.name) and not own_power:
            allowed = f'part_of = "{self.like}" for a part of a GPU: `like` has the power of a whole one'
            raise InputError("like", self.like, allowed)

    @property
    def source(self) -> str | None:
        """Return the built-in type of which it has figures and times, if any."""
        return self.like or self.part_of

    @property
    def size(self) -> float | None:
        """Return how large a part of a GPU it is; None if nothing says so."""
        profile = _PROFILE.search(self.name)
        named = min(1.0, int(profile[1]) / (4 if self.part_of == "A30" else 7)) if profile else None
        return named if self.part is None else self.part

    @property
    def factor(self) -> float:
        """Return by what its times are divided."""
        return self.speed or (self.size if self.part_of and self.size else 1.0)

    def _part(self, base: GpuType) -> GpuType:
        """Return the type of a part: the parts of a GPU draw its idle power together, and each its part beyond."""
        if base.node_power_w is not None or self.size is None:
            raise InputError("part_of", self.part_of, "a type with the power of a busy and an idle GPU")
        parts, profile = int(1.0 / self.size + 1e-9), _PROFILE.search(self.name)
        idle_w = base.idle_gpu_power_w / parts
        return replace(
            base,
            gpu_power_w=idle_w + self.size * (base.gpu_power_w - base.idle_gpu_power_w),
            idle_gpu_power_w=idle_w,
            memory_gib=float(profile[2]) if profile else base.memory_gib * self.size,
            max_gpus_per_node=parts * base.max_gpus_per_node,
        )

    def gpu_type(self, known: Mapping[str, GpuType], eur_per_kwh: float) -> GpuType:
        """Make the model's value.

        Args:
            known: The built-in types, by name.
            eur_per_kwh: Energy price · PUE, which turns €/h to W.

        Raises:
            InputError: `like` or `part_of` is no built-in type, or costs are given while energy costs nothing.
        """
        if self.source is not None and self.source not in known:
            field = "part_of" if self.like is None else "like"
            raise InputError(field, self.source, f"one of the built-in GPU types {', '.join(known)}")
        base = None if self.source is None else known[self.source]
        base = self._part(base) if self.part_of is not None and base is not None else base
        table = self.node_power_w
        if self.node_eur_per_h is not None:
            if eur_per_kwh <= 0.0:
                raise InputError("node_eur_per_h", list(self.node_eur_per_h), "nothing while energy costs nothing")
            table = tuple(cost / eur_per_kwh * 1000.0 for cost in self.node_eur_per_h)
        if table is not None:
            made = GpuType.of_table(self.name, table, self.memory_gib or (base.memory_gib if base else 1.0))
            return made if self.gpu_power_w is None else replace(made, gpu_power_w=self.gpu_power_w)
        figures = {name: value for name in FIGURES if (value := getattr(self, name)) is not None}
        gpus = self.gpus_per_node or (base.max_gpus_per_node if base else USUAL_GPUS_PER_NODE)
        if base is not None:
            return replace(of_size(base, gpus), name=self.name, **figures)
        made = GpuType(self.name, figures.pop("gpu_power_w"), figures.pop("node_base_power_w", 0.0), 1.0, gpus)
        return replace(made, **figures)
