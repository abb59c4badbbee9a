"""Tables in the formats that people send on: Markdown, CSV, JSON, HTML and LaTeX."""

from __future__ import annotations

import json
import math
from html import escape
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.table import TEXT, csv_text, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpusched_experiments.report.table import Table, Value

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
    """Write the table as a text of this format, with a last line break.

    Args:
        table: The table.
        form: A name in `TABLE_FORMATS`.

    Raises:
        InputError: There is no such format.
    """
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
        table: The table.
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
    r"""Write the table for LaTeX: a `tabular` with the rules of the package booktabs, and its notes as comments.

    The sign of the euro is `\texteuro`, which LaTeX has had since 2020.
    """
    letters = "".join("l" if column.form is TEXT else "r" for column in table.columns)
    head = " & ".join(_tex(column.title) for column in table.columns)
    rows = "\n".join(" & ".join(_tex(text) for text in texts) + r" \\" for texts in table.texts())
    notes = "".join(
        f"% {' '.join(note.split())}\n" for note in (f"{table.title}. Needs the package booktabs.", *table.notes)
    )
    return (
        f"{notes}\\begin{{tabular}}{{{letters}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\n"
        "\\bottomrule\n\\end{tabular}\n"
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
