"""The inputs that the authors of STS published, as tables of the package: their cells as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.measurements import read_csv

if TYPE_CHECKING:
    from pathlib import Path

JOBS, INHOUSE, EPOCHS = "data_2d10d_filtered.csv", "data_server.csv", "distributions.csv"
GPU_TYPES = ("K80", "M60")
"""The types of the published generator; the file has two more."""
BYTE_ORDER_MARK = "\ufeff"
SOURCE = (
    "github.com/ai-sprint-eu-project/GPUScheduler commit 0f0ccf6eb00a13f6748bf427fc9933a130bb056f "
    "build/data/{file} (Apache-2.0), {row}"
)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One line of `published_applications.csv` or `published_inhouse_applications.csv`.

    Numbers are the texts of the file.

    Args:
        application: Model and job, such as "alexnet-j1".
        gpu_type: GPU type.
        gpus: Number of GPUs.
        seconds: Time of all epochs [s].
        max_epochs: Epochs of the job.
        memory_gib: Memory on each GPU; the file says GB, its fractions compare it with what a GPU has. 0: not given.
        source: Where the line is from.
    """

    application: str
    gpu_type: str
    gpus: str
    seconds: str
    max_epochs: str
    memory_gib: str
    source: str


def published_rows(folder: Path) -> list[PublishedRow]:
    """Return the times of the 15 jobs of the published generator, by job, GPU type and number of GPUs."""
    rows = [_row(row, JOBS, row["Memory"]) for row in read_csv(folder / JOBS) if row["GpuType"] in GPU_TYPES]
    return sorted(rows, key=_order)


def inhouse_rows(folder: Path) -> list[PublishedRow]:
    """Return the times of the ten jobs of the in-house servers, by job, GPU type and number of GPUs."""
    return sorted((_row(row, INHOUSE, "0") for row in read_csv(folder / INHOUSE)), key=_order)


def epochs_table(folder: Path) -> list[list[str]]:
    """Return header and 100 rows of the six histograms of the epochs needed, without the file's byte-order mark."""
    rows = read_csv(folder / EPOCHS)
    names = [name.lstrip(BYTE_ORDER_MARK) for name in rows[0]]
    return [names, *(list(row.values()) for row in rows)]


def _row(row: dict[str, str], file: str, memory: str) -> PublishedRow:
    job, gpu, gpus = row["Jobs"], row["GpuType"], row["GpuNumber"]
    application = f"{row['Application'].removeprefix('pytorch_')}-{job}".lower()
    source = SOURCE.format(file=file, row=f"{job} {gpu} {gpus}: ExecutionTime")
    return PublishedRow(application, gpu, gpus, row["ExecutionTime"], row["Epochs"], memory, source)


def _order(row: PublishedRow) -> tuple[int, str, int]:
    return int(row.application.rpartition("-j")[2]), row.gpu_type, int(row.gpus)
