"""A comparison in the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from gpusched_experiments.cli.tables import print_table
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.table import Table


def print_comparisons(
    console: Console, compared: Sequence[Compared], reference: str, instance: str | None, whole: str | None = None
) -> None:
    """Print every table of every comparison, with as many columns as there is room for.

    Args:
        console: Where.
        compared: The comparisons, first the main one.
        reference: Name of the policy that savings are measured against.
        instance: Name of the instance, if all seeds ran the same one.
        whole: The file that has all columns, if there is one.
    """
    cut = False
    for each in compared:
        if each.not_claimed and each.replay is not None:
            console.print(each.replay.sentence, style="bold red", markup=False)
        for table in each.tables(reference, instance):
            shown = fitting(table, console.width)
            cut = cut or len(shown.columns) < len(table.columns)
            title = table.title if each.gpu_demand else None
            best = each.best if table.columns[0].name == "policy" else None
            print_table(console, shown, title=title, named=True, best=best, stacked=True, wide=True)
        for sentence in each.modelled:
            console.print(sentence, style="yellow", markup=False)
    if cut and whole is not None:
        console.print(f"All columns are in {whole}.", style="dim", markup=False)


def fitting(table: Table, width: int) -> Table:
    """Leave out columns until the rest is no wider than `width`, and what is said of them.

    Those that are not `main` go first, from the right, then the others; two are always kept.
    """
    texts, left = table.texts(), list(range(len(table.columns)))
    order = sorted(left, key=lambda index: (table.columns[index].main, -index))
    for index in order:
        if len(left) <= KEPT or sum(_width(table, texts, each) + PADDING for each in left) <= width:
            break
        left.remove(index)
    columns = tuple(table.columns[index] for index in left)
    gaps = any(column.name.endswith("_gap") for column in columns)
    notes = tuple(note for note in table.notes if gaps or not note.startswith(("Gaps:", "The other bounds")))
    return replace(table, columns=columns, rows=tuple(tuple(row[i] for i in left) for row in table.rows), notes=notes)


KEPT = 2
PADDING = 3  # between two columns


def _width(table: Table, texts: list[list[str]], index: int) -> int:
    """Give how wide a column must be: as its widest value (an interval has its own line), or word of its title."""
    values = [part for row in texts for part in row[index].split(" [")]
    return max(map(len, (*values, *table.columns[index].title.split())), default=0) + 1
