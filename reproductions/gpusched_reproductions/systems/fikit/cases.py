"""The public data: kernel times of ten models, cut by gaps into cases, and pairs of training jobs on one GPU."""

from __future__ import annotations

import csv
import json
from functools import cache
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_reproductions.data_sources import DATA
from gpusched_reproductions.systems.fikit.device import LAUNCH_S, OUTSTANDING, Shared, fill_gaps, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

GAVEL = DATA / "gavel"
"""Where Gavel's throughputs (MIT) are looked for; they are not part of the project."""
KERNELS = DATA / "orion"
"""Where the kernel times of ten models (Orion's benchmarks, MIT) are looked for; they are not part of the project."""
UTILISATIONS = (0.3, 0.5, 0.7)
JITTER = 0.2
REQUESTS = 20
GAP_EVERY = (1, 5, 20, 200)
"""After how many kernels a gap comes: training has few long gaps, inference many."""
BACKGROUND_UTILISATION = 0.9
"""Part of the time for which a job that waits keeps the GPU busy alone, if nothing else is given: an assumption."""


class Case(NamedTuple):
    """A job that comes first, and those that wait.

    Attributes:
        kernels_s: Kernels of the first job [s], (K,).
        predicted_s: The gap after each of them as profiled [s], (K,).
        gaps_s: The same as it is [s], (K,).
        others_s: Kernels of the jobs that wait, one job after the other [s].
        starts: Where those of each of the M jobs start there, and the end, (M + 1,).
    """

    kernels_s: Floats
    predicted_s: Floats
    gaps_s: Floats
    others_s: Floats
    starts: Ints

    def filling(self, utilisation: float = BACKGROUND_UTILISATION) -> Shared:
        return fill_gaps(*self, np.zeros(len(self.starts) - 1, dtype=np.int64), utilisation)

    def by_default(self, utilisation: float = BACKGROUND_UTILISATION) -> Shared:
        """Run the first job in a FIFO queue with the one that waits, which keeps the GPU busy so long alone."""
        pause_s = float(self.others_s.sum()) * (1.0 / utilisation - 1.0)
        return in_order(self.kernels_s, self.gaps_s, self.others_s, LAUNCH_S, OUTSTANDING, pause_s)

    @property
    def alone_s(self) -> float:
        return float(self.kernels_s.sum() + self.gaps_s.sum())


def gaps_of(kernels_s: Floats, utilisation: float, every: int, jitter: float, seed: int) -> tuple[Floats, Floats]:
    """Return the gap after every kernel as predicted and as it is [s], both of the shape of `kernels_s`.

    The idle time that makes the utilisation is cut into equal gaps, one after every `every`-th kernel; each is longer
    or shorter than predicted by a factor drawn from 1 ± `jitter`.
    """
    predicted = np.zeros(len(kernels_s))
    places = np.arange(every - 1, len(kernels_s), every)
    predicted[places] = kernels_s.sum() * (1.0 / utilisation - 1.0) / max(1, len(places))
    drawn = np.random.default_rng(seed).uniform(1.0 - jitter, 1.0 + jitter, len(kernels_s))
    return predicted, predicted * drawn


@cache
def kernel_times(kind: str) -> dict[str, Floats]:
    """Read the kernel times of every model [s]; `kind` is `fwd`, inference, or `fb1`, an iteration of training."""
    times = {}
    for path in sorted(KERNELS.glob(f"*_{kind}.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            times[path.stem] = np.array([float(row["Duration"]) for row in csv.DictReader(file)]) * 1e-9
    return times


def cases(every: int, waiting: int, *, one_in: int = 1, among: tuple[str, ...] = ()) -> Iterator[Case]:
    """Yield the cases: every inference job first, every utilisation, every set of `waiting` of the other nine jobs.

    Args:
        every: After how many kernels a gap comes.
        waiting: How many jobs wait, 1 to 9.
        among: Models that may wait; none: all.
    """
    first = kernel_times("fwd")
    others = first | kernel_times("fb1")
    number = 0
    for one, utilisation in product(first, UTILISATIONS):
        kernels_s = np.tile(first[one], REQUESTS)
        gaps = gaps_of(kernels_s, utilisation, every, JITTER, 0)
        for wait in combinations((name for name in among or others if name != one), waiting):
            number += 1
            if number % one_in == 0:
                starts = np.cumsum([0, *(len(others[name]) for name in wait)])
                yield Case(kernels_s, *gaps, np.concatenate([others[name] for name in wait]), starts)


@cache
def slowdowns_of_pairs(gpu: str) -> Floats:
    """Return by how much training jobs slow each other by default on a GPU type, `V100`, `P100` or `K80`, ≥ 1.

    One figure for each ordered pair in which both jobs made progress, as Gavel measured.
    """
    table = json.loads((GAVEL / "physical_cluster_throughputs.json").read_text(encoding="utf-8"))[gpu.lower()]
    single = [key for key in table if key.endswith(", 1)")]
    return np.array(
        [
            max(1.0, float(table[one]["null"]) / float(table[one][other][0]))
            for one, other in product(single, single)
            if min(table[one].get(other, (0.0,))) > 0.0
        ]
    )
