"""The stochastic single-job problem, solved exactly (theory, section 2).

Minimise ∫ S(x)/S(w) · p_c(x) dx subject to ∫ τ_c(x) dx ≤ D over the epochs x from w to E: a fractional knapsack. An
item is a hull edge k (from point k to the faster point k + 1) in a bin b; it saves the time L_b · Δτ_k and costs
S_b · L_b · Δp_k. Taking the items by rising S_b · Δp_k/Δτ_k until the time saved suffices is optimal. Since S does not
rise, the items taken of an edge are always the last bins: the plan starts slow and speeds up.

Where tardiness has a price and is not forbidden, a second after the due date costs ω more. So the best configuration
of a late epoch is that with least p_c + ω τ_c, and a late epoch takes none of the time before the due date. It is one
more point of the hull, with no seconds and that price. The exact solver needs no other change. The edge to that point
costs ω per second. So points that save a second for more than ω are not used, and the last of the others is the
configuration for late epochs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Curve, Floats, Ints, at, kernel, lean_kernel


@kernel
def lower_hull(tau: Floats, price: Floats, hull: Ints) -> int:
    """Walk the lower convex hull of the points (τ_c, p_c) from slow and cheap to fast and costly.

    By gift wrapping: it begins at the cheapest point, and always goes on to the faster point that costs least per
    second saved. The cost of a second saved strictly rises from edge to edge.

    Args:
        tau: Seconds per epoch, (n,), > 0; inf where a configuration is not allowed.
        price: Cost per epoch [€], (n,).
        hull: Written: the indices of the hull's points, (n,).

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
    """Write the cost of a second saved between each point of a hull and the next [€/s].

    The slopes of points on one line are equal except for rounding. Where rounding lets a slope fall, it is set to the
    slope before it.

    Args:
        tau: Seconds per epoch of the points, slow to fast, (K,).
        price: Their cost per epoch [€], (K,).
        slope: Written, (K - 1,) or longer; never falling.
    """
    for k in range(tau.shape[0] - 1):
        slope[k] = (price[k + 1] - price[k]) / (tau[k] - tau[k + 1])
        if k > 0:
            slope[k] = max(slope[k], slope[k - 1])


# Whether a plan meets the due date.
SLACK, TIGHT, LATE = range(3)

SHORTEST_SEGMENT = 0.01  # of the maximum epochs; shorter first segments of a plan are skipped, as in the thesis


@kernel
def spend_slack(
    tau: Floats, slope: Floats, curve: Curve, done: float, largest: float, excess: float, starts: Floats, ahead: Ints
) -> float:
    """Speed up, cheapest second first, until `excess` seconds are saved; write where each hull point starts.

    A plan that exists already is sped up further: `starts` and `ahead` are as the last call left them.

    Args:
        tau: Seconds per epoch of the hull's points, slow to fast, (K,).
        slope: Cost of a second saved between each point and the next [€/s], (K - 1,); never falling, so that no point
            is taken ahead of the one before it.
        done: Epochs done.
        largest: Maximum epochs.
        excess: Seconds to save, > 0 and at most what running fastest throughout saves.
        starts: Epoch at which each point starts, (K + 1,); `starts[1:K]` is written.
        ahead: The last bin in which each point but the fastest still runs, (K - 1,), at first the last bin of all.

    Returns:
        The cost of that [€], for a job that is sure to survive the first bin.
    """
    edges, survival = curve.edges, curve.survival
    first, cost = sim.bin_of(curve.edges, done / largest), 0.0
    while excess > 0.0:
        best, least, second = _cheapest_second(survival, slope, ahead, first)
        if best < 0:
            return cost
        faster, price = tau[best] - tau[best + 1], slope[best]
        b, end = ahead[best], starts[best + 1]
        while b >= first and (survival[b] * price < second or least == second):
            start = done if b == first else edges[b] * largest
            saved = (end - start) * faster
            if saved >= excess:
                ahead[best], starts[best + 1] = b, max(start, end - excess / faster)
                return cost + excess * survival[b] * price
            cost += saved * survival[b] * price
            excess -= saved
            end = start
            b -= 1
            if least == second:  # equal ones take turns, the lower point first
                break
        ahead[best], starts[best + 1] = b, end
    return cost


@lean_kernel
def _cheapest_second(survival: Floats, slope: Floats, ahead: Ints, first: int) -> tuple[int, float, float]:
    """Find the edge whose second costs least now; return it (-1: none), that cost, and the next smallest cost."""
    best, least, second = -1, np.inf, np.inf
    for k in range(slope.shape[0]):
        if ahead[k] < first:
            continue
        each = survival[ahead[k]] * slope[k]
        if each < least:
            best, least, second = k, each, least
        elif each < second:
            second = each
    return best, least, second


@kernel
def solve(
    tau: Floats,
    price: Floats,
    slope: Floats,
    curve: Curve,
    done: float,
    largest: float,
    time_left: float,
    starts: Floats,
) -> tuple[int, float]:
    """Solve the problem over the points of a hull, slow to fast.

    If the slowest point already meets the due date, it runs throughout (SLACK). If the fastest does not, that one runs
    throughout (LATE). Else the plan ends exactly at the due date if all epochs are needed (TIGHT). All of this holds up
    to a microsecond.

    Args:
        tau: Seconds per epoch of the hull's points, falling, (K,), K ≥ 1.
        price: Cost per epoch of the hull's points [€], rising, (K,).
        slope: Cost of a second saved between each and the next [€/s], never falling, (K - 1,).
        done: Epochs done w, below `largest`.
        largest: Maximum epochs E.
        time_left: Time D to the due date [s]; may be negative.
        starts: Written: the plan, (K + 1,): point k runs from `starts[k]` to `starts[k + 1]` [epochs].

    Returns:
        SLACK, TIGHT or LATE, and the expected cost of the rest [€], given that the job has survived so far.
    """
    starts[-1] = largest
    status = speed_up(tau, slope, curve, done, largest, time_left, starts)
    return status, expected_cost(price, curve, sim.bin_of(curve.edges, done / largest), largest, starts)


@kernel
def speed_up(
    tau: Floats, slope: Floats, curve: Curve, done: float, largest: float, time_left: float, starts: Floats
) -> int:
    """Write when each point of a hull starts, from `done` to the epoch in `starts[-1]`; return the status as `solve`.

    Args:
        done: The first epoch, at most `starts[-1]`.
        largest: Maximum epochs E.
        time_left: Time for these epochs [s].
        starts: Its last entry is read, the others are written, (K + 1,).
    """
    points, end = tau.shape[0], starts[-1]
    starts[0] = done
    starts[1:points] = end
    left = end - done
    if sim.misses(left * tau[points - 1], time_left):
        starts[1:points] = done
        return LATE
    if not sim.misses(left * tau[0], time_left):
        return SLACK
    ahead = np.full(points - 1, bin_before(curve.edges, end / largest))
    spend_slack(tau, slope, curve, done, largest, left * tau[0] - time_left, starts, ahead)
    return TIGHT


@lean_kernel
def bin_before(edges: Floats, fraction: float) -> int:
    """Find the bin in which the epochs up to `fraction` end: the one before it, if `fraction` is its first edge."""
    b = sim.bin_of(edges, fraction)
    return b - 1 if b > 0 and edges[b] >= fraction else b


@kernel
def expected_cost(price: Floats, curve: Curve, first: int, largest: float, starts: Floats) -> float:
    """Return ∫ S(x)/S(w) · p(x) dx of a plan [€]; if S(w) = 0, the job counts as needing all its epochs."""
    alive = curve.survival[first]
    cost = 0.0
    for k in range(price.shape[0]):
        if starts[k + 1] <= starts[k]:
            continue
        if alive > 0.0:
            epochs = sim.survival_after(curve, starts[k] / largest)
            epochs = (epochs - sim.survival_after(curve, starts[k + 1] / largest)) * largest / alive
        else:
            epochs = starts[k + 1] - starts[k]
        cost += price[k] * epochs
    return cost


class Scratch(NamedTuple):
    """The work arrays in which the plans of a round are made, one after the other.

    Attributes:
        members: The configurations of a problem, (C,).
        seconds: Their seconds per epoch, (C,); inf where not allowed.
        price: Their cost per epoch [€], (C,).
        hull: Those of them on the hull, slow to fast, (C,).
        points: Seconds and cost per epoch of the hull, and the cost of a second saved to the next point, (3, C).
        starts: Epochs at which the hull's points start, (C + 1,).
        ahead: The last bin in which each of them still runs, (C,); see `spend_slack`.
    """

    members: Ints
    seconds: Floats
    price: Floats
    hull: Ints
    points: Floats
    starts: Floats
    ahead: Ints


@kernel
def new_scratch(size: int) -> Scratch:
    indices, figures = np.empty((3, size), dtype=np.int64), np.empty((5, size))
    return Scratch(indices[0], figures[0], figures[1], indices[1], figures[2:], np.empty(size + 1), indices[2])


@lean_kernel
def find_hull(seconds: Floats, price: Floats, scratch: Scratch) -> int:
    """Write the hull of configurations to `scratch`; return how many points it has: 0 if none is allowed.

    Args:
        seconds: Seconds per epoch, (n,); inf where not allowed.
        price: Cost per epoch [€], (n,).
        scratch: Its `hull` and `points` are written.
    """
    points = lower_hull(seconds, price, scratch.hull)
    for k in range(points):
        scratch.points[0, k], scratch.points[1, k] = seconds[scratch.hull[k]], price[scratch.hull[k]]
    write_slopes(scratch.points[0, :points], scratch.points[1, :points], scratch.points[2])
    return points


@kernel
def solve_job(board: Board, job: int, points: int, time_left: float, scratch: Scratch) -> tuple[int, float]:
    """Plan a job over the first `points` points of the hull of `scratch`, `time_left` in s; return as `solve` does."""
    seconds, price, starts = scratch.points[0, :points], scratch.points[1, :points], scratch.starts[: points + 1]
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    slope = scratch.points[2, : points - 1]
    return solve(seconds, price, slope, sim.curve_of(board, job), done, largest, time_left, starts)


@lean_kernel
def first_segment(board: Board, job: int, points: int, scratch: Scratch) -> tuple[int, float]:
    """Return the first segment that is long enough, of a plan over `points` points and, if any, one for late epochs.

    Returns:
        Its place on the hull, and the time at which another one follows [s]; inf if none does.
    """
    starts, largest, done = scratch.starts, board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    k = 0
    while k < points and starts[k + 1] < largest and starts[k + 1] - done < SHORTEST_SEGMENT * largest:
        k += 1
    if starts[k + 1] >= largest or k + 1 >= points:
        return k, np.inf
    return k, board.clock[at.NOW] + (starts[k + 1] - done) * scratch.points[0, k]


@lean_kernel
def add_late_point(hull_points: Floats, hull: Ints, points: int, weight: float) -> int:
    """Put the point for late epochs after the points of a hull that are worth their price; return the number of points.

    Args:
        hull_points: Seconds and cost per epoch of the points, slow to fast, and the cost of a second saved to the next
            one [€/s], never falling, (3, K + 1) or longer.
        hull: Their configurations, (K + 1,) or longer.
        points: Number of points K ≥ 1.
        weight: Tardiness weight ω [€/s].
    """
    tau, price, slope = hull_points[0], hull_points[1], hull_points[2]
    last = 0
    while last + 1 < points and slope[last] <= weight:
        last += 1
    tau[last + 1], price[last + 1], hull[last + 1] = 0.0, price[last] + weight * tau[last], hull[last]
    slope[last] = weight
    return last + 2


@kernel
def solve_late(board: Board, job: int, points: int, time_left: float, scratch: Scratch) -> None:
    """Plan a job over the hull of `scratch` whose last point is for late epochs: write where each point starts.

    Args:
        points: Points of the hull, the late one included, ≥ 2.
        time_left: Time to the due date [s]; may be negative.
        scratch: Its `starts` and `ahead` are written.
    """
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    starts, curve = scratch.starts[: points + 1], sim.curve_of(board, job)
    starts[0], starts[points] = done, largest
    starts[1:points] = done if time_left <= 0.0 else largest
    scratch.ahead[: points - 1] = sim.bin_of(curve.edges, 1.0)
    excess = (largest - done) * scratch.points[0, 0] - time_left
    if time_left > 0.0 and sim.misses(excess, 0.0):
        tau, slope = scratch.points[0, :points], scratch.points[2, : points - 1]
        spend_slack(tau, slope, curve, done, largest, excess, starts, scratch.ahead)


@kernel
def cost_of_waiting(board: Board, job: int, points: int, wait: float, weight: float, scratch: Scratch) -> float:
    """Return the additional cost of the plan of `solve_late` if it begins later [€]; the plan is sped up for that.

    Args:
        wait: The delay [s], > 0.
        weight: Tardiness weight ω [€/s].
        scratch: The plan; changed.
    """
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    late = min(wait, max(0.0, wait - time_left))  # the part of the wait after the due date
    slack = max(0.0, time_left - (largest - done) * scratch.points[0, 0])
    excess, curve = wait - late - slack, sim.curve_of(board, job)
    if excess <= 0.0:
        return weight * late
    tau, slope = scratch.points[0, :points], scratch.points[2, : points - 1]
    starts = scratch.starts[: points + 1]
    cost = spend_slack(tau, slope, curve, done, largest, excess, starts, scratch.ahead)
    alive = curve.survival[sim.bin_of(curve.edges, done / largest)]
    return weight * late + (cost / alive if alive > 0.0 else 0.0)
