"""What instance.json records, as plain values: whatever no cluster and no job can be is refused here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusched_env.audit.ranges import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, Range, index_below
from gpusched_env.audit.reading import Fields, number, read_json
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_GPUS_OF_A_NODE = Range("a whole number from 1 to 1024", 1, 1024)


@dataclass(frozen=True, slots=True)
class GpuTypeRecord:
    """A GPU type: power [W], memory [GiB], and the most GPUs that a node of it may have."""

    gpu_power_w: float
    base_power_w: float
    memory_gib: float
    most_gpus: int


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
class InstanceRecord:
    """The cluster, its jobs and its prices; `eur_per_kwh` is the energy price times the PUE."""

    gpu_types: dict[str, GpuTypeRecord]
    nodes: list[NodeRecord]
    configurations: dict[str, ConfigurationRecord]
    jobs: list[JobRecord]
    eur_per_kwh: float
    restart_s: float


def read_instance(path: Path) -> InstanceRecord:
    """Read an instance.

    Raises:
        InputError: A field is missing, or a value is not what it must be or out of its range.
    """
    instance = read_json(path, "gpusched instance", 1)
    gpu_types = _gpu_types(instance.fields("gpu_types"))
    configurations = _configurations(instance.fields("configurations"), gpu_types)
    distributions = _distributions(instance)
    table = instance.fields("jobs")
    return InstanceRecord(
        gpu_types=gpu_types,
        nodes=_nodes(instance.fields("nodes"), gpu_types),
        configurations=configurations,
        jobs=_jobs(table, len(configurations), len(instance.texts("applications")), distributions),
        eur_per_kwh=instance.number("energy_price_eur_per_kwh", NOT_NEGATIVE) * instance.number("pue", AT_LEAST_ONE),
        restart_s=instance.number("restart_s", NOT_NEGATIVE),
    )


def _gpu_types(table: Fields) -> dict[str, GpuTypeRecord]:
    names = _all_different(table.name("name"), table.texts("name"))
    count = len(names)
    gpu, base = table.numbers("gpu_power_w", count, POSITIVE), table.numbers("node_base_power_w", count, NOT_NEGATIVE)
    memory = table.numbers("memory_gib", count, POSITIVE)
    most = table.wholes("max_gpus_per_node", count, _GPUS_OF_A_NODE)
    return {names[i]: GpuTypeRecord(gpu[i], base[i], memory[i], most[i]) for i in range(count)}


def _nodes(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> list[NodeRecord]:
    names = _known_types(table, gpu_types)
    gpus = table.wholes("gpus", len(names))
    for index, (name, count) in enumerate(zip(names, gpus, strict=True)):
        most = gpu_types[name].most_gpus
        Range(f"a whole number from 1 to {most}, the most of {name}", 1, most).check(
            f"{table.name('gpus')}[{index}]", count
        )
    return [NodeRecord(name, count) for name, count in zip(names, gpus, strict=True)]


def _configurations(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> dict[str, ConfigurationRecord]:
    names = _known_types(table, gpu_types)
    gpus = table.wholes("gpus_per_node", len(names), AT_LEAST_ONE)
    only_one = Range("1: the audit knows whole GPUs on one node", 1, 1)
    table.wholes("nodes", len(names), only_one)
    table.numbers("share", len(names), only_one)
    labels = [f"{name}x{count}" for name, count in zip(names, gpus, strict=True)]
    _all_different(table.where, labels)
    triples = enumerate(zip(labels, names, gpus, strict=True))
    return {label: ConfigurationRecord(name, count, column) for column, (label, name, count) in triples}


def _known_types(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> list[str]:
    names = table.texts("gpu_type")
    for index, name in enumerate(names):
        if name not in gpu_types:
            raise InputError(f"{table.name('gpu_type')}[{index}]", name, f"one of {', '.join(gpu_types)}")
    if not names:
        raise InputError(table.name("gpu_type"), [], "at least one value")
    return names


def _all_different(where: str, names: Sequence[str]) -> list[str]:
    if not names or not all(names) or len(set(names)) < len(names):
        raise InputError(where, list(names), "one or more, all different and none empty")
    return list(names)


def _distributions(instance: Fields) -> int:
    """Check every distribution of epochs needed; count them."""
    entries = instance.items("distributions")
    for index, entry in enumerate(entries):
        table = Fields(f"{instance.name('distributions')}[{index}]", entry)
        edges = table.numbers("edges")
        rises = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or (edges[0], edges[-1]) != (0.0, 1.0) or not rises:
            raise InputError(table.name("edges"), edges, "numbers that rise from 0 to 1")
        survival = table.numbers("survival", len(edges) - 1, NOT_NEGATIVE)
        if survival[0] != 1.0 or any(low < high for low, high in pairwise(survival)):
            raise InputError(table.name("survival"), survival, "numbers from 1 downwards")
    return len(entries)


def _jobs(table: Fields, configurations: int, applications: int, distributions: int) -> list[JobRecord]:
    submission = table.numbers("submission_s", within=NOT_NEGATIVE)
    count = len(submission)
    if not count:
        raise InputError(table.name("submission_s"), [], "at least one value")
    for index, (before, after) in enumerate(pairwise(submission), start=1):
        Range("a number not below the one before it", before).check(f"{table.name('submission_s')}[{index}]", after)
    due, weight = table.numbers("due_s", count), table.numbers("tardiness_weight_eur_per_s", count, NOT_NEGATIVE)
    most, needed = table.numbers("max_epochs", count, POSITIVE), table.numbers("epochs_needed", count, POSITIVE)
    memory = table.numbers("memory_gib", count, NOT_NEGATIVE)
    table.wholes("application", count, index_below(applications))
    table.wholes("distribution", count, index_below(distributions))
    for index in range(count):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('due_s')}[{index}]", due[index])
        Range("a number <= max_epochs", 0.0, most[index]).check(
            f"{table.name('epochs_needed')}[{index}]", needed[index]
        )
    rows = table.items("seconds_per_epoch", count)
    seconds = [_seconds(f"{table.name('seconds_per_epoch')}[{i}]", row, configurations) for i, row in enumerate(rows)]
    return [JobRecord(*values) for values in zip(submission, due, weight, needed, memory, seconds, strict=True)]


def _seconds(where: str, row: Any, configurations: int) -> list[float | None]:
    if not isinstance(row, list) or len(row) != configurations:
        raise InputError(where, row, f"a list of {configurations} values, null where not allowed")
    seconds = [None if value is None else number(where, value) for value in row]
    known = [value for value in seconds if value is not None]
    if not known or min(known) <= 0.0:
        raise InputError(where, row, "numbers > 0, at least one, and null where not allowed")
    return seconds
