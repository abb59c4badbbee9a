"""A node of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.model import checks


@dataclass(frozen=True, slots=True)
class Node:
    """A node n ∈ N: some GPUs of one type.

    Args:
        gpu_type: Name of the node's GPU type.
        gpus: Number of GPUs in the node, ≥ 1.

    Raises:
        InputError: `gpus` is not a whole number ≥ 1.
    """

    gpu_type: str
    gpus: int

    def __post_init__(self) -> None:
        checks.whole("node.gpus", self.gpus)
