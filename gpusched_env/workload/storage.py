"""An instance as one JSON file: columns, exact numbers, distributions once (docs/run-format.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, JobTable, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

T = TypeVar("T")

FORMAT = "gpusched instance"
VERSION = 1

_SCALARS = {"name": str, "seed": int, "energy_price_eur_per_kwh": float, "pue": float, "restart_s": float}
_GPU_TYPES = {
    "name": str,
    "gpu_power_w": float,
    "node_base_power_w": float,
    "memory_gib": float,
    "max_gpus_per_node": int,
}
_NODES = {"gpu_type": str, "gpus": int}
_CONFIGURATIONS = {"gpu_type": str, "gpus_per_node": int, "nodes": int, "share": float}
_JOBS = {
    "submission_s": float,
    "due_s": float,
    "tardiness_weight_eur_per_s": float,
    "max_epochs": float,
    "epochs_needed": float,
    "memory_gib": float,
    "application": int,
    "distribution": int,
}
_TABLES = ("gpu_types", "nodes", "configurations", "jobs")
_KINDS: dict[type, tuple[frozenset[type], str]] = {
    float: (frozenset({float, int}), "a finite number"),
    int: (frozenset({int}), "a whole number"),
    str: (frozenset({str}), "a text"),
}
_LARGEST: dict[type, float] = {float: sys.float_info.max, int: 2**63 - 1, str: 0}


def save_instance(instance: Instance, path: str | Path) -> None:
    """Write `instance` to the file `path`; `load_instance` gives an equal one.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomically(path, _layout(_document_of(instance)))


def load_instance(path: str | Path) -> Instance:
    """Read the instance that `save_instance` wrote to `path`.

    Raises:
        InputError: There is no such file, it is not whole, has another format version, or holds a field that is
            missing, unknown, of the wrong kind or out of its range; names the first such field.
    """
    try:
        return _instance_of(_read(Path(path)))
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from error


def _document_of(instance: Instance) -> dict[str, Any]:
    jobs = instance.jobs
    columns: dict[str, Any] = {name: getattr(jobs, name).tolist() for name in _JOBS}
    columns["seconds_per_epoch"] = _without_inf(jobs.seconds_per_epoch)
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: kind(getattr(instance, name)) for name, kind in _SCALARS.items()},
        "gpu_types": _columns(instance.gpu_types, _GPU_TYPES),
        "nodes": _columns(instance.nodes, _NODES),
        "configurations": _columns(instance.configurations, _CONFIGURATIONS),
        "jobs": columns,
        "applications": list(jobs.applications),
        "distributions": [
            {"family": d.family, "edges": d.edges.tolist(), "survival": d.survival.tolist()} for d in jobs.distributions
        ],
    }


def _columns(values: Iterable[object], kinds: Mapping[str, type]) -> dict[str, list[Any]]:
    rows = list(values)
    return {name: [kind(getattr(row, name)) for row in rows] for name, kind in kinds.items()}


def _without_inf(seconds: NDArray[np.float64]) -> list[list[float | None]]:
    rows: list[list[float | None]] = seconds.tolist()
    for row, column in np.argwhere(np.isinf(seconds)).tolist():
        rows[row][column] = None
    return rows


def _layout(document: Mapping[str, Any]) -> str:
    """Give the JSON text with one line per field, column and distribution: it can be read, and compared by line."""
    parts = []
    for name, value in document.items():
        text = _compact(value)
        if name in _TABLES:
            text = (
                "{\n" + ",\n".join(f"  {_compact(key)}: {_compact(column)}" for key, column in value.items()) + "\n }"
            )
        elif name == "distributions":
            text = "[\n" + ",\n".join(f"  {_compact(entry)}" for entry in value) + "\n ]"
        parts.append(f" {_compact(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    # Python writes the shortest decimal that reads back as the same float: nothing is lost.
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise InputError("file", error.strerror or str(error), "an instance file that can be read") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("file", str(error), "a whole JSON file, as save_instance writes it") from error
    if not isinstance(document, dict):
        raise InputError("file", type(document).__name__, "a JSON object")
    if document.get("format") != FORMAT:
        raise InputError("format", document.get("format"), repr(FORMAT))
    if document.get("version") != VERSION or isinstance(document["version"], bool):
        raise InputError("version", document.get("version"), f"{VERSION}, the version that this release reads")
    return document


def _no_constant(constant: str) -> float:
    raise InputError("file", constant, "finite numbers; null stands for a configuration that is not allowed")


def _instance_of(document: dict[str, Any]) -> Instance:
    _check_fields("", document, {"format", "version", *_SCALARS, *_TABLES, "applications", "distributions"})
    scalars = {name: _value(name, document[name], kind) for name, kind in _SCALARS.items()}
    return Instance(
        tuple(_rows("gpu_types", document, _GPU_TYPES, GpuType)),
        tuple(_rows("nodes", document, _NODES, Node)),
        tuple(_rows("configurations", document, _CONFIGURATIONS, Configuration)),
        _job_table(document),
        **scalars,
    )


def _check_fields(where: str, value: Any, names: set[str]) -> None:
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a JSON object")
    prefix = f"{where}." if where else ""
    for name in sorted(names - value.keys()):
        raise InputError(f"{prefix}{name}", None, "a value: the field is missing")
    for name in sorted(value.keys() - names):
        raise InputError(f"{prefix}{name}", "...", f"no such field; one of {', '.join(sorted(names))}")


def _rows(where: str, document: dict[str, Any], kinds: Mapping[str, type], make: Callable[..., T]) -> list[T]:
    """Make one value per row of the table `where`."""
    table = document[where]
    _check_fields(where, table, set(kinds))
    columns = {name: _values(f"{where}.{name}", table[name], kind) for name, kind in kinds.items()}
    _check_lengths(where, columns)
    rows = []
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        try:
            rows.append(make(*values))
        except InputError as error:
            name = error.field.rpartition(".")[2]
            raise InputError(f"{where}.{name}[{index}]", error.value, error.allowed) from error
    return rows


def _job_table(document: dict[str, Any]) -> JobTable:
    table = document["jobs"]
    _check_fields("jobs", table, {*_JOBS, "seconds_per_epoch"})
    columns = {name: _values(f"jobs.{name}", table[name], kind) for name, kind in _JOBS.items()}
    _check_lengths(
        "jobs", {**columns, "seconds_per_epoch": _list("jobs.seconds_per_epoch", table["seconds_per_epoch"])}
    )
    return JobTable(
        **{name: np.array(column) for name, column in columns.items()},
        seconds_per_epoch=_seconds_per_epoch(table["seconds_per_epoch"]),
        applications=tuple(_values("applications", document["applications"], str)),
        distributions=_distributions(document["distributions"]),
    )


def _seconds_per_epoch(rows: list[Any]) -> NDArray[np.float64]:
    width = len(_list("jobs.seconds_per_epoch[0]", rows[0])) if rows else 0
    seconds = np.empty((len(rows), width))
    for index, row in enumerate(rows):
        where = f"jobs.seconds_per_epoch[{index}]"
        if len(_list(where, row)) != width:
            raise InputError(where, f"{len(row)} numbers", f"{width} numbers, as in row 0")
        finite = [value for value in row if value is not None]
        _values(where, finite, float)
        seconds[index] = [np.inf if value is None else value for value in row]
    return seconds


def _distributions(entries: Any) -> tuple[EpochDistribution, ...]:
    distributions = []
    for index, entry in enumerate(_list("distributions", entries)):
        where = f"distributions[{index}]"
        _check_fields(where, entry, {"family", "edges", "survival"})
        family = _value(f"{where}.family", entry["family"], str)
        edges = np.array(_values(f"{where}.edges", entry["edges"], float))
        survival = np.array(_values(f"{where}.survival", entry["survival"], float))
        try:
            distributions.append(EpochDistribution(edges, survival, family))
        except InputError as error:
            raise InputError(f"{where}.{error.field.rpartition('.')[2]}", error.value, error.allowed) from error
    return tuple(distributions)


def _list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(where, type(value).__name__, "a JSON list")
    return value


def _values(where: str, values: Any, kind: type) -> list[Any]:
    """Give the column `values`, all of one kind; a whole number must fit 64 bits."""
    column = _list(where, values)
    largest = _LARGEST[kind]
    if set(map(type, column)) <= _KINDS[kind][0] and (kind is str or all(-largest <= v <= largest for v in column)):
        return [float(value) for value in column] if kind is float else column
    for index, value in enumerate(column):
        _value(f"{where}[{index}]", value, kind)
        if kind is int and not -largest <= value <= largest:
            break
    raise InputError(f"{where}[{index}]", value, f"a whole number from {-largest} to {largest}")


def _value(where: str, value: Any, kind: type) -> Any:
    """Give `value`, which must be of one kind; a float may be written as a whole number."""
    kinds, allowed = _KINDS[kind]
    # 1e999 reads as inf, and a whole number may be too large for a float.
    if type(value) not in kinds or (kind is float and not -_LARGEST[float] <= value <= _LARGEST[float]):
        raise InputError(where, value, allowed)
    return float(value) if kind is float else value


def _check_lengths(where: str, columns: Mapping[str, list[Any]]) -> None:
    first, *others = columns
    for name in others:
        if len(columns[name]) != len(columns[first]):
            raise InputError(
                f"{where}.{name}", f"{len(columns[name])} values", f"{len(columns[first])}, as {first} has"
            )
