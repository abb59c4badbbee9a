"""The reference instances of the published generator, and what the published program answered on them.

A folder has the published input tables and, in `reference`, the instances and `results.csv`: its own PROVENANCE says
where each comes from. Node i has 8 GPUs, K80 if i is even, else M60.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node

if TYPE_CHECKING:
    from pathlib import Path

GPU_TYPES = ("K80", "M60")
GPUS = 8  # of a node
MEMORY_GIB = {"K80": 24.0, "M60": 16.0}  # the published table of shares is these times the share
TIMES, PRICES, DISTRIBUTIONS = "data_2d10d_filtered.csv", "GPU-cost_server.csv", "distributions.csv"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the published program answered on a reference instance.

    Attributes:
        energy_eur: Energy cost.
        tardiness_eur: Tardiness cost.
    """

    energy_eur: float
    tardiness_eur: float


def reference_names(folder: Path) -> tuple[str, ...]:
    """List the reference instances, sorted: KIND-NODES-SEED."""
    return tuple(sorted(path.stem for path in folder.glob("reference/*-*.csv")))


def reference_answers(folder: Path) -> dict[tuple[str, str], Answer]:
    """Read the published program's answers, by instance and method: FIFO, EDF, PS, G, STS or EDF-mean."""
    return {
        (row["instance"], row["method"]): Answer(float(row["energy_eur"]), float(row["tardiness_eur"]))
        for row in _rows(folder / "reference" / "results.csv")
    }


def reference_instance(folder: Path, name: str) -> Instance:
    """Build the reference instance `name`: prices are in the watts, at 1 €/kWh and a PUE of 1."""
    configurations = tuple(Configuration(gpu, g) for gpu in GPU_TYPES for g in range(1, GPUS + 1))
    profiles, needs = _profiles(folder), _distributions(folder)
    jobs = [_job(row, profiles[row["job"]], needs) for row in _rows(folder / "reference" / f"{name}.csv")]
    nodes = [Node(GPU_TYPES[i % len(GPU_TYPES)], GPUS) for i in range(int(name.split("-")[1]))]
    return Instance.from_jobs(
        _gpu_types(folder), nodes, jobs, configurations, energy_price_eur_per_kwh=1.0, pue=1.0, name=name
    )


@dataclass(frozen=True, slots=True)
class _Profile:
    """A profiled job: its epochs, and the seconds that all of them take on every configuration."""

    epochs: float
    full_s: dict[Configuration, float]


def _job(row: dict[str, str], profile: _Profile, needs: dict[str, EpochDistribution]) -> Job:
    return Job(
        submission_s=float(row["submission_s"]),
        due_s=float(row["due_s"]),
        tardiness_weight_eur_per_s=float(row["weight_eur_per_s"]),
        max_epochs=profile.epochs,
        distribution=needs[row["distribution"]],
        epochs_needed=profile.epochs * float(row["epochs_needed_percent"]) / 100.0,
        seconds_per_epoch={c: seconds / profile.epochs for c, seconds in profile.full_s.items()},
        application=row["job"],
    )


def _profiles(folder: Path) -> dict[str, _Profile]:
    profiles: dict[str, _Profile] = {}
    for row in _rows(folder / TIMES):
        profile = profiles.setdefault(row["Jobs"], _Profile(float(row["Epochs"]), {}))
        if row["GpuType"] in GPU_TYPES:
            profile.full_s[Configuration(row["GpuType"], int(row["GpuNumber"]))] = float(row["ExecutionTime"])
    return profiles


def _distributions(folder: Path) -> dict[str, EpochDistribution]:
    rows = _rows(folder / DISTRIBUTIONS)
    return {name: EpochDistribution.from_masses([float(row[name]) for row in rows]) for name in rows[0]}


def _gpu_types(folder: Path) -> list[GpuType]:
    eur_per_h = {(row["GPUtype"], int(row["nGPUs"])): float(row["cost"]) for row in _rows(folder / PRICES)}
    return [GpuType(name, eur_per_h[name, 1] * 1000.0, 0.0, MEMORY_GIB[name], GPUS) for name in GPU_TYPES]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
