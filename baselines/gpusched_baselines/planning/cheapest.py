"""The cheapest configuration that meets the due date, and the fallback order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.placement.placement import fits

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


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
def cheapest_fitting(jobs: Floats, configs: Ints, room: Ints, tau: Floats, rate: Floats, now: float, job: int) -> int:
    """Choose as `cheapest_with` does, in the worst case: all epochs left are needed."""
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    return cheapest_with(jobs, configs, room, tau, rate, now, job, left)


@kernel
def cheapest_with(
    jobs: Floats, configs: Ints, room: Ints, tau: Floats, rate: Floats, now: float, job: int, left: float
) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the fastest.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS).
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type, (V, columns of `layout`).
        tau: Seconds per epoch, (J, C).
        rate: Planned cost rates [€/s], (C,).
        now: Present time [s].
        job: The job's index.
        left: The epochs that it is taken to have left.

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    best = -1
    least = (True, np.inf, np.inf)
    for c in range(configs.shape[0]):
        if tau[job, c] == np.inf or not fits(configs, room, c):
            continue
        value = worth(left * tau[job, c], jobs[job, at.DUE] - now, rate[c])
        if best < 0 or value < least:
            best, least = c, value
    return best


@kernel
def preference(jobs: Floats, tau: Floats, rate: Floats, now: float, job: int, left: float, order: Ints) -> int:
    """Write the allowed configurations of `job` to `order`, best first by `worth`, (C,); return how many there are."""
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
def any_room(room: Ints) -> bool:
    """Say whether anything may fit: a GPU is free, or a shared one has room."""
    for v in range(room.shape[0]):
        if room[v, at.GAP] > 0 or room[v, at.OPENING] > 0:
            return True
    return False
