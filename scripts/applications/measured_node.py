"""Power of a whole node with idle and with busy GPUs, from Acme's servers of eight A100."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from applications.measurements import read_csv

if TYPE_CHECKING:
    from pathlib import Path

FILE = "acme_power/power_quantiles.csv"
GPUS = 8
QUIET, LOADED = 0.01, 0.90
"""Quantiles at which servers and GPUs are the same moments as nearly as the file allows: all idle, and all busy."""


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """What was measured on a node of eight A100.

    The quantiles are those of different populations, so only the two ends are compared: in between, a server has some
    busy GPUs, and a GPU is idle or not.

    Args:
        quiet_w: Power of a server whose GPUs are idle [W].
        loaded_w: Power of a server whose GPUs are busy [W].
        idle_gpu_w: Power of one of the idle GPUs [W].
        busy_gpu_w: Power of one of the busy GPUs [W].
    """

    quiet_w: float
    loaded_w: float
    idle_gpu_w: float
    busy_gpu_w: float

    @classmethod
    def read(cls, data: Path) -> Self:
        """Read the two ends from the quantiles of Seren's servers and GPUs."""
        rows = read_csv(data / FILE)
        quiet, loaded = (min(rows, key=lambda row: abs(float(row["quantile"]) - q)) for q in (QUIET, LOADED))
        server, gpu = "seren_gpu_server_power_w", "seren_gpu_power_w"
        return cls(float(quiet[server]), float(loaded[server]), float(quiet[gpu]), float(loaded[gpu]))

    @property
    def base_w(self) -> float:
        """Return the power beside the GPUs while all are idle [W]."""
        return self.quiet_w - GPUS * self.idle_gpu_w

    @property
    def load_factor(self) -> float:
        """Return by how much the node's power rises with each watt that its GPUs draw above idle: > 1."""
        return (self.loaded_w - self.quiet_w) / (GPUS * (self.busy_gpu_w - self.idle_gpu_w))
