"""A race: ways to decide a round are rolled out on the same draws; the cheapest must win again, on draws of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.arrays import Floats

LEFT = 4  # one in so many goes on from the first heat to the second
LEAST = 3  # so many draws at least say that a challenger does not win


def race(cost: Callable[[int, int], float], size: int, heats: tuple[int, int, int], certainty: float) -> int:
    """Find a way that is surely cheaper than the first one, 0.

    In the first heat all others run, in the second the cheapest quarter of them. The one that is cheapest after both
    challenges the first way on draws that had no part in that: whoever is the best of many on some draws is so by
    chance, too. It wins if its mean difference to the first way there is below 0 by so many standard errors, and gives
    up as soon as that mean is not below 0.

    Args:
        cost: What a way costs on a draw [€].
        size: Number of ways, ≥ 1.
        heats: Draws of the first heat, ≥ 1, of the second, ≥ 0, and of the challenge, ≥ 2.
        certainty: How sure it must be, in standard errors, ≥ 0.
    """
    if size == 1:
        return 0
    first, second, last = np.cumsum(heats).tolist()
    ways = np.arange(1, size)
    sums = np.zeros(size)
    for draw in range(second):
        if draw == first:
            best = np.argsort(sums[ways], kind="stable")
            ways = ways[best[: -(-len(ways) // LEFT)]]
        for way in (0, *ways.tolist()):
            sums[way] += cost(way, draw)
    challenger = int(ways[np.argmin(sums[ways])])
    if sums[challenger] >= sums[0]:
        return 0
    gains: list[float] = []
    for draw in range(second, last):
        gains.append(cost(0, draw) - cost(challenger, draw))
        if len(gains) >= LEAST and not _is_sure(np.array(gains), 0.0):
            return 0
    return challenger if _is_sure(np.array(gains), certainty) else 0


def _is_sure(gains: Floats, certainty: float) -> bool:
    """Say whether the mean of gains is above 0 by more than so many standard errors."""
    return bool(gains.mean() > certainty * gains.std(ddof=1) / np.sqrt(len(gains)))
