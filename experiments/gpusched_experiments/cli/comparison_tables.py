"""A comparison in the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from gpusched_experiments.cli.tables import print_table
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.table import Table

ROOMY = 160  # columns of a terminal from which on all columns of a comparison are legible


def print_comparisons(
    console: Console, compared: Sequence[Compared], reference: str, instance: str | None, whole: str | None = None
) -> None:
    """Print every table of every comparison; on a narrow terminal the main columns.

    Args:
        console: Where.
        compared: The comparisons, first the main one.
        reference: Name of the policy that savings are measured against.
        instance: Name of the instance, if all seeds ran the same one.
        whole: The file that has all columns, if there is one.
    """
    roomy = console.width >= ROOMY
    for each in compared:
        for table in each.tables(reference, instance):
            shown = table if roomy else main_columns(table)
            title = table.title if each.gpu_demand else None
            best = each.best if table.columns[0].name == "policy" else None
            print_table(console, shown, title=title, named=True, best=best, stacked=True, wide=roomy)
        for sentence in each.modelled:
            console.print(sentence, style="yellow", markup=False)
    if not roomy and whole is not None:
        console.print(f"All columns are in {whole}.", style="dim", markup=False)


def main_columns(table: Table) -> Table:
    """Leave out the columns that a narrow terminal has no room for, and what is said of them."""
    chosen = [index for index, column in enumerate(table.columns) if column.main]
    columns = tuple(table.columns[index] for index in chosen)
    gaps = any(column.name.endswith("_gap") for column in columns)
    notes = tuple(note for note in table.notes if gaps or not note.startswith(("Gaps:", "The other bounds")))
    rows = tuple(tuple(row[index] for index in chosen) for row in table.rows)
    return replace(table, columns=columns, rows=rows, notes=notes)
