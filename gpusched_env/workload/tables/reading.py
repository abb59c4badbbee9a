"""Reading the package's own tables."""

from __future__ import annotations

import csv
from importlib.resources import files

from gpusched_env.errors import InputError

Row = dict[str, str]


def read_table(name: str) -> list[Row]:
    """Read a table of the package as texts, one dictionary per row."""
    text = files("gpusched_env").joinpath("workload", "tables", "data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def number(field: str, text: str) -> float:
    """Return the number in a cell; `field` names the cell in the error.

    Raises:
        InputError: It is no number.
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(field, text, "a number") from None


def whole(field: str, text: str) -> int:
    """Return the whole number in a cell; `field` names the cell in the error.

    Raises:
        InputError: It is no whole number.
    """
    try:
        return int(text)
    except ValueError:
        raise InputError(field, text, "a whole number") from None
