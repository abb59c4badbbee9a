"""Periods of energy prices for the bounds: the price of energy in each over that of the rates, and what there is.

A bound stays one if energy is taken to be cheaper than it is. So a period of a bound that has several prices takes the
least of them; the bounds begin a period at every price, except where there are more than `MOST_PERIODS`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.model import Instance

MOST_PERIODS = 768  # of prices within the horizon of a bound; where there are more, alike ones are merged


class PriceFactors(NamedTuple):
    """Prices by period, over the price at which an instance has its rates; the last goes on.

    Attributes:
        start_s: When each period begins [s], rising, (P,).
        factor: Its price over that of the rates, ≥ 0, (P,); the first holds before its period, too.
    """

    start_s: NDArray[np.float64]
    factor: NDArray[np.float64]


class Supply(NamedTuple):
    """What there is of every resource in every period: GPUs of each type and, under a cap, power.

    Attributes:
        there_is: GPU-seconds of each type, and kW-seconds, (R, K).
        highest: The largest price of each, inf for GPUs and a hard cap [€ per GPU and s, or per kW and s], (R, 1).
    """

    there_is: NDArray[np.float64]
    highest: NDArray[np.float64]


def prices_of(instance: Instance) -> PriceFactors | None:
    series = instance.of(PriceSeries)
    if series is None:
        return None
    reference = instance.energy_price_eur_per_kwh * instance.pue
    return PriceFactors(series.start_s, series.eur_per_kwh * series.known_pue(instance.pue) / reference)


def price_factors(instance: Instance, grid_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least price in every period of a grid, and after it, over the price of the rates, (K + 1,)."""
    prices = prices_of(instance)
    return np.ones(len(grid_s)) if prices is None else least_factors(prices, grid_s)


def least_factors(prices: PriceFactors, grid_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least factor in every period of a grid [s], (K + 1,), and after its end, (K + 1,)."""
    start_s, factor = prices
    first = np.maximum(0, np.searchsorted(start_s, grid_s, side="right") - 1)
    last = np.append(np.searchsorted(start_s, grid_s[1:], side="left") - 1, len(start_s) - 1)
    # Pairs of a period's first and end index; what `reduceat` gives between a pair and the next is left out.
    pairs = np.column_stack([first, np.maximum(first, last) + 1]).ravel()
    return np.minimum.reduceat(np.append(factor, np.inf), pairs)[::2]


def largest_factor(instance: Instance) -> float:
    prices = prices_of(instance)
    return 1.0 if prices is None else float(prices.factor.max())


def price_starts(instance: Instance, begin_s: float, end_s: float) -> NDArray[np.float64]:
    """Return when prices change between two times [s], merged to `MOST_PERIODS`; none without a price series."""
    prices = prices_of(instance)
    if prices is None:
        return np.empty(0)
    inside = (prices.start_s > begin_s) & (prices.start_s < end_s)
    grid_s = np.concatenate([[begin_s], prices.start_s[inside], [end_s]])
    return merged(grid_s, least_factors(prices, grid_s)[:-1], MOST_PERIODS)[1:-1]


def merged(grid_s: NDArray[np.float64], factor: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Merge neighbouring periods until there are at most so many, those first that lose least of price times time.

    Args:
        grid_s: Starts of periods and end of the last one [s], (K + 1,).
        factor: The price of each, (K,).
    """
    while len(factor) > most:
        length, low = np.diff(grid_s), np.minimum(factor[:-1], factor[1:])
        loss = (factor[:-1] - low) * length[:-1] + (factor[1:] - low) * length[1:]
        gone = np.zeros(len(loss) + 2, dtype=bool)
        left = len(factor) - most
        for i in np.argsort(loss, kind="stable").tolist():
            if left == 0:
                break
            if not gone[i : i + 3].any():  # of three neighbours only two become one at a time
                gone[i + 1] = True
                left -= 1
        inner = ~gone[1:-1]
        begins = np.flatnonzero(np.append(True, inner))
        factor, grid_s = np.minimum.reduceat(factor, begins), np.append(grid_s[:-1][begins], grid_s[-1])
    return grid_s


def supply_of(instance: Instance, grid_s: NDArray[np.float64]) -> Supply:
    """Return what an instance has of GPUs of every type in every period of a grid, and of power if it has a cap."""
    gpus = np.array([node.gpus for node in instance.nodes], dtype=np.float64)
    of_types = np.bincount(instance.type_of_node, gpus, len(instance.gpu_types)).astype(np.float64)
    there_is, highest = of_types[:, None] * np.diff(grid_s), np.full((len(of_types), 1), np.inf)
    site = instance.of(PowerCap)
    if site is None or instance.energy_price_eur_per_kwh == 0.0:  # then the power of configurations is not known
        return Supply(there_is, highest)
    most = np.inf if site.soft_eur_per_kwh is None else site.soft_eur_per_kwh / 3600.0
    return Supply(np.vstack([there_is, _cap_kw_s(site, grid_s)]), np.append(highest, [[most]], axis=0))


def _cap_kw_s(site: PowerCap, grid_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the integral of the cap over every period of a grid [kW · s], (K,)."""
    ends = np.append(site.start_s[1:], np.inf)
    begins = np.append(-np.inf, site.start_s[1:])
    inside = np.maximum(0.0, np.minimum(ends, grid_s[1:, None]) - np.maximum(begins, grid_s[:-1, None]))
    return np.asarray(inside @ np.array(site.cap_kw))
