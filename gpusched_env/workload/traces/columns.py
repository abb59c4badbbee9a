"""The columns of a trace file and its cells: where each field stands, turned into checked numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.traces.likeness import settings_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.workload.traces.presets import Preset
    from gpusched_env.workload.traces.where import Sieve

Kind = Literal["number", "date"]

MISSING = ("", "none", "null", "nan", "na", "n/a", "unknown", "nat", "-")
"""What stands where nothing is known, in small letters."""

_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f%:z", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S%.f", "%d.%m.%Y %H:%M")


def missing(text: pl.Series) -> pl.Series:
    """Say which cells hold nothing: empty ones, and words for it."""
    return text.is_null() | text.str.to_lowercase().is_in(MISSING).fill_null(value=True)


def plain(text: pl.Series) -> pl.Series:
    """Read numbers, null where there is none."""
    return text.cast(pl.Float64, strict=False)


def micros(text: pl.Series) -> pl.Series:
    """Read dates as microseconds since 1970 (UTC where no zone is given), null where there is none."""
    text = text.str.replace("T", " ", literal=True)
    found = _read(text, _FORMS[0])
    for form in _FORMS[1:]:
        left = found.is_null() & text.is_not_null()  # few, if any: a column has one form
        if not left.any():
            break
        found = found.scatter(left.arg_true(), _read(text.filter(left), form))
    return found


def _read(text: pl.Series, form: str) -> pl.Series:
    zoned = form.endswith("%:z")
    text = text.str.replace(r"Z$", "+00:00") if zoned else text
    read = text.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC" if zoned else None)
    return read.cast(pl.Int64)


def kind_of(text: pl.Series) -> Kind | None:
    """Tell whether a column holds numbers or dates, by its first cell that is one of them; None: none is."""
    known = text.filter(~missing(text))
    for start in range(0, len(known), _AT_ONCE):
        some = known.slice(start, _AT_ONCE)
        number, date = plain(some).is_not_null(), micros(some).is_not_null()
        if (number | date).any():
            return "number" if number[(number | date).arg_max() or 0] else "date"
    return None


_AT_ONCE = 1000


def seconds(text: pl.Series, kind: Kind | None) -> pl.Series:
    """Read a column of one kind as seconds: numbers as they are, dates since 1970; null where a cell is no such."""
    return micros(text).cast(pl.Float64) / 1e6 if kind == "date" else plain(text)


TRACE_FIELDS = (
    "submission_s",
    "timestamp",
    "duration_s",
    "gpus",
    "due_s",
    "tardiness_weight_eur_per_s",
    "application",
    "start_s",
    "end_s",
    "tenant",
    "user",
    "gpu_type",
)
"""What a trace may say of a job; submission_s and timestamp are two words for one."""

_TIME = (
    f"a number of seconds, {LONGEST} at most, or a time such as 2017-10-09 07:01:55, 2017-10-09T07:01:55+02:00 or "
    "09.10.2017 07:01:55"
)
_ONE_KIND = "a column holds either dates or numbers of seconds, and all of a file the same"


def find_columns(file: str, names: Sequence[str], preset: Preset, columns: Mapping[str, str]) -> dict[str, str]:
    """Find the column of every field; one that `columns` names wins over the format's, which is left out if missing.

    A field for which `columns` has an empty name is not read.

    Raises:
        InputError: `columns` names a field or a column that there is not, or a field has none that needs one; then
            the error names all such fields, all columns, and options that may mend it.
    """
    for field in columns:
        if field not in TRACE_FIELDS:
            raise InputError("trace.columns", field, f"the fields {', '.join(TRACE_FIELDS)}")
    for field, name in columns.items():
        if name and name not in names:
            raise InputError(f"{file}: column for {field}", name, f"one of its columns {', '.join(names)}")
    column_of = {field: field for field in TRACE_FIELDS if field in names} if preset.own_names else {}
    column_of |= {field: name for field, name in preset.columns.items() if name in names}
    for chosen, other in (("submission_s", "timestamp"), ("timestamp", "submission_s")):
        if chosen in columns and other not in columns:
            column_of.pop(other, None)
    column_of = {field: name for field, name in {**column_of, **columns}.items() if name}
    times = [field for field in ("submission_s", "timestamp") if field in column_of]
    if len(times) == 2:
        raise InputError(f"{file}: columns", times, "one column for either submission_s or timestamp")
    _check_all_there(file, names, preset, column_of)
    return column_of


def _check_all_there(file: str, names: Sequence[str], preset: Preset, column_of: Mapping[str, str]) -> None:
    needed = {
        "submission_s": bool({"submission_s", "timestamp"} & column_of.keys()),
        "duration_s": "duration_s" in column_of or {"start_s", "end_s"} <= column_of.keys(),
        "gpus": "gpus" in column_of or (bool(preset.factors) and preset.factors[-1] in names),
    }
    lacking = [field for field, there in needed.items() if not there]
    if lacking:
        unused = [name for name in names if name not in set(column_of.values())]
        mend = preset.hint or f"name them: {settings_for(lacking, unused)}"
        allowed = f"a column for each; it has {', '.join(names)}; {mend}"
        raise InputError(f"{file}: no column for", ", ".join(lacking), allowed)


def with_made_columns(table: pl.DataFrame, preset: Preset, column_of: dict[str, str]) -> pl.DataFrame:
    """Add what columns say together: GPUs as a product, a duration as end - start; `column_of` learns of them."""
    if "gpus" not in column_of:
        column_of["gpus"] = preset.product
        there = [name for name in preset.factors if name in table.columns]
        product = pl.Series([preset.unit]).new_from_index(0, len(table))
        for name in there:
            cells = table[name].str.strip_chars()
            count = plain(cells)
            if name in preset.ones:
                count = count.set(missing(cells), 1.0)
            product = product * count
        table = table.with_columns(_whole_or_share(product).cast(pl.String).alias(preset.product))
    if "duration_s" not in column_of:
        ends = (column_of["end_s"], column_of["start_s"])
        end, start = (table[name].str.strip_chars() for name in ends)
        took = seconds(end, kind_of(end)) - seconds(start, kind_of(start))
        column_of["duration_s"] = " - ".join(ends)
        table = table.with_columns(took.cast(pl.String).alias(column_of["duration_s"]))
    return table


def _whole_or_share(gpus: pl.Series) -> pl.Series:
    """Round away what a product has beyond a billionth; shares that make more than one GPU count as whole ones."""
    rounded = gpus.round(9)
    return pl.select(pl.when(rounded > 1.0).then(rounded.ceil()).otherwise(rounded)).to_series()


class TraceColumns:
    """The fields of a trace as numbers; rows that are not valid are left out by the sieve, or are errors.

    Args:
        sieve: The rows, of which it leaves out some.
        column_of: Column of each field that there is.
    """

    def __init__(self, sieve: Sieve, column_of: Mapping[str, str]) -> None:
        self.sieve, self.column_of = sieve, column_of
        self._dates: bool | None = None

    def has(self, field: str) -> bool:
        """Say whether the file has this field."""
        return field in self.column_of

    def missing(self, field: str) -> NDArray[np.bool_]:
        """Say which cells hold nothing, shape (rows,)."""
        cells: NDArray[np.bool_] = missing(self._text(field)).to_numpy()
        return cells

    def zero(self, field: str) -> NDArray[np.bool_]:
        """Say which cells are the number 0, shape (rows,)."""
        cells: NDArray[np.bool_] = (plain(self._text(field)) == 0.0).fill_null(value=False).to_numpy()
        return cells

    def names(self, field: str) -> tuple[str, ...]:
        """Give a field as texts, one per row, empty ones where there is none."""
        return tuple(self._text(field).fill_null("").to_list())

    def known_names(self, field: str) -> tuple[str, ...]:
        """Return a field as texts, one per row, empty where nothing is known."""
        text = self._text(field)
        return tuple(pl.select(pl.when(~missing(text)).then(text).fill_null("")).to_series().to_list())

    def texts(self, field: str) -> tuple[str, ...]:
        """Give a field as texts, one per row; rows without one are not valid."""
        self.check(field, self._text(field).is_not_null().to_numpy(), "a text")
        return self.names(field)

    def numbers(
        self, field: str, allowed: str, test: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    ) -> NDArray[np.float64]:
        """Give a field as finite numbers that pass `test`, shape (rows,); other rows are not valid."""
        values: NDArray[np.float64] = plain(self._text(field)).fill_null(np.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            self.check(field, np.isfinite(values) & test(values), allowed)
        return values

    def times_s(self, field: str) -> NDArray[np.float64]:
        """Give a field as seconds, shape (rows,): numbers, or dates as seconds since 1970 (UTC where no zone is given).

        All columns of times are of one kind, that of the first one asked for; other rows are not valid.
        """
        text = self._text(field)
        if self._dates is None:
            self._dates = kind_of(text) == "date"
        read, other, kind = (micros, plain, "a date") if self._dates else (plain, micros, "a number")
        values = read(text)
        alien = values.is_null() & ~missing(text)
        if alien.any():
            foreign = (other(text).is_not_null() & alien).to_numpy()
            self.check(field, ~foreign, f"{kind}, as above it; {_ONE_KIND}")
        times: NDArray[np.float64] = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        times = times / 1e6 if self._dates else times
        with np.errstate(invalid="ignore"):
            self.check(field, np.isfinite(times) & (np.abs(times) <= LONGEST_S), _TIME)
        return times

    def check_times(self, field: str, needless: NDArray[np.bool_]) -> None:
        """Leave rows out whose cell holds what is no time, or raise InputError; `needless` ones, (rows,), pass."""
        text = self._text(field)
        read = missing(text) | plain(text).is_not_null()
        if not read.all():
            read |= micros(text).is_not_null()
        self.check(field, read.to_numpy() | needless, _TIME)

    def check(self, field: str, good: NDArray[np.bool_], allowed: str) -> None:
        """Leave rows out that are not good in this field, or raise InputError with row and value of the first."""
        self.sieve.check(self.column_of[field], good, allowed)

    def _text(self, field: str) -> pl.Series:
        return self.sieve.table[self.column_of[field]].str.strip_chars()
