"""The columns of a trace file: found by name, read as text, turned into checked numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

TRACE_FIELDS = (
    "submission_s",
    "timestamp",
    "duration_s",
    "gpus",
    "due_s",
    "tardiness_weight_eur_per_s",
    "application",
)
"""What a trace may say of a job."""

PHILLY_COLUMNS = {"timestamp": "timestamp", "duration_s": "duration", "gpus": "num_gpus"}
"""Where Philly's flattened file says it."""

_ROW = "row of the trace"
_TIMES = "a time such as 2017-10-09 07:01:55 or 2017-10-09T07:01:55+02:00"


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """The rows of a trace file as text, and where each field stands.

    Attributes:
        file: Name of the file, for errors.
        table: Rows of the file as text, blank lines left out, with their number (1 is the first below the header).
        column_of: Name of the column of every field that the file has.
    """

    file: str
    table: pl.DataFrame
    column_of: Mapping[str, str]

    @classmethod
    def read(cls, path: str | Path, columns: Mapping[str, str], *, all_named: bool) -> TraceColumns:
        """Read the file and find its columns.

        Args:
            path: A CSV file with a header, UTF-8; may be compressed with gzip or zstd.
            columns: Column of each field; other fields stand in columns of their own name.
            all_named: Whether fields that `columns` does not name may stand in columns of their own name.

        Raises:
            InputError: The file cannot be read, has no rows, or lacks a column.
        """
        file = Path(path).name
        table = _read_text(Path(path))
        names = table.columns
        column_of = _find_columns(file, names, columns, all_named=all_named)
        rows = table.with_row_index(_ROW, offset=1).filter(~pl.all_horizontal(pl.col(names).is_null()))
        if rows.is_empty():
            raise InputError(file, "no rows", "at least one row below the header")
        return cls(file, rows, column_of)

    def has(self, field: str) -> bool:
        """Say whether the file has this field."""
        return field in self.column_of

    def texts(self, field: str) -> tuple[str, ...]:
        """Give a field as texts, one per row.

        Raises:
            InputError: A cell is empty.
        """
        text = self._text(field)
        self.check(field, text.is_not_null().to_numpy(), "a text")
        return tuple(text.to_list())

    def numbers(
        self, field: str, allowed: str, test: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    ) -> NDArray[np.float64]:
        """Give a field as finite numbers that pass `test`, shape (rows,).

        Raises:
            InputError: A cell is empty, no number, or does not pass; names the first such row.
        """
        values: NDArray[np.float64] = _plain(self._text(field)).fill_null(np.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            self.check(field, np.isfinite(values) & test(values), allowed)
        return values

    def times_s(self, field: str, *, as_dates: bool) -> NDArray[np.float64]:
        """Give a field as seconds, shape (rows,): numbers, or dates as seconds since 1970 (UTC where no zone is given).

        Raises:
            InputError: A cell is empty or unreadable; names the first such row. In a column of numbers and dates it
                is the first that differs from row 1.
        """
        text = self._text(field)
        read, read_other, first = (_micros, _plain, "a number") if as_dates else (_plain, _micros, "a date")
        values = read(text)
        if read_other(text.head(1))[0] is not None:
            allowed = f"{first}, as above it; a column holds either dates or numbers of seconds"
            self.check(field, values.is_null().to_numpy(), allowed)
        if not as_dates:
            return self.numbers(
                field, f"a finite number of seconds, {LONGEST} at most", lambda x: np.abs(x) <= LONGEST_S
            )
        self.check(field, values.is_not_null().to_numpy(), _TIMES)
        seconds: NDArray[np.float64] = values.to_numpy() / 1e6
        return seconds

    def check(self, field: str, good: NDArray[np.bool_], allowed: str) -> None:
        """Raise InputError with row and value of the first row that is not good."""
        if not np.all(good):
            first = int(np.argmin(good))
            row, value = self.table[_ROW][first], self.table[self.column_of[field]][first]
            raise InputError(f"{self.file} row {row}: {self.column_of[field]}", value, allowed)

    def _text(self, field: str) -> pl.Series:
        return self.table[self.column_of[field]].str.strip_chars()


_PLAIN_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")


def _plain(text: pl.Series) -> pl.Series:
    """Read numbers, null where there is none."""
    return text.cast(pl.Float64, strict=False)


def _micros(text: pl.Series) -> pl.Series:
    """Read dates as microseconds since 1970, null where there is none."""
    text = text.str.replace("T", " ").str.replace(r"Z$", "+00:00")
    plain = [text.str.to_datetime(form, strict=False, time_unit="us") for form in _PLAIN_FORMS]
    zoned = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", strict=False, time_unit="us", time_zone="UTC")
    return pl.select(pl.coalesce([s.cast(pl.Int64) for s in (*plain, zoned)])).to_series()


def column_names(path: str | Path) -> list[str]:
    """List the columns of a CSV file.

    Raises:
        InputError: The file cannot be read, or is empty.
    """
    return _read_text(Path(path), rows=0).columns


def _read_text(path: Path, rows: int | None = None) -> pl.DataFrame:
    try:
        exists = path.is_file()
    except OSError:  # a name too long for any file
        exists = False
    if not exists:
        raise InputError("trace.path", str(path), "a CSV file that exists")
    try:
        table = pl.read_csv(path, infer_schema=False, n_rows=rows)
    except pl.exceptions.NoDataError:
        raise InputError(path.name, "empty file", "a header and at least one row below it") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        allowed = "a CSV file in UTF-8 with a header and as many cells in every row"
        raise InputError(path.name, str(error).splitlines()[0], allowed) from None
    _check_header(path.name, table.columns)
    return table


def _check_header(file: str, names: list[str]) -> None:
    if any("\0" in name for name in names):
        raise InputError(file, "binary data", "a CSV file in UTF-8 with a header")
    for name in names:
        # So polars names a column whose name stands further left already; empty names are no column's.
        first, copy, _ = name.rpartition("_duplicated_")
        if copy and first and first in names:
            raise InputError(f"{file}: columns", first, "names that stand once in the header")


def _find_columns(file: str, names: list[str], columns: Mapping[str, str], *, all_named: bool) -> dict[str, str]:
    """Find the column of every field; one that `columns` names wins over one of the field's own name."""
    for field in columns:
        if field not in TRACE_FIELDS:
            raise InputError("trace.columns", field, f"the fields {', '.join(TRACE_FIELDS)}")
    column_of = {field: field for field in TRACE_FIELDS if field in names} if all_named else {}
    for chosen, other in (("submission_s", "timestamp"), ("timestamp", "submission_s")):
        if chosen in columns and other not in columns:
            column_of.pop(other, None)
    column_of |= columns
    for field, name in column_of.items():
        if name not in names:
            raise InputError(f"{file}: column for {field}", name, f"one of its columns {', '.join(names)}")
    for field in ("duration_s", "gpus"):
        if field not in column_of:
            raise InputError(f"{file}: columns", names, f"a column for {field} (name it with columns)")
    times = [field for field in ("submission_s", "timestamp") if field in column_of]
    if len(times) != 1:
        raise InputError(f"{file}: columns", times or names, "one column for either submission_s or timestamp")
    return column_of
