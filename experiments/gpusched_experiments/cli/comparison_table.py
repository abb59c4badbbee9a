"""The comparison table in the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpusched_experiments.report import PolicyStatistics
from gpusched_experiments.report.table import Column, columns, notes

ROOMY = 180  # columns of a terminal from which on the whole table is legible


def print_table(console: Console, rows: Sequence[PolicyStatistics], reference: str) -> None:
    """Print the table and its notes; on a narrow terminal only the main columns."""
    roomy = console.width >= ROOMY
    chosen = [column for column in columns(reference) if column.main or roomy]
    best = min(rows, key=lambda row: row.total_eur)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in chosen:
        first = column is chosen[0]
        lines = [line for row in rows for line in _cell(column, row).splitlines()]
        table.add_column(
            column.title,
            justify="left" if first else "right",
            style="bold" if first else None,
            no_wrap=first,
            min_width=max(map(len, lines)) if roomy or first else None,
        )
    for row in rows:
        cells = [escape(_cell(column, row)) for column in chosen]
        table.add_row(*cells, style="green" if row is best else None)
    console.print(table)
    for note in notes(rows, reference):
        console.print(note, style="dim", markup=False)
    if not roomy:
        console.print("The whole table is in table.md.", style="dim")


def _cell(column: Column, row: PolicyStatistics) -> str:
    """Write a cell, with an interval on a line of its own."""
    return column.text(row).replace(" [", "\n[")
