"""MLPerf Training's public runs: reading them, and how fast GPU types train beside eight H100.

Derived by us from the runs of rounds 2.1 to 5.1 (Apache-2.0); results not verified by MLCommons Association.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING

from applications.factors import geometric_mean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE = "mlperf_training/runs.csv.gz"
NOT_VERIFIED = "derived by us; result not verified by MLCommons Association"
ACCELERATORS = {
    "A100": ("A100-SXM",),
    "H100": ("H100-SXM5-80GB", "H100-SXM-80GB"),
    "H200": ("H200-SXM",),
    "B200": ("B200-SXM",),
    "GB200": ("(GB200)",),
    "L40S": ("NVIDIA L40S",),
    "L40": ("NVIDIA L40",),
    "A30": ("NVIDIA A30",),
}
"""Built-in GPU types by how the accelerator's name begins, after the vendor's, or what it holds."""
NODES_OF_EIGHT = {"GB200": (2, 4)}
"""Nodes and GPUs of a node that make eight GPUs, where it is not one node of eight."""
OTHER_UNITS = ("MosaicML",)
"""Submitters whose BERT counts samples of another length."""
OTHER_RECIPES = ("minigo", "dlrm")
"""Benchmarks left out of the speeds: they ran on early software alone, and progress is no measure of Minigo's work."""
UNET3D_SAMPLES = 168
"""Images of an epoch of UNet3D; from round 3.1 on most submitters log images and not epochs."""


@dataclass(frozen=True, slots=True)
class Run:
    """One successful run.

    Args:
        benchmark: Name of the benchmark.
        gpu_type: The built-in GPU type.
        nodes: Number of nodes.
        gpus: GPUs of a node.
        batch: Global batch.
        submission: Round, submitter and system.
        seconds: From `run_start` to `run_stop` [s].
        progress: What was trained until the quality was met, in the benchmark's unit.
    """

    benchmark: str
    gpu_type: str
    nodes: int
    gpus: int
    batch: int
    submission: tuple[str, str, str]
    seconds: float
    progress: float


@cache
def runs(data: Path) -> tuple[Run, ...]:
    """Return the successful runs on built-in GPU types with a known progress, in the order of the file."""
    with gzip.open(data / FILE, "rt", encoding="utf-8", newline="") as file:
        read = [_run(row) for row in csv.DictReader(file) if row["status"] == "success"]
    return tuple(run for run in read if run is not None)


def gpu_type_of(accelerator: str) -> str | None:
    """Return the built-in GPU type of an accelerator's name in the file; None if it is another one."""
    for gpu_type, names in ACCELERATORS.items():
        if any(name in accelerator and not accelerator.startswith(f"{name}S") for name in names):
            return gpu_type
    return None


def _run(row: dict[str, str]) -> Run | None:
    gpu_type = gpu_type_of(row["accelerator"])
    counted = all(row[column] for column in ("nodes", "accelerators_per_node", "global_batch", "progress_at_end"))
    if gpu_type is None or not counted or row["submitter"] in OTHER_UNITS:
        return None
    if row["benchmark"] == "stable_diffusion" and row["progress_key"] == "step_num":
        return None
    progress = float(row["progress_at_end"])
    if row["benchmark"] == "unet3d" and progress > 10_000.0:
        progress /= UNET3D_SAMPLES
    nodes, gpus = int(float(row["nodes"])), int(float(row["accelerators_per_node"]))
    submission = row["round"], row["submitter"], row["system"]
    batch = int(float(row["global_batch"]))
    return Run(row["benchmark"], gpu_type, nodes, gpus, batch, submission, float(row["run_s"]), progress)


def speed(of: Iterable[Run]) -> float:
    """Return the mean over runs of the progress in a second."""
    return fmean(run.progress / run.seconds for run in of)


def best_speed(of: Iterable[Run]) -> tuple[float, tuple[str, str, str], int]:
    """Return the greatest mean speed of a submission at one batch, the submission, and that batch."""
    by_submission: dict[tuple[tuple[str, str, str], int], list[Run]] = defaultdict(list)
    for run in of:
        by_submission[run.submission, run.batch].append(run)
    found = {key: speed(of_key) for key, of_key in by_submission.items()}
    submission, batch = max(found, key=lambda key: (found[key], key))
    return found[submission, batch], submission, batch


def speeds_beside_h100(data: Path) -> dict[str, dict[str, float]]:
    """Return the speed of eight GPUs of each type against eight H100 SXM, by benchmark.

    It is the best submission's progress in a second over the best one's on H100: what a sample or an epoch costs,
    whatever number of them another batch or seed needs.

    Args:
        data: Folder of the public measurements.
    """
    by_kind: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs(data):
        if (run.nodes, run.gpus) == NODES_OF_EIGHT.get(run.gpu_type, (1, 8)) and run.benchmark not in OTHER_RECIPES:
            by_kind[run.gpu_type, run.benchmark].append(run)
    best = {kind: best_speed(of_kind)[0] for kind, of_kind in by_kind.items()}
    ratios: dict[str, dict[str, float]] = {gpu_type: {} for gpu_type in ACCELERATORS}
    for (gpu_type, benchmark), found in best.items():
        if ("H100", benchmark) in best:
            ratios[gpu_type][benchmark] = found / best["H100", benchmark]
    return ratios


def mlperf_factors(data: Path, a100: float) -> dict[str, float]:
    """Return the speed of one GPU against one V100 of every type that MLPerf measured, but A100.

    Args:
        data: Folder of the public measurements.
        a100: Speed of one A100 against one V100.
    """
    means = {v: geometric_mean(ratios.values()) for v, ratios in speeds_beside_h100(data).items()}
    return {v: a100 * mean / means["A100"] for v, mean in means.items() if v != "A100"}


def quantile(sorted_values: list[float], probability: float) -> float:
    """Return the quantile of values in rising order, on straight lines between them."""
    place = probability * (len(sorted_values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(sorted_values) - 1)
    return sorted_values[low] + (place - low) * (sorted_values[high] - sorted_values[low])
