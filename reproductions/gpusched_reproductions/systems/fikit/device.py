"""A GPU kernel by kernel: a job that comes first beside one in the background, with a FIFO queue or with filling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats

BACKGROUND_DUTY = 0.9
"""Part of the time for which the job in the background would keep the GPU busy alone: it launches kernels too."""


class Outcome(NamedTuple):
    """What sharing comes to.

    Attributes:
        slowdown: Time of the first job over its time alone.
        filled: Part of the first job's own idle time in which the other one runs kernels.
    """

    slowdown: float
    filled: float


def gaps_of(kernels_s: Floats, duty: float, every: int, jitter: float, seed: int) -> tuple[Floats, Floats]:
    """Give the gap after every kernel as predicted and as it is [s], both of the shape of `kernels_s`.

    The idle time that makes the duty is cut into equal gaps, one after every `every`-th kernel; each is longer or
    shorter than predicted by a factor drawn from 1 ± `jitter`.
    """
    predicted = np.zeros(len(kernels_s))
    places = np.arange(every - 1, len(kernels_s), every)
    predicted[places] = kernels_s.sum() * (1.0 / duty - 1.0) / max(1, len(places))
    drawn = np.random.default_rng(seed).uniform(1.0 - jitter, 1.0 + jitter, len(kernels_s))
    return predicted, predicted * drawn


@kernel
def first_come(kernels_s: Floats, gaps_s: Floats, others_s: Floats, depth: int) -> float:
    """Give the slow-down of the first job where the GPU runs kernels in the order in which they were launched.

    The other job has `depth` kernels launched at any time, so that each kernel of the first one waits for what is left
    of the one that runs, and for `depth` - 1 whole ones.
    """
    time, running_until, k = 0.0, others_s[0], 1
    for i in range(kernels_s.shape[0]):
        while running_until <= time:
            running_until += others_s[k % others_s.shape[0]]
            k += 1
        for _ in range(depth - 1):
            running_until += others_s[k % others_s.shape[0]]
            k += 1
        time = running_until + kernels_s[i]
        running_until = time + others_s[k % others_s.shape[0]]
        k += 1
        time += gaps_s[i]
    return time / (kernels_s.sum() + gaps_s.sum())


@kernel
def fill_gaps(kernels_s: Floats, predicted_s: Floats, gaps_s: Floats, others_s: Floats) -> Outcome:
    """Give what comes of launching the other job's next kernel only if it ends before the gap is predicted to end.

    Kernels are not interrupted: where the gap is shorter than predicted, the first job waits for the one that runs.
    """
    time, k, ready, filled = 0.0, 0, 0.0, 0.0
    for i in range(kernels_s.shape[0]):
        time += kernels_s[i]
        predicted, arrival, now = time + predicted_s[i], time + gaps_s[i], max(time, ready)
        while now < arrival and now + others_s[k % others_s.shape[0]] <= predicted:
            length = others_s[k % others_s.shape[0]]
            filled += length
            time = now + length
            ready = time + length * (1.0 / BACKGROUND_DUTY - 1.0)
            now = ready
            k += 1
        time = max(time, arrival)
    alone = kernels_s.sum() + gaps_s.sum()
    return Outcome(time / alone, filled / max(gaps_s.sum(), 1e-12))
