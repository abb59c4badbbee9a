"""A race: ways to decide a round are rolled out on the same draws, and the worse ones drop out on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


LEFT = 4  # one in so many goes on


def race(cost: Callable[[int, int], float], size: int, draws: int, first: int, z: float) -> int:
    """Find a way that is surely cheaper than the first one, 0: the one that is cheapest in the mean of all draws.

    After `first` draws the cheapest quarter goes on. Of those the cheapest wins if it is cheaper than the first one by
    more than z standard errors of the paired difference.

    Args:
        cost: What a way costs on a draw [€].
        size: Number of ways, ≥ 1.
        draws: Number of draws, ≥ 2.
        first: Draws after which most drop out, ≥ 1.
        z: How sure it must be, in standard errors, ≥ 0.

    Returns:
        The way.
    """
    costs = np.full((size, draws), np.nan)
    ways = np.arange(size)
    for draw in range(draws):
        if draw == first and size > 1:
            order = np.argsort(costs[:, :first].mean(axis=1), kind="stable")
            order = order[order != 0]
            ways = np.append(0, order[: -(-len(order) // LEFT)])
        for way in ways.tolist():
            costs[way, draw] = cost(way, draw)
    means = costs[ways].mean(axis=1)
    best = int(ways[np.argmin(means)])
    gain = costs[best] - costs[0]
    error = gain.std(ddof=1) / np.sqrt(draws)
    return best if gain.mean() < -z * error else 0
