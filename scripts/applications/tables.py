"""Writes rows as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance


def write_csv(path: Path, rows: Sequence[DataclassInstance]) -> None:
    """Write dataclass rows under the names of their fields, as `write_table` does.

    Args:
        path: The table; its folder is made where it is missing.
        rows: At least one row.
    """
    write_table(path, [[field.name for field in fields(rows[0])], *(astuple(row) for row in rows)])


def write_table(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write rows: to a temporary file first, then renamed, so a reader never sees half a table.

    Args:
        path: The table; its folder is made where it is missing.
        rows: The header and the others; floats are written with six significant digits.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text.getvalue(), encoding="utf-8", newline="\n")
    temporary.replace(path)


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
