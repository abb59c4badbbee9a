"""The `[[gpu_types]]` of a scenario: hardware of your own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model.gpu_type import MOST_GPUS, GpuType
from gpusched_env.workload.scenario.settings import NotNegative, Positive, Settings, as_tuple, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

Powers = Annotated[tuple[Positive, ...], BeforeValidator(as_tuple)]

FIGURES = ("gpu_power_w", "node_base_power_w", "idle_gpu_power_w", "memory_gib")
USUAL_GPUS_PER_NODE = 8


class OwnGpuType(Settings):
    """A GPU type of your own; one with the name of a built-in type replaces it.

    What a node costs is told in one of three ways: by powers of a GPU and of the node, by the power of the node with 1,
    2, ... busy GPUs, or by what such a node costs. Beside the power of the node that of a busy GPU may be told: a GPU
    that is shared by duty spares a part of it.
    """

    name: str = Field(description="Name, such as B200.")
    like: str | None = Field(
        default=None, description="Built-in type whose figures, and times of applications, it has where none are given."
    )
    speed: Positive = Field(default=1.0, description="Speed in units of `like`: its times are divided by this.")
    memory_gib: Positive | None = Field(default=None, description="Memory of one GPU [GiB].")
    gpus_per_node: Annotated[int, whole(1, MOST_GPUS)] | None = Field(
        default=None, description="Most GPUs of a node. By default those of `like`, of the list of powers, or 8."
    )
    gpu_power_w: Positive | None = Field(default=None, description="Power of one busy GPU [W].")
    node_base_power_w: NotNegative | None = Field(
        default=None, description="Power of a switched-on node beside its GPUs [W]."
    )
    idle_gpu_power_w: NotNegative | None = Field(
        default=None, description="Power of an idle GPU of a switched-on node [W]."
    )
    node_power_w: Powers | None = Field(default=None, description="Power of a node with 1, 2, ... busy GPUs [W].")
    node_eur_per_h: Powers | None = Field(
        default=None, description="Or what such a node costs [€/h], whatever energy costs."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name:
            raise InputError("name", self.name, "a text that is not empty")
        if self.like is None and self.speed != 1.0:
            raise InputError("speed", self.speed, "1 without `like`, the type that it is a factor on")
        if self.like == self.name:
            raise InputError("like", self.like, "another type; cluster.overrides changes figures of a built-in one")
        if self.like is None and self.memory_gib is None:
            raise InputError("memory_gib", None, "a number > 0, or `like`, a built-in type to take it from")
        given = [name for name in ("node_power_w", "node_eur_per_h") if getattr(self, name) is not None]
        own = FIGURES[1:3] if self.node_power_w is not None else FIGURES[:3]
        powers = [name for name in own if getattr(self, name) is not None]
        if len(given) + bool(powers) > 1:
            ways = "gpu_power_w, node_base_power_w and idle_gpu_power_w; node_power_w; or node_eur_per_h"
            raise InputError(given[-1], list(getattr(self, given[-1])), f"only one way to tell costs: {ways}")
        if not given and self.gpu_power_w is None and self.like is None:
            raise InputError("gpu_power_w", None, "a number > 0; or node_power_w, node_eur_per_h, or `like`")
        for name in given:
            values = getattr(self, name)
            if not values or (self.gpus_per_node is not None and len(values) != self.gpus_per_node):
                number = self.gpus_per_node or "1 or more"
                raise InputError(name, list(values), f"{number} numbers > 0, one for each number of busy GPUs")
        return self

    def gpu_type(self, known: Mapping[str, GpuType], eur_per_kwh: float) -> GpuType:
        """Make the model's value.

        Args:
            known: The built-in types, by name.
            eur_per_kwh: Energy price · PUE, which turns €/h to W.

        Raises:
            InputError: `like` is no built-in type, or costs are given while energy costs nothing.
        """
        base = self._like(known)
        table = self._table(eur_per_kwh)
        if table is not None:
            made = GpuType.of_table(self.name, table, self.memory_gib or (base.memory_gib if base else 1.0))
            return made if self.gpu_power_w is None else replace(made, gpu_power_w=self.gpu_power_w)
        figures = {name: value for name in FIGURES if (value := getattr(self, name)) is not None}
        gpus = self.gpus_per_node or (base.max_gpus_per_node if base else USUAL_GPUS_PER_NODE)
        if base is not None:
            return replace(of_size(base, gpus), name=self.name, **figures)
        made = GpuType(self.name, figures.pop("gpu_power_w"), figures.pop("node_base_power_w", 0.0), 1.0, gpus)
        return replace(made, **figures)

    def _like(self, known: Mapping[str, GpuType]) -> GpuType | None:
        if self.like is not None and self.like not in known:
            raise InputError("like", self.like, f"one of the built-in GPU types {', '.join(known)}")
        return None if self.like is None else known[self.like]

    def _table(self, eur_per_kwh: float) -> tuple[float, ...] | None:
        if self.node_eur_per_h is None:
            return self.node_power_w
        if eur_per_kwh <= 0.0:
            raise InputError("node_eur_per_h", list(self.node_eur_per_h), "nothing while energy costs nothing")
        return tuple(cost / eur_per_kwh * 1000.0 for cost in self.node_eur_per_h)


def of_size(gpu_type: GpuType, gpus: int) -> GpuType:
    """Give the type of nodes with so many GPUs; a table of powers ends there."""
    table = gpu_type.node_power_w
    if table is not None and gpus > len(table):
        raise InputError("gpus_per_node", gpus, f"at most {len(table)}, for which {gpu_type.name} has powers")
    return replace(gpu_type, max_gpus_per_node=gpus, node_power_w=None if table is None else table[:gpus])
