"""STS-X's plan of one job: one hull over all GPU types, shares and whole nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.first_segment import find_hull, first_segment, solve_job
from gpusched_baselines.planning.plan import LATE, TIGHT
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_baselines.planning.first_segment import Scratch
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


@kernel
def price_out(board: Board, rate: Floats, job: int, seconds: Floats, price: Floats) -> None:
    """Write seconds and cost per epoch of every configuration, with the restart that changing to it takes.

    A change costs `RESTART_S` seconds, during which the GPUs are paid for. Spread over the epochs left, at worst for
    the time, on average for the cost, it makes every configuration but the present one slower and dearer.

    Args:
        rate: Cost rates to plan with [€/s], (C,).
        job: The job's index.
        seconds: Room for the seconds, (C,); inf where not allowed.
        price: Room for the costs [€], (C,); inf where not allowed.
    """
    jobs, tau = board.jobs, board.tau
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    restart = restart_s(board, job)
    left = max(largest - done, 1e-12 * largest)
    expected = max(expected_left(board, job), 1e-12 * largest)
    for c in range(tau.shape[1]):
        change = 0.0 if c == int(jobs[job, at.OLD_CONFIG]) else restart
        seconds[c] = tau[job, c] + change / left
        price[c] = rate[c] * (tau[job, c] + change / expected) if tau[job, c] < np.inf else np.inf


@kernel
def restart_s(board: Board, job: int) -> float:
    """Give the seconds that a change of the job's configuration takes; its first start is free."""
    jobs = board.jobs
    return 0.0 if np.isnan(jobs[job, at.START_S]) else jobs[job, at.RESTART_S]


@kernel
def plan_job(board: Board, job: int, seconds: Floats, price: Floats, scratch: Scratch) -> tuple[int, int, float]:
    """Plan a job over all configurations at once.

    Every change on the way takes a restart: a plan of several segments must meet the due date with so much less time.

    Args:
        job: The job's index.
        seconds: Seconds per epoch, (C,); inf where the plan may not use a configuration.
        price: Cost per epoch [€], (C,).
        scratch: Written.

    Returns:
        SLACK, TIGHT or LATE; the first configuration whose segment is long enough, -1 if none is allowed; and the time
        at which its segment ends [s], inf if it runs to the end.
    """
    jobs, starts, chosen = board.jobs, scratch.starts, scratch.hull
    points = find_hull(seconds, price, scratch)
    if points == 0:
        return LATE, -1, np.inf
    time_left = jobs[job, at.DUE] - board.clock[at.NOW]
    status, _ = solve_job(board, job, points, time_left, scratch)
    restart = jobs[job, at.RESTART_S]
    if status == TIGHT and restart > 0.0:
        changes = -1
        for k in range(points):
            changes += 1 if starts[k + 1] > starts[k] else 0
        status, _ = solve_job(board, job, points, time_left - changes * restart, scratch)
        if status == LATE:
            return TIGHT, chosen[points - 1], np.inf
    if status == LATE:
        return LATE, chosen[points - 1], np.inf
    k, wake = first_segment(board, job, scratch)
    return status, chosen[k], wake
