"""From configurations to the beginning of an optimal plan: hull, exact plan, first segment worth having."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.hull import lower_hull, write_slopes
from gpusched_baselines.planning.plan import SHORTEST_SEGMENT, solve
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import curve_of

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


class Scratch(NamedTuple):
    """What the plans of a round are made in, one after the other.

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
    """Make the scratch of a round, for so many configurations."""
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
    """Plan a job over the hull of `scratch`, with so many points and so much time [s]; what `solve` gives."""
    seconds, price, starts = scratch.points[0, :points], scratch.points[1, :points], scratch.starts[: points + 1]
    largest, done = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    slope = scratch.points[2, : points - 1]
    return solve(seconds, price, slope, curve_of(board, job), done, largest, time_left, starts)


@lean_kernel
def first_segment(board: Board, job: int, scratch: Scratch) -> tuple[int, float]:
    """Take the first segment of the plan that is long enough.

    Returns:
        Its place on the hull, and when it ends [s]; inf if it runs to the end.
    """
    starts, largest, done = scratch.starts, board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    k = 0
    while starts[k + 1] < largest and starts[k + 1] - done < SHORTEST_SEGMENT * largest:
        k += 1
    if starts[k + 1] >= largest:
        return k, np.inf
    return k, board.clock[at.NOW] + (starts[k + 1] - done) * scratch.points[0, k]
