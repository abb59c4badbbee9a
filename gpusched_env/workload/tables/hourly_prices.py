"""Prices of energy over real time: the built-in markets."""

from __future__ import annotations

import lzma
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpusched_env.model.checks import DAY_S
from gpusched_env.workload.tables import MARKETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOUR_S = 3600.0
HISTORY_S = 28.0 * DAY_S
CARBON_YEAR = 2022
NOW = datetime.fromisoformat


@dataclass(frozen=True, slots=True, eq=False)
class PriceTable:
    """Prices over real time, period by period; the last one is as long as the one before.

    Attributes:
        time_s: Start of every period, seconds since 1970 in UTC, (P,), increasing.
        local_h: By how many hours the market's local time is ahead of UTC then, (P,).
        eur_per_kwh: Price without levies [€/kWh], (P,); may be negative. The $ of American markets are taken as €.
            None: not known.
        g_per_kwh: Carbon intensity [g CO₂/kWh], (P,); None: not known.
        pue: PUE, (P,); None: not known.
        first_start_s: Random starts are from then on, local time in seconds since 1970.
        last_start_s: Random starts are before this time.
        notes: What was filled in or left out, a sentence each.
    """

    time_s: NDArray[np.float64]
    local_h: NDArray[np.float64]
    eur_per_kwh: NDArray[np.float64] | None
    g_per_kwh: NDArray[np.float64] | None
    pue: NDArray[np.float64] | None
    first_start_s: float
    last_start_s: float
    notes: tuple[str, ...] = ()

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
    prices = filled(rows[f"{column}_price"].cast(pl.Float64).fill_null(np.nan).to_numpy()) / 1e5
    table = PriceTable(time_s, local_h, prices, None, None, -np.inf, np.inf)
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
        eur_per_kwh=prices[inside],
        g_per_kwh=emitted,
        first_start_s=begin,
        last_start_s=end,
    )


@cache
def _rows() -> pl.DataFrame:
    place = files("gpusched_env").joinpath("workload", "tables", "data", "hourly_prices.csv.xz")
    return pl.read_csv(lzma.decompress(place.read_bytes()), infer_schema_length=None)


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
