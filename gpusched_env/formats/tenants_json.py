"""The tenants of an instance as fields of its file, which are there only where there are tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, json_list, value_of
from gpusched_env.model import Cells, Tenant

if TYPE_CHECKING:
    from gpusched_env.model import Instance

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
