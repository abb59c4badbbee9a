"""What a run folder records, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.audit.reading import Fields, number, number_of, read_json, read_rows, whole_of
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_INTERVAL_COLUMNS = ("job", "node", "gpus", "configuration", "start_s", "ready_s", "end_s", "epochs")
_JOB_COLUMNS = (
    "job",
    "submission_s",
    "due_s",
    "start_s",
    "completion_s",
    "epochs_needed",
    "energy_eur",
    "tardiness_eur",
    "switches",
)


@dataclass(frozen=True, slots=True)
class GpuTypeRecord:
    """A GPU type: power [W] and memory [GiB]."""

    gpu_power_w: float
    base_power_w: float
    memory_gib: float


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: the name of its GPU type, and its GPUs."""

    gpu_type: str
    gpus: int


@dataclass(frozen=True, slots=True)
class ConfigurationRecord:
    """A configuration on one node: the name of its GPU type, its GPUs, and its column in `seconds_per_epoch`."""

    gpu_type: str
    gpus: int
    column: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job of the instance; `seconds_per_epoch` is None where a configuration is not allowed."""

    submission_s: float
    due_s: float
    weight_eur_per_s: float
    epochs_needed: float
    memory_gib: float
    seconds_per_epoch: list[float | None]


@dataclass(frozen=True, slots=True)
class IntervalRecord:
    """A line of intervals.csv."""

    line: int
    job: int
    node: int
    gpus: int
    configuration: str
    start_s: float
    ready_s: float
    end_s: float
    epochs: float

    @property
    def where(self) -> str:
        """Name the line."""
        return f"intervals.csv line {self.line} (job {self.job})"


@dataclass(frozen=True, slots=True)
class Record:
    """A run folder; `claims` are the numbers of jobs.csv, one dictionary per job, and `run` is run.json."""

    gpu_types: dict[str, GpuTypeRecord]
    nodes: list[NodeRecord]
    configurations: dict[str, ConfigurationRecord]
    jobs: list[JobRecord]
    eur_per_kwh: float
    restart_s: float
    intervals: list[IntervalRecord]
    claims: list[dict[str, float]]
    run: Fields


def read_record(folder: Path) -> Record:
    """Read a run folder.

    Raises:
        InputError: A file, a field or a column is missing, a value is not what it must be, or a line names a job, a
            node or a configuration that the instance does not have.
    """
    if not folder.is_dir():
        raise InputError("folder", str(folder), "a run folder")
    run = read_json(folder / "run.json", "gpusched run", 1)
    instance = read_json(folder / "instance.json", "gpusched instance", 1)
    gpu_types = _gpu_types(instance.fields("gpu_types"))
    nodes = _nodes(instance.fields("nodes"), gpu_types)
    configurations = _configurations(instance.fields("configurations"), gpu_types)
    jobs = _jobs(instance.fields("jobs"), len(configurations))
    return Record(
        gpu_types=gpu_types,
        nodes=nodes,
        configurations=configurations,
        jobs=jobs,
        eur_per_kwh=instance.number("energy_price_eur_per_kwh") * instance.number("pue"),
        restart_s=instance.number("restart_s"),
        intervals=_intervals(folder / "intervals.csv", len(jobs), len(nodes), configurations),
        claims=_claims(folder / "jobs.csv", len(jobs)),
        run=run,
    )


def _gpu_types(table: Fields) -> dict[str, GpuTypeRecord]:
    names = table.texts("name")
    gpu, base = table.numbers("gpu_power_w", len(names)), table.numbers("node_base_power_w", len(names))
    memory = table.numbers("memory_gib", len(names))
    return {name: GpuTypeRecord(*values) for name, *values in zip(names, gpu, base, memory, strict=True)}


def _nodes(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> list[NodeRecord]:
    names = _known_types(table, gpu_types)
    return [NodeRecord(name, gpus) for name, gpus in zip(names, table.wholes("gpus", len(names)), strict=True)]


def _configurations(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> dict[str, ConfigurationRecord]:
    names = _known_types(table, gpu_types)
    gpus = table.wholes("gpus_per_node", len(names))
    for key, values in (("nodes", table.wholes("nodes", len(names))), ("share", table.numbers("share", len(names)))):
        for index, value in enumerate(values):
            if value != 1:
                raise InputError(table.name(f"{key}[{index}]"), value, "1: the audit knows whole GPUs on one node")
    pairs = enumerate(zip(names, gpus, strict=True))
    return {f"{name}x{count}": ConfigurationRecord(name, count, column) for column, (name, count) in pairs}


def _known_types(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> list[str]:
    names = table.texts("gpu_type")
    for index, name in enumerate(names):
        if name not in gpu_types:
            raise InputError(table.name(f"gpu_type[{index}]"), name, f"one of {', '.join(gpu_types)}")
    return names


def _jobs(table: Fields, configurations: int) -> list[JobRecord]:
    submission = table.numbers("submission_s")
    columns = [
        table.numbers(name, len(submission))
        for name in ("due_s", "tardiness_weight_eur_per_s", "epochs_needed", "memory_gib")
    ]
    rows = table.items("seconds_per_epoch", len(submission))
    seconds = [_seconds(f"{table.where}.seconds_per_epoch[{i}]", row, configurations) for i, row in enumerate(rows)]
    return [JobRecord(*values) for values in zip(submission, *columns, seconds, strict=True)]


def _seconds(where: str, row: Any, configurations: int) -> list[float | None]:
    if not isinstance(row, list) or len(row) != configurations:
        raise InputError(where, row, f"a list of {configurations} values, null where not allowed")
    seconds = [None if value is None else number(where, value) for value in row]
    if any(value is not None and value <= 0.0 for value in seconds):
        raise InputError(where, row, "numbers > 0")
    return seconds


def _intervals(
    path: Path, jobs: int, nodes: int, configurations: dict[str, ConfigurationRecord]
) -> list[IntervalRecord]:
    intervals = []
    for line, row in enumerate(read_rows(path, _INTERVAL_COLUMNS), start=2):
        where = f"{path.name} line {line}"
        job, node, gpus = (whole_of(f"{where}, {name}", row[name]) for name in ("job", "node", "gpus"))
        for name, value, count in (("job", job, jobs), ("node", node, nodes)):
            if not 0 <= value < count:
                raise InputError(f"{where}, {name}", value, f"an index from 0 to {count - 1}")
        if row["configuration"] not in configurations:
            raise InputError(f"{where}, configuration", row["configuration"], "a configuration of the instance")
        numbers = [number_of(f"{where}, {name}", row[name]) for name in ("start_s", "ready_s", "end_s", "epochs")]
        intervals.append(IntervalRecord(line, job, node, gpus, row["configuration"], *numbers))
    return intervals


def _claims(path: Path, jobs: int) -> list[dict[str, float]]:
    rows = read_rows(path, _JOB_COLUMNS)
    if len(rows) != jobs:
        raise InputError(f"{path.name}: lines", len(rows), f"{jobs}, one for each job of the instance")
    claims = []
    for line, row in enumerate(rows, start=2):
        claim = {name: number_of(f"{path.name} line {line}, {name}", row[name]) for name in _JOB_COLUMNS}
        if claim["job"] != line - 2:
            raise InputError(f"{path.name} line {line}, job", row["job"], f"{line - 2}: one line per job, in order")
        claims.append(claim)
    return claims
