"""Times in published files of prices, and where they are local ones, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.workload.tables.hourly_prices import HOUR_S

LINE = "line of the file"
Floats = NDArray[np.float64]
ZONES = {"(CET/CEST)": "Europe/Brussels", "(WET/WEST)": "Europe/Lisbon", "(EET/EEST)": "Europe/Athens", "GMT": "UTC"}
"""Time zones by what stands for them in names of columns; UTC is the other one."""
_DAYS = re.compile(r"(\d\d)[./](\d\d)[./](\d{4})[ T](.*)")
_PERIOD = re.compile(r"(.+?)(?: \([A-Z]+\))?(?: - .*)?")
TIME = "a time in ISO 8601 with its offset, as 2024-03-01T00:00+01:00; without offsets name the zone: "
TIME += "--set prices.time_zone=Europe/Berlin"


def naive(cell: str) -> datetime | None:
    """Read a time, the start of a period such as `01/09/2025 02:00:00 (CEST) - …` (day first), or Unix time.

    Unix time is in seconds or, with 12 or 13 digits, in milliseconds.
    """
    if re.fullmatch(r"\d{9,10}|\d{12,13}", cell):
        return datetime.fromtimestamp(int(cell) / (1 if len(cell) < 12 else 1000), UTC)
    begin = _PERIOD.fullmatch(cell)
    text = "" if begin is None else _DAYS.sub(r"\3-\2-\1 \4", begin[1])
    try:
        return datetime.fromisoformat(text) if re.search("[-:]", text) else None
    except ValueError:
        return None


def times_in(file: str, table: pl.DataFrame, column: str, zone: str | None) -> tuple[Floats, Floats]:
    """Return the start of every row [s since 1970, UTC], and by how many hours local time is ahead."""
    read = [naive(cell) for cell in table[column]]
    told = next((zone for sign, zone in ZONES.items() if sign in column), "UTC" if "utc" in column.lower() else None)
    zone = zone or told
    for row, time in enumerate(read):
        if time is None or (time.tzinfo is None and zone is None):
            raise InputError(f"{file}: line {table[LINE][row]}, {column}", table[column][row], TIME)
    offsets = [time.utcoffset() for time in read if time is not None]
    local = [time.replace(tzinfo=None) for time in read if time is not None]
    if zone is not None and None in offsets:
        utc = _in_zone(local, zone)
        for row, found in enumerate(utc):
            if found is None and offsets[row] is None:
                allowed = f"a time that there is in {zone}: clocks go forward over it"
                raise InputError(f"{file}: line {table[LINE][row]}, {column}", table[column][row], allowed)
        offsets = [o if o is not None or u is None else t - u for o, u, t in zip(offsets, utc, local, strict=True)]
    since = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone
    ahead = np.array([0.0 if offset is None else offset.total_seconds() for offset in offsets])
    return np.array([(time - since).total_seconds() for time in local]) - ahead, ahead / HOUR_S


def _in_zone(local: list[datetime], zone: str) -> list[datetime | None]:
    """Return local times in UTC; of a time that comes twice, when clocks go back, first the earlier one."""
    times = pl.Series(local, dtype=pl.Datetime("us"))
    first = times.is_first_distinct() if local[0] <= local[-1] else ~times.is_first_distinct() | times.is_unique()
    which = pl.select(pl.when(first).then(pl.lit("earliest")).otherwise(pl.lit("latest"))).to_series()
    try:
        zoned = pl.select(pl.lit(times).dt.replace_time_zone(zone, ambiguous=pl.lit(which), non_existent="null"))
    except pl.exceptions.PolarsError:
        raise InputError("prices.time_zone", zone, "a time zone by its name, such as Europe/Berlin or UTC") from None
    found: list[datetime | None] = zoned.to_series().dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_list()
    return found
