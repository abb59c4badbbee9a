"""Other hardware: a GPU type that is slower, and nodes that draw more beside their GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_reproductions.published.changes.times import with_times

if TYPE_CHECKING:
    from gpusched_env.model import Instance


@dataclass(frozen=True, slots=True)
class Slower:
    """Let everything take `factor` times as long on one GPU type; due dates keep their place (`with_times`).

    Args:
        gpu_type: Name of the type.
        factor: Factor on its times, > 0.

    Raises:
        InputError: The factor is out of its range; or, when it is applied, the instance has no such type.
    """

    gpu_type: str
    factor: float

    def __post_init__(self) -> None:
        checks.positive("factor", self.factor)

    def __call__(self, instance: Instance) -> Instance:
        """Give the instance with other times and due dates."""
        names = [c.gpu_type for c in instance.configurations]
        if self.gpu_type not in names:
            raise InputError("gpu_type", self.gpu_type, f"one of {', '.join(dict.fromkeys(names))}")
        factors = np.array([self.factor if name == self.gpu_type else 1.0 for name in names])
        return with_times(instance, instance.jobs.seconds_per_epoch * factors)


@dataclass(frozen=True, slots=True)
class BasePower:
    """Let every node draw more while it is on, whatever is busy on it.

    Args:
        share: How much, in units of what the node draws with one busy GPU, ≥ 0.

    Raises:
        InputError: The share is out of its range.
    """

    share: float

    def __post_init__(self) -> None:
        checks.not_negative("share", self.share)

    def __call__(self, instance: Instance) -> Instance:
        """Give the instance with other powers."""
        types = []
        for v in instance.gpu_types:
            extra = self.share * v.power_w(1)
            powers = tuple(v.power_w(busy) + extra for busy in range(1, v.max_gpus_per_node + 1))
            types.append(replace(v, node_power_w=powers))
        return replace(instance, gpu_types=tuple(types))
