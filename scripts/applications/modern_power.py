"""Power of nodes of today's GPUs: MLPerf's readings of whole nodes, and TU Berlin's of boards and a server."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from applications.measurements import read_csv

if TYPE_CHECKING:
    from pathlib import Path

RUNS = "mlperf_training/power_runs.csv"
WHOLE_FILES = "mlperf_training/power_distribution.csv"
BOARDS = "gpu_power_benchmark/training_power.csv"
IMMERSED, AIR, B200_NODE = "smc-ac-power", "Dell", "Lenovo"
BUSY_PERCENT = 95.0
B200_IDLE_W = (2719.0, 2969.0)
AIR_IDLE_W = 2502.0
"""Least power in node files of rounds 5.0 (Lenovo) and 4.1 (Dell), read by us; the files are not beside the project."""
IDLE_SHARE = 0.15
"""Power of an idle GPU over its TDP: that of the A100, measured by Acme."""
GPUS = 8


@dataclass(frozen=True, slots=True)
class NodePower:
    """What a node draws.

    Args:
        idle_gpu_w: An idle GPU [W].
        busy_gpu_w: What the node draws for a busy GPU in place of an empty slot [W].
        base_w: The node without its GPUs [W].
        source: How these were found.
    """

    idle_gpu_w: float
    busy_gpu_w: float
    base_w: float
    source: str

    @classmethod
    def of_node(cls, tdp_w: float, idle_w: float, full_w: float, source: str) -> NodePower:
        """Divide what a node of eight draws idle and full: an idle GPU draws 15 % of its TDP, as the A100 does."""
        idle_gpu_w = IDLE_SHARE * tdp_w
        base_w = idle_w - GPUS * idle_gpu_w
        share = f"idle GPU assumed: {IDLE_SHARE} x {tdp_w:.0f} W TDP, the measured share of A100"
        return cls(idle_gpu_w, (full_w - base_w) / GPUS, base_w, f"{source}; {share}")


def node_means_w(data: Path, submitter: str) -> dict[tuple[str, int], float]:
    """Return the mean power of a node over a submitter's runs [W], by (benchmark, nodes)."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in read_csv(data / RUNS):
        if row["submitter"] == submitter and row["status"] == "success":
            found.setdefault((row["benchmark"], int(row["nodes"])), []).append(float(row["mean_w_per_node"]))
    return {key: fmean(values) for key, values in found.items()}


def immersed_idle_w(data: Path) -> tuple[float, float]:
    """Return the least powers of waiting H100 nodes [W]: of the runs on one node and on nine."""
    rows = {(r["meter"], r["benchmark"], r["system"][0]): r for r in read_csv(data / WHOLE_FILES)}
    one, nine = (float(rows["ac", "unet3d", nodes]["p05_w_lowest"]) for nodes in "19")
    return nine, one


def board_w(data: Path, gpu: str) -> tuple[float, float]:
    """Return what a board draws idle and busy, the median of rows above 95 % utilisation [W]."""
    rows = [row for row in read_csv(data / BOARDS) if row["gpu"] == gpu]
    idle = next(float(row["board_w"]) for row in rows if row["model"] == "baseline")
    busy = [row for row in rows if row["model"] != "baseline" and _utilisation(row) > BUSY_PERCENT]
    return idle, median(float(row["board_w"]) for row in busy)


def server_per_watt(data: Path) -> float:
    """Return by how much the server of an L40 draws more for each watt that the board draws above idle."""
    rows = [row for row in read_csv(data / BOARDS) if row["gpu"] == "L40"]
    idle = next(float(row["server_meter_w"]) for row in rows if row["model"] == "baseline")
    busy = median(
        float(r["server_meter_w"]) for r in rows if r["model"] != "baseline" and _utilisation(r) > BUSY_PERCENT
    )
    idle_board, busy_board = board_w(data, "L40")
    return (busy - idle) / (busy_board - idle_board) - 1.0


def _utilisation(row: dict[str, str]) -> float:
    return float(row["gpu_utilization_pct"] or 0.0)


def node_powers(data: Path) -> dict[str, NodePower]:
    """Return the power of nodes whose figures are whole nodes': H100 immersed and in air, H200, B200 and GB200.

    Full is the benchmark with the greatest power on one node: others draw less, since their GPUs wait in part.

    Args:
        data: Folder of the public measurements.
    """
    one = {name: w for (name, nodes), w in node_means_w(data, IMMERSED).items() if nodes == 1}
    full, idle = max(one.values()), fmean(immersed_idle_w(data))
    fans = node_means_w(data, AIR)["llama2_70b_lora", 8] - node_means_w(data, IMMERSED)["llama2_70b_lora", 8]
    b200 = max(node_means_w(data, B200_NODE).values())
    said = f"{RUNS} and {WHOLE_FILES}, MLPerf 4.0, Sustainable Metal Cloud (immersed, AC)"
    h100 = NodePower.of_node(700.0, idle, full, f"node measured: {idle:.0f} W idle, {full:.0f} W full (UNet3D): {said}")
    air = NodePower.of_node(
        700.0,
        AIR_IDLE_W,
        full + fans,
        f"node measured: {AIR_IDLE_W:.0f} W idle; full: that of the immersed node and {fans:.0f} W of fans, by which "
        f"nodes in air draw more on Llama-2 LoRA on 8 nodes: {RUNS}, MLPerf 4.1, Dell (+-6 %)",
    )
    water = NodePower.of_node(
        1000.0,
        fmean(B200_IDLE_W),
        b200,
        f"node measured: {fmean(B200_IDLE_W):.0f} W idle, {b200:.0f} W full (Stable Diffusion): {RUNS}, MLPerf 5.0, "
        "Lenovo (water, +-6 %)",
    )
    larger = 1200.0 / 1000.0
    grace = NodePower(
        IDLE_SHARE * 1200.0,
        water.busy_gpu_w * larger,
        water.base_w * larger * 4 / GPUS,
        "assumed: B200's figures for each GPU x 1200 / 1000, the ratio of TDPs; no node was measured",
    )
    return {
        "H100": h100,
        "H200": NodePower(h100.idle_gpu_w, h100.busy_gpu_w, h100.base_w, f"assumed to be H100's: {h100.source}"),
        "H100-air": air,
        "B200": water,
        "GB200": grace,
    }


@dataclass(frozen=True, slots=True)
class Board:
    """What a board draws, and the rest of its server for each watt above idle."""

    idle_w: float
    busy_w: float
    server_per_watt: float
    source: str


def boards(data: Path) -> dict[str, Board]:
    """Return L40 and L4, measured, and L40S and A30 after them, in servers whose rest hardly follows the load.

    Args:
        data: Folder of the public measurements.
    """
    rest = server_per_watt(data)
    (l40_idle, l40), (l4_idle, l4) = board_w(data, "L40"), board_w(data, "L4")
    how = f"rest of the server rises by {rest:.3f} W a watt"
    measured, assumed = f"{how}, measured: {BOARDS} L40", f"{how}, assumed to be L40's: {BOARDS}"
    board = f"board measured: {BOARDS} median above {BUSY_PERCENT:.0f} % utilisation"
    ada = l4 / 72.0
    return {
        "L40": Board(l40_idle, l40, rest, f"{board}; {measured}"),
        "L4": Board(l4_idle, l4, rest, f"{board}; {assumed}"),
        "L40S": Board(
            l40_idle,
            350.0 * ada,
            rest,
            f"board assumed: TDP (350 W) x {ada:.3f}, as L4 draws of its TDP; idle assumed to be L40's; {assumed}",
        ),
        "A30": Board(
            IDLE_SHARE * 165.0,
            0.779 * 165.0,
            rest,
            f"board assumed: TDP (165 W) x 0.779, the mean power/TDP of the four boards of zeus; idle assumed: "
            f"{IDLE_SHARE} x TDP; {assumed}",
        ),
    }
