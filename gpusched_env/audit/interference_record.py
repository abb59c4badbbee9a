"""What instance.json records of interference: slow-downs of pairs, or duties of jobs and what hosts lose to guests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.audit.reading import AT_LEAST_ONE, NOT_NEGATIVE, Range, items_of, numbers_of

if TYPE_CHECKING:
    from gpusched_env.audit.reading import Fields

_DUTY_FIELDS = ("duty", "overhead", "filled", "least_pace", "idle_power_w", "fastest")
_DUTY, _PART = Range("a number in (0, 1]", 0.0, 1.0, open=True), Range("a number from 0 to 1", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class GuestRecord:
    """What those lose who have guests, the part of the time left that guests fill, and the least they keep."""

    overhead: float = 0.0
    filled: float = 1.0
    least_pace: float = 0.0


def _is_by_duty(instance: Fields) -> bool:
    model = instance.get("interference")
    return isinstance(model, dict) and "duty" in model


def read_guests(instance: Fields) -> GuestRecord:
    """Give what hosts lose and guests get; nothing of either if GPUs are not shared by duty."""
    if not _is_by_duty(instance):
        return GuestRecord()
    model = instance.fields("interference")
    overhead, filled = model.number("overhead", NOT_NEGATIVE), model.number("filled", _PART)
    least = Range("a number > 0 and <= overhead / (1 + overhead)", 0.0, overhead / (1.0 + overhead), open=True)
    return GuestRecord(overhead, filled, model.number("least_pace", least))


def read_slowdown(instance: Fields, gpu_types: int, applications: int) -> list[list[list[float]]] | list[None]:
    """Give the slow-downs of pairs of applications for each GPU type; None for each if there is no model."""
    if instance.get("interference") is None or _is_by_duty(instance):
        return [None] * gpu_types
    model = instance.fields("interference").only("slowdown", "fastest")
    where, tables = model.name("slowdown"), []
    for v, table in enumerate(model.items("slowdown", gpu_types)):
        rows = enumerate(items_of(f"{where}[{v}]", table, applications))
        tables.append([numbers_of(f"{where}[{v}][{a}]", row, applications, AT_LEAST_ONE) for a, row in rows])
    return tables


def read_duty(instance: Fields, gpu_types: int, applications: int) -> tuple[list[Any], list[Any]]:
    """Give the duties of the applications for each GPU type, and the power of one that is held and does nothing."""
    if not _is_by_duty(instance):
        return [None] * gpu_types, [None] * gpu_types
    model = instance.fields("interference").only(*_DUTY_FIELDS)
    where = model.name("duty")
    rows = enumerate(model.items("duty", gpu_types))
    duty = [numbers_of(f"{where}[{v}]", row, applications, _DUTY) for v, row in rows]
    if model.get("idle_power_w") is None:
        return list(duty), [None] * gpu_types
    return list(duty), list(model.numbers("idle_power_w", gpu_types, NOT_NEGATIVE))
