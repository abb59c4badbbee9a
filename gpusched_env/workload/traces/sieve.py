"""Which rows of a trace are taken: what is left out, counted by reason, and what is an error."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.rows import ROW

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

NEVER_RAN = "never ran, or had not ended"
EARLIER = "an earlier attempt of a job that was queued again"
NO_TIME = "ran for 0 s"
NO_GPUS = "asked for no GPU"

LEAVE_OUT = "--skip-invalid (trace.skip_invalid) leaves such rows out"


class Sieve:
    """The rows of a file, of which checks leave out some.

    Args:
        file: Name of the file, for errors.
        table: The rows, with their numbers.
        skips: Whether rows that fail a check are left out; else the first one is an error.

    Attributes:
        taken: Which rows are still in, shape (rows,).
        skipped: How many rows were left out, by reason.
    """

    def __init__(self, file: str, table: pl.DataFrame, *, skips: bool) -> None:
        self.file, self.table, self.skips = file, table, skips
        self.taken: NDArray[np.bool_] = np.ones(len(table), dtype=np.bool_)
        self.skipped: Counter[str] = Counter()

    def leave_out(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Leave rows out."""
        rows = rows & self.taken
        if np.any(rows):
            self.skipped[reason] += int(np.sum(rows))
            self.taken &= ~rows

    def check(self, column: str, good: NDArray[np.bool_], allowed: str, *, skips: bool | None = None) -> None:
        """Leave out the rows that are not good.

        Args:
            column: The column whose cells are good or not.
            good: Which rows are, shape (rows,).
            allowed: What is allowed there.
            skips: Whether such rows may be left out at all; by default as all others.

        Raises:
            InputError: Rows are not left out, and one is not good; names the first such row, and its cell.
        """
        bad = ~good & self.taken
        if not np.any(bad):
            return
        if self.skips and skips is not False:
            self.leave_out(bad, f"{column} is not {allowed}")
            return
        first = int(np.argmax(bad))
        said = allowed if skips is False else f"{allowed}; {LEAVE_OUT}"
        raise InputError(f"{self.file} row {self.table[ROW][first]}: {column}", self.table[column][first], said)
