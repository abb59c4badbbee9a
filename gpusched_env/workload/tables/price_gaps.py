"""Periods that a file of prices lacks: what holds there, or that too many are missing; always reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model.checks import DAY_S
from gpusched_env.workload.tables.hourly_prices import PriceTable

REPEATED = 3
"""Most missing periods in which the price before them holds, as the curve type A03 of ENTSO-E says."""
LONGEST_S = 7.0 * DAY_S
"""Longest gap that is filled [s]; the periods of it are those of the day before, as in the built-in series."""
NEIGHBOURS = 3
EVEN, UNEVEN_S = 0.9, 2.0 * DAY_S
"""Part of the periods that are as long as those around them, at least; without it only longer ones are gaps [s]."""
SHOWN = 3


def without_gaps(file: str, table: PriceTable) -> PriceTable:
    """Fill the gaps of a series, and add a note on each; a series of periods of no common length has none.

    Up to `REPEATED` missing periods have the values before them. Longer gaps, up to `LONGEST_S`, have those of 24 hours
    before.

    Raises:
        InputError: A gap is longer, or longer than `REPEATED` periods within the first day; it names the first and last
            period that are missing.
    """
    steps = np.diff(table.time_s)
    if len(steps) <= NEIGHBOURS:
        return table
    usual = _usual(steps)
    missing = np.round(steps / usual) - 1.0
    even = np.mean(steps == usual) >= EVEN
    if not even:  # periods of any length, such as the hours of a tariff
        missing[steps <= UNEVEN_S] = 0.0
    time_s, index, notes = table.time_s, np.arange(len(table.time_s)), []
    for row in np.flatnonzero(missing > 0.0).tolist():
        count, step, before_s = int(missing[row]), usual[row], table.time_s[row]
        added = before_s + step * np.arange(1, count + 1)
        place, values = np.full(count, row), "those before"
        if count > REPEATED:
            early = before_s + step - DAY_S < table.time_s[0]
            if not even or early or step > DAY_S or steps[row] - step > LONGEST_S:
                raise _too_long(file, table, row, added)
            ago = added - DAY_S * np.ceil((added - before_s - step / 2.0) / DAY_S)  # the last such time before the gap
            place, values = index[np.searchsorted(time_s, ago, side="right") - 1], "those of 24 hours before"
        notes.append(_note(file, table, row, added, values))
        after = int(np.searchsorted(time_s, before_s, side="right"))
        time_s, index = np.insert(time_s, after, added), np.insert(index, after, place)
    if not even:
        table = replace(table, notes=(*table.notes, _lengths(file, steps)))
    if not notes:
        return table
    columns = (table.eur_per_kwh, table.g_per_kwh, table.pue)
    prices, carbon, pue = (None if column is None else column[index] for column in columns)
    local_h = table.local_h[np.searchsorted(table.time_s, time_s, side="right") - 1]
    notes = [*table.notes, *_few(file, notes)]
    made = replace(table, time_s=time_s, local_h=local_h, notes=tuple(notes))
    return replace(made, eur_per_kwh=prices, g_per_kwh=carbon, pue=pue)


def _usual(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the usual length of periods around each [s]: the median of it and its neighbours."""
    padded = np.pad(steps, NEIGHBOURS, mode="reflect")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1))


def _lengths(file: str, steps: NDArray[np.float64]) -> str:
    shortest, longest = (each / 60.0 for each in (steps.min(), steps.max()))
    return f"{file}: periods have {shortest:g} to {longest:g} min; the values of each hold until the next begins."


def _too_long(file: str, table: PriceTable, row: int, added: NDArray[np.float64]) -> InputError:
    allowed = (
        f"at most {REPEATED} missing periods in a row, in which the values before hold, or "
        f"{LONGEST_S / DAY_S:g} days with those of 24 hours before: add the rows, or keep one side of the gap"
    )
    first, last = (_text(time, table.local_h[row]) for time in (added[0], added[-1]))
    return InputError(f"{file}: missing periods", f"{first} to {last} ({len(added):,})", allowed)


def _note(file: str, table: PriceTable, row: int, added: NDArray[np.float64], values: str) -> str:
    hours = table.local_h[row]
    if len(added) == 1:
        return f"{file}: the period {_text(added[0], hours)} is missing; its values are {values}."
    return (
        f"{file}: {len(added):,} periods from {_text(added[0], hours)} to {_text(added[-1], hours)} are missing; their "
        f"values are {values}."
    )


def _few(file: str, notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - SHOWN
    return (*notes[:SHOWN], f"{file}: {more:,} more gaps are filled in the same way.") if more > 0 else tuple(notes)


def _text(time_s: float, ahead_h: float) -> str:
    zone = timezone(timedelta(hours=float(ahead_h))) if ahead_h else UTC
    return datetime.fromtimestamp(float(time_s), zone).isoformat(timespec="minutes")
