"""An instance as one JSON file: columns, exact numbers, distributions once (docs/run-format.md)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.formats.job_columns import (
    FIELD,
    FIELDS,
    interference_fields,
    interference_of,
    job_columns,
    job_table,
    synchronisation_field,
    synchronisation_of,
    tenants_document,
    tenants_of,
)
from gpusched_env.formats.json_fields import (
    TABLES,
    check_fields,
    check_lengths,
    json_layout,
    json_list,
    value_of,
    values_of,
)
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

FORMAT = "gpusched instance"
VERSION = 2

_SCALARS = {"name": str, "seed": int, "energy_price_eur_per_kwh": float, "pue": float}
_GPU_TYPES = {
    "name": str,
    "gpu_power_w": float,
    "node_base_power_w": float,
    "memory_gib": float,
    "max_gpus_per_node": int,
}
_OPTIONAL_POWERS = {"idle_gpu_power_w": 0.0, "node_power_w": None}
_NODES = {"gpu_type": str, "gpus": int}
_CONFIGURATIONS = {"gpu_type": str, "gpus_per_node": int, "nodes": int, "share": float}


def save_instance(instance: Instance, path: str | Path) -> None:
    """Write `instance` to the file `path`; `load_instance` gives an equal one.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomically(path, instance_json(instance))


def instance_json(instance: Instance) -> str:
    """Give what `save_instance` writes: equal instances have equal texts, others have other ones."""
    return json_layout(_document_of(instance))


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
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: kind(getattr(instance, name)) for name, kind in _SCALARS.items()},
        "gpu_types": _columns(instance.gpu_types, _GPU_TYPES) | _powers(instance.gpu_types),
        "nodes": _columns(instance.nodes, _NODES),
        "configurations": _columns(instance.configurations, _CONFIGURATIONS) | _priorities(instance.configurations),
        "jobs": job_columns(jobs),
        "applications": list(jobs.applications),
        "distributions": [
            {"family": d.family, "edges": d.edges.tolist(), "survival": d.survival.tolist()} for d in jobs.distributions
        ],
        "interference": interference_fields(instance.interference),
        **synchronisation_field(instance),
        **tenants_document(instance),
    }


def _columns(values: Iterable[object], kinds: Mapping[str, type]) -> dict[str, list[Any]]:
    rows = list(values)
    return {name: [kind(getattr(row, name)) for row in rows] for name, kind in kinds.items()}


def _powers(gpu_types: Iterable[GpuType]) -> dict[str, list[Any]]:
    """Give the columns that only some GPU types need, where one does."""
    columns = {name: [getattr(v, name) for v in gpu_types] for name in _OPTIONAL_POWERS}
    return {name: column for name, column in columns.items() if set(column) != {_OPTIONAL_POWERS[name]}}


def _priorities(configurations: Iterable[Configuration]) -> dict[str, list[int]]:
    """Give the column that only shares with priorities need, where there are some."""
    column = [c.priority for c in configurations]
    return {"priority": column} if any(column) else {}


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
    version = document.get("version")
    if version not in (1, VERSION) or isinstance(version, bool):
        raise InputError("version", version, f"1 or {VERSION}, the versions that this release reads")
    return _from_version_1(document) if version == 1 else document


def _from_version_1(document: dict[str, Any]) -> dict[str, Any]:
    """Turn the one restart overhead of the first version into a column; nothing interfered in it."""
    jobs = document.get("jobs")
    if "interference" in document:
        raise InputError("interference", "...", "no such field in version 1")
    if "restart_s" not in document:
        raise InputError("restart_s", None, "a value: the field is missing")
    if isinstance(jobs, dict) and "restart_s" in jobs:
        raise InputError("jobs.restart_s", "...", "no such field in version 1")
    restart_s = value_of("restart_s", document["restart_s"], float)
    if restart_s < 0.0:
        raise InputError("restart_s", restart_s, "a finite number >= 0")
    if isinstance(jobs, dict) and isinstance(jobs.get("submission_s"), list):
        jobs = {**jobs, "restart_s": [restart_s] * len(jobs["submission_s"])}
    rest = {name: value for name, value in document.items() if name != "restart_s"}
    return {**rest, "jobs": jobs, "interference": None} if "jobs" in document else {**rest, "interference": None}


def _no_constant(constant: str) -> float:
    raise InputError("file", constant, "finite numbers; null stands for a configuration that is not allowed")


def _instance_of(document: dict[str, Any]) -> Instance:
    names = {"format", "version", *_SCALARS, *TABLES, "applications", "distributions", "interference"}
    check_fields("", document, names | (document.keys() & {FIELD, *FIELDS}))
    scalars = {name: value_of(name, document[name], kind) for name, kind in _SCALARS.items()}
    return Instance(
        _gpu_types(document),
        tuple(_rows("nodes", document, _NODES, Node)),
        tuple(_rows("configurations", document, _configuration_kinds(document), Configuration)),
        job_table(document["jobs"], lambda: _names_and_curves(document)),
        interference=interference_of(document["interference"]),
        synchronisation=synchronisation_of(document),
        **scalars,
        **tenants_of(document),
    )


def _configuration_kinds(document: dict[str, Any]) -> dict[str, type]:
    table = document["configurations"]
    return {**_CONFIGURATIONS, "priority": int} if isinstance(table, dict) and "priority" in table else _CONFIGURATIONS


def _gpu_types(document: dict[str, Any]) -> tuple[GpuType, ...]:
    table = document["gpu_types"]
    if not isinstance(table, dict):
        raise InputError("gpu_types", type(table).__name__, "a JSON object")
    names = json_list("gpu_types.name", table.get("name", []))
    powers = {
        name: json_list(f"gpu_types.{name}", table.get(name, [default] * len(names)))
        for name, default in _OPTIONAL_POWERS.items()
    }
    check_lengths("gpu_types", {"name": names, **powers})
    values_of("gpu_types.idle_gpu_power_w", powers["idle_gpu_power_w"], float)
    for index, watts in enumerate(powers["node_power_w"]):
        if watts is not None:
            values_of(f"gpu_types.node_power_w[{index}]", watts, float)
    rest = {name: column for name, column in table.items() if name not in _OPTIONAL_POWERS}
    made = _rows("gpu_types", {"gpu_types": rest}, _GPU_TYPES, GpuType)
    rows = zip(made, powers["idle_gpu_power_w"], powers["node_power_w"], strict=True)
    return tuple(
        replace(v, idle_gpu_power_w=idle, node_power_w=None if watts is None else tuple(watts))
        for v, idle, watts in rows
    )


def _rows(where: str, document: dict[str, Any], kinds: Mapping[str, type], make: Callable[..., T]) -> list[T]:
    """Make one value per row of the table `where`."""
    table = document[where]
    check_fields(where, table, set(kinds))
    columns = {name: values_of(f"{where}.{name}", table[name], kind) for name, kind in kinds.items()}
    check_lengths(where, columns)
    rows = []
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        try:
            rows.append(make(*values))
        except InputError as error:
            name = error.field.rpartition(".")[2]
            raise InputError(f"{where}.{name}[{index}]", error.value, error.allowed) from error
    return rows


def _names_and_curves(document: dict[str, Any]) -> tuple[tuple[str, ...], tuple[EpochDistribution, ...]]:
    """Give what jobs refer to: the names of applications, and the distributions."""
    return tuple(values_of("applications", document["applications"], str)), _distributions(document["distributions"])


def _distributions(entries: Any) -> tuple[EpochDistribution, ...]:
    distributions = []
    for index, entry in enumerate(json_list("distributions", entries)):
        where = f"distributions[{index}]"
        check_fields(where, entry, {"family", "edges", "survival"})
        family = value_of(f"{where}.family", entry["family"], str)
        edges = np.array(values_of(f"{where}.edges", entry["edges"], float))
        survival = np.array(values_of(f"{where}.survival", entry["survival"], float))
        try:
            distributions.append(EpochDistribution(edges, survival, family))
        except InputError as error:
            raise InputError(f"{where}.{error.field.rpartition('.')[2]}", error.value, error.allowed) from error
    return tuple(distributions)
