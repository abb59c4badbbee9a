"""The columns of a trace file and its cells: the column of each field, conditions on rows, and checked numbers."""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.traces import TRACE_FIELDS
from gpusched_env.workload.traces.presets import ROW, settings_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from gpusched_env.workload.traces.presets import Preset

    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.float64]

Kind = Literal["number", "date"]

MISSING = ("", "none", "null", "nan", "na", "n/a", "unknown", "nat", "-")
"""Texts of cells without a value, in small letters."""

_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f%:z", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S%.f", "%d.%m.%Y %H:%M")
_AT_ONCE = 1000


def missing(text: pl.Series) -> pl.Series:
    return text.is_null() | text.str.to_lowercase().is_in(MISSING).fill_null(value=True)


def plain(text: pl.Series) -> pl.Series:
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
    """Return whether a column holds numbers or dates, by its first cell that is one of them; None: none is."""
    known = text.filter(~missing(text))
    for start in range(0, len(known), _AT_ONCE):
        some = known.slice(start, _AT_ONCE)
        number, date = plain(some).is_not_null(), micros(some).is_not_null()
        if (number | date).any():
            return "number" if number[(number | date).arg_max() or 0] else "date"
    return None


def seconds(text: pl.Series) -> pl.Series:
    """Read a column as seconds: numbers as they are, or dates since 1970; null where a cell is not of its kind."""
    return micros(text).cast(pl.Float64) / 1e6 if kind_of(text) == "date" else plain(text)


MOST_GPUS = 100_000
"""More than a job of any trace has."""


def can_be(field: str, text: pl.Series) -> bool:
    """Return whether the first cells of a column can be those of a field: times, durations or numbers of GPUs."""
    some = text.head(_AT_ONCE).str.strip_chars()
    some = some.filter(~missing(some))
    values = plain(some) if field in {"gpus", "duration_s"} else seconds(some)
    if some.is_empty() or values.null_count() > len(some) // 2:
        return False
    known = values.drop_nulls()
    if field == "gpus":
        return bool(((known >= 0) & (known <= MOST_GPUS) & ((known < 1) | (known == known.floor()))).all())
    flags = len(known) > 2 and known.is_in([0.0, 1.0]).all()
    return not flags and (field == "duration_s" or len(known) == 1 or known.n_unique() > 1)


def find_columns(file: str, table: pl.DataFrame, preset: Preset, columns: Mapping[str, str]) -> dict[str, str]:
    """Find the column of every field; one that `columns` names replaces the format's, which is left out if missing.

    A field for which `columns` has an empty name is not read.

    Raises:
        InputError: `columns` names a field or a column that there is not, or a field has none that needs one; then
            the error names all such fields, all columns, and options that may fix it.
    """
    names = table.columns[1:]
    for field, name in columns.items():
        if field not in TRACE_FIELDS:
            raise InputError("trace.columns", field, f"the fields {', '.join(TRACE_FIELDS)}")
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
    there = {
        "submission_s": bool(times),
        "duration_s": "duration_s" in column_of or {"start_s", "end_s"} <= column_of.keys(),
        "gpus": "gpus" in column_of or (bool(preset.factors) and preset.factors[-1] in names),
    }
    lacking = [field for field, known in there.items() if not known]
    cells = pl.Series(re.split(r"[,;|\t]", ",".join(names)))
    if lacking and (micros(cells).is_not_null().any() or plain(cells).is_not_null().all()):
        raise InputError(f"{file}: first line", ", ".join(names), "names of columns, without numbers or times")
    if lacking:
        unused = [name for name in names if name not in set(column_of.values())]
        settings = settings_for(lacking, unused, lambda field, name: can_be(field, table[name]))
        mend = preset.hint or f"name them: {settings}"
        allowed = f"a column for each; it has {', '.join(names)}; {mend}"
        raise InputError(f"{file}: no column for", ", ".join(lacking), allowed)
    return column_of


def with_made_columns(table: pl.DataFrame, preset: Preset, column_of: dict[str, str]) -> pl.DataFrame:
    """Add derived columns: GPUs as a product, a duration as end - start; they are added to `column_of`."""
    if "gpus" not in column_of:
        column_of["gpus"] = preset.product
        product = pl.Series([preset.unit]).new_from_index(0, len(table))
        for name in (name for name in preset.factors if name in table.columns):
            cells = table[name].str.strip_chars()
            count = plain(cells)
            product = product * (count.set(missing(cells), 1.0) if name in preset.ones else count)
        # What is beyond a billionth is rounded away; shares that make more than one GPU count as whole ones.
        gpus = product.round(9)
        gpus = pl.select(pl.when(gpus > 1.0).then(gpus.ceil()).otherwise(gpus)).to_series()
        table = table.with_columns(gpus.cast(pl.String).alias(preset.product))
    if "duration_s" not in column_of:
        ends = (column_of["end_s"], column_of["start_s"])
        end, start = (seconds(table[name].str.strip_chars()) for name in ends)
        column_of["duration_s"] = " - ".join(ends)
        table = table.with_columns((end - start).cast(pl.String).alias(column_of["duration_s"]))
    return table


_NAME = r"""(?:"(?P<quoted>[^"]+)"|(?P<name>[^=!<>"]+?))"""
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?:(?P<op>==|!=|<=|>=|=|<|>)|(?<=[\s\"])(?P<isin>in)(?=[\s(\[]))\s*(?P<value>.+?)\s*"
)
_PART = re.compile(r"""\s*(?P<value>"[^"]*"|'[^']*'|[^,]*?)\s*,""")
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with a value, or with several, such as `gpus > 0` or `vc in (a, b)`.

    Attributes:
        text: The condition as it was written.
        name: Name of a column of the file, or of a field.
        comparison: One of =, !=, <, <=, >, >=, in.
        values: The value; several with `in`; those that stood in quotes still have them, and are texts.
    """

    text: str
    name: str
    comparison: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            how = "a condition such as gpus > 0, state = COMPLETED, submit_time >= 2020-04-01 or vc in (a, b)"
            raise InputError("trace.where", text, how)
        name, value = found["quoted"] or found["name"], found["value"]
        if not found["isin"]:
            return cls(text, name, "=" if found["op"] == "==" else found["op"], (value,))
        inner = value[1:-1] if value[0] + value[-1] in {"()", "[]"} else value
        return cls(text, name, "in", tuple(part["value"] for part in _PART.finditer(f"{inner},")))

    def holds(self, table: pl.DataFrame, column_of: Mapping[str, str]) -> pl.Series:
        """Return for which rows it holds.

        Numbers are compared with numbers and dates with dates; a cell that is neither fits no such comparison. A day
        stands for all of it, in UTC: every time of it is equal to it. Texts can be equal or not.

        Args:
            column_of: Column of each field; a column of the file with the same name wins.
        """
        column = self.name if self.name in table.columns[1:] else column_of.get(self.name)
        if column is None:
            names = ", ".join(dict.fromkeys((*table.columns[1:], *column_of)))
            raise InputError("trace.where", self.text, f"a condition on one of the columns {names}")
        text = table[column].str.strip_chars()
        if self.comparison not in _ORDERS:
            equal = reduce(operator.or_, (_equal(text, value) for value in self.values)).fill_null(value=False)
            return ~equal if self.comparison == "!=" else equal
        reading = _reading(self.values[0])
        if reading is None:
            raise InputError("trace.where", self.text, "a number or a date where rows are to be less or more")
        read, wanted = reading
        holds: pl.Series = _ORDERS[self.comparison](read(text), wanted)
        return holds.fill_null(value=False)


def _equal(text: pl.Series, value: str) -> pl.Series:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    equal = (text == (value[1:-1] if quoted else value)).fill_null(value=False)
    reading = _reading(value)
    return equal if reading is None else equal | (reading[0](text) == reading[1]).fill_null(value=False)


def _reading(value: str) -> tuple[Callable[[pl.Series], pl.Series], float] | None:
    """Return how cells are read to compare them with a value, and what it is then; None: it is a text."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):  # days since 1970
        day = micros(pl.Series([f"{value} 00:00"]))[0]
        return None if day is None else (lambda text: micros(text) // _DAY, day // _DAY)
    readings = ((read, read(pl.Series([value]))[0]) for read in (plain, micros))
    return next((reading for reading in readings if reading[1] is not None), None)


_TIME = (
    f"a number of seconds (none of milliseconds), {LONGEST} at most, or a time such as 2017-10-09 07:01:55, "
    "2017-10-09T07:01:55+02:00 or 09.10.2017 07:01:55"
)
_ONE_KIND = "a column holds either dates or numbers of seconds, and all of a file the same"


class TraceColumns:
    """The fields of a trace as numbers; rows that are not valid are left out, or are errors.

    Args:
        file: Name of the file, for errors.
        table: The rows as texts, with their numbers.
        column_of: Column of each field that there is.
        skips: Whether rows that fail a check are left out; else the first one is an error.

    Attributes:
        taken: Which rows are still in, shape (rows,).
        skipped: How many rows were left out, by reason.
    """

    def __init__(self, file: str, table: pl.DataFrame, column_of: Mapping[str, str], *, skips: bool) -> None:
        self.file, self.table, self.column_of, self.skips = file, table, column_of, skips
        self.taken: Flags = np.ones(len(table), dtype=np.bool_)
        self.skipped: Counter[str] = Counter()
        self._dates: bool | None = None

    def leave_out(self, rows: Flags, reason: str) -> None:
        rows = rows & self.taken
        if np.any(rows):
            self.skipped[reason] += int(np.sum(rows))
            self.taken &= ~rows

    def check(self, field: str, good: Flags, allowed: str, *, skips: bool | None = None) -> None:
        """Leave out the rows that are not good in a field.

        Args:
            good: Which rows are, shape (rows,).
            skips: Whether such rows may be left out at all; by default as all others.
        """
        column, bad = self.column_of[field], ~good & self.taken
        if self.skips and skips is not False:
            self.leave_out(bad, f"{column} is not {allowed}")
        elif np.any(bad):
            first = int(np.argmax(bad))
            said = "" if skips is False else "; --skip-invalid (trace.skip_invalid) leaves such rows out"
            where = f"{self.file} row {self.table[ROW][first]}: {column}"
            raise InputError(where, self.table[column][first] or "", f"{allowed}{said}")

    def has(self, field: str) -> bool:
        return field in self.column_of

    def missing(self, field: str) -> Flags:
        cells: Flags = missing(self._text(field)).to_numpy()
        return cells

    def zero(self, field: str) -> Flags:
        cells: Flags = (plain(self._text(field)) == 0.0).fill_null(value=False).to_numpy()
        return cells

    def names(self, field: str) -> tuple[str, ...]:
        """Return a field as texts, one per row, empty ones where there is none; GPU types also where none is known."""
        text = self._text(field)
        if field == "gpu_type":
            text = pl.select(pl.when(~missing(text)).then(text)).to_series()
        elif field == "application":
            self.check(field, text.is_not_null().to_numpy(), "a text")
        return tuple(text.fill_null("").to_list())

    def numbers(self, field: str, allowed: str, test: Callable[[Numbers], Flags]) -> Numbers:
        values: Numbers = plain(self._text(field)).fill_null(np.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            self.check(field, np.isfinite(values) & test(values), allowed)
        return values

    def times_s(self, field: str) -> Numbers:
        """Return a field as seconds, shape (rows,): numbers, or dates as seconds since 1970 (UTC without a zone).

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
        times: Numbers = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        times = times / 1e6 if self._dates else times
        with np.errstate(invalid="ignore"):
            self.check(field, np.isfinite(times) & (np.abs(times) <= LONGEST_S), _TIME)
        return times

    def check_times(self, field: str, needless: Flags) -> None:
        """Leave rows out whose cell holds what is no time, or raise InputError; `needless` ones, (rows,), pass."""
        text = self._text(field)
        read = missing(text) | plain(text).is_not_null()
        if not read.all():
            read |= micros(text).is_not_null()
        self.check(field, read.to_numpy() | needless, _TIME)

    def _text(self, field: str) -> pl.Series:
        return self.table[self.column_of[field]].str.strip_chars()
