"""Which rows of a trace count: conditions such as `gpus > 0`, `state = COMPLETED`, `vc in (a, b)`, and the filter."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.columns import micros, plain
from gpusched_env.workload.traces.rows import ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

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
