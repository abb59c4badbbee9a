"""Cells of a trace file: what counts as empty, and how numbers and dates are read."""

from __future__ import annotations

from typing import Literal

import polars as pl

Kind = Literal["number", "date"]

MISSING = ("", "none", "null", "nan", "na", "n/a", "unknown", "nat", "-")
"""What stands where nothing is known, in small letters."""

_PLAIN_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")


def missing(text: pl.Series) -> pl.Series:
    """Say which cells hold nothing: empty ones, and words for it."""
    return text.is_null() | text.str.to_lowercase().is_in(MISSING).fill_null(value=True)


def plain(text: pl.Series) -> pl.Series:
    """Read numbers, null where there is none."""
    return text.cast(pl.Float64, strict=False)


def micros(text: pl.Series) -> pl.Series:
    """Read dates as microseconds since 1970 (UTC where no zone is given), null where there is none."""
    text = text.str.replace("T", " ").str.replace(r"Z$", "+00:00")
    found = [text.str.to_datetime(form, strict=False, time_unit="us") for form in _PLAIN_FORMS]
    zoned = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", strict=False, time_unit="us", time_zone="UTC")
    return pl.select(pl.coalesce([s.cast(pl.Int64) for s in (*found, zoned)])).to_series()


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
