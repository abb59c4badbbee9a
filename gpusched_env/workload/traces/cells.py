"""Cells of a trace file: what counts as empty, and how numbers and dates are read."""

from __future__ import annotations

from typing import Literal

import polars as pl

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
