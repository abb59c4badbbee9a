"""Estimates over seeds: ratios of sums, with bootstrap intervals that keep what belongs to one seed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from gpusched_experiments.report.run import Runs

RESAMPLES = 9_999
CONFIDENCE = 0.95
LEAST_SEEDS = 5  # the bootstrap of fewer says little more than their least and greatest
BOOTSTRAP_SEED = 20_220_101

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over seeds.

    Attributes:
        value: The figure; NaN where there is none.
        interval: Its 95 % bootstrap interval; None with fewer than 5 seeds.
        seeds: Number of seeds behind it.
    """

    value: float
    interval: Interval | None
    seeds: int

    def as_saving(self) -> Estimate:
        """Return 1 - this: what a ratio of costs saves."""
        interval = None if self.interval is None else (1.0 - self.interval[1], 1.0 - self.interval[0])
        return Estimate(1.0 - self.value, interval, self.seeds)

    def as_extra(self) -> Estimate:
        """Return minus this: what is paid on top, where something is saved with the other sign."""
        interval = None if self.interval is None else (-self.interval[1], -self.interval[0])
        return Estimate(-self.value, interval, self.seeds)

    def times(self, factor: float) -> Estimate:
        interval = None if self.interval is None else (factor * self.interval[0], factor * self.interval[1])
        return Estimate(factor * self.value, interval, self.seeds)


def bootstrap(seeds: int, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> Interval | None:
    """Return the 95 % percentile bootstrap interval of a statistic over seeds.

    Seeds are drawn with replacement, each with all that belongs to it (paired): what makes a workload costly for every
    policy cancels out. The draws are seeded, so equal input gives an equal interval.

    Args:
        statistic: Gives the statistic of every draw, (R,), from the places of the seeds drawn, (R, seeds).

    Returns:
        Lower and upper end; None with fewer than `LEAST_SEEDS` seeds, or if the statistic of some draw is no number.
    """
    if seeds < LEAST_SEEDS:
        return None
    values = statistic(np.random.default_rng(BOOTSTRAP_SEED).integers(seeds, size=(RESAMPLES, seeds)))
    return None if np.any(np.isnan(values)) else percentile_interval(values)


def percentile_interval(values: NDArray[np.float64]) -> Interval:
    """Return the ends between which 95 % of these values lie."""
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return float(low), float(high)


def mean_interval(values: ArrayLike) -> Interval | None:
    """Return the 95 % percentile bootstrap interval of the mean; None with fewer than `LEAST_SEEDS` values."""
    array = np.asarray(values, dtype=np.float64)
    return bootstrap(len(array), lambda draws: array[draws].mean(axis=1))


def paired_saving(cost: ArrayLike, reference_cost: ArrayLike) -> Estimate:
    """Estimate the share of the reference cost that is saved: 1 - Σ cost / Σ reference cost.

    A ratio of means, not a mean of ratios: it is the part of the bill over all seeds that somebody would save, and a
    seed on which the reference happens to cost next to nothing cannot outweigh all others.

    Args:
        cost: Costs of the policy, one per seed, (S,) [€].
        reference_cost: Costs of the reference on the same seeds, (S,) [€].

    Returns:
        NaN if the reference costs nothing; without an interval if it costs nothing on some seed.
    """
    own, other = np.asarray(cost, dtype=np.float64), np.asarray(reference_cost, dtype=np.float64)
    total = float(np.sum(other))
    value = 1.0 - float(np.sum(own)) / total if total > 0.0 else float("nan")
    if not np.all(other > 0.0):
        return Estimate(value, None, len(own))
    interval = bootstrap(len(own), lambda draws: 1.0 - own[draws].sum(axis=1) / other[draws].sum(axis=1))
    return Estimate(value, interval, len(own))


def mean(runs: Runs, name: str) -> Estimate:
    own = runs.by_seed(name)
    return pooled([(own, dict.fromkeys(own, 1.0))])


def share(runs: Runs, name: str, of: str) -> Estimate:
    return pooled([(runs.by_seed(name), runs.by_seed(of))])


def saving(runs: Runs, reference: Runs, name: str) -> Estimate:
    """Estimate 1 - Σ cost / Σ reference cost over the seeds that both ran on, paired by seed."""
    return pooled_saving([(runs, reference)], name)


def difference_p(runs: Runs, others: Runs, name: str) -> float:
    """Return the p-value of a difference of means, two-sided, paired by seed, by a permutation test of signs.

    Under the null hypothesis the two costs of a seed may be exchanged (Good, 2005, section 3.2).

    Returns:
        1 with fewer than `LEAST_SEEDS` common seeds.
    """
    own, other = runs.by_seed(name), others.by_seed(name)
    change = np.array([own[seed] - other[seed] for seed in sorted(set(own) & set(other))])
    if len(change) < LEAST_SEEDS:
        return 1.0
    signs = np.random.default_rng(BOOTSTRAP_SEED).choice([-1.0, 1.0], (RESAMPLES, len(change)))
    reached = np.abs(signs @ change) >= abs(change.sum()) * (1.0 - 1e-12)
    return float((1 + np.count_nonzero(reached)) / (1 + RESAMPLES))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number, in their order (Holm, 1979)."""
    corrected, most = [1.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        most = max(most, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = most
    return corrected


def pooled_saving(pairs: Sequence[tuple[Runs, Runs]], name: str, least_seeds: int = 1) -> Estimate:
    """Estimate the mean over groups (such as sizes) of the saving in each.

    Args:
        pairs: For every group the runs and those that they are compared with.
        least_seeds: Groups with fewer common seeds are left out, unless all have fewer.
    """
    return pooled([(own.by_seed(name), other.by_seed(name)) for own, other in pairs], least_seeds).as_saving()


def pooled_share(groups: Sequence[Runs], name: str, of: str, least_seeds: int = 1) -> Estimate:
    """Estimate the mean over groups of Σ `name` / Σ `of` in each."""
    return pooled([(runs.by_seed(name), runs.by_seed(of)) for runs in groups], least_seeds)


def pooled(groups: Sequence[tuple[Mapping[int, float], Mapping[int, float]]], least_seeds: int = 1) -> Estimate:
    """Estimate the mean over groups of Σ numerator / Σ denominator.

    Seeds are drawn with replacement, and a seed brings all its groups: the workloads of one seed at several sizes have
    jobs in common. Groups count equally. In a draw that holds no seed of a group, that group is left out.

    Args:
        groups: For every group the numerator and the denominator by seed; seeds that lack one of them are left out.
        least_seeds: Groups with fewer seeds are left out, unless all have fewer.
    """
    common = [sorted(set(above) & set(below)) for above, below in groups]
    least = max(1, min(least_seeds, max(map(len, common), default=0)))
    kept = [(group, seeds) for group, seeds in zip(groups, common, strict=True) if len(seeds) >= least]
    every = sorted({seed for _, seeds in kept for seed in seeds})
    if not every:
        return Estimate(float("nan"), None, 0)
    place = {seed: i for i, seed in enumerate(every)}
    above, below = np.zeros((len(kept), len(every))), np.zeros((len(kept), len(every)))
    for row, ((numerator, denominator), seeds) in enumerate(kept):
        columns = [place[seed] for seed in seeds]
        above[row, columns] = [numerator[seed] for seed in seeds]
        below[row, columns] = [denominator[seed] for seed in seeds]
    value = float(_mean_ratio(above[:, None, :], below[:, None, :])[0])
    interval = bootstrap(len(every), lambda draws: _mean_ratio(above[:, draws], below[:, draws]))
    return Estimate(value, interval, len(every))


def _mean_ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over groups (first axis) of the ratios of the sums over seeds (last axis); NaN without any."""
    top, bottom = above.sum(axis=-1), below.sum(axis=-1)
    there = bottom > 0.0
    ratios = np.divide(top, bottom, out=np.zeros_like(top), where=there)
    groups = there.sum(axis=0)
    return np.divide(ratios.sum(axis=0), groups, out=np.full(groups.shape, np.nan), where=groups > 0)
