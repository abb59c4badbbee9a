"""Provenance of a result: the command, the versions and the time."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError

PACKAGES = ("gpusched-env", "numpy", "numba", "gymnasium", "scipy", "polars")


def provenance(command: str | None = None, **facts: Any) -> dict[str, Any]:
    """Describe the provenance of a result, for the result's own file.

    Args:
        command: The command line that made it; by default the present process's. The program is given by its name
            alone, without the folders of the machine it ran on.
        **facts: All else that the result depends on (seed, scenario, options): anything JSON can hold, NumPy scalars
            too.

    Returns:
        `made_utc` (ISO 8601, seconds), `command`, `python`, `platform`, `packages` (name to version, None where one is
        not installed) and `facts`; every value can be written as JSON.

    Raises:
        InputError: A fact cannot be written as JSON.
    """
    return {
        "made_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command_line() if command is None else command,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "facts": {name: _plain(name, value) for name, value in facts.items()},
    }


def _command_line() -> str:
    program, *arguments = sys.argv or [""]
    return shlex.join([Path(program).name, *arguments])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(name: str, value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_scalar))
    except (TypeError, ValueError) as error:
        raise InputError(f"facts.{name}", value, "a value that JSON can hold, without NaN or inf") from error


def _scalar(value: Any) -> Any:
    if not hasattr(value, "item"):
        raise TypeError(type(value).__name__)
    return value.item()
