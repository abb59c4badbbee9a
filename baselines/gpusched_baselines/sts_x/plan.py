"""STS-X's plan of one job: one hull over all GPU types, shares and whole nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.lateness import add_late_point, first_choice, solve_late
from gpusched_baselines.planning.plan import LATE, SHORTEST_SEGMENT, find_hull, first_segment, solve_job
from gpusched_baselines.sts_x import steering as of
from gpusched_baselines.sts_x.steering import epochs_expected
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_baselines.planning.plan import Scratch
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


@kernel
def price_out(board: Board, rate: Floats, job: int, caution: float, seconds: Floats, price: Floats) -> None:
    """Write seconds and cost per epoch of every configuration, with the restart that changing to it takes.

    A change costs `switch_s` seconds, during which the GPUs are paid for. Spread over the epochs left, at worst for
    the time, on average for the cost, it makes every configuration but the present one slower and dearer.

    Args:
        rate: Cost rates to plan with [€/s], (C,).
        job: The job's index.
        caution: How many times a restart counts for a job that runs, ≥ 1.
        seconds: Room for the seconds, (C,); inf where not allowed.
        price: Room for the costs [€], (C,); inf where not allowed.
    """
    jobs, tau = board.jobs, board.tau
    held = int(jobs[job, at.OLD_CONFIG])
    times = caution if held >= 0 else 1.0
    left = epochs_at_worst(board, job)
    expected = epochs_expected(board, job)
    for c in range(tau.shape[1]):
        change = switch_s(board, job, c) * times
        seconds[c] = tau[job, c] + change / left
        price[c] = rate[c] * (tau[job, c] + change / expected) if tau[job, c] < np.inf else np.inf


@lean_kernel
def epochs_at_worst(board: Board, job: int) -> float:
    """Give the epochs left if all are needed, > 0."""
    largest = board.jobs[job, at.MAX_EPOCHS]
    return max(largest - board.jobs[job, at.EPOCHS], 1e-12 * largest)


@lean_kernel
def cheapest_now(board: Board, rate: Floats, job: int, same: bool) -> tuple[int, float]:
    """Find the configuration with the cheapest epochs, restart included; give it and its seconds per epoch.

    Where all changes cost the same, all but the present one take the same restart. So it is the one that is cheapest
    without restarts, or the present.

    Args:
        rate: Cost rates [€/s], (C,).
        job: The job's index.
        same: Whether rates keep their proportions from round to round, so that what was found once holds.
    """
    jobs, tau, memory = board.jobs, board.tau, board.memory
    if memory[job, of.CHEAPEST] == 0.0 or not same:
        memory[job, of.CHEAPEST] = 1.0 + _cheapest(rate, tau[job])
    best = int(memory[job, of.CHEAPEST]) - 1
    if jobs[job, at.RESUMING_S] != jobs[job, at.RESTART_S]:
        return _cheapest_with_switch(board, rate, job)
    held, restart = int(jobs[job, at.OLD_CONFIG]), switch_s(board, job, best)
    if held == best or restart == 0.0:
        return best, tau[job, best]
    change = rate[best] * (tau[job, best] + restart / epochs_expected(board, job))
    if held >= 0 and rate[held] * tau[job, held] <= change:
        return held, tau[job, held]
    return best, tau[job, best] + restart / epochs_at_worst(board, job)


@kernel
def _cheapest(rate: Floats, seconds: Floats) -> int:
    """Find the configuration with the cheapest epochs, of equals the fastest; the job may use one at least.

    That of a job does not change with the price of energy, which changes all rates alike.
    """
    best = -1
    for c in range(seconds.shape[0]):
        if seconds[c] == np.inf:
            continue
        cost = rate[c] * seconds[c]
        if (
            best < 0
            or cost < rate[best] * seconds[best]
            or (cost == rate[best] * seconds[best] and seconds[c] < seconds[best])
        ):
            best = c
    return best


@lean_kernel
def _cheapest_with_switch(board: Board, rate: Floats, job: int) -> tuple[int, float]:
    """Find the configuration with the cheapest epochs where changes to different ones may cost different times."""
    left, expected, tau = epochs_at_worst(board, job), epochs_expected(board, job), board.tau
    best, seconds, least = -1, np.inf, np.inf
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        change = switch_s(board, job, c)
        cost = rate[c] * (tau[job, c] + change / expected)
        if best < 0 or cost < least:
            best, seconds, least = c, tau[job, c] + change / left, cost
    return best, seconds


@kernel
def plan_ahead(
    board: Board, job: int, seconds: Floats, price: Floats, scale: float, guarantees: bool, scratch: Scratch
) -> tuple[int, float, int]:
    """Plan a job over all configurations at once.

    Args:
        job: The job's index.
        seconds: Seconds per epoch, (C,); inf where the plan may not use a configuration.
        price: Cost per epoch [€], (C,).
        scale: What all costs are multiplied by, ≥ 1.
        guarantees: Whether it meets the due date if all epochs are needed, where it can, whatever that costs; else
            tardiness costs what it costs.
        scratch: Written: the hull, the plan that may be late, and its points.

    Returns:
        The first configuration whose segment is long enough, -1 if none is allowed; when another one follows [s], inf
        if none does; and the number of points of the plan that may be late, the late one included.
    """
    jobs = board.jobs
    points = find_hull(seconds, price, scratch)
    if points == 0:
        return -1, np.inf, 0
    time_left = jobs[job, at.DUE] - board.clock[at.NOW]
    config, wake = -1, np.inf
    if guarantees:
        status, _ = solve_job(board, job, points, time_left, scratch)
        k = points - 1
        if status != LATE:
            k, wake = first_segment(board, job, scratch)
        config = scratch.hull[k]
    weight = jobs[job, at.WEIGHT] / scale
    late = add_late_point(scratch.points, scratch.hull, points, weight)
    solve_late(board, job, late, time_left, scratch)
    if not guarantees:
        config, wake = first_choice(board, job, late, scratch, SHORTEST_SEGMENT)
    return config, wake, late
