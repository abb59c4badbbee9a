"""The configurations that a cluster offers where nobody says which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.model.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.model.gpu_type import GpuType
    from gpusched_env.model.node import Node


def single_node_configurations(gpu_types: Sequence[GpuType], nodes: Sequence[Node]) -> tuple[Configuration, ...]:
    """List every number of GPUs of every type that the largest node of that type can hold."""
    largest = {v.name: max((n.gpus for n in nodes if n.gpu_type == v.name), default=0) for v in gpu_types}
    return tuple(Configuration(v.name, g) for v in gpu_types for g in range(1, largest[v.name] + 1))
