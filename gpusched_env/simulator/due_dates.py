"""Missed due dates, and the timers of due dates."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.switching import longest_switch_s, place_of_state

MISSED_S = 1e-6  # less than this is rounding: a plan that ends exactly at its due date is in time
MARGIN = 0.009  # of the worst-case execution time: how long before the last moment a job is re-evaluated
LEAST_MARGIN = 0.01  # with less than this a configuration is at its last moment already, and sets no timer


@kernel
def misses(seconds: float, time_left: float) -> bool:
    """Whether work of `seconds` misses a due date that is `time_left` seconds away, by a microsecond or more.

    A plan uses up its time to the last digit. Without the margin, rounding would make half of such plans late when
    their last segment begins.
    """
    return seconds > time_left + MISSED_S


@kernel
def due_date_timer_s(board: Board, job: int) -> float:
    """Return when a job must be re-evaluated, given what it holds in this round.

    If it would miss its due date as it runs, or waits, that is just before the cheapest configuration that would still
    meet it in the worst case no longer would: with n seconds per epoch now (inf: it waits) and c then, L epochs left
    and D seconds to the due date, after s seconds with (L - s / n) · c · (1 + margin) = D - s. Restarts on the way, the
    costliest possible ones, are subtracted from D. (Whether it is in time as it runs is computed without them, as in
    observations.)

    A configuration with less than `LEAST_MARGIN` left sets no timer. Else rounding could set two in a row, and a job
    that runs faster than planned (with few co-runners on a shared GPU) one after another, at ever shorter intervals.

    Returns:
        The time [s]; inf if it meets the due date as it is, or no configuration would with that margin.
    """
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    least_rate = board.least_rate[int(jobs[job, at.APPLICATION])]
    left, time_left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], jobs[job, at.DUE] - now
    held = int(jobs[job, at.CONFIG])
    if held >= 0:
        if not misses(left * tau[job, held], time_left):
            return np.inf
        starts = place_of_state(board, job) < 0
        time_left -= 2.0 * longest_switch_s(board, job) + (jobs[job, at.STARTING_S] if starts else 0.0)
    elif not np.isnan(jobs[job, at.START_S]):
        time_left -= longest_switch_s(board, job)
    else:
        time_left -= jobs[job, at.STARTING_S]
    cheapest, price = -1, np.inf
    for c in range(tau.shape[1]):
        in_time = (1.0 + LEAST_MARGIN) * left * tau[job, c] < time_left
        if in_time and tau[job, c] * least_rate[c] < price:
            cheapest, price = c, tau[job, c] * least_rate[c]
    if cheapest < 0:
        return np.inf
    then = (1.0 + MARGIN) * tau[job, cheapest]
    speed = then / tau[job, held] if held >= 0 else 0.0
    return now + (time_left - left * then) / (1.0 - speed)
