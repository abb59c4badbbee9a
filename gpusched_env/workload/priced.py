"""From the prices of a market and the settings of a scenario to the series of prices of a run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import DemandCharge, PriceSeries
from gpusched_env.model.prices import DAY_S
from gpusched_env.workload.scenario.prices import RANDOM
from gpusched_env.workload.tables import PRICE_SERIES

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.prices import Prices
    from gpusched_env.workload.tables.hourly_prices import PriceTable

WEEK_S, HISTORY_S, AFTER_S = 7.0 * DAY_S, 28.0 * DAY_S, 60.0 * DAY_S
THURSDAY = 3  # weekday of 1 January 1970, Monday being 0


def price_table(prices: Prices) -> PriceTable | None:
    """Read the series that a scenario names; None without one. Raises InputError: the file is not valid."""
    if prices.series is None:
        return None
    from gpusched_env.workload.tables import hourly_prices, price_file  # noqa: PLC0415 - for polars

    if prices.series in PRICE_SERIES:
        return hourly_prices.builtin_prices(prices.series)
    given = price_file.PriceColumns(prices.columns, prices.where, prices.time_zone)
    return price_file.read_prices(prices.series, given)


def price_notes(prices: Prices) -> tuple[str, ...]:
    """Return what was filled in or left out of the file of prices that a scenario names, a sentence each.

    Raises:
        InputError: The file is not valid.
    """
    table = None if prices.series in PRICE_SERIES else price_table(prices)
    if table is None:
        return ()
    low = 0 if table.eur_per_kwh is None else np.sum(table.eur_per_kwh + prices.levy_eur_per_kwh < 0.0)
    if not low:
        return table.notes
    floor = f"{low:,} of {len(table.time_s):,} periods have a price below 0, with levies"
    return (*table.notes, f"{floor}: {prices.floor_eur_per_kwh:g} €/kWh is billed then (prices.floor_eur_per_kwh).")


def price_fields(prices: Prices, table: PriceTable, until_s: float, seed: int, rng: Generator) -> dict[str, Any]:
    """Return the fields of an instance that say what energy costs: price, PUE and the series.

    The series begins up to 28 days before the run, and ends 60 days after `until_s`; where the market's prices end
    before, those of their last week are repeated.

    Args:
        table: The prices of the market.
        seed: Seed of the instance, which says from which months its start is.

    Raises:
        InputError: The start is not in the series, or carbon has a price and no intensity.
    """
    constant = {"energy_price_eur_per_kwh": prices.energy_price_eur_per_kwh, "pue": prices.pue}
    first = _first_period(prices, table, seed, rng)
    rows = _rows(table, first, until_s + AFTER_S)
    start_s = rows.time_s - table.time_s[first]
    emitted = rows.g_per_kwh
    if emitted is None and prices.co2_g_per_kwh is not None:
        emitted = np.full(len(start_s), prices.co2_g_per_kwh)
    if emitted is None and prices.carbon_eur_per_t > 0.0:
        raise InputError("prices.carbon_eur_per_t", prices.carbon_eur_per_t, "0 without a carbon intensity")
    market = np.full(len(start_s), prices.energy_price_eur_per_kwh) if rows.eur_per_kwh is None else rows.eur_per_kwh
    billed = market + prices.levy_eur_per_kwh
    if emitted is not None:
        billed = billed + prices.carbon_eur_per_t * emitted / 1e6
    billed = np.maximum(billed, prices.floor_eur_per_kwh)
    history = start_s < 0.0
    if history.any():
        lengths = np.diff(start_s)[history[:-1]]
        constant["energy_price_eur_per_kwh"] = float(np.average(billed[history], weights=lengths))
    local_s = rows.time_s + rows.local_h * 3600.0
    return constant | {
        "prices": PriceSeries(
            start_s,
            billed,
            emitted,
            rows.pue,
            _published_s(prices, start_s, local_s),
            _demand(prices, start_s, local_s),
            monday_s=-float((local_s[start_s == 0.0][0] + THURSDAY * DAY_S) % WEEK_S),
            forecast_noise=prices.forecast_noise,
            forecast_seed=int(rng.integers(2**31)) if prices.forecast_noise > 0.0 else 0,
        )
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    time_s: NDArray[np.float64]
    local_h: NDArray[np.float64]
    eur_per_kwh: NDArray[np.float64] | None
    g_per_kwh: NDArray[np.float64] | None
    pue: NDArray[np.float64] | None


def _first_period(prices: Prices, table: PriceTable, seed: int, rng: Generator) -> int:
    """Return the period with which the run begins."""
    local_s = table.local_s
    if prices.start != RANDOM:
        given = datetime.fromisoformat(prices.start).replace(tzinfo=UTC).timestamp()
        found = np.flatnonzero(local_s == given)
        if not len(found):
            allowed = f"the start of a period from {_text(local_s[0])} to {_text(local_s[-1])}, local time"
            raise InputError("prices.start", prices.start, allowed)
        return int(found[0])
    first, before = prices.months(seed)
    low = table.first_start_s if first is None else _month_s(first)
    high = table.last_start_s if prices.last_month is None else _month_s(prices.last_month, 1)
    high = high if before is None else min(high, _month_s(before))
    days = np.flatnonzero((local_s % DAY_S == 0.0) & (local_s >= low) & (local_s < high))
    if not len(days):
        allowed = f"months with days of the series, {_text(local_s[0])} to {_text(local_s[-1])}"
        raise InputError("prices.first_month", prices.first_month, allowed)
    return int(rng.choice(days))


def _rows(table: PriceTable, first: int, length_s: float) -> _Rows:
    """Return the rows from 28 days before the run to its end, the last week repeated where they end before."""
    begin, end = table.time_s[first] - HISTORY_S, table.time_s[first] + length_s
    low, high = np.searchsorted(table.time_s, [begin, end])
    index, time_s = np.arange(low, high), table.time_s[low:high]
    step = table.time_s[-1] - table.time_s[-2] if len(table.time_s) > 1 else DAY_S
    over_s = table.time_s[-1] + step
    if over_s < end:
        week = np.flatnonzero(table.time_s >= over_s - WEEK_S)
        span = over_s - table.time_s[week[0]]
        for again in range(1, int(np.ceil((end - over_s) / span)) + 1):
            index, time_s = np.append(index, week), np.append(time_s, table.time_s[week] + again * span)
    columns = (table.eur_per_kwh, table.g_per_kwh, table.pue)
    return _Rows(time_s, table.local_h[index], *(None if c is None else c[index] for c in columns))


def _published_s(
    prices: Prices, start_s: NDArray[np.float64], local_s: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    if prices.known == "all":
        return None
    if prices.known == "none":
        return start_s
    told_s = np.floor(local_s / DAY_S - 1.0) * DAY_S + prices.published_h * 3600.0  # local time of the day before
    row = np.maximum(np.searchsorted(np.maximum.accumulate(local_s), told_s, side="right") - 1, 0)
    return np.maximum.accumulate(np.minimum(start_s[row] + told_s - local_s[row], start_s))


def _demand(prices: Prices, start_s: NDArray[np.float64], local_s: NDArray[np.float64]) -> DemandCharge | None:
    if prices.demand_charge_eur_per_kw == 0.0:
        return None
    months = np.array([datetime.fromtimestamp(s, UTC).month for s in local_s])
    begins = np.flatnonzero(np.diff(months, prepend=months[0]) != 0)
    interval_s = prices.demand_interval_s
    nearest = np.round(start_s[begins] / interval_s) * interval_s  # after a change of the clock midnight may be none
    later = tuple(float(month_s) for month_s in np.unique(nearest) if month_s > 0.0)
    return DemandCharge(prices.demand_charge_eur_per_kw, interval_s, later)


def _month_s(month: str, more: int = 0) -> float:
    """Return when a month begins, or one some months after it: local time in seconds since 1970."""
    year, number = (int(part) for part in month.split("-"))
    number += more - 1
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()


def _text(local_s: float) -> str:
    return datetime.fromtimestamp(local_s, UTC).strftime("%Y-%m-%dT%H:%M")
