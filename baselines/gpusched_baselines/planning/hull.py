"""The lower convex hull of (seconds, €) per epoch: the only configurations that an optimal plan uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


@kernel
def lower_hull(tau: Floats, price: Floats, hull: Ints) -> int:
    """Walk the lower convex hull of the points (τ_c, p_c) from slow and cheap to fast and dear.

    By gift wrapping: from the cheapest point, always on to the faster point that costs least per second saved. On
    the way the cost of a second saved strictly rises.

    Args:
        tau: Seconds per epoch, (n,), > 0; inf where a configuration is not allowed.
        price: Cost per epoch [€], (n,).
        hull: Room for the indices of the hull's points, (n,).

    Returns:
        The number of points on the hull; 0 if no configuration is allowed.
    """
    at = -1
    for c in range(tau.shape[0]):
        if tau[c] == np.inf:
            continue
        if at < 0 or price[c] < price[at] or (price[c] == price[at] and tau[c] < tau[at]):
            at = c
    points = 0
    while at >= 0:
        hull[points] = at
        points += 1
        following = -1
        least = np.inf
        for c in range(tau.shape[0]):
            if tau[c] < tau[at]:
                slope = (price[c] - price[at]) / (tau[at] - tau[c])
                if slope < least or (slope == least and tau[c] < tau[following]):
                    following, least = c, slope
        at = following
    return points


@lean_kernel
def write_slopes(tau: Floats, price: Floats, slope: Floats) -> None:
    """Write what a second costs that is saved between each point of a hull and the next [€/s].

    Of points on one line each slope is the same but for rounding, which may let it fall: then it stays as it was.

    Args:
        tau: Seconds per epoch of the points, slow to fast, (K,).
        price: Their cost per epoch [€], (K,).
        slope: Written, (K - 1,) or longer; never falling.
    """
    for k in range(tau.shape[0] - 1):
        slope[k] = (price[k + 1] - price[k]) / (tau[k] - tau[k + 1])
        if k > 0:
            slope[k] = max(slope[k], slope[k - 1])
