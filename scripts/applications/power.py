"""Power and memory of the GPU types and their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.factors import ZEUS_WORKLOADS
from applications.measurements import at_highest_limit

if TYPE_CHECKING:
    from pathlib import Path

GPUS_PER_NODE = {"K80": 8, "P100": 8, "V100": 8, "T4": 4, "A100": 8}
"""T4: the measured nodes carry four, so every T4 figure above four GPUs is one over two nodes."""
MEMORY_GIB = {"K80": 12, "P100": 16, "V100": 16, "T4": 16, "A100": 40}
ZEUS_BOARDS = {"v100": 250.0, "p100": 250.0, "a40": 300.0, "rtx6000": 260.0}
"""Highest power limit [W] of the boards that Zeus measured, which is also their TDP."""
TDP_W = {"K80": (150.0, "300 W a board of two chips"), "T4": (70.0, "70 W"), "A100": (400.0, "400 W, SXM4")}
LOAD_FACTOR = 0.25
"""Share of the allowance beside the GPUs that a training node is assumed to draw: maxima size the power supplies."""

PCIE = "two server CPUs of 135 W, memory 120 W, fans 150 W, drives, network and board 160 W"
BASE_ALLOWANCE_W = {
    "K80": (700.0, f"PCIe server, allowance {PCIE}"),
    "P100": (700.0, f"PCIe server, allowance {PCIE}"),
    "V100": (3500.0 - 8 * 300.0, "DGX-1 data sheet: 3500 W system maximum less 8 x 300 W"),
    "T4": (500.0, "PCIe server of 4 GPUs, allowance two CPUs of 125 W, memory 90 W, fans 60 W, the rest 100 W"),
    "A100": (6500.0 - 8 * 400.0, "DGX A100 data sheet: 6500 W system maximum less 8 x 400 W"),
}


@dataclass(frozen=True, slots=True)
class GpuTypeRow:
    """One line of `gpu_types.csv`."""

    name: str
    gpu_power_w: float
    node_base_power_w: float
    memory_gib: int
    max_gpus_per_node: int
    source: str


def gpu_type_rows(data: Path) -> list[GpuTypeRow]:
    """Return the five GPU types.

    Args:
        data: Folder of the public measurements.
    """
    busy = {board: busy_power_w(data, board) for board in ZEUS_BOARDS}
    ratio = sum(busy[board] / limit for board, limit in ZEUS_BOARDS.items()) / len(ZEUS_BOARDS)
    return [_row(name, busy, ratio) for name in GPUS_PER_NODE]


def busy_power_w(data: Path, board: str) -> float:
    """Return the mean board power [W] at the highest limit: per workload, the row with the shortest epoch.

    The workloads are those of Zeus less movielens-1m/ncf, on which the GPU waits for the host.
    """
    rows = at_highest_limit(data, board)
    powers = []
    for workload in ZEUS_WORKLOADS:
        of_workload = [row for row in rows if (row["dataset"], row["network"]) == workload]
        fastest = min(of_workload, key=lambda row: float(row["time_per_epoch"]))
        powers.append(float(fastest["average_power"]))
    return sum(powers) / len(powers)


def _row(name: str, busy: dict[str, float], ratio: float) -> GpuTypeRow:
    if name.lower() in busy:
        board = name.lower()
        power = busy[board]
        how = (
            f"GPU power measured: zeus/summary_power_{board}.csv average_power, mean over five workloads (without ncf) "
            f"of the row with the shortest epoch at the {ZEUS_BOARDS[board]:.0f} W limit"
        )
    else:
        tdp, text = TDP_W[name]
        power = tdp * ratio
        how = f"GPU power assumed: TDP ({text}) x {ratio:.3f}, the mean power/TDP of the four boards of zeus"
    allowance, text = BASE_ALLOWANCE_W[name]
    base = f"node base power assumed: {LOAD_FACTOR} x {allowance:.0f} W ({text})"
    source = f"{how}; {base}; memory and GPUs per node: data sheets and the measured servers; override any of them"
    return GpuTypeRow(name, power, LOAD_FACTOR * allowance, MEMORY_GIB[name], GPUS_PER_NODE[name], source)
