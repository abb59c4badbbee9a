"""A GPU kernel by kernel: a FIFO queue of launches, and FIKIT's rule for the gaps of the first job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel

LAUNCH_S, OUTSTANDING = 4.5e-6, 1000
"""Seconds from launch to launch, and launches of a process that may be outstanding before it blocks.

A user of a Titan GPU measured 4 to 5 µs and about 1,000 kernels (forums.developer.nvidia.com, thread 68937).
"""


class Shared(NamedTuple):
    """What sharing comes to.

    Attributes:
        first_s: Time of the first job [s].
        others_s: Time for which kernels of the other jobs ran meanwhile [s].
        filled: Part of the first job's own idle time in which the other jobs run kernels; 0 in a FIFO queue.
    """

    first_s: float
    others_s: float
    filled: float


@kernel
def in_order(kernels_s: Floats, gaps_s: Floats, other_s: Floats, launch_s: float, most: int, pause_s: float) -> Shared:
    """Run kernels in the order in which two jobs launch them, without priorities.

    A job launches its next kernel `launch_s` after the last one, without waiting for it; the first one waits for the
    end of a kernel that is followed by a gap, and for the gap.

    Args:
        kernels_s: Kernels of the first job [s], (K,).
        gaps_s: The gap after each of them [s], (K,).
        other_s: Kernels of a request or iteration of the other job, which starts again and again [s], (L,); (0,): none.
        launch_s: Time from launch to launch [s].
        most: Launches of the other job that may be outstanding, ≥ 1.
        pause_s: What the other job waits for after the last kernel of a request has ended [s], ≥ 0.

    Returns:
        Times until the first job's last gap is over.
    """
    ends, count = np.zeros(most), other_s.shape[0]
    free, arrival, launch, others, k = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(kernels_s.shape[0]):
        while count > 0 and launch <= arrival:
            free = max(free, launch) + other_s[k % count]
            others += other_s[k % count]
            ends[k % most] = free
            k += 1
            launch = free + pause_s if k % count == 0 else max(launch + launch_s, ends[k % most])
        free = max(free, arrival) + kernels_s[i]
        arrival = free + gaps_s[i] if gaps_s[i] > 0.0 else arrival + launch_s
    return Shared(free + gaps_s[-1], others, 0.0)


@kernel
def longest_that_fits(heads_s: Floats, ready_s: Floats, priority: Ints, now: float, room_s: float) -> int:
    """Choose a kernel for a gap by FIKIT's rule (BestPrioFit); -1: none.

    From the highest priority down, it is the longest that fits among the first kernels of the jobs that wait.

    Args:
        heads_s: The next kernel of every job [s], (M,), as profiled.
        ready_s: When it can be launched [s], (M,).
        priority: The priority of every job, (M,).
        now: The present time [s].
        room_s: What is left of the gap as predicted [s].
    """
    best = -1
    for job in range(heads_s.shape[0]):
        if ready_s[job] > now or heads_s[job] > room_s:
            continue
        above = best < 0 or priority[job] > priority[best]
        if above or (priority[job] == priority[best] and heads_s[job] > heads_s[best]):
            best = job
    return best


@kernel
def fill_gaps(
    kernels_s: Floats,
    predicted_s: Floats,
    gaps_s: Floats,
    others_s: Floats,
    starts: Ints,
    priority: Ints,
    utilisation: float,
) -> Shared:
    """Fill predicted gaps with kernels of the jobs that wait, until none fits (`longest_that_fits`).

    Kernels are not interrupted: where the gap is shorter than predicted, the first job waits for the one that runs.

    Args:
        kernels_s: Kernels of the first job [s], (K,).
        predicted_s: The gap after each of them as profiled [s], (K,).
        gaps_s: The same as it is [s], (K,).
        others_s: Kernels of the jobs that wait, one job after the other [s].
        starts: Where those of each of the M jobs start there, and the end, (M + 1,).
        priority: The priority of every job that waits, (M,).
        utilisation: Part of the time for which each of them would keep the GPU busy alone, in (0, 1].
    """
    jobs = priority.shape[0]
    place, ready, heads = np.zeros(jobs, dtype=np.int64), np.zeros(jobs), others_s[starts[:-1]].copy()
    time, others, inside = 0.0, 0.0, 0.0
    for i in range(kernels_s.shape[0]):
        time += kernels_s[i]
        predicted, arrival, now = time + predicted_s[i], time + gaps_s[i], time
        while now < arrival:
            job = longest_that_fits(heads, ready, priority, now, predicted - now)
            if job < 0:
                later = np.inf
                for other in range(jobs):
                    later = min(later, ready[other]) if ready[other] > now else later
                now = later
                continue
            time = now + heads[job]
            others += heads[job]
            inside += min(time, arrival) - now
            ready[job] = time + heads[job] * (1.0 / utilisation - 1.0)
            place[job] = (place[job] + 1) % (starts[job + 1] - starts[job])
            heads[job] = others_s[starts[job] + place[job]]
            now = time
        time = max(time, arrival)
    return Shared(time, others, inside / max(gaps_s.sum(), 1e-12))
