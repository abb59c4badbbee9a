"""Families of distributions of the epochs that a job needs, as functions of named parameters.

Each returns an `EpochDistribution`: S constant on bins, X at the bins' right edges. A continuous family is truncated to
(0, E] and every bin gets exactly its probability under the truncated distribution, so the mean is that of the
truncated distribution, rounded up to the next edge: at most one bin above it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, checks
from gpusched_env.model.distribution import equal_bins
from gpusched_env.workload.scenario.epochs import Epochs, HistogramEpochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray


def beta_distribution(mean: float, concentration: float, bins: int = 100) -> EpochDistribution:
    """Make the beta distribution with shape parameters mean · concentration and (1 - mean) · concentration.

    Args:
        mean: Mean need as a fraction of the maximum epochs, in (0, 1).
        concentration: Sum of both shape parameters, > 0: the larger, the narrower; 2 with mean 0.5 is uniform.
        bins: Number of equal bins, ≥ 1.

    Raises:
        InputError: A value is out of its range.
    """
    _fraction("mean", mean)
    checks.positive("concentration", concentration)
    # Scipy's special functions take 0.2 s to import, and only this family needs them.
    from scipy.special import betainc  # type: ignore[import-untyped]  # noqa: PLC0415

    edges = np.linspace(0.0, 1.0, checks.whole("bins", bins) + 1)
    cdf = betainc(mean * concentration, (1.0 - mean) * concentration, edges)
    return EpochDistribution.from_masses(np.maximum(np.diff(cdf), 0.0), family="beta")


def lognormal_distribution(median: float, sigma: float, bins: int = 100) -> EpochDistribution:
    """Make the lognormal distribution truncated to (0, 1].

    Args:
        median: Median before truncation, as a fraction of the maximum epochs, in (0, 1).
        sigma: Standard deviation of the logarithm, > 0.
        bins: Number of equal bins, ≥ 1.

    Raises:
        InputError: A value is out of its range.
    """
    _fraction("median", median)
    checks.positive("sigma", sigma)
    edges = np.linspace(0.0, 1.0, checks.whole("bins", bins) + 1)
    # Half the complementary error function: the normal distribution function, accurate far into the tail.
    cdf = np.array([0.0] + [math.erfc(math.log(median / edge) / (sigma * math.sqrt(2.0))) / 2.0 for edge in edges[1:]])
    return EpochDistribution.from_masses(np.maximum(np.diff(cdf), 0.0), family="lognormal")


def geometric_distribution(stop_rate: float, bins: int = 100) -> EpochDistribution:
    """Make the geometric distribution: in every bin the same probability of stopping; survivors run to the end.

    S = exp(-stop_rate · x) at each left edge x, so the mean is (1 - exp(-r)) / (B · (1 - exp(-r/B))).

    Args:
        stop_rate: Expected number of stops r over the maximum epochs if a job continued after each, > 0.
        bins: Number of equal bins B, ≥ 1.

    Raises:
        InputError: A value is out of its range.
    """
    checks.positive("stop_rate", stop_rate)
    edges = np.linspace(0.0, 1.0, checks.whole("bins", bins) + 1)
    return EpochDistribution(edges, np.exp(-stop_rate * edges[:-1]), "geometric")


def two_point_distribution(early_at: float, early_probability: float) -> EpochDistribution:
    """Make the two-point distribution "fails early or runs on": two bins of its own, (0, early_at] and (early_at, 1].

    Args:
        early_at: Where the early jobs end, as a fraction of the maximum epochs, in (0, 1).
        early_probability: Probability of ending there, in [0, 1]; the others need all epochs.

    Raises:
        InputError: A value is out of its range.
    """
    _fraction("early_at", early_at)
    if not 0.0 <= early_probability <= 1.0:
        raise InputError("early_probability", early_probability, "a number in [0, 1]")
    edges = np.array([0.0, early_at, 1.0])
    return EpochDistribution(edges, np.array([1.0, 1.0 - early_probability]), "two-point")


def histogram_of_runs(
    mean: float, concentration: float, runs: int, rng: Generator, bins: int = 100
) -> EpochDistribution:
    """Make the empirical histogram of `runs` past runs, whose needs are drawn from a beta distribution.

    It is ragged, as histograms of real runs are, and some bins have probability 0.

    Args:
        mean: Mean of the beta distribution, in (0, 1).
        concentration: Concentration of the beta distribution, > 0.
        runs: Number of past runs, ≥ 1.
        rng: Randomness.
        bins: Number of equal bins, ≥ 1.

    Raises:
        InputError: A value is out of its range.
    """
    _fraction("mean", mean)
    checks.positive("concentration", concentration)
    drawn = rng.beta(mean * concentration, (1.0 - mean) * concentration, checks.whole("runs", runs))
    return histograms([drawn], bins)[0]


def histograms(needs: Sequence[NDArray[np.float64]], bins: int) -> tuple[EpochDistribution, ...]:
    """Make the histograms of several sets of past runs at once; each has one run or more, all in [0, 1]."""
    edges = equal_bins(checks.whole("bins", bins))
    runs = np.concatenate(needs)
    bin_of_run = np.minimum((runs * bins).astype(np.int64), bins - 1)
    bin_of_run -= runs < edges[bin_of_run]  # the product may round past an edge, either way
    bin_of_run += (runs >= edges[bin_of_run + 1]) & (bin_of_run < bins - 1)
    set_of_run = np.repeat(np.arange(len(needs)), [len(each) for each in needs])
    counts = np.bincount(set_of_run * bins + bin_of_run, minlength=len(needs) * bins)
    return EpochDistribution.of_rows(counts.reshape(len(needs), bins))


def _fraction(field: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise InputError(field, value, "a number > 0 and < 1")


def given_library(epochs: Epochs, applications: Sequence[str]) -> tuple[EpochDistribution, ...] | None:
    """Return the distributions of a section, as masses or in a file; None if they are to be drawn.

    With `by_application` they are those of `applications`, in that order.
    """
    if not isinstance(epochs, HistogramEpochs):
        return None
    if epochs.masses is not None:
        return tuple(EpochDistribution.from_masses(masses) for masses in epochs.masses)
    library, runs = epochs.library, epochs.runs
    if library is None and not isinstance(runs, str):
        return None
    from gpusched_env.workload.tables.own_applications import read_histograms, read_runs  # noqa: PLC0415 - few need it

    named = read_runs(str(runs), epochs.bins) if library is None else read_histograms(library)
    if not epochs.by_application:
        return tuple(named.values())
    for name in applications:
        if name not in named:
            known = ", ".join(filter(None, named)) or "none, since there is no column application"
            raise InputError("epochs.by_application", name, f"applications with a histogram: {known}")
    return tuple(named[name] for name in applications)


def make_library(epochs: Epochs, rng: Generator) -> tuple[EpochDistribution, ...]:
    """Draw the `library_size` distributions of a scenario, their parameters uniformly from the family's ranges."""
    if not isinstance(epochs, HistogramEpochs):
        make, names = _FAMILIES[epochs.family]
        bins = () if epochs.family == "two-point" else (epochs.bins,)
        drawn = ([rng.uniform(*getattr(epochs, name)) for name in names] for _ in range(epochs.library_size))
        return tuple(make(*values, *bins) for values in drawn)
    if isinstance(epochs.runs, str):
        raise InputError("epochs.runs", epochs.runs, "a range to draw from; given_library reads the file")
    needs = []
    for _ in range(epochs.library_size):
        # As `rng.uniform` draws, which takes ten times as long for single numbers.
        mean, concentration, runs = (
            low + (high - low) * rng.random() for low, high in (epochs.mean, epochs.concentration, epochs.runs)
        )
        needs.append(rng.beta(mean * concentration, (1.0 - mean) * concentration, max(1, round(runs))))
    return histograms(needs, epochs.bins)


_AT_ONCE = 1024  # jobs whose distributions are compared at once


def draw_fractions(
    library: Sequence[EpochDistribution], choice: NDArray[np.int64], rng: Generator
) -> NDArray[np.float64]:
    """Draw the epochs needed by many jobs as fractions of their maximum epochs, in (0, 1], (J,)."""
    uniform = rng.random(len(choice))
    bins = max(len(distribution.survival) for distribution in library)
    survival, edges = np.zeros((len(library), bins)), np.ones((len(library), bins + 1))
    for row, distribution in enumerate(library):
        survival[row, : len(distribution.survival)] = distribution.survival
        edges[row, : len(distribution.edges)] = distribution.edges
    survived = np.empty(len(choice), dtype=np.int64)  # bins with S > u, as in `EpochDistribution.fractions_at`
    for part in range(0, len(choice), _AT_ONCE):
        some = slice(part, part + _AT_ONCE)
        survived[some] = np.count_nonzero(survival[choice[some]] > uniform[some, None], axis=1)
    fractions: NDArray[np.float64] = edges[choice, np.maximum(survived, 1)]
    return fractions


_FAMILIES: dict[str, tuple[Callable[..., EpochDistribution], tuple[str, ...]]] = {
    "beta": (beta_distribution, ("mean", "concentration")),
    "lognormal": (lognormal_distribution, ("median", "sigma")),
    "geometric": (geometric_distribution, ("stop_rate",)),
    "two-point": (two_point_distribution, ("early_at", "early_probability")),
}
"""By family: the function that makes a distribution, and its parameters in the order in which they are drawn."""
