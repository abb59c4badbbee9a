"""Features of the prices of energy: now, and in the hours to come, as policies may know them."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Singles
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms import GROUPS
from gpusched_env.mechanisms.cap.power import full_kilowatts
from gpusched_env.mechanisms.prices.names import (
    CARBON,
    CARBON_QUANTILE,
    CHEAPEST,
    CHEAPEST_ROW,
    DAYS_OF_MONTH,
    HOUR,
    HOUR_S,
    HOURS,
    INTERVAL,
    KNOWN,
    LEVEL,
    MONTH_LEFT,
    NOW,
    PEAK,
    QUANTILE,
    TOGETHER,
)
from gpusched_env.mechanisms.prices.priced_time import forecast_prices, known_until_s, mean_price, period_at
from gpusched_env.observation.ratios import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

PRICES = tuple(GROUPS).index("prices")


@lean_kernel
def over(value: float, mean: float) -> float:
    """Return squash(value / mean - 1) for numbers >= 0; 0 where the mean is 0."""
    return squash(value / mean - 1.0) if mean > 0.0 else 0.0


@kernel
def write_prices(board: Board, out: Floats) -> None:
    """Write the features of prices, (PRICES,)."""
    now, mean, known = board.clock[at.NOW], 0.0, 0
    edges, hours = np.empty(HOURS + 1), np.empty(HOURS)
    for k in range(HOURS + 1):
        edges[k] = now + k * HOUR_S
    forecast_prices(board, edges, hours)
    until = known_until_s(board)
    while known < HOURS and edges[known + 1] <= until:
        mean += hours[known]
        known += 1
    mean = mean / known if known > 0 else hours.mean()
    price = mean_price(board, now, now)
    price = hours[0] if np.isnan(price) else price
    out[NOW] = over(price, mean)
    for k in range(HOURS):
        out[HOUR + k] = over(hours[k], mean)
    out[KNOWN] = known / HOURS
    out[LEVEL] = over(mean, board.clock[at.PRICE] * board.clock[at.PUE])
    _compare(hours, price, out)
    _write_carbon(board, known, out)
    _write_demand(board, out)


@lean_kernel
def _compare(hours: Floats, price: float, out: Floats) -> None:
    """Write the place of the present price among the hours to come, and when the cheapest of them are."""
    cheaper, cheapest, row, least = 0, 0, 0, np.inf
    for k in range(HOURS):
        cheaper += 1 if hours[k] < price else 0
        cheapest = k if hours[k] < hours[cheapest] else cheapest
        if k + TOGETHER <= HOURS:
            total = 0.0
            for i in range(k, k + TOGETHER):
                total += hours[i]
            if total < least:
                row, least = k, total
    out[QUANTILE], out[CHEAPEST], out[CHEAPEST_ROW] = cheaper / HOURS, cheapest / HOURS, row / HOURS


@lean_kernel
def _write_carbon(board: Board, known: int, out: Floats) -> None:
    """Write the features of carbon intensity, at the beginnings of the `known` hours."""
    out[CARBON] = out[CARBON_QUANTILE] = 0.0
    if not board.has_prices:
        return
    prices, now = board.prices, board.clock[at.NOW]
    if prices.shape[0] == 0 or known == 0:
        return
    present, total, lower = prices[period_at(prices, now), at.PERIOD_G], 0.0, 0
    for k in range(known):
        later = prices[period_at(prices, now + k * HOUR_S), at.PERIOD_G]
        total += later
        lower += 1 if later < present else 0
    out[CARBON], out[CARBON_QUANTILE] = over(present, total / known), lower / known


@lean_kernel
def _write_demand(board: Board, out: Floats) -> None:
    """Write the state of the demand charge, on which the cost of the next interval depends."""
    out[PEAK] = out[INTERVAL] = out[MONTH_LEFT] = 0.0
    if not board.has_prices:
        return
    clock, tariff = board.clock, board.tariff
    if tariff.shape[0] == 0 or tariff[at.DEMAND_EUR_PER_KW] == 0.0:
        return
    full = full_kilowatts(board) * clock[at.PUE]
    out[PEAK] = min(1.0, clock[at.PEAK_KW] / full)
    out[INTERVAL] = min(1.0, clock[at.INTERVAL_KWH] * HOUR_S / tariff[at.DEMAND_INTERVAL_S] / full)
    end = np.inf
    for month in range(at.TARIFF_COLUMNS, tariff.shape[0]):
        if tariff[month] > clock[at.NOW]:
            end = min(end, tariff[month])
    out[MONTH_LEFT] = min(1.0, (end - clock[at.NOW]) / (DAYS_OF_MONTH * 24.0 * HOUR_S))


@kernel
def write_group(board: Board, group: int, rows: Singles) -> None:
    """Write the features of prices, (1, PRICES); they are the same until the clock moves."""
    if group != PRICES:
        return
    shown = board.shown_prices
    if shown[-1] != board.clock[at.NOW]:
        write_prices(board, shown[:-1])
        shown[-1] = board.clock[at.NOW]
    for k in range(rows.shape[1]):
        rows[0, k] = shown[k]
