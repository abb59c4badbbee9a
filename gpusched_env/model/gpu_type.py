"""A type of GPU, and of the node that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.model import checks

MOST_GPUS = 1024


@dataclass(frozen=True, slots=True)
class GpuType:
    """A GPU type v ∈ V; all nodes with this type draw the same power.

    Args:
        name: Unique name, such as "V100".
        gpu_power_w: Power of one busy GPU [W], > 0.
        node_base_power_w: Power of a switched-on node beside its busy GPUs [W], ≥ 0.
        memory_gib: Memory of one GPU [GiB], > 0.
        max_gpus_per_node: Most GPUs that a node of this type may have, 1 to 1024.

    Raises:
        InputError: A value is out of its range.
    """

    name: str
    gpu_power_w: float
    node_base_power_w: float
    memory_gib: float
    max_gpus_per_node: int = 8

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("gpu_type.name", self.name, "a text that is not empty")
        where = f"gpu_types.{self.name}"
        checks.positive(f"{where}.gpu_power_w", self.gpu_power_w)
        checks.not_negative(f"{where}.node_base_power_w", self.node_base_power_w)
        checks.positive(f"{where}.memory_gib", self.memory_gib)
        if checks.whole(f"{where}.max_gpus_per_node", self.max_gpus_per_node) > MOST_GPUS:
            raise InputError(f"{where}.max_gpus_per_node", self.max_gpus_per_node, f"a whole number <= {MOST_GPUS}")
