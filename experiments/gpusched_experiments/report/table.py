"""Tables, as Markdown and as CSV: a column knows what it says of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Generic, Self, TypeAlias, TypeVar

from gpusched_env.errors import InputError
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.store import csv_lines

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
NUMBERS = (COUNT, MONEY, RATIO, MILLISECONDS, SHARE, PERCENT)
"""Forms of columns that hold numbers alone; PLAIN also writes ranges."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table whose rows are about a `T` each.

    Attributes:
        name: Its name in CSV, with the unit; an estimate there has `name_low` and `name_high` beside it.
        title: Its heading in Markdown, with the unit.
        value: What it says of a row's subject; None is written as an empty cell, NaN as "n/a".
        form: How its numbers are written in Markdown; `TEXT` stands on the left. A text in place of a number, such as
            "reference", is empty in CSV.
        interval: Whether its values are estimates, so that the CSV has their intervals.
        main: Whether it belongs to the table even where there is little room.
    """

    name: str
    title: str
    value: Callable[[T], Value]
    form: Form = TEXT
    interval: bool = False
    main: bool = True


class ColumnNote(str):
    """A note on columns of a table, which goes with them.

    Attributes:
        of: Names of the columns; the note stays while one of them does.
    """

    __slots__ = ("of",)
    of: tuple[str, ...]

    def __new__(cls, text: str, *of: str) -> Self:
        made = super().__new__(cls, text)
        made.of = of
        return made


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
        chosen = tuple(columns)
        return cls(title, chosen, tuple(tuple(column.value(each) for column in chosen) for each in subjects), notes)

    def keeping(self, places: Iterable[int]) -> Table:
        """Return the table of these columns, by their places, with the notes on the table and on them."""
        left = tuple(places)
        columns = tuple(self.columns[index] for index in left)
        names = {column.name for column in columns}
        notes = tuple(n for n in self.notes if not isinstance(n, ColumnNote) or names.intersection(n.of))
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in left) for row in self.rows), notes=notes)

    def as_dicts(self) -> list[dict[str, Value]]:
        return [{c.name: value for c, value in zip(self.columns, row, strict=True)} for row in self.rows]

    def texts(self) -> list[list[str]]:
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
    notes = "".join(f"\n{note}" for note in table.notes)
    return f"### {table.title}\n\n{markdown_rows(table)}\n" + (notes + "\n" if notes else "")


def markdown_rows(table: Table) -> str:
    align = ["---" if column.form is TEXT else "---:" for column in table.columns]
    cells = ([text.replace("|", "\\|") for text in line] for line in table.texts())
    lines = [[column.title for column in table.columns], align, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text_table(table: Table) -> str:
    lines = [[column.title for column in table.columns], *table.texts()]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = ["<" if column.form is TEXT else ">" for column in table.columns]
    rows = ["  ".join(map("{:{}{}}".format, line, sides, widths)).rstrip() for line in lines]
    return "\n".join([*rows, *table.notes])


def csv_text(table: Table) -> str:
    header: list[str] = []
    for column in table.columns:
        header += [column.name, f"{column.name}_low", f"{column.name}_high"] if column.interval else [column.name]
    rows = [
        [cell for value, c in zip(row, table.columns, strict=True) for cell in _plain(value, c)] for row in table.rows
    ]
    return csv_lines([header, *rows])


def _plain(value: Value, column: Column[Any]) -> list[Value]:
    low, high = value.interval or (None, None) if isinstance(value, Estimate) else (None, None)
    number = value.value if isinstance(value, Estimate) else value
    if isinstance(number, str) and column.form in NUMBERS:
        number = None
    cells = [number, *((low, high) if column.interval else ())]
    return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


def _text(value: Value, form: Form) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Estimate):
        ends = "" if value.interval is None else f" [{', '.join(_text(end, form) for end in value.interval)}]"
        return _text(value.value, form) + ends
    return "n/a" if math.isnan(value) else form(value)


# One pass over the text, so that what replaces a letter is not replaced again.
_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "€": r"\texteuro{}",
        "<": "$<$", ">": "$>$", "|": "$|$", "Σ": r"$\Sigma$", "≥": r"$\geq$", "≤": r"$\leq$",
        "·": r"$\cdot$", "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{MINUS SIGN}": "$-$", "₂": r"$_2$", "µ": r"$\mu$",
    }
    | {letter: rf"\{letter}" for letter in "&%$#_{}"}
)  # fmt: skip


def table_text(table: Table, form: str) -> str:
    if form not in TABLE_FORMATS:
        raise InputError("format", form, f"one of {', '.join(TABLE_FORMATS)}")
    return TABLE_FORMATS[form](table)


def json_table(table: Table) -> str:
    """Write the table as JSON: its rows by the names of the columns, numbers in full.

    An estimate is an object of `value`, `low`, `high` (null without an interval) and `seeds`; what is no number
    is null.
    """
    document = {
        "title": table.title,
        "columns": [{"name": column.name, "title": column.title} for column in table.columns],
        "rows": [{name: _json_value(value) for name, value in row.items()} for row in table.as_dicts()],
        "notes": list(table.notes),
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def html_table(table: Table, best: str | None = None) -> str:
    """Write the table as a fragment of HTML: a caption, headings with a scope, and its notes as paragraphs below it.

    Cells with numbers carry them in full as `data-value`. Everything is escaped.

    Args:
        best: The first column's text of the row that gets the class `best`.
    """
    heads = "".join(
        f'<th scope="col"{_class(column.form is not TEXT)}>{_heading(column.title)}</th>' for column in table.columns
    )
    lines = [
        f"<tr{_class(texts[0] == best, 'best')}>{_html_cells(table, row, texts)}</tr>"
        for row, texts in zip(table.rows, table.texts(), strict=True)
    ]
    body = "\n".join(lines)
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in table.notes)
    return (
        f"<table>\n<caption>{escape(table.title)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n{notes}"
    )


def latex_table(table: Table) -> str:
    r"""Write the table for LaTeX: a `tabular` with the rules of the package booktabs, its notes as comments below.

    The sign of the euro is `\texteuro`, which LaTeX has had since 2020.
    """
    letters = "".join("l" if column.form is TEXT else "r" for column in table.columns)
    head = " & ".join(_tex(column.title) for column in table.columns)
    rows = "\n".join(" & ".join(_tex(text) for text in texts) + r" \\" for texts in table.texts())
    notes = "".join(
        f"% {' '.join(note.split())}\n" for note in (f"{table.title}. Needs the package booktabs.", *table.notes)
    )
    return (
        f"\\begin{{tabular}}{{{letters}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\n"
        f"\\bottomrule\n\\end{{tabular}}\n{notes}"
    )


TABLE_FORMATS: Mapping[str, Callable[[Table], str]] = {
    "md": markdown,
    "csv": csv_text,
    "json": json_table,
    "html": html_table,
    "tex": latex_table,
}
"""What writes a table, by the format's name."""


def _json_value(value: Value) -> Any:
    if isinstance(value, Estimate):
        low, high = value.interval or (None, None)
        return {"value": _finite(value.value), "low": low, "high": high, "seeds": value.seeds}
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _html_cells(table: Table, row: tuple[Value, ...], texts: list[str]) -> str:
    """Write the cells of a row; the first is the row's heading, and an interval stands in a span of its own."""
    cells = []
    for index, (column, value, text) in enumerate(zip(table.columns, row, texts, strict=True)):
        tag, scope = ("th", ' scope="row"') if index == 0 else ("td", "")
        number = value.value if isinstance(value, Estimate) else value
        data = f' data-value="{number!r}"' if isinstance(number, int | float) and math.isfinite(number) else ""
        shown = escape(text)
        if isinstance(value, Estimate) and value.interval is not None:
            shown = f'{escape(text.split(" [")[0])} <span class="interval">[{escape(text.split(" [")[1])}</span>'
        cells.append(f"<{tag}{scope}{_class(column.form is not TEXT)}{data}>{shown}</{tag}>")
    return "".join(cells)


def _heading(title: str) -> str:
    """Write a heading whose unit stays with the word before it."""
    return escape(title).replace(" €", "&nbsp;€")


def _class(wanted: bool, name: str = "number") -> str:
    return f' class="{name}"' if wanted else ""


def _tex(text: str) -> str:
    """Write a text for LaTeX; a bracket at the beginning of a cell would be taken for an option of the line before."""
    written = text.translate(_TEX)
    return f"{{{written}}}" if written.startswith("[") else written
