"""Jobs, tenants, interference and synchronisation in an instance file: parts that stand only where not the default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, check_lengths, json_list, value_of, values_of
from gpusched_env.model import Cells, Duty, Instance, Interference, JobTable, Synchronisation, Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from gpusched_env.model import EpochDistribution

_JOBS = {
    "submission_s": float,
    "due_s": float,
    "tardiness_weight_eur_per_s": float,
    "max_epochs": float,
    "epochs_needed": float,
    "memory_gib": float,
    "restart_s": float,
    "application": int,
    "distribution": int,
}
_OPTIONAL_JOBS: dict[str, tuple[type, object]] = {
    "start_s": (float, 0.0),
    "resume_s": (float, None),
    "opportunistic": (bool, False),
    "tenant": (int, 0),
    "traced_start_s": (float, None),
    "traced_config": (int, None),
    "traced_type_known": (bool, False),
}
"""Columns that may be missing: their kind, and the value of all jobs where they are. None: the table has no column."""


def job_columns(jobs: JobTable) -> dict[str, Any]:
    """Give the columns of the file."""
    columns = {name: getattr(jobs, name).tolist() for name in _JOBS} | _optional_columns(jobs)
    return columns | {"seconds_per_epoch": _without_inf(jobs.seconds_per_epoch)}


def job_table(table: Any, refers_to: Callable[[], tuple[tuple[str, ...], tuple[EpochDistribution, ...]]]) -> JobTable:
    """Make the jobs from the columns of the file.

    Args:
        table: What the file has.
        refers_to: Gives the names of applications, and the distributions.

    Raises:
        InputError: A column is missing, unknown, of the wrong kind or length, or a value is out of its range.
    """
    given = _OPTIONAL_JOBS.keys() & table.keys() if isinstance(table, dict) else set()
    check_fields("jobs", table, {*_JOBS, *given, "seconds_per_epoch"})
    kinds = _JOBS | {name: kind for name, (kind, _) in _OPTIONAL_JOBS.items() if name in given}
    columns = {name: values_of(f"jobs.{name}", table[name], kind) for name, kind in kinds.items()}
    check_lengths(
        "jobs", {**columns, "seconds_per_epoch": json_list("jobs.seconds_per_epoch", table["seconds_per_epoch"])}
    )
    seconds = _seconds_per_epoch(table["seconds_per_epoch"])
    applications, distributions = refers_to()
    return JobTable(
        **{name: np.array(column) for name, column in columns.items()},
        seconds_per_epoch=seconds,
        applications=applications,
        distributions=distributions,
    )


def _optional_columns(jobs: JobTable) -> dict[str, list[Any]]:
    """Give the columns of which some value is not the default."""
    columns = {}
    for name, (_, default) in _OPTIONAL_JOBS.items():
        column = getattr(jobs, name)
        if column is not None and (default is None or not np.all(column == default)):
            columns[name] = column.tolist()
    return columns


def _without_inf(seconds: NDArray[np.float64]) -> list[list[float | None]]:
    rows: list[list[float | None]] = seconds.tolist()
    for row, column in np.argwhere(np.isinf(seconds)).tolist():
        rows[row][column] = None
    return rows


def _seconds_per_epoch(rows: list[Any]) -> NDArray[np.float64]:
    width = len(json_list("jobs.seconds_per_epoch[0]", rows[0])) if rows else 0
    seconds = np.empty((len(rows), width))
    for index, row in enumerate(rows):
        where = f"jobs.seconds_per_epoch[{index}]"
        if len(json_list(where, row)) != width:
            raise InputError(where, f"{len(row)} numbers", f"{width} numbers, as in row 0")
        finite = [value for value in row if value is not None]
        values_of(where, finite, float)
        seconds[index] = [np.inf if value is None else value for value in row]
    return seconds


_NUMBERS = ("overhead", "filled", "least_pace")
_DUTY = {"duty", *_NUMBERS, "idle_power_w", "fastest"}


def interference_fields(model: Interference | Duty | None) -> dict[str, Any] | None:
    """Give the fields of an interference model, its table first; None for none."""
    if model is None:
        return None
    if isinstance(model, Interference):
        return {"slowdown": model.slowdown.tolist(), **({"fastest": True} if model.fastest else {})}
    numbers = {name: getattr(model, name) for name in _NUMBERS}
    idle = None if model.idle_power_w is None else model.idle_power_w.tolist()
    return {"duty": model.duty.tolist(), **numbers, "idle_power_w": idle, "fastest": model.fastest}


def interference_of(entry: Any) -> Interference | Duty | None:
    """Make the interference model of the field `interference`.

    Raises:
        InputError: A field is missing, unknown, of the wrong kind or out of its range.
    """
    if entry is None:
        return None
    if isinstance(entry, dict) and "duty" in entry:
        return _duty(entry)
    optional = {"fastest"} if isinstance(entry, dict) and "fastest" in entry else set()
    check_fields("interference", entry, {"slowdown", *optional})
    return Interference(_slowdown(entry["slowdown"]), _flag(entry.get("fastest", False)))


def _slowdown(entry: Any) -> NDArray[np.float64]:
    where = "interference.slowdown"
    types = json_list(where, entry)
    width = len(json_list(f"{where}[0]", types[0])) if types else 0
    slowdown = np.empty((len(types), width, width))
    for v, of_type in enumerate(types):
        if len(json_list(f"{where}[{v}]", of_type)) != width:
            raise InputError(f"{where}[{v}]", f"{len(of_type)} rows", f"{width} rows, one for each application")
        for a, row in enumerate(of_type):
            values = values_of(f"{where}[{v}][{a}]", row, float)
            if len(values) != width:
                raise InputError(f"{where}[{v}][{a}]", f"{len(values)} numbers", f"{width}, one for each application")
            slowdown[v, a] = values
    return slowdown


def _duty(entry: dict[str, Any]) -> Duty:
    check_fields("interference", entry, _DUTY)
    rows = json_list("interference.duty", entry["duty"])
    table = [values_of(f"interference.duty[{v}]", row, float) for v, row in enumerate(rows)]
    for v, row in enumerate(table):
        if len(row) != len(table[0]):
            raise InputError(f"interference.duty[{v}]", f"{len(row)} numbers", f"{len(table[0])}, as in row 0")
    idle = entry["idle_power_w"]
    return Duty(
        np.array(table),
        **{name: value_of(f"interference.{name}", entry[name], float) for name in _NUMBERS},
        idle_power_w=None if idle is None else np.array(values_of("interference.idle_power_w", idle, float)),
        fastest=_flag(entry["fastest"]),
    )


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError("interference.fastest", value, "true or false")
    return value


FIELD = "synchronisation"


def synchronisation_field(instance: Instance) -> dict[str, Any]:
    """Give the field by its name, or nothing where the instance has none."""
    own = instance.synchronisation
    if own is None:
        return {}
    tables = {name: getattr(own, name).tolist() for name in ("compute_s", "sync_s")}
    return {FIELD: {**tables, "cpu_machines": int(own.cpu_machines)}}


def synchronisation_of(document: Mapping[str, Any]) -> Synchronisation | None:
    """Read the field, if the document has it.

    Raises:
        InputError: A field in it is missing, unknown, of the wrong kind or out of its range.
    """
    if FIELD not in document:
        return None
    entry = document[FIELD]
    check_fields(FIELD, entry, {"compute_s", "sync_s", "cpu_machines"})
    tables = {name: _table(f"{FIELD}.{name}", entry[name]) for name in ("compute_s", "sync_s")}
    return Synchronisation(**tables, cpu_machines=value_of(f"{FIELD}.cpu_machines", entry["cpu_machines"], int))


def _table(where: str, rows: Any) -> NDArray[np.float64]:
    values = [values_of(f"{where}[{v}]", row, float) for v, row in enumerate(json_list(where, rows))]
    if len({len(row) for row in values}) != 1:
        raise InputError(where, f"rows of {sorted({len(row) for row in values})} numbers", "equally long rows")
    return np.array(values)


FIELDS = ("tenancy", "tenants", "hosts")
_CELLS = ("gpu_type", "gpus", "count")


def tenants_document(instance: Instance) -> dict[str, Any]:
    """Give the fields: what tenants are to the cluster, and each with its cells; none without tenants."""
    if not instance.tenants:
        return {}
    tenants = [
        {"name": tenant.name, "cells": [[cells.gpu_type, int(cells.gpus), int(cells.count)] for cells in tenant.cells]}
        for tenant in instance.tenants
    ]
    hosts = {"hosts": instance.hosts} if instance.hosts else {}
    return {"tenancy": instance.tenancy, "tenants": tenants, **hosts}


def tenants_of(document: dict[str, Any]) -> dict[str, Any]:
    """Give the arguments of `Instance` that these fields stand for.

    Raises:
        InputError: A field is missing beside the other, unknown, of the wrong kind or out of its range.
    """
    given = [name for name in FIELDS if name in document]
    if not given:
        return {}
    for name in FIELDS[:2]:
        if name not in document:
            raise InputError(name, None, "a value: the field is missing")
    entries = json_list("tenants", document["tenants"])
    return {
        "hosts": value_of("hosts", document.get("hosts", 0), int),
        "tenancy": value_of("tenancy", document["tenancy"], str),
        "tenants": tuple(_tenant(f"tenants[{i}]", entry) for i, entry in enumerate(entries)),
    }


def _tenant(where: str, entry: Any) -> Tenant:
    check_fields(where, entry, {"name", "cells"})
    try:
        cells = tuple(_cells(f"{where}.cells[{i}]", row) for i, row in enumerate(json_list(where, entry["cells"])))
        return Tenant(value_of(f"{where}.name", entry["name"], str), cells)
    except InputError as error:
        if error.field.startswith(where):
            raise
        raise InputError(f"{where}.{error.field.rpartition('.')[2]}", error.value, error.allowed) from error


def _cells(where: str, row: Any) -> Cells:
    values = json_list(where, row)
    if len(values) != len(_CELLS):
        raise InputError(where, f"{len(values)} values", f"{len(_CELLS)}: {', '.join(_CELLS)}")
    gpu_type, gpus, count = values
    return Cells(value_of(where, gpu_type, str), value_of(where, gpus, int), value_of(where, count, int))
