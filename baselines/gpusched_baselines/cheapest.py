"""The cheapest configuration that meets the due date, and the fallback order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints


@kernel
def worth(jobs: Floats, tau: Floats, rate: Floats, now: float, job: int, c: int) -> tuple[bool, float, float]:
    """Rank a configuration: the smaller the better.

    Those that meet the due date come first, by cost, then time; then those that miss it, by time, then cost. All in the
    worst case: all epochs left are needed. The cost is that of a run alone on its node.
    """
    seconds = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * tau[job, c]
    cost = seconds * rate[c]
    if misses(seconds, jobs[job, at.DUE] - now):
        return True, seconds, cost
    return False, cost, seconds


@kernel
def cheapest_fitting(jobs: Floats, configs: Ints, gaps: Ints, tau: Floats, rate: Floats, now: float, job: int) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the fastest.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS).
        configs: The configurations, (C, CONFIG_COLUMNS).
        gaps: Most free GPUs on one node of each type, (V,).
        tau: Seconds per epoch, (J, C).
        rate: Planned cost rates [€/s], (C,).
        now: Present time [s].
        job: The job's index.

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    best = -1
    least = (True, np.inf, np.inf)
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_GPUS] > gaps[configs[c, at.CONFIG_TYPE]] or tau[job, c] == np.inf:
            continue
        value = worth(jobs, tau, rate, now, job, c)
        if best < 0 or value < least:
            best, least = c, value
    return best


@kernel
def preference(jobs: Floats, tau: Floats, rate: Floats, now: float, job: int, order: Ints) -> int:
    """Write the allowed configurations of `job` to `order`, best first by `worth`, (C,); return how many there are."""
    n = 0
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        value = worth(jobs, tau, rate, now, job, c)
        i = n
        while i > 0 and value < worth(jobs, tau, rate, now, job, order[i - 1]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = c
        n += 1
    return n


@kernel
def any_gap(gaps: Ints) -> bool:
    """Say whether any GPU is free."""
    for v in range(gaps.shape[0]):
        if gaps[v] > 0:
            return True
    return False
