"""AlloX, as Gavel's authors model it: jobs and places in the queues of GPUs, matched at least total completion time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand


def allox(demand: GavelDemand) -> NDArray[np.float64]:
    """Return shares: a job that has a GPU keeps it; of the others the first in the queue of each free GPU gets it.

    A job that is the k-th from the end of a GPU's queue delays k jobs, itself included, by its duration there: the
    matching of jobs to places in queues with the least k · left_j / T[j, v] in sum is the schedule with the least sum
    of completion times. It is computed again in every program; only the first places are kept. AlloX is for jobs of one
    GPU: one of several counts as one in the queues, and waits if there are too few when it is first.
    """
    x = (demand.before > 0.5).astype(np.float64)
    x[demand.speed <= 0.0] = 0.0
    left = demand.capacity[demand.kind] - (demand.gpus * x).sum(axis=0)
    free = np.maximum(np.floor(left + 1e-9), 0).astype(int)
    waiting = np.flatnonzero((x.sum(axis=1) == 0.0) & (demand.speed.max(axis=1) > 0.0))
    waiting = waiting[np.argsort(-demand.age_s[waiting], kind="stable")]
    gpu = np.repeat(np.arange(len(free)), np.minimum(free, len(waiting)))
    if not len(waiting) or not len(gpu):
        return x
    duration = demand.left[waiting, None] / np.maximum(demand.speed[waiting][:, gpu], 1e-10)
    place = np.arange(1, len(waiting) + 1)
    job, queue = linear_sum_assignment((place[None, :, None] * duration[:, None, :]).reshape(len(waiting), -1))
    for g in range(len(gpu)):
        mine = queue % len(gpu) == g
        if mine.any():
            first = waiting[job[mine][queue[mine].argmax()]]
            if demand.speed[first, gpu[g]] > 0.0 and demand.gpus[first, gpu[g]] <= left[gpu[g]]:
                x[first, gpu[g]] = 1.0
                left[gpu[g]] -= demand.gpus[first, gpu[g]]
    return x
