"""Reading JSON and CSV files plainly: lines, ranges, and one InputError for what is missing or malformed."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.record import Record

RELATIVE = 1e-9  # of the larger of two amounts
FLOOR = 1e-300  # of two amounts: floats below have no digits left to compare
TIME_S = 1e-9  # times closer than this are the same [s]
EARLY_S, EARLY = (
    1e-9,
    1e-15,
)  # a completion may be taken so early [s], and by this part of its time, as part of an event
ULPS = 4  # and so are times that this many units in the last place part: floats of that size tell no more


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the folder records and the audit finds otherwise.

    Attributes:
        where: Where it stands: file, then line, job, node or field.
        recorded: What the folder says.
        recomputed: What the audit finds, or allows.
        what: What is compared.
    """

    where: str
    recorded: object
    recomputed: object
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"


def same_amount(recorded: float, recomputed: float) -> bool:
    """Say whether two amounts [€, seconds of a mean] are the same, to `RELATIVE`, however small they are."""
    return math.isclose(recorded, recomputed, rel_tol=RELATIVE, abs_tol=FLOOR)


def same_time(recorded: float, recomputed: float) -> bool:
    """Say whether two times [s] are the same, to a nanosecond or what a float of that size can tell."""
    return abs(recorded - recomputed) <= max(TIME_S, ULPS * math.ulp(max(abs(recorded), abs(recomputed))))


def same_epochs(
    recorded: float, recomputed: float, *, needed: float, end_s: float, seconds_per_epoch: float, completed: bool
) -> bool:
    """Say whether two numbers of epochs of a job are the same, to `RELATIVE` of the epochs it needs.

    Epochs follow from times, so that what a float of the size of `end_s` cannot tell is no difference either. Where the
    job is `completed`, the last epochs may be recorded `EARLY_S` + `EARLY` · `end_s` seconds before they were done.
    """
    tolerance = RELATIVE * needed + ULPS * math.ulp(end_s) / seconds_per_epoch
    early = (EARLY_S + EARLY * end_s) / seconds_per_epoch if completed else 0.0
    return -tolerance <= recorded - recomputed <= tolerance + early


def check_lines(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that lines are sorted by start, job and node, and that no line goes on with what another one ends."""
    keys = [(line.start_s, line.job, line.node) for line in record.intervals]
    for line, (before, after) in zip(record.intervals[1:], pairwise(keys), strict=True):
        if after < before:
            yield Difference(line.where, after, before, "order: start, job, node, not before those of the line above")
    for life in by_job:
        for earlier, later in pairwise(life):
            if later.continues(earlier):
                what = f"start: it goes on with what line {earlier.lines[0].line} holds, with which it is one interval"
                yield Difference(later.where, later.start_s, earlier.start_s, what)


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be.

    Attributes:
        allowed: The range in words, as errors give it.
        lowest: Least number.
        highest: Largest number.
        open: Whether the least number itself is out of the range.
    """

    allowed: str
    lowest: float = -math.inf
    highest: float = math.inf
    open: bool = False

    def check(self, where: str, value: float) -> None:
        """Raise InputError, which names the field `where`, unless `value` is in the range."""
        if not self.lowest <= value <= self.highest or (self.open and value == self.lowest):
            raise InputError(where, value, self.allowed)

    def check_each(self, where: str, values: Sequence[float]) -> None:
        """Check every value of the list `where`."""
        for index, value in enumerate(values):
            self.check(f"{where}[{index}]", value)


ANY = Range("a finite number")
TIME = Range("a number >= 0 and <= 1e12", 0.0, 1e12)
NOT_NEGATIVE = Range("a number >= 0", 0.0)
POSITIVE = Range("a number > 0", 0.0, open=True)
AT_LEAST_ONE = Range("a number >= 1", 1.0)


def index_below(count: int) -> Range:
    """Give the range of the indices into a list of `count` values."""
    return Range(f"an index from 0 to {count - 1}", 0, count - 1)


_MOST_DIGITS = 18


class Fields:
    """A JSON object, read field by field.

    Args:
        where: Name of the object in errors.
        value: What was read.

    Raises:
        InputError: It is no JSON object; each method raises it where a field is missing or not of the kind asked for.
    """

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise InputError(where, type(value).__name__, "a JSON object")
        self.where, self._value = where, value

    def name(self, key: str) -> str:
        """Name a field in errors."""
        return f"{self.where}: {key}" if self.where.endswith(".json") else f"{self.where}.{key}"

    def get(self, key: str) -> Any:
        """Give a field as it is."""
        if key not in self._value:
            raise InputError(self.name(key), None, "a value: the field is missing")
        return self._value[key]

    def optional(self, key: str, default: Any) -> Any:
        """Give a field as it is, or `default` where it is missing."""
        return self._value.get(key, default)

    def only(self, *keys: str) -> Fields:
        """Give the object itself, which must have no fields but `keys`."""
        for key in sorted(self._value.keys() - set(keys)):
            raise InputError(self.name(key), "...", f"no such field; one of {', '.join(sorted(keys))}")
        return self

    def fields(self, key: str) -> Fields:
        """Give a field that is an object."""
        return Fields(self.name(key), self.get(key))

    def number(self, key: str, within: Range = ANY) -> float:
        """Give a finite number that lies in a range."""
        value = number(self.name(key), self.get(key))
        within.check(self.name(key), value)
        return value

    def whole(self, key: str, within: Range = ANY) -> int:
        """Give a whole number that lies in a range."""
        value = whole(self.name(key), self.get(key))
        within.check(self.name(key), value)
        return value

    def text(self, key: str) -> str:
        """Give a text."""
        return _text(self.name(key), self.get(key))

    def items(self, key: str, length: int | None = None) -> list[Any]:
        """Give a list, of `length` values where that is given."""
        return items_of(self.name(key), self.get(key), length)

    def numbers(self, key: str, length: int | None = None, within: Range = ANY) -> list[float]:
        """Give a list of finite numbers that lie in a range."""
        return numbers_of(self.name(key), self.get(key), length, within)

    def wholes(self, key: str, length: int | None = None, within: Range = ANY) -> list[int]:
        """Give a list of whole numbers that lie in a range."""
        values = [whole(f"{self.name(key)}[{i}]", value) for i, value in enumerate(self.items(key, length))]
        within.check_each(self.name(key), values)
        return values

    def optional_flags(self, key: str, length: int) -> list[bool]:
        """Give a list of `length` values that are true or false; all false where the field is missing."""
        values = self.optional(key, [False] * length)
        for index, value in enumerate(items_of(self.name(key), values, length)):
            if not isinstance(value, bool):
                raise InputError(f"{self.name(key)}[{index}]", value, "true or false")
        return list(values)

    def texts(self, key: str, length: int | None = None) -> list[str]:
        """Give a list of texts."""
        return [_text(f"{self.name(key)}[{i}]", value) for i, value in enumerate(self.items(key, length))]


def read_json(path: Path, file_format: str, version: int) -> Fields:
    """Read a JSON file of the given format and version."""
    try:
        fields = Fields(path.name, json.loads(_content(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, str(error), "a whole JSON file") from error
    if fields.get("format") != file_format:
        raise InputError(fields.name("format"), fields.get("format"), repr(file_format))
    if fields.whole("version") != version:
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


def items_of(where: str, value: Any, length: int | None = None) -> list[Any]:
    """Give the list that JSON holds, of `length` values where that is given."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        count = len(value) if isinstance(value, list) else type(value).__name__
        raise InputError(where, count, "a list" + (f" of {length} values" if length is not None else ""))
    return value


def numbers_of(where: str, value: Any, length: int | None = None, within: Range = ANY) -> list[float]:
    """Give the list of finite numbers in a range that JSON holds."""
    values = [number(f"{where}[{i}]", item) for i, item in enumerate(items_of(where, value, length))]
    within.check_each(where, values)
    return values


def number(where: str, value: Any) -> float:
    """Give a finite number that JSON holds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass  # A whole number too large for a float is not finite either.
    raise InputError(where, value, "a finite number")


def whole(where: str, value: Any) -> int:
    """Give a whole number that JSON holds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(where, value, "a whole number")
    return value


def number_of(where: str, text: str) -> float:
    """Give the finite number that a CSV field holds."""
    try:
        return number(where, float(text))
    except ValueError as error:
        raise InputError(where, text, "a finite number") from error


def whole_of(where: str, text: str) -> int:
    """Give the whole number, 0 or above and of ordinary size, that a CSV field holds."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InputError(where, text, "a whole number >= 0")
    return int(text)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(where, value, "a text")
    return value


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of a run folder") from error
    except UnicodeDecodeError as error:
        raise InputError(path.name, str(error), "a text file in UTF-8") from error
