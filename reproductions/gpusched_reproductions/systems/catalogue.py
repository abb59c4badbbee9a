"""All parts of all systems, in the order of the pages."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_reproductions.systems.store import Part

SYSTEMS = ("pipeswitch", "antman", "fikit", "gavel", "byteps", "hived")
ALL = "systems"
"""The name that stands for all of them on the command line."""


def parts_of(name: str) -> tuple[Part, ...]:
    """List the parts of a system, or of all of them.

    Args:
        name: A system, or `ALL`.

    Raises:
        InputError: There is no such system.
    """
    if name not in (*SYSTEMS, ALL):
        raise InputError("system", name, f"one of {', '.join(SYSTEMS)}, or {ALL}")
    here = __name__.rpartition(".")[0]
    there = {module.name for module in iter_modules(import_module(here).__path__)}
    chosen = [each for each in SYSTEMS if each in there and name in (each, ALL)]
    return tuple(part for each in chosen for part in import_module(f"{here}.{each}").PARTS)
