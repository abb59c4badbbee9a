"""Tables of an experiment, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gpusched_experiments.published.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

# A percent is signed (a saving may be a loss), a share is not (late jobs of all jobs).
Form = Literal["text", "count", "money", "percent", "share", "milliseconds", "ratio"]
Value: TypeAlias = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: Its name in CSV, with the unit; an estimate there has `name_low` and `name_high` beside it.
        title: Its heading in Markdown, with the unit.
        form: How its values are written in Markdown.
        interval: Whether its values are estimates, so that the CSV has their intervals.
    """

    name: str
    title: str
    form: Form = "text"
    interval: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: What it shows.
        columns: Its columns.
        rows: Its rows, each with one value for every column; None is written as an empty cell, NaN as "n/a".
        notes: What must be said of its figures, a sentence each.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(table: Table) -> str:
    """Write the table with its title and notes."""
    align = ["---" if column.form == "text" else "---:" for column in table.columns]
    lines = [[column.title for column in table.columns], align, *cells(table)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"\n{note}" for note in table.notes)
    return f"### {table.title}\n\n{text}\n" + (notes + "\n" if notes else "")


def cells(table: Table) -> list[list[str]]:
    """Write every value as a text, row by row."""
    return [[_text(value, c.form) for value, c in zip(row, table.columns, strict=True)] for row in table.rows]


def csv_text(table: Table) -> str:
    """Write the table as CSV, numbers in full; what there is not is an empty cell."""
    header: list[str] = []
    for column in table.columns:
        header += [column.name, f"{column.name}_low", f"{column.name}_high"] if column.interval else [column.name]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        writer.writerow(_csv_row(row, table.columns))
    return buffer.getvalue()


def _csv_row(row: Sequence[Value], columns: Sequence[Column]) -> list[str]:
    texts: list[str] = []
    for value, column in zip(row, columns, strict=True):
        if isinstance(value, Estimate):
            ends = value.interval if value.interval is not None else (None, None)
            texts += [_plain(v) for v in (value.value, *(ends if column.interval else ()))]
        else:
            texts += [_plain(value)] + ["", ""] * column.interval
    return texts


def _plain(value: Value) -> str:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def _text(value: Value, form: Form) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Estimate):
        middle = _number(value.value, form)
        if value.interval is None:
            return middle
        low, high = (_number(end, form) for end in value.interval)
        return f"{middle} [{low}, {high}]"
    return _number(value, form)


def _number(value: float, form: Form) -> str:
    if math.isnan(value):
        return "n/a"
    if form == "percent":
        return f"{value:+.0%}" if abs(value) >= 10 else f"{value:+.1%}"
    if form == "share":
        return f"{value:.1%}"
    if form == "money":
        return f"{value:,.2f}"
    if form == "milliseconds":
        return f"{1000.0 * value:.3g}" if value < 0.1 else f"{1000.0 * value:,.0f}"
    return f"{value:,.0f}" if form == "count" else f"{value:.2f}"
