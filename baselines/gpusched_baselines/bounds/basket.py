"""The cheapest epochs that a job can buy: a fractional knapsack that grows by one stretch of time after another.

In a stretch in which prices do not change, seconds may be divided among configurations and idling at will. What an
epoch more costs then rises step by step along the lower hull of (epochs/s, €/s), which begins at idling, (0, 0). Each
step is for sale: so many epochs, at one price each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

# Columns of what is for sale or bought: its price [€/epoch], epochs, and seconds that an epoch takes of the step.
PRICE, EPOCHS, SECONDS = range(3)
# Columns of where it is: the period, and the configurations that the step goes from (-1: idling) and to.
PERIOD, LOW, HIGH = range(3)


class Basket(NamedTuple):
    """Steps, by price from low to high.

    Attributes:
        amount: PRICE, EPOCHS and SECONDS of each, (n, 3).
        where: PERIOD, LOW and HIGH of each, (n, 3).
        size: How many there are, (1,).
        short: Epochs still to be bought, (1,).
    """

    amount: Floats
    where: Ints
    size: Ints
    short: Floats


@kernel
def empty_basket(room: int) -> Basket:
    """Make a basket with room for so many steps."""
    where = np.empty((room, 3), dtype=np.int64)
    return Basket(np.empty((room, 3)), where, np.zeros(1, dtype=np.int64), np.zeros(1))


@lean_kernel
def offer(sale: Basket, speed: Floats, cost: Floats, order: Ints, fixed: float, stretch: tuple[int, float]) -> None:
    """Fill `sale` with the steps of a stretch of time.

    Args:
        sale: Receives the steps.
        speed: Epochs/s of every configuration, (C,).
        cost: What each costs [€/s], ≥ 0, (C,).
        order: The configurations that may be used, by rising speed, (n,).
        fixed: What each costs on top [€/s] that idling does not, ≥ 0.
        stretch: Period, and seconds that there are of it.
    """
    at = 0
    for i in range(order.shape[0]):
        c = order[i]
        while True:
            below = sale.where[at - 1, HIGH] if at > 0 else -1
            gained = speed[c] - (speed[below] if below >= 0 else 0.0)
            dearer = cost[c] - cost[below] if below >= 0 else cost[c] + fixed
            slope = dearer / gained if gained > 0.0 else (np.inf if dearer >= 0.0 else -np.inf)
            if at == 0 or slope > sale.amount[at - 1, PRICE]:
                break
            at -= 1
        if slope == np.inf:
            continue
        sale.amount[at, PRICE], sale.amount[at, EPOCHS] = slope, stretch[1] * gained
        sale.amount[at, SECONDS] = 1.0 / gained
        sale.where[at, PERIOD], sale.where[at, LOW], sale.where[at, HIGH] = stretch[0], below, c
        at += 1
    sale.size[0] = at


@lean_kernel
def add(basket: Basket, sale: Basket) -> None:
    """Buy what is cheaper than the dearest of the basket, in its place, and what is still short."""
    amount, where = basket.amount, basket.where
    for s in range(sale.size[0]):
        price, left = sale.amount[s, PRICE], sale.amount[s, EPOCHS]
        bought = min(left, basket.short[0])
        basket.short[0] -= bought
        left -= bought
        size = basket.size[0]
        while left > 0.0 and size > 0 and amount[size - 1, PRICE] > price:
            moved = min(left, amount[size - 1, EPOCHS])
            bought += moved
            left -= moved
            amount[size - 1, EPOCHS] -= moved
            if amount[size - 1, EPOCHS] > 0.0:
                break
            size -= 1
        basket.size[0] = size
        if bought <= 0.0:
            return
        put = size
        while put > 0 and amount[put - 1, PRICE] > price:
            for column in range(3):
                amount[put, column] = amount[put - 1, column]
                where[put, column] = where[put - 1, column]
            put -= 1
        for column in range(3):
            amount[put, column] = sale.amount[s, column]
            where[put, column] = sale.where[s, column]
        amount[put, EPOCHS] = bought
        basket.size[0] = size + 1


@lean_kernel
def cost_with(basket: Basket, sale: Basket) -> float:
    """Give what the epochs would cost [€] if `sale` were added; inf if they are still short then."""
    size, short, total = basket.size[0], basket.short[0], 0.0
    kept = basket.amount[size - 1, EPOCHS] if size > 0 else 0.0
    for s in range(sale.size[0]):
        price, left = sale.amount[s, PRICE], sale.amount[s, EPOCHS]
        bought = min(left, short)
        short -= bought
        left -= bought
        while left > 0.0 and size > 0 and basket.amount[size - 1, PRICE] > price:
            moved = min(left, kept)
            bought += moved
            left -= moved
            kept -= moved
            if kept <= 0.0:
                size -= 1
                kept = basket.amount[size - 1, EPOCHS] if size > 0 else 0.0
        if bought <= 0.0:
            break
        total += bought * price
    if short > 0.0:
        return np.inf
    for i in range(size - 1):
        total += basket.amount[i, PRICE] * basket.amount[i, EPOCHS]
    return total + basket.amount[size - 1, PRICE] * kept if size > 0 else total


@lean_kernel
def copy(source: Basket, target: Basket) -> None:
    """Make `target` hold what `source` holds."""
    for i in range(source.size[0]):
        for column in range(3):
            target.amount[i, column] = source.amount[i, column]
            target.where[i, column] = source.where[i, column]
    target.size[0], target.short[0] = source.size[0], source.short[0]
