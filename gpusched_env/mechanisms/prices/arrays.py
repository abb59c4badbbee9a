"""The arrays of prices: the series, as far as it is published, and what is hidden of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.mechanisms.prices.names import FEATURES
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Hidden

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class PricedBoard(Board):
    """Adds the series of prices.

    Attributes:
        prices: The periods of the series of prices, (P, PRICE_COLUMNS); NaN where they are not published yet; (0,
            PRICE_COLUMNS) without a series.
        tariff: Numbers of the demand charge and of forecasts, (TARIFF_COLUMNS + months,); (0,) without a series.
        shown_prices: The features of prices (`names`) at a time, and the time, which is the last number, (PRICES + 1,).
    """

    prices: Annotated[Floats, 2]
    tariff: Annotated[Floats, 1]
    shown_prices: Annotated[Floats, 1]


class PricedHidden(Hidden):
    """Adds the prices that are not published yet.

    Attributes:
        all_prices: Every period's row of `PricedBoard.prices`, disclosed when it is published, (P, PRICE_COLUMNS).
    """

    all_prices: Annotated[Floats, 2]


def arrays(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of an instance at the beginning of a run."""
    rows = price_rows(instance)
    hidden = rows.copy()
    rows[:, [at.PERIOD_PRICE, at.PERIOD_PUE, at.PERIOD_G]] = np.nan
    shown = np.full(len(FEATURES) + 1, -np.inf)
    return {"prices": rows, "all_prices": hidden, "tariff": tariff_of(instance), "shown_prices": shown}


def price_rows(instance: Instance) -> NDArray[np.float64]:
    """Make the rows of all periods of the series of prices, (P, PRICE_COLUMNS)."""
    series = instance.of(PriceSeries)
    rows = np.zeros((0 if series is None else len(series.start_s), at.PRICE_COLUMNS))
    if series is not None:
        rows[:, at.PERIOD_START] = series.start_s
        rows[:, at.PERIOD_PRICE] = series.eur_per_kwh
        rows[:, at.PERIOD_PUE] = series.known_pue(instance.pue)
        rows[:, at.PERIOD_G] = 0.0 if series.g_per_kwh is None else series.g_per_kwh
        rows[:, at.PERIOD_PUBLISHED] = -np.inf if series.published_s is None else series.published_s
        rows[:, at.PERIOD_NOISE] = series.noise
    return rows


def tariff_of(instance: Instance) -> NDArray[np.float64]:
    """Return the numbers of the demand charge and of forecasts, (TARIFF_COLUMNS + months,)."""
    series = instance.of(PriceSeries)
    if series is None:
        return np.zeros(0)
    demand = series.demand
    if demand is None:
        return np.array([0.0, 1.0, series.monday_s])
    return np.array([demand.eur_per_kw, demand.interval_s, series.monday_s, *demand.months_s])
