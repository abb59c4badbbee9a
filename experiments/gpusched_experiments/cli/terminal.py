"""Where the commands write: results to stdout, progress to stderr; and completion in shells."""

import codecs
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import TextIO

import typer
from rich import table as rich
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from gpusched_env.errors import MissingExtraError
from gpusched_env.workload import list_scenarios, list_tracks
from gpusched_experiments.report.table import TEXT, Outcome, Table

WIDE = 190


PLAIN = {
    "\N{EURO SIGN}": "EUR", "\N{MULTIPLICATION SIGN}": "x", "\N{MIDDLE DOT}": "*", "\N{EN DASH}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...", "\N{GREATER-THAN OR EQUAL TO}": ">=", "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{RIGHTWARDS ARROW}": "->", "\N{SUBSCRIPT TWO}": "2", "\N{N-ARY SUMMATION}": "sum",
}  # fmt: skip
"""What stands for characters that a terminal's encoding lacks; anything else becomes a question mark."""


def output() -> Console:
    """Return the console for results: as wide as the terminal or COLUMNS; else wide, as for files and pipes."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if known else WIDE, highlight=False, soft_wrap=False)


def write_plainly(*streams: TextIO) -> None:
    """Let streams whose encoding lacks a character write another one in its place, rather than fail."""
    codecs.register_error(__name__, _in_plain_characters)
    for stream in streams:
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=__name__)


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(each, "?") for each in error.object[error.start : error.end]), error.end


def progress_output() -> Console:
    return Console(stderr=True, highlight=False)


def note_if_one_seed(seeds: str | None) -> None:
    """Print a note that `--seeds 40` is one seed; it may be meant as forty."""
    if seeds is not None and seeds.strip().isdecimal() and int(seeds) > 1:
        count = int(seeds)
        typer.echo(f"note: --seeds {count} is the one seed {count}; {count} seeds are 0-{count - 1}", err=True)


def drawing_or_note(module: str) -> ModuleType | None:
    try:
        return import_module(module)
    except MissingExtraError as missing:
        typer.echo(f"note: no figures, since {missing}", err=True)
        return None


def write_report(folder: Path) -> Path | None:
    from gpusched_experiments.report.comparison_writing import write_page  # noqa: PLC0415 - it takes time

    try:
        return write_page(folder)
    except MissingExtraError as missing:
        typer.echo(f"note: no report.html, since {missing}", err=True)
        return None


def a_policy(incomplete: str) -> list[str]:
    from gpusched_agents.any_policy import known_policies  # noqa: PLC0415 - it takes time, and so does the next
    from gpusched_baselines.registry import policy_names  # noqa: PLC0415

    agents = [name for name in known_policies() if name.startswith("agent:")]
    return [name for name in (*policy_names(), *agents) if name.startswith(incomplete)]


def policies(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in a_policy(last) if name not in before.split(",")]


def a_scenario(incomplete: str) -> list[str]:
    return [name for name in (*list_scenarios(), *list_tracks()) if name.startswith(incomplete)]


def a_track(incomplete: str) -> list[str]:
    return [name for name in list_tracks() if name.startswith(incomplete)]


def print_table(
    console: Console,
    table: Table,
    *,
    title: str | None = None,
    no_wrap: bool = False,
    named: bool = False,
    best: str | None = None,
    stacked: bool | None = False,
    wide: bool = False,
) -> bool:
    """Print a table and its notes; leave out columns for which there is no room, and return whether there are any.

    Numbers and names are never cut.

    Args:
        no_wrap: Whether the table is printed whole, however wide.
        best: The first column's text of the row that is green.
        stacked: Whether intervals have lines of their own; None: where there is no room for them beside the number.
        wide: Whether all columns, not the first alone, are as wide as what stands in them.
    """
    if stacked is None:
        stacked = len(fitting(table, console.width, stacked=False).columns) < len(table.columns)
    whole, table = table, table if no_wrap else fitting(table, console.width, stacked=stacked)
    rows = [[text.replace(" [", "\n[") if stacked else text for text in row] for row in table.texts()]
    shown = rich.Table(box=SIMPLE_HEAD, pad_edge=False, title=title and escape(title), title_justify="left")
    for index, column in enumerate(table.columns):
        first = named and index == 0
        widest = _width(table, rows, index, title=False)
        shown.add_column(
            escape(column.title),
            justify="left" if column.form is TEXT else "right",
            style="bold" if first else None,
            no_wrap=no_wrap or first,
            min_width=widest if first or wide or column.form is not TEXT else min(widest, LINE),
        )
    for row in rows:
        shown.add_row(*map(escape, row), style="green" if row[0] == best else None)
    _print_without_blanks(console, shown)
    for note in table.notes:
        console.print(note, style="dim", markup=False)
    return len(table.columns) < len(whole.columns)


KEPT, PADDING = 2, 3
"""Columns that are always printed, and what stands between two."""
LINE = 28
"""Least width of a column of sentences."""


def fitting(table: Table, width: int, *, stacked: bool = True) -> Table:
    """Leave out columns until the rest is no wider than `width`, and what is said of them.

    Those that are not `main` go first, from the right, then the others; two are always kept.

    Args:
        stacked: Whether intervals have lines of their own.
    """
    texts = [[text.replace(" [", "\n[") if stacked else text for text in row] for row in table.texts()]
    left = list(range(len(table.columns)))
    for index in sorted(left, key=lambda index: (table.columns[index].main, -index)):
        if len(left) <= KEPT or sum(_width(table, texts, each) + PADDING for each in left) <= width:
            break
        left.remove(index)
    return table.keeping(left)


def _width(table: Table, texts: list[list[str]], index: int, *, title: bool = True) -> int:
    """Return how wide a column must be: as its widest value, of sentences a line, or as a word of its title."""
    values = [line for row in texts for line in row[index].splitlines()]
    if table.columns[index].form is TEXT and index > 0:
        values = [part for line in values for part in (line[:LINE], *line.split())]
    return max(map(len, (*values, *(table.columns[index].title.split() if title else ()))), default=0) + title


def print_outcome(title: str, outcome: Outcome) -> None:
    if print_table(output(), outcome.table, title=title, stacked=None):
        output().print(f"All columns are in {outcome.folder / 'table.md'}.", style="dim", markup=False)
    for name in outcome.files:
        typer.echo(f"wrote {outcome.folder / name}")


def _print_without_blanks(console: Console, shown: rich.Table) -> None:
    if console.is_terminal:
        console.print(shown)
        return
    with console.capture() as capture:
        console.print(shown)
    console.print("\n".join(line.rstrip() for line in capture.get().splitlines()), markup=False, soft_wrap=True)
