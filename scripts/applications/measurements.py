"""Readers of the public files: each turns one row into speeds in samples per second.

Gavel and Shockwave publish mini-batches per second, summed over the workers, at a fixed batch per GPU (weak scaling).
ElasticFlow publishes iterations per second at a fixed global batch (strong scaling), and Pollux the time of one
iteration for a batch per GPU and a placement. Zeus publishes the time of one epoch on one GPU.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from applications.point import Point

if TYPE_CHECKING:
    from pathlib import Path

GAVEL = "gavel/physical_cluster_throughputs.json"
WISR = "shockwave/wisr_throughputs.json"
GAVEL_COUNTS = (1, 2, 4, 8)


@cache
def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str | None) -> float:
    """Return the number in a cell; NaN where the cell is blank."""
    return float(text) if text and text.strip() else float("nan")


class Measurement(Protocol):
    """A row of a public file."""

    def read(self, data: Path) -> list[Point]:
        """Return the speeds of the row, by number of GPUs, bad cells included."""


@dataclass(frozen=True, slots=True)
class GavelRow:
    """A row of Gavel's or Shockwave's tables: steps/s of one job alone, GPUs on as few servers as possible."""

    worker: str
    model: str
    batch: int
    file: str = GAVEL
    counts: tuple[int, ...] = GAVEL_COUNTS

    def read(self, data: Path) -> list[Point]:
        """Return steps/s times the batch per GPU."""
        table = read_json(data / self.file)[self.worker]
        points = []
        for gpus in self.counts:
            key = f"('{self.model}', {gpus})"
            if key in table:
                source = f"{self.file} {self.worker} {key} null x {self.batch} samples"
                points.append(Point(gpus, float(table[key]["null"]) * self.batch, source))
        return points


@dataclass(frozen=True, slots=True)
class ElasticFlowRow:
    """A row of ElasticFlow's tables: iterations/s at one global batch (strong scaling)."""

    file: str
    batch: int

    def read(self, data: Path) -> list[Point]:
        """Return iterations/s times the global batch, for every column of the row."""
        row = elasticflow_row(data, self.file, self.batch)
        counts = [int(name) for name in row if name != "global_batch_size"]
        source = f"elasticflow/{self.file} global_batch_size {self.batch} column"
        return [
            Point(g, number(row[str(g)]) * self.batch, f"{source} {g} x {self.batch} samples") for g in sorted(counts)
        ]


@dataclass(frozen=True, slots=True)
class ElasticFlowDiagonal:
    """ElasticFlow's speeds at a fixed batch per GPU: global batch g times as large in the column of g GPUs."""

    file: str
    batch_per_gpu: int

    def read(self, data: Path) -> list[Point]:
        """Return the speeds at the numbers of GPUs for which the global batch was measured."""
        measured = {int(row["global_batch_size"]) for row in read_csv(data / "elasticflow" / self.file)}
        points = []
        for gpus in GAVEL_COUNTS:
            if gpus * self.batch_per_gpu in measured:
                points += [p for p in ElasticFlowRow(self.file, gpus * self.batch_per_gpu).read(data) if p.gpus == gpus]
        return points


@dataclass(frozen=True, slots=True)
class PolluxRows:
    """Rows of Pollux's placements table at one batch per GPU; nodes carry four T4, so 5 GPUs and more are two nodes."""

    model: str
    batch_per_gpu: int

    PLACEMENTS = ("1", "2", "3", "4", "14", "24", "34", "44")

    def read(self, data: Path) -> list[Point]:
        """Return GPUs times the batch per GPU over the step time."""
        file = f"pollux/{self.model}/placements.csv"
        rows = {(row["placement"], row["local_bsz"]): row for row in read_csv(data / file)}
        points = []
        for placement in self.PLACEMENTS:
            row = rows.get((placement, str(self.batch_per_gpu)))
            if row is None:
                continue
            gpus = sum(int(digit) for digit in placement)
            source = f"{file} placement {placement} local_bsz {self.batch_per_gpu} {gpus} GPUs x local_bsz / step_time"
            points.append(Point(gpus, gpus * self.batch_per_gpu / number(row["step_time"]), source))
        return points


@dataclass(frozen=True, slots=True)
class PolluxNodes:
    """Pollux's rows at one batch per GPU: up to four GPUs of one node, and whole nodes of four T4."""

    model: str
    batch_per_gpu: int

    PLACEMENTS = ("1", "2", "3", "4", "44", "444", "4444")
    NODES = (6, 8, 12, 16)

    def read(self, data: Path) -> list[Point]:
        """Return GPUs times the batch per GPU over the step time, from the tables of placements and of scalability."""
        folder, batch = f"pollux/{self.model}", str(self.batch_per_gpu)
        times = {}
        for row in read_csv(data / folder / "placements.csv"):
            if row["local_bsz"] == batch and row["placement"] in self.PLACEMENTS:
                gpus = sum(int(digit) for digit in row["placement"])
                times[gpus] = f"{folder}/placements.csv placement {row['placement']}", number(row["step_time"])
        for row in read_csv(data / folder / "scalability.csv"):
            nodes, gpus = int(row["num_nodes"]), int(row["num_replicas"])
            if row["local_bsz"] == batch and nodes in self.NODES and gpus == 4 * nodes:
                times[gpus] = (
                    f"{folder}/scalability.csv num_nodes {nodes} num_replicas {gpus}",
                    number(row["step_time"]),
                )
        return [
            Point(g, g * self.batch_per_gpu / step_s, f"{where} local_bsz {batch} {g} GPUs x local_bsz / step_time")
            for g, (where, step_s) in sorted(times.items())
        ]


@dataclass(frozen=True, slots=True)
class ZeusRow:
    """The single-GPU epoch time in Zeus's power files, at the highest power limit of the file."""

    gpu: str
    dataset: str
    network: str
    batch: int
    samples_per_epoch: int

    def read(self, data: Path) -> list[Point]:
        """Return the samples of an epoch over its time."""
        for row in at_highest_limit(data, self.gpu):
            if (row["dataset"], row["network"], int(row["batch_size"])) == (self.dataset, self.network, self.batch):
                source = (
                    f"zeus/summary_power_{self.gpu}.csv {self.dataset} {self.network} batch_size {self.batch} "
                    f"power_limit {row['power_limit']} time_per_epoch"
                )
                return [Point(1, self.samples_per_epoch / float(row["time_per_epoch"]), source)]
        return []


def elasticflow_row(data: Path, file: str, batch: int) -> dict[str, str]:
    """Return the row of one global batch size."""
    rows = read_csv(data / "elasticflow" / file)
    return next(row for row in rows if int(row["global_batch_size"]) == batch)


def at_highest_limit(data: Path, gpu: str) -> list[dict[str, str]]:
    """Return the rows of a Zeus power file at its highest power limit."""
    rows = read_csv(data / "zeus" / f"summary_power_{gpu}.csv")
    highest = max(float(row["power_limit"]) for row in rows)
    return [row for row in rows if float(row["power_limit"]) == highest]
