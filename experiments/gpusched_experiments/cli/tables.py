"""Tables in the terminal."""

import typer
from rich import table as rich
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from gpusched_experiments.cli.terminal import output
from gpusched_experiments.report.table import TEXT, Outcome, Table


def print_table(
    console: Console,
    table: Table,
    *,
    title: str | None = None,
    no_wrap: bool = False,
    named: bool = False,
    best: str | None = None,
    stacked: bool = False,
    wide: bool = False,
) -> None:
    """Print a table and its notes.

    Args:
        console: Where.
        table: The table.
        title: What stands above it.
        no_wrap: Whether no column is broken into lines.
        named: Whether its rows are named by the first column, which is bold and not broken into lines.
        best: The first column's text of the row that is green.
        stacked: Whether intervals have lines of their own.
        wide: Whether then all columns, not the first alone, are as wide as what stands in them.
    """
    rows = [[text.replace(" [", "\n[") if stacked else text for text in row] for row in table.texts()]
    shown = rich.Table(box=SIMPLE_HEAD, pad_edge=False, title=title and escape(title), title_justify="left")
    for index, column in enumerate(table.columns):
        first = named and index == 0
        widest = max((len(line) for row in rows for line in row[index].splitlines()), default=0)
        shown.add_column(
            escape(column.title),
            justify="left" if column.form is TEXT else "right",
            style="bold" if first else None,
            no_wrap=no_wrap or first,
            min_width=widest if stacked and (first or wide) else None,
        )
    for row in rows:
        shown.add_row(*map(escape, row), style="green" if row[0] == best else None)
    _print_without_blanks(console, shown)
    for note in table.notes:
        console.print(note, style="dim", markup=False)


def print_outcome(title: str, outcome: Outcome) -> None:
    """Print what a report came to: its table and notes, and where the files are."""
    print_table(output(), outcome.table, title=title)
    for name in outcome.files:
        typer.echo(f"wrote {outcome.folder / name}")


def _print_without_blanks(console: Console, shown: rich.Table) -> None:
    """Print a table; into a file or a pipe without the blanks at the ends of its lines."""
    if console.is_terminal:
        console.print(shown)
        return
    with console.capture() as capture:
        console.print(shown)
    console.print("\n".join(line.rstrip() for line in capture.get().splitlines()), markup=False, soft_wrap=True)
