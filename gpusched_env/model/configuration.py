"""What a job can be given: a configuration of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpusched_env.errors import InputError
from gpusched_env.model import checks

MOST_GPUS = 2**22
"""GPUs that a configuration may have in all: more than any cluster, and few enough to be counted in 64 bits."""

MOST_PRIORITIES = 10
"""Priorities that shares may have, from 0 on."""

_MARKS = ("", "!", *(f"!{priority}" for priority in range(2, MOST_PRIORITIES)))

Kind = Literal["single-node", "multi-node", "shared"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration c ∈ C: GPU type, GPUs per node, nodes, share of a GPU, and priority there.

    Three kinds: *single-node* (`nodes` = 1, `share` = 1), *multi-node* (`nodes` ≥ 2 whole nodes, exclusive) and
    *shared* (one GPU, `share` < 1: a fraction of it beside other small jobs).

    Args:
        gpu_type: Name of the GPU type.
        gpus_per_node: GPUs held on each node, ≥ 1.
        nodes: Number of nodes, ≥ 1.
        share: Share of the GPU, in (0, 1]; below 1 only with one GPU on one node.
        priority: Who comes first on a shared GPU, from 0 to 9: jobs with a share of higher priority are hosts to the
            others, their guests (`Duty`). 0 unless it is a share.

    Raises:
        InputError: A value is out of its range, or the combination is none of the three kinds.
    """

    gpu_type: str
    gpus_per_node: int
    nodes: int = 1
    share: float = 1.0
    priority: int = 0

    def __post_init__(self) -> None:
        checks.whole("configuration.gpus_per_node", self.gpus_per_node)
        checks.whole("configuration.nodes", self.nodes)
        if self.gpus_per_node * self.nodes > MOST_GPUS:
            raise InputError("configuration.nodes", self.nodes, f"at most {MOST_GPUS:,} GPUs in all")
        if not 0.0 < self.share <= 1.0:
            raise InputError("configuration.share", self.share, "a number in (0, 1]")
        if self.share < 1.0 and (self.gpus_per_node, self.nodes) != (1, 1):
            raise InputError("configuration.share", self.share, "1, unless the configuration is one GPU on one node")
        most = MOST_PRIORITIES - 1 if self.share < 1.0 else 0
        if checks.whole("configuration.priority", self.priority, 0) > most:
            raise InputError("configuration.priority", self.priority, f"at most {most}; 0 unless it is a share")

    @property
    def kind(self) -> Kind:
        """Say which of the three kinds this is."""
        if self.nodes > 1:
            return "multi-node"
        return "shared" if self.share < 1.0 else "single-node"

    @property
    def gpus(self) -> float:
        """Count the GPUs held in all: GPUs per node · nodes · share."""
        return self.gpus_per_node * self.nodes * self.share

    @property
    def name(self) -> str:
        """Name the configuration shortly: `V100x4`, `2*V100x8`, `V100x0.25`; `V100x0.6!` has priority 1, `!2` has 2."""
        if self.kind == "shared":
            return f"{self.gpu_type}x{self.share:g}{_MARKS[self.priority]}"
        prefix = f"{self.nodes}*" if self.nodes > 1 else ""
        return f"{prefix}{self.gpu_type}x{self.gpus_per_node}"
