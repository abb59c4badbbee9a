"""STS-X's plan of one job: one hull over all GPU types, shares and whole nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.hull import lower_hull
from gpusched_baselines.planning.plan import LATE, SHORTEST_SEGMENT, TIGHT, solve
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats


@kernel
def price_out(
    jobs: Floats,
    tau: Floats,
    rate: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    job: int,
    seconds: Floats,
    price: Floats,
) -> None:
    """Write seconds and cost per epoch of every configuration, with the restart that changing to it takes.

    A change costs `RESTART_S` seconds, during which the GPUs are paid for. Spread over the epochs left, at worst for
    the time, on average for the cost, it makes every configuration but the present one slower and dearer.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS).
        tau: Seconds per epoch, (J, C).
        rate: Cost rates to plan with [€/s], (C,).
        edges: Bin edges, (D, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1).
        job: The job's index.
        seconds: Room for the seconds, (C,); inf where not allowed.
        price: Room for the costs [€], (C,); inf where not allowed.
    """
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    row = int(jobs[job, at.DISTRIBUTION])
    restart = restart_s(jobs, job)
    left = max(largest - done, 1e-12 * largest)
    expected = max(expected_left(edges[row], survival[row], tail[row], done / largest) * largest, 1e-12 * largest)
    for c in range(tau.shape[1]):
        change = 0.0 if c == int(jobs[job, at.OLD_CONFIG]) else restart
        seconds[c] = tau[job, c] + change / left
        price[c] = rate[c] * (tau[job, c] + change / expected) if tau[job, c] < np.inf else np.inf


@kernel
def restart_s(jobs: Floats, job: int) -> float:
    """Give the seconds that a change of the job's configuration takes; its first start is free."""
    return 0.0 if np.isnan(jobs[job, at.START_S]) else jobs[job, at.RESTART_S]


@kernel
def plan_job(
    jobs: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    now: float,
    job: int,
    seconds: Floats,
    price: Floats,
) -> tuple[int, int, float]:
    """Plan a job over all configurations at once.

    Every change on the way takes a restart: a plan of several segments must meet the due date with so much less time.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS).
        edges: Bin edges, (D, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1).
        now: Present time [s].
        job: The job's index.
        seconds: Seconds per epoch, (C,); inf where the plan may not use a configuration.
        price: Cost per epoch [€], (C,).

    Returns:
        SLACK, TIGHT or LATE; the first configuration whose segment is long enough, -1 if none is allowed; and the time
        at which its segment ends [s], inf if it runs to the end.
    """
    hull = np.empty(seconds.shape[0], dtype=np.int64)
    points = lower_hull(seconds, price, hull)
    if points == 0:
        return LATE, -1, np.inf
    chosen = hull[:points]
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    row = int(jobs[job, at.DISTRIBUTION])
    starts = np.empty(points + 1)
    time_left = jobs[job, at.DUE] - now
    status, _ = solve(
        seconds[chosen], price[chosen], edges[row], survival[row], tail[row], done, largest, time_left, starts
    )
    restart = jobs[job, at.RESTART_S]
    if status == TIGHT and restart > 0.0:
        changes = -1
        for k in range(points):
            changes += 1 if starts[k + 1] > starts[k] else 0
        time_left -= changes * restart
        status, _ = solve(
            seconds[chosen], price[chosen], edges[row], survival[row], tail[row], done, largest, time_left, starts
        )
        if status == LATE:
            return TIGHT, chosen[points - 1], np.inf
    if status == LATE:
        return LATE, chosen[points - 1], np.inf
    k = 0
    while starts[k + 1] < largest and starts[k + 1] - done < SHORTEST_SEGMENT * largest:
        k += 1
    if starts[k + 1] >= largest:
        return status, chosen[k], np.inf
    wake = now + (starts[k + 1] - done) * seconds[chosen[k]]
    return status, chosen[k], wake
