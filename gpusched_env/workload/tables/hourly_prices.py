"""Prices of energy over real time: the built-in markets, and CSV files of users."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.model.prices import DAY_S
from gpusched_env.workload.tables import MARKETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

HOUR_S = 3600.0
HISTORY_S = 28.0 * DAY_S
CARBON_YEAR = 2022
MWH = {"eur_per_kwh": 1.0, "eur_per_mwh": 1000.0}
"""Names that the column of prices of a file may have, and kWh in their unit."""
NOW = datetime.fromisoformat


@dataclass(frozen=True, slots=True, eq=False)
class PriceTable:
    """Prices over real time, period by period; the last one is as long as the one before.

    Attributes:
        time_s: Start of every period, seconds since 1970 in UTC, (P,), increasing.
        local_h: By how many hours the market's local time is ahead of UTC then, (P,).
        eur_per_kwh: Price without levies [€/kWh], (P,); may be negative. The $ of American markets are taken as €.
        g_per_kwh: Carbon intensity [g CO₂/kWh], (P,); None: not known.
        pue: PUE, (P,); None: not known.
        first_start_s: Random starts are from then on, local time in seconds since 1970.
        last_start_s: Random starts are before this time.
    """

    time_s: NDArray[np.float64]
    local_h: NDArray[np.float64]
    eur_per_kwh: NDArray[np.float64]
    g_per_kwh: NDArray[np.float64] | None
    pue: NDArray[np.float64] | None
    first_start_s: float
    last_start_s: float

    @property
    def local_s(self) -> NDArray[np.float64]:
        """Return the local time of every start, in seconds since 1970, (P,)."""
        return self.time_s + self.local_h * HOUR_S


@cache
def builtin_prices(name: str) -> PriceTable:
    """Return a built-in series; of a market's year its prices, with those of 28 days before as history.

    Carbon intensities are there for `caiso-2022` and `ercot-2022`. What is missing is that of the same hour of the day
    before, or after it at the beginning.
    """
    market, _, year = name.rpartition("-") if name not in MARKETS else (name, "", "")
    column, rows = market.replace("-", "_"), _rows()
    time_s: NDArray[np.float64] = _seconds("2020-01-01T00:00+00:00") + HOUR_S * np.arange(len(rows), dtype=np.float64)
    local_h = rows[f"{column}_local_h"].to_numpy().astype(np.float64)
    table = PriceTable(
        time_s,
        local_h,
        filled(rows[f"{column}_price"].cast(pl.Float64).fill_null(np.nan).to_numpy()) / 1e5,
        None,
        None,
        -np.inf,
        np.inf,
    )
    if not year:
        return table
    begin, end = (_seconds(f"{y}-01-01T00:00+00:00") for y in (int(year), int(year) + 1))
    inside = (table.local_s >= begin - HISTORY_S) & (table.local_s < end)
    emitted = None
    if int(year) == CARBON_YEAR and f"{column}_g" in rows.columns:
        emitted = filled(rows[f"{column}_g"].cast(pl.Float64).fill_null(np.nan).to_numpy()[inside]) / 10.0
    return replace(
        table,
        time_s=time_s[inside],
        local_h=local_h[inside],
        eur_per_kwh=table.eur_per_kwh[inside],
        g_per_kwh=emitted,
        first_start_s=begin,
        last_start_s=end,
    )


@cache
def _rows() -> pl.DataFrame:
    place = files("gpusched_env").joinpath("workload", "tables", "data", "hourly_prices.csv.gz")
    return pl.read_csv(gzip.decompress(place.read_bytes()), infer_schema_length=None)


def _seconds(text: str) -> float:
    return NOW(text).timestamp()


def filled(hourly: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return hourly values with what is missing (NaN) as 24 hours before, or after where nothing is before."""
    values = hourly.copy()
    for hour in np.flatnonzero(np.isnan(values)):
        if hour >= 24:
            values[hour] = values[hour - 24]
    for hour in np.flatnonzero(np.isnan(values))[::-1]:
        values[hour] = values[hour + 24]
    return values


def read_prices(path: str) -> PriceTable:
    """Read a CSV file of prices: columns time, eur_per_kwh or eur_per_mwh, and optionally g_per_kwh and pue.

    Times are the starts of periods of any length, in ISO 8601 with their offset from UTC (`2024-03-01T00:00+01:00`):
    local time is told from that.
    """
    try:
        frame = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(path, str(error), "a CSV file with prices that can be read") from None
    kinds = [name for name in MWH if name in frame.columns]
    unknown = set(frame.columns) - {"time", *MWH, "g_per_kwh", "pue"}
    if "time" not in frame.columns or len(kinds) != 1 or unknown or not len(frame):
        allowed = "time, eur_per_kwh or eur_per_mwh, perhaps g_per_kwh and pue, and one line or more"
        raise InputError(f"{path}: columns", ", ".join(frame.columns), allowed)
    times, offsets = _times(path, frame["time"].to_list())
    columns: Mapping[str, Any] = {
        name: _numbers(path, name, frame[name].to_list(), least)
        for name, least in ((kinds[0], -np.inf), ("g_per_kwh", 0.0), ("pue", 1.0))
        if name in frame.columns
    }
    prices = columns[kinds[0]] / MWH[kinds[0]]
    return PriceTable(times, offsets, prices, columns.get("g_per_kwh"), columns.get("pue"), -np.inf, np.inf)


def _times(path: str, cells: list[str | None]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    times: list[float] = []
    offsets: list[float] = []
    for line, cell in enumerate(cells, start=2):
        where = f"{path}: line {line}, time"
        try:
            time = NOW(cell or "")
        except ValueError:
            raise InputError(where, cell, "a time in ISO 8601 with its offset, as 2024-03-01T00:00+01:00") from None
        offset = time.utcoffset()
        if offset is None:
            raise InputError(where, cell, "a time with its offset from UTC, as 2024-03-01T00:00+01:00")
        if times and time.timestamp() <= times[-1]:
            raise InputError(where, cell, "a later time than the line before")
        times.append(time.timestamp())
        offsets.append(offset.total_seconds() / HOUR_S)
    return np.array(times), np.array(offsets)


def _numbers(path: str, name: str, cells: list[str | None], least: float) -> NDArray[np.float64]:
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            numbers[i] = float(cell or "")
        except ValueError:
            numbers[i] = np.nan
        if not np.isfinite(numbers[i]) or numbers[i] < least:
            allowed = "a finite number" + ("" if least == -np.inf else f" >= {least:g}")
            raise InputError(f"{path}: line {i + 2}, {name}", cell, allowed)
    return numbers
