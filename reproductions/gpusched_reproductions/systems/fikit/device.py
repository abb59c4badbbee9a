"""A GPU kernel by kernel: a job that comes first beside one in the background, with a FIFO queue or with filling."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_reproductions.systems.store import Check, Findings, Part

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


KERNELS = Path("../shared/data/orion")
"""Where the kernel times of ten models are looked for; they are not part of the project."""
SOURCE = "FIKIT, abstract; kernel times: Orion's benchmarks (MIT)"
DUTIES = (0.3, 0.5, 0.7)
JITTER = 0.2
REQUESTS = 20
GAPS = {
    1: ("every kernel", 0.0, 0.3),
    5: ("every fifth", -np.inf, np.inf),
    20: ("one in 20", -np.inf, np.inf),
    200: ("one in 200", 0.75, 0.95),
}
"""After which kernels a gap comes, and the band of what is filled: training has few long gaps, inference many."""


def kernel_times(kind: str) -> dict[str, Floats]:
    """Read the kernel times of every model [s]; `kind` is `fwd`, inference, or `fb1`, an iteration of training."""
    times = {}
    for path in sorted(KERNELS.glob(f"*_{kind}.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            times[path.stem] = np.array([float(row["Duration"]) for row in csv.DictReader(file)]) * 1e-9
    return times


def queue(_quick: bool) -> Findings:
    """Compare a FIFO queue of one, two and four kernels of the background with filling."""
    slowdowns = {depth: _first_come(depth) for depth in (1, 2, 4)}
    lost = [outcome.slowdown - 1.0 for outcome in _filled(1)]
    two = slowdowns[2]
    return Findings(
        (
            Check("slow-down in a FIFO queue, 2 kernels deep: median", float(np.median(two)), 3.0, 4.0, 3.4, SOURCE),
            Check("slow-down in a FIFO queue, 2 kernels deep: max", float(np.max(two)), 10.0, 20.0, 16.41, SOURCE),
            Check("slow-down in a FIFO queue, 2 kernels deep: min", float(np.min(two)), 1.0, 1.5, 1.32, SOURCE),
            Check("share of cases above 3.4", float(np.mean(np.array(two) > 3.4)), 0.4, 0.65, 0.5, SOURCE),
            Check("median, 1 kernel deep", float(np.median(slowdowns[1]))),
            Check("median, 4 kernels deep", float(np.median(slowdowns[4]))),
            Check("lost with filling: median", float(np.median(lost)), 0.0, 0.05, 0.05, SOURCE),
            Check("lost with filling: max", float(np.max(lost)), 0.0, 0.12),
        )
    )


def gaps(_quick: bool) -> Findings:
    """Say which part of the idle time can be filled, and what that costs, by how the idle time is cut."""
    checks = []
    for every, (where, low, high) in GAPS.items():
        outcomes = _filled(every)
        filled = float(np.median([outcome.filled for outcome in outcomes]))
        lost = float(np.median([outcome.slowdown for outcome in outcomes])) - 1.0
        checks.append(Check(f"idle time filled, a gap after {where}: median", filled, low, high))
        checks.append(Check(f"lost by the first job, a gap after {where}: median", lost, 0.0, 0.05, 0.05, SOURCE))
    return Findings(tuple(checks))


def _first_come(depth: int) -> list[float]:
    found = []
    for (first, other), duty in product(_pairs(), DUTIES):
        _, actual = gaps_of(first, duty, 1, JITTER, 0)
        found.append(first_come(first, actual, other, depth))
    return found


def _filled(every: int) -> list[Outcome]:
    found = []
    for (first, other), duty in product(_pairs(), DUTIES):
        predicted, actual = gaps_of(first, duty, every, JITTER, 0)
        found.append(fill_gaps(first, predicted, actual, other))
    return found


def _pairs() -> list[tuple[Floats, Floats]]:
    """Give every inference job, as a loop of requests, with every job in the background but itself."""
    first, training = kernel_times("fwd"), kernel_times("fb1")
    others = first | training
    loops = {name: np.tile(times, REQUESTS) for name, times in first.items()}
    return [(loops[one], others[other]) for one, other in product(loops, others) if one != other]


PARTS = (
    Part("fikit", "kernels", "Slow-down in a FIFO queue and with filling, kernel by kernel", queue, KERNELS),
    Part("fikit", "gaps", "Which part of a job's idle time others can fill, by how it is cut", gaps, KERNELS),
)
