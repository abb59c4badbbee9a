"""The cheapest configuration that meets the due date, and the fallback order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.placement.placement import may_have

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def worth(seconds: float, time_left: float, rate: float) -> tuple[bool, float, float]:
    """Rank a configuration that takes `seconds` and costs `rate` [€/s]: the smaller the better.

    Those that meet the due date, `time_left` seconds away, come first, by cost, then time; then those that miss it, by
    time, then cost. The cost is that of a run alone on its node.
    """
    cost = seconds * rate
    if misses(seconds, time_left):
        return True, seconds, cost
    return False, cost, seconds


@kernel
def cheapest_fitting(board: Board, rate: Floats, job: int) -> int:
    """Choose as `cheapest_with` does, in the worst case: all epochs left are needed."""
    jobs = board.jobs
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    return cheapest_with(board, rate, job, left)


@kernel
def cheapest_with(board: Board, rate: Floats, job: int, left: float) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the fastest.

    Args:
        rate: Cost rates to compare by [€/s], (C,).
        job: The job's index.
        left: The epochs that it is taken to have left.

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    jobs, configs, tau, now = board.jobs, board.facts.configs, board.tau, board.clock[at.NOW]
    best = -1
    least = (True, np.inf, np.inf)
    for c in range(configs.shape[0]):
        if tau[job, c] == np.inf or not may_have(board, job, c):
            continue
        value = worth(left * tau[job, c], jobs[job, at.DUE] - now, rate[c])
        if best < 0 or value < least:
            best, least = c, value
    return best


@kernel
def preference(board: Board, job: int, left: float, order: Ints) -> int:
    """Write the allowed configurations of `job` to `order`, best first by `worth`, (C,); return how many there are."""
    jobs, tau, rate, now = board.jobs, board.tau, board.planning_rate, board.clock[at.NOW]
    n = 0
    time_left = jobs[job, at.DUE] - now
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        value = worth(left * tau[job, c], time_left, rate[c])
        i = n
        while i > 0 and value < worth(left * tau[job, order[i - 1]], time_left, rate[order[i - 1]]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = c
        n += 1
    return n


@kernel
def any_room(board: Board) -> bool:
    """Say whether anything may fit: a GPU is free, or a shared one has room."""
    room = board.room
    for v in range(room.shape[0]):
        if room[v, at.GAP] > 0 or room[v, at.OPENING] > 0:
            return True
    return False
