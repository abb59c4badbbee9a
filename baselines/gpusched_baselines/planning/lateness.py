"""Plans that may be late: tardiness is priced, not forbidden (design, section 2).

After the due date a second costs ω more, so an epoch is best done in the configuration with least p_c + ω τ_c, and an
epoch that is done then takes none of the time before the due date. So it is one more point of the hull: no seconds, and
the price of that. The exact solver needs to know no more. Since the edge to that point costs ω per second, the points
that are faster for more than ω a second are of no use, and the last of the others is the configuration for late epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.first_segment import solve_job
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_baselines.planning.first_segment import Scratch
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@lean_kernel
def add_late_point(tau: Floats, price: Floats, hull: Ints, points: int, weight: float) -> int:
    """Put the point for late epochs behind those of a hull that are worth their price; return how many there are then.

    Args:
        tau: Seconds per epoch of the points, slow to fast, (K + 1,) or longer.
        price: Their cost per epoch [€], likewise.
        hull: Their configurations, likewise.
        points: Number of points K ≥ 1.
        weight: Tardiness weight ω [€/s].
    """
    last = 0
    while last + 1 < points and price[last + 1] - price[last] <= weight * (tau[last] - tau[last + 1]):
        last += 1
    tau[last + 1], price[last + 1], hull[last + 1] = 0.0, price[last] + weight * tau[last], hull[last]
    return last + 2


@kernel
def solve_late(board: Board, job: int, points: int, time_left: float, weight: float, scratch: Scratch) -> float:
    """Plan a job over the hull of `scratch` whose last point is for late epochs; return what it is expected to cost.

    Args:
        job: The job's index.
        points: Points of the hull, the late one included.
        time_left: Time to the due date [s]; where it has passed, the tardiness so far is part of the cost.
        weight: Tardiness weight ω [€/s].
        scratch: Its `starts` are written.

    Returns:
        The expected cost of the rest, tardiness included [€].
    """
    late = max(0.0, -time_left)
    _, cost = solve_job(board, job, points, time_left if time_left > 0.0 else -1.0, scratch)
    return cost + weight * late


@lean_kernel
def first_choice(board: Board, job: int, points: int, scratch: Scratch, least: float) -> tuple[int, float]:
    """Take the first segment of a plan that is long enough.

    Args:
        job: The job's index.
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
