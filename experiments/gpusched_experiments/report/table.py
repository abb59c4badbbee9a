"""Tables, as Markdown and as CSV: a column knows what it says of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.store import csv_lines

if TYPE_CHECKING:
    from pathlib import Path

Value: TypeAlias = str | int | float | Estimate | None
Form: TypeAlias = Callable[[float], str]
T = TypeVar("T")


def _percent(share: float) -> str:
    return f"{share:+.0%}" if abs(share) >= 10 else f"{share:+.1%}"


def _milliseconds(seconds: float) -> str:
    return f"{1000.0 * seconds:.3g}" if seconds < 0.1 else f"{1000.0 * seconds:,.0f}"


TEXT: Form = str
COUNT: Form = "{:,.0f}".format
PLAIN: Form = "{}".format  # a number as it is
MONEY: Form = "{:,.2f}".format
RATIO: Form = "{:.2f}".format
MILLISECONDS: Form = _milliseconds  # of seconds
SHARE: Form = "{:.1%}".format  # of a whole, such as late jobs of all jobs: without a sign
PERCENT: Form = _percent  # signed: a saving may be a loss


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table whose rows are about a `T` each.

    Attributes:
        name: Its name in CSV, with the unit; an estimate there has `name_low` and `name_high` beside it.
        title: Its heading in Markdown, with the unit.
        value: What it says of a row's subject; None is written as an empty cell, NaN as "n/a".
        form: How its numbers are written in Markdown; `TEXT` stands on the left.
        interval: Whether its values are estimates, so that the CSV has their intervals.
        main: Whether it belongs to the table even where there is little room.
    """

    name: str
    title: str
    value: Callable[[T], Value]
    form: Form = TEXT
    interval: bool = False
    main: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: What it shows.
        columns: Its columns.
        rows: Its rows, each with the value of every column.
        notes: What must be said of its figures, a sentence each.
    """

    title: str
    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, columns: Iterable[Column[T]], subjects: Iterable[T], notes: tuple[str, ...] = ()) -> Table:
        """Make the table that has a row for every subject."""
        chosen = tuple(columns)
        return cls(title, chosen, tuple(tuple(column.value(each) for column in chosen) for each in subjects), notes)

    def as_dicts(self) -> list[dict[str, Value]]:
        """Give every row as its values by the names of the columns."""
        return [{c.name: value for c, value in zip(self.columns, row, strict=True)} for row in self.rows]

    def texts(self) -> list[list[str]]:
        """Write every value as a text, row by row."""
        return [[_text(value, c.form) for value, c in zip(row, self.columns, strict=True)] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a report came to.

    Attributes:
        folder: Where its files stand.
        table: Its short table.
        files: Names of the files in the folder that were written.
    """

    folder: Path
    table: Table
    files: tuple[str, ...]


def markdown(table: Table) -> str:
    """Write the table with its title and notes."""
    notes = "".join(f"\n{note}" for note in table.notes)
    return f"### {table.title}\n\n{markdown_rows(table)}\n" + (notes + "\n" if notes else "")


def markdown_rows(table: Table) -> str:
    """Write the headings and rows of the table alone, without a last line break."""
    align = ["---" if column.form is TEXT else "---:" for column in table.columns]
    cells = ([text.replace("|", "\\|") for text in line] for line in table.texts())
    lines = [[column.title for column in table.columns], align, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text_table(table: Table) -> str:
    """Write headings and rows with aligned columns, and the notes below them, without a last line break."""
    lines = [[column.title for column in table.columns], *table.texts()]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = ["<" if column.form is TEXT else ">" for column in table.columns]
    rows = ["  ".join(map("{:{}{}}".format, line, sides, widths)).rstrip() for line in lines]
    return "\n".join([*rows, *table.notes])


def csv_text(table: Table) -> str:
    """Write the table as CSV, numbers in full; what there is not is an empty cell."""
    header: list[str] = []
    for column in table.columns:
        header += [column.name, f"{column.name}_low", f"{column.name}_high"] if column.interval else [column.name]
    rows = [
        [cell for value, c in zip(row, table.columns, strict=True) for cell in _plain(value, c)] for row in table.rows
    ]
    return csv_lines([header, *rows])


def _plain(value: Value, column: Column[Any]) -> list[Value]:
    """Give the cells of a value, with the ends of its interval where the column has them."""
    low, high = value.interval or (None, None) if isinstance(value, Estimate) else (None, None)
    cells = [value.value if isinstance(value, Estimate) else value, *((low, high) if column.interval else ())]
    return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


def _text(value: Value, form: Form) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Estimate):
        ends = "" if value.interval is None else f" [{', '.join(_text(end, form) for end in value.interval)}]"
        return _text(value.value, form) + ends
    return "n/a" if math.isnan(value) else form(value)
