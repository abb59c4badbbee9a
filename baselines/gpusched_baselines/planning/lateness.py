"""Plans that may be late: tardiness is priced, not forbidden (design, section 2).

After the due date a second costs ω more, so an epoch is best done in the configuration with least p_c + ω τ_c, and an
epoch that is done then takes none of the time before the due date. So it is one more point of the hull: no seconds, and
the price of that. The exact solver needs to know no more. Since the edge to that point costs ω per second, the points
that are faster for more than ω a second are of no use, and the last of the others is the configuration for late epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.plan import spend_slack
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

if TYPE_CHECKING:
    from gpusched_baselines.planning.plan import Scratch


@lean_kernel
def add_late_point(hull_points: Floats, hull: Ints, points: int, weight: float) -> int:
    """Put the point for late epochs behind those of a hull that are worth their price; return how many there are then.

    Args:
        hull_points: Seconds and cost per epoch of the points, slow to fast, and what a second costs that is saved to
            the next one [€/s], never falling, (3, K + 1) or longer.
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
    """Give what the plan that `solve_late` made gets dearer by if it begins later [€]; it is sped up on the way.

    Args:
        points: Points of the hull, the late one included.
        wait: How much later [s], > 0.
        weight: Tardiness weight ω [€/s].
        scratch: The plan; changed.
    """
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    late = min(wait, max(0.0, wait - time_left))  # what of the wait is after the due date
    slack = max(0.0, time_left - (largest - done) * scratch.points[0, 0])
    excess, curve = wait - late - slack, sim.curve_of(board, job)
    if excess <= 0.0:
        return weight * late
    tau, slope = scratch.points[0, :points], scratch.points[2, : points - 1]
    starts = scratch.starts[: points + 1]
    cost = spend_slack(tau, slope, curve, done, largest, excess, starts, scratch.ahead)
    alive = curve.survival[sim.bin_of(curve.edges, done / largest)]
    return weight * late + (cost / alive if alive > 0.0 else 0.0)


@lean_kernel
def first_choice(board: Board, job: int, points: int, scratch: Scratch, least: float) -> tuple[int, float]:
    """Take the first segment of a plan that is long enough.

    Args:
        points: Points of the hull, the last of which is for late epochs.
        scratch: The plan.
        least: Shortest segment, as a fraction of the maximum epochs.

    Returns:
        Its configuration, and when another one follows [s]; inf if none does.
    """
    starts, hull = scratch.starts, scratch.hull
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    k = 0
    while k + 1 < points and starts[k + 1] < largest and starts[k + 1] - done < least * largest:
        k += 1
    if starts[k + 1] >= largest or k + 2 >= points:
        return hull[k], np.inf
    return hull[k], board.clock[at.NOW] + (starts[k + 1] - done) * scratch.points[0, k]
