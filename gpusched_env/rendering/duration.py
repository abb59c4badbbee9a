"""Durations as people read them."""

from __future__ import annotations

from itertools import pairwise

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration_text(seconds: float) -> str:
    """Write a duration with its two largest units: `2 d 3 h`, `5 h 10 min`, `42 s`.

    Args:
        seconds: The duration [s], ≥ 0.
    """
    whole = round(seconds)
    for (length, unit), (next_length, next_unit) in pairwise(UNITS):
        if whole >= length:
            many, rest = divmod(whole, int(length))
            few = rest // int(next_length)
            return f"{many} {unit} {few} {next_unit}" if few else f"{many} {unit}"
    return f"{whole} s"


def axis_unit(span_s: float) -> tuple[float, str]:
    """Choose the unit of a time axis of `span_s` seconds: its length [s] and its name."""
    if span_s > 4 * 86_400.0:
        return 86_400.0, "days"
    if span_s > 2 * 3_600.0:
        return 3_600.0, "hours"
    return (60.0, "minutes") if span_s > 120.0 else (1.0, "seconds")
