"""Interference in an instance file: slow-downs of pairs, or how jobs divide the time of a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, json_list, value_of, values_of
from gpusched_env.model import Duty, Interference

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
