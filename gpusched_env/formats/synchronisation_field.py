"""The field `synchronisation` of an instance file, which only instances with BytePS have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, json_list, value_of, values_of
from gpusched_env.model import Instance, Synchronisation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

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
