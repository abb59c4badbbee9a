"""Differences that the audit reports, tolerances, and JSON and CSV files read with one kind of error."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gpusched_env.errors import InputError

T = TypeVar("T")

RELATIVE = 1e-9  # of the larger of two amounts
FLOOR = 1e-300  # of two amounts: floats below have no digits left to compare
TIME_S = 1e-9  # times closer than this are the same [s]
ULPS = 4  # times that differ by this many units in the last place are the same, too
EARLY_S, EARLY = (
    1e-9,
    1e-15,
)  # so early [s], and by this part of its time, may a completion be taken


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the folder records and the audit finds otherwise.

    Attributes:
        where: Its place: file, then line, job, node or field.
        recorded: The value in the folder.
        recomputed: The value that the audit computes, or allows.
        what: The quantity that is compared.
    """

    where: str
    recorded: object
    recomputed: object
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"


def same_amount(recorded: float, recomputed: float) -> bool:
    """Whether two amounts [€, seconds of a mean] are the same, to `RELATIVE`, however small they are."""
    return math.isclose(recorded, recomputed, rel_tol=RELATIVE, abs_tol=FLOOR)


def same_time(recorded: float, recomputed: float) -> bool:
    """Whether two times [s] are the same, to a nanosecond or the resolution of a float of that size."""
    return abs(recorded - recomputed) <= max(TIME_S, ULPS * math.ulp(max(abs(recorded), abs(recomputed))))


def same_epochs(
    recorded: float, recomputed: float, *, needed: float, end_s: float, seconds_per_epoch: float, completed: bool
) -> bool:
    """Whether two numbers of epochs of a job are the same, to `RELATIVE` of the epochs it needs.

    Epochs follow from times, so a difference below the resolution of a float of the size of `end_s` is none. Where the
    job is `completed`, the last epochs may be recorded `EARLY_S` + `EARLY` · `end_s` seconds before they were done.
    """
    tolerance = RELATIVE * needed + ULPS * math.ulp(end_s) / seconds_per_epoch
    early = (EARLY_S + EARLY * end_s) / seconds_per_epoch if completed else 0.0
    return -tolerance <= recorded - recomputed <= tolerance + early


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a number: in words, its ends, and whether the lower end is excluded."""

    allowed: str
    lowest: float = -math.inf
    highest: float = math.inf
    open: bool = False

    def check(self, where: str, value: float) -> None:
        if not self.lowest <= value <= self.highest or (self.open and value == self.lowest):
            raise InputError(where, value, self.allowed)


TIME = Range("a number >= 0 and <= 1e12", 0.0, 1e12)
NOT_NEGATIVE = Range("a number >= 0", 0.0)
POSITIVE = Range("a number > 0", 0.0, open=True)
AT_LEAST_ONE = Range("a number >= 1", 1.0)


def index_below(count: int) -> Range:
    return Range(f"an index from 0 to {count - 1}", 0, count - 1)


def number(where: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass  # A whole number too large for a float is not finite either.
    raise InputError(where, value, "a finite number")


def whole(where: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(where, value, "a whole number")
    return value


def text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(where, value, "a text")
    return value


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(where, value, "true or false")
    return value


def anything(where: str, value: Any) -> Any:
    del where
    return value


def list_of(
    where: str, value: Any, kind: Callable[[str, Any], T], length: int | None = None, within: Range | None = None
) -> list[T]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        count = len(value) if isinstance(value, list) else type(value).__name__
        raise InputError(where, count, "a list" + (f" of {length} values" if length is not None else ""))
    values = [kind(f"{where}[{index}]", item) for index, item in enumerate(value)]
    for index, item in enumerate(values if within is not None else ()):
        within.check(f"{where}[{index}]", item)  # type: ignore[union-attr, arg-type]
    return values


class FieldReader:
    """A JSON object, read field by field.

    Raises:
        InputError: It is no JSON object; each method raises it where a field is missing or not of the kind asked for.
    """

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise InputError(where, type(value).__name__, "a JSON object")
        self.where, self._value = where, value

    def name(self, key: str) -> str:
        return f"{self.where}: {key}" if self.where.endswith(".json") else f"{self.where}.{key}"

    @property
    def keys(self) -> list[str]:
        return list(self._value)

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def get(self, key: str, kind: Callable[[str, Any], T] = anything, within: Range | None = None) -> T:
        if key not in self._value:
            raise InputError(self.name(key), None, "a value: the field is missing")
        value = kind(self.name(key), self._value[key])
        if within is not None:
            within.check(self.name(key), value)  # type: ignore[arg-type]
        return value

    def only(self, *keys: str) -> FieldReader:
        for key in sorted(self._value.keys() - set(keys)):
            raise InputError(self.name(key), "...", f"no such field; one of {', '.join(sorted(keys))}")
        return self

    def column(
        self,
        key: str,
        kind: Callable[[str, Any], T],
        length: int | None = None,
        within: Range | None = None,
        default: T | None = None,
    ) -> list[T]:
        """Return a list of one kind as `list_of` does; `length` times the default, if any, where it is missing."""
        if default is not None and not self.has(key):
            return [default] * (length or 0)
        return list_of(self.name(key), self.get(key), kind, length, within)


def read_json(path: Path, file_format: str, version: int) -> FieldReader:
    try:
        fields = FieldReader(path.name, json.loads(_content(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, str(error), "a whole JSON file") from error
    if fields.get("format") != file_format:
        raise InputError(fields.name("format"), fields.get("format"), repr(file_format))
    if fields.get("version", whole) != version:
        raise InputError(fields.name("version"), fields.get("version"), str(version))
    return fields


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a CSV file: one dictionary per line below the heading; it must have all of `columns`."""
    try:
        table = list(csv.reader(io.StringIO(_content(path), newline=""), strict=True))
    except csv.Error as error:
        raise InputError(path.name, str(error), "a CSV file") from error
    heading = table[0] if table else []
    for column in columns:
        if heading.count(column) != 1:
            raise InputError(f"{path.name}: column {column}", heading.count(column), "once in the heading")
    for line, row in enumerate(table[1:], start=2):
        if len(row) != len(heading):
            raise InputError(f"{path.name} line {line}", f"{len(row)} values", f"{len(heading)} values")
    return [dict(zip(heading, row, strict=True)) for row in table[1:]]


def number_of(where: str, cell: str) -> float:
    try:
        return number(where, float(cell))
    except ValueError as error:
        raise InputError(where, cell, "a finite number") from error


def whole_of(where: str, cell: str) -> int:
    """Return the whole number, 0 or above and of ordinary size, that a CSV field holds."""
    if not (cell.isascii() and cell.isdigit() and len(cell) <= 18):
        raise InputError(where, cell, "a whole number >= 0")
    return int(cell)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of a run folder") from error
    except UnicodeDecodeError as error:
        raise InputError(path.name, str(error), "a text file in UTF-8") from error
