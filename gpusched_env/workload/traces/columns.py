"""The columns of a trace file and its cells: where each field stands, turned into checked numbers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.traces.presets import ROW, settings_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.workload.traces.presets import Preset

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


Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in"]

HOW = "a condition such as gpus > 0, state = COMPLETED, submit_time >= 2020-04-01 or vc in (a, b)"

_NAME = r"""(?:"(?P<quoted>[^"]+)"|(?P<name>[^=!<>"]+?))"""
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?:(?P<op>==|!=|<=|>=|=|<|>)|(?<=[\s\"])(?P<isin>in)(?=[\s(\[]))\s*(?P<value>.+?)\s*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with a value, or with several.

    Attributes:
        text: The condition as it was written.
        name: Name of a column of the file, or of a field.
        comparison: The comparison.
        values: The value; several with `in`.
        quoted: Which of them stood in quotes, and so are texts, whatever they look like.
    """

    text: str
    name: str
    comparison: Comparison
    values: tuple[str, ...]
    quoted: tuple[bool, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition.

        Raises:
            InputError: It is none.
        """
        found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InputError("trace.where", text, HOW)
        name, value = found["quoted"] or found["name"], found["value"]
        if found["isin"]:
            operator, parts = "in", _parts(value[1:-1] if value[0] + value[-1] in {"()", "[]"} else value)
        else:
            operator, parts = "=" if found["op"] == "==" else found["op"], [value]
        values = tuple(_unquoted(part) for part in parts)
        quoted = tuple(value != part for value, part in zip(values, parts, strict=True))
        return cls(text, name, cast("Comparison", operator), values, quoted)

    def holds(self, table: pl.DataFrame, column_of: Mapping[str, str]) -> pl.Series:
        """Say for which rows it holds.

        Numbers are compared with numbers and dates with dates; a cell that is neither fits no such comparison. A day
        stands for all of it, in UTC: every time of it is equal to it. Texts can be equal or not.

        Args:
            table: The rows, as texts.
            column_of: Column of each field; a column of the file with the same name wins.

        Raises:
            InputError: There is no such column, or texts are to be ordered.
        """
        column = self.name if self.name in table.columns[1:] else column_of.get(self.name)
        if column is None:
            names = ", ".join(dict.fromkeys((*table.columns[1:], *column_of)))
            raise InputError("trace.where", self.text, f"a condition on one of the columns {names}")
        text = table[column].str.strip_chars()
        if self.comparison in _ORDERS:
            return self._ordered(text).fill_null(value=False)
        either = [_equal(text, *value) for value in zip(self.values, self.quoted, strict=True)]
        equal = pl.select(pl.any_horizontal(either)).to_series().fill_null(value=False)
        return ~equal if self.comparison == "!=" else equal

    def _ordered(self, text: pl.Series) -> pl.Series:
        reading = None if self.quoted[0] else _reading(self.values[0])
        if reading is None:
            raise InputError("trace.where", self.text, "a number or a date where rows are to be less or more")
        read, wanted = reading
        return _ORDERS[self.comparison](read(text), wanted)


_ORDERS = {
    "<": lambda cells, value: cells < value,
    "<=": lambda cells, value: cells <= value,
    ">": lambda cells, value: cells > value,
    ">=": lambda cells, value: cells >= value,
}


def _equal(text: pl.Series, value: str, quoted: bool) -> pl.Series:
    as_text = text == value
    reading = None if quoted else _reading(value)
    if reading is None:
        return as_text
    read, wanted = reading
    return as_text.fill_null(value=False) | (read(text) == wanted).fill_null(value=False)


def _reading(value: str) -> tuple[Callable[[pl.Series], pl.Series], float] | None:
    """Tell how cells are read to compare them with a value, and what it is then; None: it is a text."""
    by_day = re.fullmatch(r"\d{4}-\d\d-\d\d", value)
    for read in (_days,) if by_day else (plain, micros):
        wanted = read(pl.Series([f"{value} 00:00" if by_day else value]))[0]
        if wanted is not None:
            return read, wanted
    return None


def _days(text: pl.Series) -> pl.Series:
    """Read dates as days since 1970 (UTC), null where there is none."""
    return micros(text) // _DAY


_DAY = 86_400_000_000  # microseconds


def _parts(inner: str) -> list[str]:
    """Split at commas, but not at those inside quotes around a value."""
    parts, begin = [], 0
    while begin <= len(inner) and (found := _PART.match(inner, begin)):
        parts.append(found["value"])
        begin = found.end() + 1
    return parts


_PART = re.compile(r"""\s*(?P<value>"[^"]*"|'[^']*'|[^,]*?)\s*(?=,|\Z)""")


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


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
