"""Conditions on the rows of a trace: `gpus > 0`, `state = COMPLETED`, `vc in (a, b)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.cells import micros, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        values: The value; several with `in`. One in quotes is a text.
        quoted: Whether the values are texts, whatever they look like.
    """

    text: str
    name: str
    comparison: Comparison
    values: tuple[str, ...]
    quoted: bool = False

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
            inner = value[1:-1] if value[0] + value[-1] in {"()", "[]"} else value
            return cls(text, name, "in", tuple(_unquoted(part.strip()) for part in inner.split(",")))
        plain_value = _unquoted(value)
        operator = "=" if found["op"] == "==" else found["op"]
        return cls(text, name, cast("Comparison", operator), (plain_value,), plain_value != value)

    def holds(self, table: pl.DataFrame, column_of: Mapping[str, str]) -> pl.Series:
        """Say for which rows it holds.

        Numbers are compared with numbers and dates with dates; a cell that is neither fits no such comparison. Texts
        can be equal or not.

        Args:
            table: The rows, as texts.
            column_of: Column of each field; a column of the file with the same name wins.

        Raises:
            InputError: There is no such column, or texts are to be ordered.
        """
        column = self.name if self.name in table.columns else column_of.get(self.name)
        if column is None:
            names = ", ".join(dict.fromkeys((*table.columns[1:], *column_of)))
            raise InputError("trace.where", self.text, f"a condition on one of the columns {names}")
        text = table[column].str.strip_chars()
        if self.comparison == "in":
            equal = pl.select(pl.any_horizontal([self._equal(text, value) for value in self.values])).to_series()
            return equal.fill_null(value=False)
        if self.comparison in {"=", "!="}:
            equal = self._equal(text, self.values[0]).fill_null(value=False)
            return equal if self.comparison == "=" else ~equal
        return self._ordered(text).fill_null(value=False)

    def _equal(self, text: pl.Series, value: str) -> pl.Series:
        as_text = text == value
        if self.quoted:
            return as_text
        for read in (plain, micros):
            if (wanted := read(pl.Series([value]))[0]) is not None:
                return as_text.fill_null(value=False) | (read(text) == wanted).fill_null(value=False)
        return as_text

    def _ordered(self, text: pl.Series) -> pl.Series:
        for read in (plain, micros):
            wanted = None if self.quoted else read(pl.Series([_as_time(self.values[0])]))[0]
            if wanted is not None:
                return _ORDERS[self.comparison](read(text), wanted)
        raise InputError("trace.where", self.text, "a number or a date where rows are to be less or more")


_ORDERS = {
    "<": lambda cells, value: cells < value,
    "<=": lambda cells, value: cells <= value,
    ">": lambda cells, value: cells > value,
    ">=": lambda cells, value: cells >= value,
}


def _as_time(value: str) -> str:
    """Let a day stand for its beginning."""
    return f"{value} 00:00" if re.fullmatch(r"\d{4}-\d\d-\d\d", value) else value


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
