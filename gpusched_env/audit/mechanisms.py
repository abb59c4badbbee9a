"""The accountants of mechanisms of other packages: their modules `audit` compute again what runs record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.parts import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.reading import Difference
    from gpusched_env.audit.record import Record


def rents(record: Record) -> list[dict[int, list[float]]]:
    """Return of each mechanism what each job pays for what it holds [€]: its `rents(record, fields)`, if it has it."""
    modules = [(part_of(name, "audit"), fields) for name, fields in record.mechanisms.items()]
    return [module.rents(record, fields) for module, fields in modules if hasattr(module, "rents")]


def changed_worth(record: Record, seconds: dict[int, float]) -> dict[int, float]:
    """Return the working seconds of each line, changed by the `worth(record, fields, seconds)` of each mechanism."""
    for name, fields in record.mechanisms.items():
        module = part_of(name, "audit")
        seconds = module.worth(record, fields, seconds) if hasattr(module, "worth") else seconds
    return seconds


def stopped(record: Record) -> set[tuple[int, float]]:
    """Return the jobs that mechanisms stop, each with the time [s]: their `stopped(record, fields)`."""
    modules = [(part_of(name, "audit"), fields) for name, fields in record.mechanisms.items()]
    found = [module.stopped(record, fields) for module, fields in modules if hasattr(module, "stopped")]
    return {each for own in found for each in own}


def check_mechanisms(record: Record) -> Iterator[Difference]:
    """Yield the differences that the mechanisms find: those of their `check(record, fields)`, if they have it."""
    for name, fields in record.mechanisms.items():
        module = part_of(name, "audit")
        yield from module.check(record, fields) if hasattr(module, "check") else ()
