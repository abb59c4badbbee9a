"""Rows of a table whose lines do not all have as many cells: signs in a free text, and lines that are no rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

OddLines = list[tuple[int, int]]
"""Lines that are no rows: the number of each, 1 being the first of the file, and how many cells it has."""

FREE = ("JobName", "Comment", "SubmitLine", "WorkDir", "AdminComment", "SystemComment")
"""Columns of `sacct` in which users may write anything, also the separator and line feeds."""


def are_even(lines: pl.Series, separator: str) -> bool:
    """Return whether every line that holds something has as many separators as the first."""
    count = lines.filter(lines.str.strip_chars() != "").str.count_matches(separator, literal=True)
    return bool((count == count.first()).all())


def rows_of(lines: Sequence[str], separator: str, *, quoted: bool) -> tuple[list[list[str]], OddLines]:
    """Return the rows, the header first, and the lines that are none.

    Where nothing is quoted and one column is free text, separators too many are of that text, and a line that is too
    short goes on with the next ones, if together they are a whole row.
    """
    told = _quoted(lines, separator) if quoted else ((n, line.split(separator)) for n, line in enumerate(lines, 1))
    cells = [(number, row) for number, row in told if any(cell.strip() for cell in row)]
    header = cells[0][1] if cells else []
    free = [place for place, name in enumerate(header) if name.strip() in FREE and not quoted]
    rows: list[list[str]] = []
    odd: OddLines = []
    place = 0
    while place < len(cells):
        row, end = list(cells[place][1]), place + 1
        while len(free) == 1 and len(row) < len(header) and end < len(cells) and len(cells[end][1]) < len(header):
            row[-1] += f"\n{cells[end][1][0]}"
            row += cells[end][1][1:]
            end += 1
        if len(free) == 1 and len(row) > len(header):
            last = free[0] + len(row) - len(header)
            row[free[0] : last + 1] = [separator.join(row[free[0] : last + 1])]
        if len(row) == len(header):
            rows.append(row)
        else:
            odd += [(number, len(part)) for number, part in cells[place:end]]
        place = end
    return rows, odd


def _quoted(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    for row in reader:
        yield reader.line_num, row
