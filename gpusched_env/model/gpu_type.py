"""A type of GPU, and of the node that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_GPUS = 1024


@dataclass(frozen=True, slots=True)
class GpuType:
    """A GPU type v ∈ V; all nodes with this type draw the same power.

    A node with G = `max_gpus_per_node` GPUs, u ≥ 1 of them busy, draws base + u · busy + (G - u) · idle; or what
    `node_power_w` says, where there is such a table. A node with no busy GPU is switched off.

    Args:
        name: Unique name, such as "V100".
        gpu_power_w: Power of one busy GPU [W], > 0.
        node_base_power_w: Power of a switched-on node beside its GPUs [W], ≥ 0.
        memory_gib: Memory of one GPU [GiB], > 0.
        max_gpus_per_node: Most GPUs that a node of this type may have, 1 to 1024.
        idle_gpu_power_w: Power of an idle GPU of a switched-on node [W], ≥ 0; if above 0, nodes of this type have
            `max_gpus_per_node` GPUs.
        node_power_w: Power of a node with 1, 2, ... busy GPUs [W], `max_gpus_per_node` numbers > 0; in place of the
            other powers. Of these `gpu_power_w` still counts where GPUs draw power by their duty (`Duty`): a GPU that
            is held and does nothing draws `gpu_power_w` - `idle_power_w` less than the table says.

    Raises:
        InputError: A value is out of its range.
    """

    name: str
    gpu_power_w: float
    node_base_power_w: float
    memory_gib: float
    max_gpus_per_node: int = 8
    idle_gpu_power_w: float = 0.0
    node_power_w: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("gpu_type.name", self.name, "a text that is not empty")
        where = f"gpu_types.{self.name}"
        checks.positive(f"{where}.gpu_power_w", self.gpu_power_w)
        checks.not_negative(f"{where}.node_base_power_w", self.node_base_power_w)
        checks.positive(f"{where}.memory_gib", self.memory_gib)
        if checks.whole(f"{where}.max_gpus_per_node", self.max_gpus_per_node) > MOST_GPUS:
            raise InputError(f"{where}.max_gpus_per_node", self.max_gpus_per_node, f"a whole number <= {MOST_GPUS}")
        checks.not_negative(f"{where}.idle_gpu_power_w", self.idle_gpu_power_w)
        if self.node_power_w is not None:
            object.__setattr__(self, "node_power_w", self._checked_table(f"{where}.node_power_w"))

    @classmethod
    def of_table(cls, name: str, node_power_w: Sequence[float], memory_gib: float) -> GpuType:
        """Make a type from the power of its node with 1, 2, ... busy GPUs [W].

        Raises:
            InputError: There is no number, or a value is out of its range.
        """
        table = tuple(node_power_w)
        if not table:
            raise InputError(f"gpu_types.{name}.node_power_w", [], "one number > 0 for each number of busy GPUs")
        each = checks.positive(f"gpu_types.{name}.node_power_w[{len(table) - 1}]", table[-1]) / len(table)
        return cls(name, each, 0.0, memory_gib, len(table), node_power_w=table)

    def power_w(self, busy: int) -> float:
        """Give what a node draws while `busy` ≥ 1 of its GPUs are busy [W]."""
        if self.node_power_w is not None:
            return self.node_power_w[busy - 1]
        idle = max(self.max_gpus_per_node - busy, 0) * self.idle_gpu_power_w
        return self.node_base_power_w + idle + self.gpu_power_w * busy

    def _checked_table(self, field: str) -> tuple[float, ...]:
        table = tuple(self.node_power_w or ())
        if len(table) != self.max_gpus_per_node:
            raise InputError(field, list(table), f"{self.max_gpus_per_node} numbers, one for each number of busy GPUs")
        return tuple(checks.positive(f"{field}[{i}]", watts) for i, watts in enumerate(table))
