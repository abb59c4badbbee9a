"""The modules of mechanisms: each mechanism is a folder, whose modules are imported when they are needed."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from types import ModuleType

_OUTSIDE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def part_of(mechanism: str, part: str) -> ModuleType:
    """Import a module of a mechanism.

    Args:
        mechanism: A folder of `gpusched_env.mechanisms`, or, with a dot, the name of another package.
        part: The module: `model`, `scenario`, `kernels`, `names`, `features`, `futures` or `audit`.

    Raises:
        InputError: There is no such package, or it has no such module.
    """
    place = mechanism if "." in mechanism else f"gpusched_env.mechanisms.{mechanism}"
    allowed = f"a package that can be imported, with a module {part}"
    if not _OUTSIDE.fullmatch(place):
        raise InputError("mechanisms", mechanism, allowed)
    try:
        return import_module(f"{place}.{part}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.{part}".startswith(error.name):
            raise
        raise InputError("mechanisms", mechanism, allowed) from None


def is_loaded(mechanism: str) -> bool:
    """Whether this process has imported the model of a mechanism."""
    return f"{mechanism}.model" in sys.modules


def short_name(mechanism: str) -> str:
    """Return the last part of the name: that of the table of a scenario, and of the part of an observation."""
    return mechanism.rpartition(".")[2]
