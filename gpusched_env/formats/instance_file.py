"""An instance as one JSON file: columns, exact numbers, distributions once (docs/run-format.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.formats.json_fields import Schema, array_of, check_lengths, checked
from gpusched_env.formats.mechanism_fields import mechanism_fields, mechanisms_of, own_fields
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, JobTable, Node
from gpusched_env.parsing import parse_json

T = TypeVar("T")

FORMAT = "gpusched instance"
VERSION = 2

_SCALARS: dict[str, type] = {"name": str, "seed": int, "energy_price_eur_per_kwh": float, "pue": float}
_ROWS: dict[str, type] = {"gpu_types": GpuType, "nodes": Node, "configurations": Configuration}
_KINDS: dict[str, list[Any]] = {
    "str": [str],
    "float": [float],
    "int": [int],
    "bool": [bool],
    "tuple[float, ...] | None": [([float], None)],
}
_MAY_LACK = {"idle_gpu_power_w", "node_power_w", "priority", "spread", "power_limit", "owner", "hardware"}
"""Columns that are in the file only where some row has another value than the default, such as labels."""
_TABLES: dict[str, dict[str, Schema]] = {
    name: {
        f"{each.name}?" if each.name in _MAY_LACK or "label" in each.metadata else each.name: _KINDS[str(each.type)]
        for each in fields(row)
    }
    for name, row in _ROWS.items()
}
_NEEDED = (
    "submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "epochs_needed", "memory_gib", "restart_s",
    "application", "distribution",
)  # fmt: skip
"""Columns of every table of jobs, in the order of the file; `seconds_per_epoch` is the last one."""
_TYPES = {"float64": float, "int64": int, "bool_": bool}
_JOBS = {
    field.name: next(kind for name, kind in _TYPES.items() if name in str(field.type))
    for field in fields(JobTable)
    if "NDArray" in str(field.type) and field.name != "seconds_per_epoch"
}
_MAY_BE_NONE = {field.name for field in fields(JobTable) if "None" in str(field.type)}
_OPTIONAL = [name for name in _JOBS if name not in _NEEDED]
"""Columns of jobs that are in the file only where some job has a value other than 0 or, for optional ones, a value."""
JOB_LABELS = {
    field.name: (_JOBS[field.name], field.metadata["label"]) for field in fields(JobTable) if "label" in field.metadata
}
NODE_LABELS = {
    field.name: (_KINDS[str(field.type)][0], field.metadata["label"])
    for field in fields(Node)
    if "label" in field.metadata
}
"""Kind and description of the columns that requests of the service have unchanged; default: 0, False or none."""
_DOCUMENT: dict[str, Schema] = {
    "format": str,
    "version": int,
    **_SCALARS,
    **_TABLES,
    "jobs": {
        **{name: [_JOBS[name]] for name in _NEEDED},
        **{f"{name}?": [_JOBS[name]] for name in _OPTIONAL},
        "seconds_per_epoch": [[None]],
    },
    "applications": [str],
    "distributions": [{"family": str, "edges": [float], "survival": [float]}],
    "interference": None,
    "synchronisation?": None,
    "tenancy?": None,
    "tenants?": None,
    "racks?": None,
    "decision_interval_s?": float,
    "saved_kw?": None,
    "host_memory?": None,
    "site?": None,
    "gpu_hour_eur?": None,
    "prices?": None,
    "mechanisms?": None,
    "hosts?": None,
}
"""The fields, in the order of the file."""


def save_instance(instance: Instance, path: str | Path) -> None:
    """Write `instance` to the file `path`; `load_instance` returns an equal one.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomically(path, instance_json(instance))


def instance_json(instance: Instance) -> str:
    """Return the text that `save_instance` writes: equal instances have equal texts, different ones different texts.

    It has one line per field, column and distribution: it can be read, and compared by line.
    """
    parts = []
    for name, value in _document_of(instance).items():
        text = _compact(value)
        if name in {*_TABLES, "jobs"}:
            text = _lines("{", (f"{_compact(key)}: {_compact(column)}" for key, column in value.items()), "}")
        elif name == "distributions":
            text = _lines("[", map(_compact, value), "]")
        elif name == "interference" and value is not None:  # its table comes first, one line per GPU type
            (key, table), *rest = value.items()
            text = f"{{{_compact(key)}:{_lines('[', map(_compact, table), ']')}"
            text += "".join(f",{_compact(key)}:{_compact(each)}" for key, each in rest) + "}"
        parts.append(f" {_compact(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(begin: str, texts: Iterable[str], end: str) -> str:
    return f"{begin}\n" + ",\n".join(f"  {text}" for text in texts) + f"\n {end}"


def _compact(value: Any) -> str:
    # Python writes the shortest decimal that reads back as the same float: nothing is lost.
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _document_of(instance: Instance) -> dict[str, Any]:
    jobs = instance.jobs
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    document |= {name: kind(getattr(instance, name)) for name, kind in _SCALARS.items()}
    document |= {name: _columns(getattr(instance, name), kinds) for name, kinds in _TABLES.items()}
    document["jobs"] = _job_columns(jobs)
    document["applications"] = list(jobs.applications)
    document["distributions"] = [
        {"family": d.family, "edges": d.edges.tolist(), "survival": d.survival.tolist()} for d in jobs.distributions
    ]
    document["interference"] = None
    if instance.decision_interval_s:
        document["decision_interval_s"] = float(instance.decision_interval_s)
    document |= own_fields(instance)
    document |= mechanism_fields(instance)
    return {name: document[name] for name in (field.rstrip("?") for field in _DOCUMENT) if name in document}


def _columns(rows: Sequence[Any], schema: Mapping[str, Schema]) -> dict[str, list[Any]]:
    """Return a column of each field; optional ones only where some row has another value than the default."""
    columns = {}
    for name, [kind] in schema.items():
        column = [getattr(row, name.rstrip("?")) for row in rows]
        if not name.endswith("?"):
            columns[name] = [kind(value) for value in column]
        elif any(value != type(rows[0]).__dataclass_fields__[name[:-1]].default for value in column):
            columns[name[:-1]] = column
    return columns


def _job_columns(jobs: JobTable) -> dict[str, Any]:
    columns = {name: getattr(jobs, name).tolist() for name in _NEEDED}
    for name in _OPTIONAL:
        column = getattr(jobs, name)
        if column is not None and (name in _MAY_BE_NONE or np.any(column)):
            columns[name] = column.tolist()
    seconds: list[list[float | None]] = jobs.seconds_per_epoch.tolist()
    for row, column in np.argwhere(np.isinf(jobs.seconds_per_epoch)).tolist():
        seconds[row][column] = None
    return columns | {"seconds_per_epoch": seconds}


def load_instance(path: str | Path) -> Instance:
    """Read the instance that `save_instance` wrote to `path`.

    Raises:
        InputError: There is no such file, it is incomplete, has another format version, or holds a field that is
            missing, unknown, of the wrong kind or out of its range; names the first such field.
    """
    try:
        return _instance_of(_read(Path(path)))
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        document = parse_json(path.read_bytes(), _no_constant)
    except OSError as error:
        raise InputError("file", error.strerror or str(error), "an instance file that can be read") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError("file", str(error), "a whole JSON file, as save_instance writes it") from error
    if not isinstance(document, dict):
        raise InputError("file", type(document).__name__, "a JSON object")
    if document.get("format") != FORMAT:
        raise InputError("format", document.get("format"), repr(FORMAT))
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InputError("version", version, f"{VERSION}, the version that this release reads")
    return document


def _no_constant(constant: str) -> float:
    raise InputError("file", constant, "finite numbers; null stands for a configuration that is not allowed")


def _instance_of(document: dict[str, Any]) -> Instance:
    read = checked("", document, _DOCUMENT)
    if read["interference"] is None:
        del read["interference"]
    for table in (*_TABLES, "jobs"):
        check_lengths(table, read[table])
    return Instance(
        tuple(_rows("gpu_types", read, GpuType)),
        tuple(_rows("nodes", read, Node)),
        tuple(_rows("configurations", read, Configuration)),
        _job_table(read),
        mechanisms=mechanisms_of(read),
        **{name: read[name] for name in _SCALARS},
        decision_interval_s=read.get("decision_interval_s", 0.0),
    )


def _rows(where: str, read: dict[str, Any], make: Callable[..., T]) -> list[T]:
    rows = []
    for index, values in enumerate(zip(*read[where].values(), strict=True)):
        given = zip(read[where], values, strict=True)
        try:
            rows.append(make(**{name: tuple(value) if isinstance(value, list) else value for name, value in given}))
        except InputError as error:
            name = error.field.rpartition(".")[2]
            raise InputError(f"{where}.{name}[{index}]", error.value, error.allowed) from error
    return rows


def _job_table(read: dict[str, Any]) -> JobTable:
    distributions = []
    for index, entry in enumerate(read["distributions"]):
        edges, survival = np.array(entry["edges"]), np.array(entry["survival"])
        try:
            distributions.append(EpochDistribution(edges, survival, entry["family"]))
        except InputError as error:
            where = f"distributions[{index}].{error.field.rpartition('.')[2]}"
            raise InputError(where, error.value, error.allowed) from error
    jobs, seconds = read["jobs"], []
    for index, row in enumerate(jobs["seconds_per_epoch"]):
        checked(f"jobs.seconds_per_epoch[{index}]", [value for value in row if value is not None], [float])
        seconds.append([np.inf if value is None else value for value in row])
    return JobTable(
        **{name: np.array(jobs[name]) for name in _JOBS if name in jobs},
        seconds_per_epoch=array_of("jobs.seconds_per_epoch", seconds, 2),
        applications=tuple(read["applications"]),
        distributions=tuple(distributions),
    )
