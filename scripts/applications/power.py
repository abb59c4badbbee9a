"""Power and memory of the GPU types and their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.factors import ZEUS_WORKLOADS
from applications.measured_node import FILE, GPUS, MeasuredNode
from applications.measurements import at_highest_limit
from applications.modern_power import boards, node_powers

if TYPE_CHECKING:
    from pathlib import Path

GPUS_PER_NODE = {
    "K80": 8,
    "P100": 8,
    "V100": 8,
    "T4": 4,
    "A100": 8,
    "H100": 8,
    "H200": 8,
    "A10": 4,
    "L4": 4,
    "L40S": 8,
    "H100-air": 8,
    "B200": 8,
    "GB200": 4,
    "L40": 8,
    "A30": 8,
}
"""T4: the measured nodes carry four, so every T4 figure above four GPUs is one over two nodes."""
MEMORY_GIB = {
    "K80": 12,
    "P100": 16,
    "V100": 16,
    "T4": 16,
    "A100": 40,
    "H100": 80,
    "H200": 141,
    "A10": 24,
    "L4": 24,
    "L40S": 48,
    "H100-air": 80,
    "B200": 180,
    "GB200": 186,
    "L40": 48,
    "A30": 24,
}
ZEUS_BOARDS = {"v100": 250.0, "p100": 250.0, "a40": 300.0, "rtx6000": 260.0}
"""Highest power limit [W] of the boards that Zeus measured, which is also their TDP."""
TDP_W = {
    "K80": (150.0, "300 W a board of two chips"),
    "T4": (70.0, "70 W"),
    "A100": (400.0, "400 W, SXM4"),
    "A10": (150.0, "150 W"),
}
PCIE_OF_4 = "PCIe server of 4 GPUs, allowance two CPUs of 125 W, memory 90 W, fans 60 W, the rest 100 W"
NEW_PCIE = "two server CPUs of 350 W, memory 200 W, fans 300 W, drives, network and board 200 W"
PCIE = "two server CPUs of 135 W, memory 120 W, fans 150 W, drives, network and board 160 W"
BASE_ALLOWANCE_W = {
    "K80": (700.0, f"PCIe server, allowance {PCIE}"),
    "P100": (700.0, f"PCIe server, allowance {PCIE}"),
    "V100": (3500.0 - 8 * 300.0, "DGX-1 data sheet: 3500 W system maximum less 8 x 300 W"),
    "T4": (500.0, PCIE_OF_4),
    "A100": (6500.0 - 8 * 400.0, "DGX A100 data sheet: 6500 W system maximum less 8 x 400 W"),
    "A10": (500.0, PCIE_OF_4),
    "L4": (500.0, PCIE_OF_4),
    "L40S": (1400.0, f"PCIe server, allowance {NEW_PCIE}"),
    "L40": (1400.0, f"PCIe server, allowance {NEW_PCIE}"),
    "A30": (1400.0, f"PCIe server, allowance {NEW_PCIE}"),
}
"""Greatest power beside the GPUs [W], by the vendor's maximum or as a sum of parts."""
MEASURED = "A100"
"""The type whose node was measured."""


@dataclass(frozen=True, slots=True)
class GpuTypeRow:
    """One line of `gpu_types.csv`."""

    name: str
    gpu_power_w: float
    node_base_power_w: float
    idle_gpu_power_w: float
    memory_gib: int
    max_gpus_per_node: int
    source: str


class Power:
    """What GPUs and nodes draw: measured where somebody did, else scaled from what was.

    Args:
        data: Folder of the public measurements.
    """

    def __init__(self, data: Path) -> None:
        self._busy = {board: busy_power_w(data, board) for board in ZEUS_BOARDS}
        self._ratio = sum(self._busy[board] / limit for board, limit in ZEUS_BOARDS.items()) / len(ZEUS_BOARDS)
        self._node = MeasuredNode.read(data)
        self._whole, self._boards = node_powers(data), boards(data)

    def row(self, name: str) -> GpuTypeRow:
        """Return the line of a GPU type.

        Its `gpu_power_w` is what a node draws more for a busy GPU than for an empty slot: the idle GPU, and the load
        factor times what the board draws above that, since fans, processors and power supplies follow the load.
        """
        if name in self._whole:
            node = self._whole[name]
            return self._line(name, node.busy_gpu_w, node.base_w, node.idle_gpu_w, node.source)
        if name in self._boards:
            known, (base, how_base) = self._boards[name], self._base(name)
            busy = known.idle_w + (1.0 + known.server_per_watt) * (known.busy_w - known.idle_w)
            return self._line(name, busy, base, known.idle_w, f"{known.source}; node base power {how_base}")
        (board, how), (idle, how_idle), (base, how_base) = self._board(name), self._idle(name), self._base(name)
        factor = self._node.load_factor
        busy = idle + factor * (board - idle)
        source = (
            f"busy GPU: {idle:.4g} W idle + {factor:.3f} x ({board:.4g} W - idle), factor {_of_a100(name)}: {FILE}; "
            f"board power {how}; idle GPU {how_idle}; node base power {how_base}"
        )
        return self._line(name, busy, base, idle, source)

    @staticmethod
    def _line(name: str, busy_w: float, base_w: float, idle_w: float, source: str) -> GpuTypeRow:
        source += "; memory and GPUs per node: data sheets and the measured servers; override any of them"
        return GpuTypeRow(name, busy_w, base_w, idle_w, MEMORY_GIB[name], GPUS_PER_NODE[name], source)

    def _board(self, name: str) -> tuple[float, str]:
        board = name.lower()
        if board in self._busy:
            return self._busy[board], (
                f"measured: zeus/summary_power_{board}.csv average_power, mean over five workloads (without ncf) of "
                f"the row with the shortest epoch at the {ZEUS_BOARDS[board]:.0f} W limit"
            )
        tdp, text = TDP_W[name]
        how = f"assumed: TDP ({text}) x {self._ratio:.3f}, the mean power/TDP of the four boards of zeus"
        return tdp * self._ratio, how

    def _idle(self, name: str) -> tuple[float, str]:
        idle = self._node.idle_gpu_w
        if name == MEASURED:
            return idle, f"measured: {FILE} seren_gpu_power_w at 1 %"
        share, tdp = idle / TDP_W[MEASURED][0], _tdp_w(name)
        return share * tdp, f"assumed: {share:.3f} x {tdp:.0f} W TDP, the measured share of {MEASURED}"

    def _base(self, name: str) -> tuple[float, str]:
        base = self._node.base_w
        if name == MEASURED:
            how = f"{FILE} seren_gpu_server_power_w at 1 % less {GPUS} x {self._node.idle_gpu_w:g} W"
            return base, f"measured: {how}"
        share = base / BASE_ALLOWANCE_W[MEASURED][0]
        allowance, text = BASE_ALLOWANCE_W[name]
        return share * allowance, f"assumed: {share:.3f} x {allowance:.0f} W ({text}), the measured share of {MEASURED}"


def gpu_type_rows(data: Path) -> list[GpuTypeRow]:
    """Return the GPU types.

    Args:
        data: Folder of the public measurements.
    """
    power = Power(data)
    return [power.row(name) for name in GPUS_PER_NODE]


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


def _tdp_w(name: str) -> float:
    return TDP_W[name][0] if name in TDP_W else ZEUS_BOARDS[name.lower()]


def _of_a100(name: str) -> str:
    return "measured" if name == MEASURED else f"assumed to be the measured one of {MEASURED}"
