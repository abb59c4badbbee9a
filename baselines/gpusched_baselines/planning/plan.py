"""The stochastic single-job problem, solved exactly (design, section 2).

Minimise ∫ S(x)/S(w) · p_c(x) dx subject to ∫ τ_c(x) dx ≤ D over the epochs x from w to E: a fractional knapsack. An
item is a hull edge k (from point k to the faster point k + 1) in a bin b; it saves the time L_b · Δτ_k and costs
S_b · L_b · Δp_k. Taking the items by rising S_b · Δp_k/Δτ_k until the time saved suffices is optimal. Since S does not
rise, the items taken of an edge are always the last bins: the plan starts slow and speeds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.survival import bin_of, survival_after

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.survival import Curve

# What a plan can promise.
SLACK, TIGHT, LATE = range(3)

SHORTEST_SEGMENT = 0.01  # of the maximum epochs; who follows a plan skips shorter first segments, as in the thesis


@kernel
def spend_slack(
    tau: Floats, price: Floats, curve: Curve, first: int, done: float, largest: float, excess: float, starts: Floats
) -> None:
    """Speed up, cheapest second first, until `excess` seconds are saved; write where each hull point starts.

    Args:
        tau: Seconds per epoch of the hull's points, slow to fast, (K,).
        price: Cost per epoch of the hull's points, cheap to dear, (K,).
        curve: Its survival function.
        first: The bin that holds the present epoch.
        done: Epochs done.
        largest: Maximum epochs.
        excess: Seconds to save against the slowest point, > 0 and at most what the fastest point saves.
        starts: Epoch at which each point starts, (K + 1,); `starts[1:K]` is written.
    """
    edges, survival = curve.edges, curve.survival
    steps = tau.shape[0] - 1
    last = bin_of(edges, 1.0)
    ahead = np.full(steps, last)
    slope = np.empty(steps)
    for k in range(steps):
        slope[k] = (price[k + 1] - price[k]) / (tau[k] - tau[k + 1])
    while excess > 0.0:
        best, least = -1, np.inf
        for k in range(steps):
            if ahead[k] >= first and survival[ahead[k]] * slope[k] < least:
                best, least = k, survival[ahead[k]] * slope[k]
        if best < 0:
            return
        b = ahead[best]
        start, end = done if b == first else edges[b] * largest, starts[best + 1]
        saved = (end - start) * (tau[best] - tau[best + 1])
        if saved >= excess:
            starts[best + 1] = max(start, end - excess / (tau[best] - tau[best + 1]))
            return
        excess -= saved
        starts[best + 1] = start
        ahead[best] -= 1


@kernel
def solve(
    tau: Floats, price: Floats, curve: Curve, done: float, largest: float, time_left: float, starts: Floats
) -> tuple[int, float]:
    """Solve the problem over the points of a hull, slow to fast.

    If the slowest point already meets the due date, it runs throughout (SLACK). If the fastest cannot, that one runs
    throughout (LATE). Else the plan ends at the due date exactly, if all epochs are needed (TIGHT); all up
    to a microsecond.

    Args:
        tau: Seconds per epoch of the hull's points, falling, (K,), K ≥ 1.
        price: Cost per epoch of the hull's points [€], rising, (K,).
        curve: Its survival function.
        done: Epochs done w, below `largest`.
        largest: Maximum epochs E.
        time_left: Time D to the due date [s]; may be negative.
        starts: Room for the plan, (K + 1,): point k runs from `starts[k]` to `starts[k + 1]` [epochs].

    Returns:
        SLACK, TIGHT or LATE, and the expected cost of the rest [€], given that the job has survived so far.
    """
    points = tau.shape[0]
    starts[0] = done
    for k in range(1, points + 1):
        starts[k] = largest
    left = largest - done
    status = SLACK
    first = bin_of(curve.edges, done / largest)
    if misses(left * tau[points - 1], time_left):
        status = LATE
        for k in range(points):
            starts[k] = done
    elif misses(left * tau[0], time_left):
        status = TIGHT
        spend_slack(tau, price, curve, first, done, largest, left * tau[0] - time_left, starts)
    return status, expected_cost(price, curve, first, largest, starts)


@kernel
def expected_cost(price: Floats, curve: Curve, first: int, largest: float, starts: Floats) -> float:
    """Give ∫ S(x)/S(w) · p(x) dx of a plan [€]; a job that should be dead by now is taken to need all its epochs."""
    alive = curve.survival[first]
    cost = 0.0
    for k in range(price.shape[0]):
        if starts[k + 1] <= starts[k]:
            continue
        if alive > 0.0:
            epochs = survival_after(curve, starts[k] / largest)
            epochs = (epochs - survival_after(curve, starts[k + 1] / largest)) * largest / alive
        else:
            epochs = starts[k + 1] - starts[k]
        cost += price[k] * epochs
    return cost
