"""Time at prices that change: what energy costs and emits between two times, and what policies know of prices.

Rates in the state are those at the reference price, the instance's own. Energy is billed over the priced length of a
time, ∫ π(t) · PUE(t) dt / (π0 · PUE0), in place of its seconds.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel
from gpusched_env.model.checks import DAY_S
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S
from gpusched_env.simulator.events import next_multiple
from gpusched_env.simulator.run import Board, Hidden

WEEK_S, WORKING_DAYS, HISTORY_DAYS = 7 * DAY_S, 5, 28
# Part of the difference of a day's price from its forecast that is left after a day: of 0.8 and 0.9 the one with the
# lesser mean absolute error on the prices of `day-ahead`, `day-ahead-caiso` and `two-prices`, seeds 97400 to 97411.
LEVEL_LEFT = 0.8


@kernel
def period_at(prices: Floats, time: float) -> int:
    """Return the period that holds at a time; the first one before all of them."""
    low, high = 0, prices.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        if prices[middle, at.PERIOD_START] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def period_end(prices: Floats, period: int) -> float:
    """Return the time at which a period ends; inf for the last one."""
    return prices[period + 1, at.PERIOD_START] if period + 1 < prices.shape[0] else np.inf


@kernel
def priced_length(board: Board, hidden: Hidden, before: float, time: float, rate: float) -> float:
    """Meter the nodes between two times at the rate of their energy [€/s], and return their priced length [s].

    Energy, emissions and the demand charge are added in `clock`. The length has the demand charge in it: times the
    rate it is all that the bill rises by, and times a job's part of the rate the job's part of that.
    """
    prices, clock = hidden.all_prices, board.clock
    reference = clock[at.PRICE] * clock[at.PUE]
    kilowatts, length = rate * 3600.0 / reference, 0.0
    period, begin = period_at(prices, before), before
    while begin < time:
        end = min(time, period_end(prices, period))
        cost, pue = prices[period, at.PERIOD_PRICE], prices[period, at.PERIOD_PUE]
        kwh = kilowatts * pue * (end - begin) / 3600.0
        clock[at.KWH] += kwh
        clock[at.CO2_KG] += kwh * prices[period, at.PERIOD_G] / 1000.0
        length += (end - begin) * cost * pue / reference
        if board.tariff[at.DEMAND_EUR_PER_KW] > 0.0 and rate > 0.0:
            length += charge_demand(board, begin, end, kilowatts * pue) / rate
        elif board.tariff[at.DEMAND_EUR_PER_KW] > 0.0:
            charge_demand(board, begin, end, 0.0)
        begin = end
        period += 1
    return length


@kernel
def charge_demand(board: Board, begin: float, end: float, kilowatts: float) -> float:
    """Meter a constant power for the demand charge, and return by how much the charge has risen [€]."""
    clock, tariff, risen = board.clock, board.tariff, 0.0
    interval = tariff[at.DEMAND_INTERVAL_S]
    while begin < end:
        following = next_multiple(begin, interval)
        until = min(end, following)
        clock[at.INTERVAL_KWH] += kilowatts * (until - begin) / 3600.0
        mean = clock[at.INTERVAL_KWH] * 3600.0 / interval
        if mean > clock[at.PEAK_KW]:
            risen += tariff[at.DEMAND_EUR_PER_KW] * (mean - clock[at.PEAK_KW])
            clock[at.PEAK_KW] = mean
        if until == following:
            clock[at.INTERVAL_KWH] = 0.0
            for month in range(at.TARIFF_COLUMNS, tariff.shape[0]):
                if following - 0.5 * interval < tariff[month] < following + 0.5 * interval:
                    clock[at.PEAK_KW] = 0.0
        begin = until
    clock[at.DEMAND_EUR] += risen
    return risen


@kernel
def publish(board: Board, hidden: Hidden) -> None:
    prices, count = hidden.all_prices, board.count
    while count[at.PUBLISHED] < prices.shape[0]:
        row = count[at.PUBLISHED]
        if prices[row, at.PERIOD_PUBLISHED] > board.clock[at.NOW]:
            return
        for column in range(prices.shape[1]):
            board.prices[row, column] = prices[row, column]
        count[at.PUBLISHED] += 1


@kernel
def known_until_s(board: Board) -> float:
    """Return the time until which prices are known now [s]; inf if all are, or do not change."""
    if not board.has_prices:
        return np.inf
    known = board.count[at.PUBLISHED]
    return board.prices[known, at.PERIOD_START] if known < board.prices.shape[0] else np.inf


@kernel
def next_publication_s(board: Board) -> float:
    """Return the time at which the next prices are published [s]; inf if there are none to come."""
    if not board.has_prices:
        return np.inf
    known = board.count[at.PUBLISHED]
    return board.prices[known, at.PERIOD_PUBLISHED] if known < board.prices.shape[0] else np.inf


@kernel
def mean_price(board: Board, begin: float, end: float) -> float:
    """Return the mean price of a kWh of the nodes between two times, PUE included [€/kWh].

    NaN where it is not published, or before the series begins; of no time the price then. Without a series it is the
    constant price.
    """
    clock = board.clock
    if not board.has_prices or board.prices.shape[0] == 0:
        return clock[at.PRICE] * clock[at.PUE]
    return _mean_of(board, begin, end, True)


@kernel
def _mean_of(board: Board, begin: float, end: float, priced: bool) -> float:
    """Return the mean over a time of price times PUE, or of the PUE alone; NaN where it is not published."""
    prices, period = board.prices, period_at(board.prices, begin)
    if begin < prices[0, at.PERIOD_START]:
        return np.nan
    if end <= begin:
        return (prices[period, at.PERIOD_PRICE] if priced else 1.0) * prices[period, at.PERIOD_PUE]
    total, start = 0.0, begin
    while start < end:
        until = min(end, period_end(prices, period))
        price = prices[period, at.PERIOD_PRICE] if priced else 1.0
        total += (until - start) * price * prices[period, at.PERIOD_PUE]
        start = until
        period += 1
    return total / (end - begin)


@kernel
def forecast_of(board: Board, period: int) -> float:
    """Forecast the price of a kWh of the nodes in a period that is not published, PUE included [€/kWh].

    It is the mean m of the same hours of those of the 28 days before that are published and of the same type, working
    day or weekend; without one, of all 28 days; without history the reference price. The forecast is
    m · (1 + 0.8^d · (ℓ - 1)) times the noise of the period: ℓ is the mean of the last 24 h that are published over what
    its forecast was, d the days from the middle of these hours.
    """
    return _forecast_at(board, period, _level(board))


@kernel
def _forecast_at(board: Board, period: int, level: float) -> float:
    """Return `forecast_of`, given the `_level` of the latest published day."""
    prices, known = board.prices, known_until_s(board)
    start = prices[period, at.PERIOD_START]
    mean = _same_hours(board, start, period_end(prices, period) - start, True)
    if np.isnan(mean):
        return board.clock[at.PRICE] * board.clock[at.PUE] * prices[period, at.PERIOD_NOISE]
    days = (start - known) / DAY_S + 0.5
    return mean * (1.0 + LEVEL_LEFT**days * (level - 1.0)) * prices[period, at.PERIOD_NOISE]


@kernel
def _level(board: Board) -> float:
    """Return the mean price of the last 24 h that are published over what its forecast was; 1 without history."""
    if not board.has_prices or board.prices.shape[0] == 0:
        return 1.0
    known = known_until_s(board)
    begin = known - DAY_S
    if known == np.inf or begin < board.prices[0, at.PERIOD_START]:
        return 1.0
    midnight = min(known, known - (known - board.tariff[at.MONDAY_S]) % DAY_S)  # the type of day may change then
    forecast = 0.0
    if midnight > begin + MISSED_S:
        forecast += (midnight - begin) / DAY_S * _same_hours(board, begin, midnight - begin, True)
    if known > midnight + MISSED_S:
        forecast += (known - midnight) / DAY_S * _same_hours(board, midnight, known - midnight, True)
    return _mean_of(board, begin, known, True) / forecast if forecast > 0.0 else 1.0


@kernel
def _at_weekend(time: float, monday: float) -> bool:
    """Return whether a time is at a weekend; one that is before midnight by rounding is of the next day."""
    return (time + MISSED_S - monday) % WEEK_S >= WORKING_DAYS * DAY_S


@kernel
def _same_hours(board: Board, start: float, length: float, priced: bool) -> float:
    """Return the mean of price times PUE, or of the PUE, in the hours that forecast a time; NaN: there are none."""
    prices, monday, known = board.prices, board.tariff[at.MONDAY_S], known_until_s(board)
    length = min(length, DAY_S)
    weekend = _at_weekend(start, monday)
    total, days, of_type, days_of_type = 0.0, 0, 0.0, 0
    for day in range(1, HISTORY_DAYS + 1):
        begin = start - day * DAY_S
        if begin + length > known or begin < prices[0, at.PERIOD_START]:
            continue
        mean = _mean_of(board, begin, begin + length, priced)
        total += mean
        days += 1
        if _at_weekend(begin, monday) == weekend:
            of_type += mean
            days_of_type += 1
    if days_of_type > 0:
        return of_type / days_of_type
    return total / days if days > 0 else np.nan


@kernel
def forecast_prices(board: Board, edges: Floats, prices: Floats) -> None:
    """Write the mean price of a kWh of the nodes between each edge [s] and the next, PUE included [€/kWh].

    Prices are the published ones, and forecasts (`forecast_of`) beyond.

    Args:
        board: The board.
        edges: Increasing times from the beginning of the series on [s], (K + 1,).
        prices: Receives the prices, (K,).
    """
    known, level = board.count[at.PUBLISHED], _level(board)
    if not board.has_prices:
        prices[:] = board.clock[at.PRICE] * board.clock[at.PUE]
        return
    for k in range(prices.shape[0]):
        begin, end = edges[k], edges[k + 1]
        if board.prices.shape[0] == 0 or end <= known_until_s(board):
            prices[k] = mean_price(board, begin, end)
            continue
        total, period, start = 0.0, period_at(board.prices, begin), begin
        while start < end:
            until = min(end, period_end(board.prices, period))
            if period < known:
                price = board.prices[period, at.PERIOD_PRICE] * board.prices[period, at.PERIOD_PUE]
            else:
                price = _forecast_at(board, period, level)
            total += (until - start) * price
            start = until
            period += 1
        prices[k] = total / (end - begin)


@kernel
def expected_rows(board: Board, until: float) -> Floats:
    """Return the rows of all periods with forecasts where prices are not published, for simulations of the future.

    Args:
        board: The board.
        until: The time until which forecasts are needed [s]; the price of that time holds for all later periods.

    Returns:
        Rows of the form of `Board.prices`, (P, PRICE_COLUMNS): the PUE is forecast as the price is, without level and
        noise, since a demand charge meters power times PUE; emissions of forecasts are 0.
    """
    rows, price, pue, level = board.prices.copy(), 0.0, 1.0, _level(board)
    for period in range(board.count[at.PUBLISHED], rows.shape[0]):
        if rows[period, at.PERIOD_START] <= until or price == 0.0:
            begin = rows[period, at.PERIOD_START]
            pue = _same_hours(board, begin, period_end(rows, period) - begin, False)
            price = _forecast_at(board, period, level)
            pue = board.clock[at.PUE] if np.isnan(pue) else pue
        rows[period, at.PERIOD_PRICE] = price / pue
        rows[period, at.PERIOD_PUE] = pue
        rows[period, at.PERIOD_G] = 0.0
    return rows
