"""The library of distributions that a scenario's jobs draw from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution
from gpusched_env.workload.families import (
    beta_distribution,
    drawn_runs,
    geometric_distribution,
    histograms,
    lognormal_distribution,
    two_point_distribution,
)
from gpusched_env.workload.scenario.epochs import (
    BetaEpochs,
    GeometricEpochs,
    HistogramEpochs,
    LognormalEpochs,
    TwoPointEpochs,
)
from gpusched_env.workload.tables.own_epochs import read_histograms, read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.epochs import Epochs


def given_library(epochs: Epochs, applications: Sequence[str]) -> tuple[EpochDistribution, ...] | None:
    """Give the distributions that a section brings, as masses or in a file; None if they are to be drawn.

    With `by_application` they are those of `applications`, in that order.

    Raises:
        InputError: A file cannot be read or is not valid, or an application has no histogram.
    """
    if not isinstance(epochs, HistogramEpochs):
        return None
    if epochs.masses is not None:
        return tuple(EpochDistribution.from_masses(masses) for masses in epochs.masses)
    if epochs.library is not None:
        named = read_histograms(epochs.library)
    elif isinstance(epochs.runs, str):
        named = read_runs(epochs.runs, epochs.bins)
    else:
        return None
    if not epochs.by_application:
        return tuple(named.values())
    for name in applications:
        if name not in named:
            known = ", ".join(filter(None, named)) or "none, since there is no column application"
            raise InputError("epochs.by_application", name, f"applications with a histogram: {known}")
    return tuple(named[name] for name in applications)


def make_library(epochs: Epochs, rng: Generator) -> tuple[EpochDistribution, ...]:
    """Draw the distributions of a scenario: each draws its parameters uniformly from the family's ranges.

    Args:
        epochs: The scenario's `epochs` section.
        rng: Randomness.

    Returns:
        `library_size` distributions.
    """
    if isinstance(epochs, HistogramEpochs):
        return histograms([_draw_runs(epochs, rng) for _ in range(epochs.library_size)], epochs.bins)
    return tuple(_draw_one(epochs, rng) for _ in range(epochs.library_size))


def draw_fractions(
    library: Sequence[EpochDistribution], choice: NDArray[np.int64], rng: Generator
) -> NDArray[np.float64]:
    """Draw the epochs needed by many jobs as fractions of their maximum epochs.

    Args:
        library: The distributions.
        choice: Index of every job's distribution, shape (J,).
        rng: Randomness.

    Returns:
        Fractions in (0, 1], shape (J,).
    """
    uniform = rng.random(len(choice))
    fractions = np.empty(len(choice))
    order = np.argsort(choice, kind="stable")
    ends = np.cumsum(np.bincount(choice, minlength=len(library)))
    for distribution, first, last in zip(library, np.append(0, ends[:-1]), ends, strict=True):
        jobs = order[first:last]
        fractions[jobs] = distribution.fractions_at(uniform[jobs])
    return fractions


def _draw_runs(epochs: HistogramEpochs, rng: Generator) -> NDArray[np.float64]:
    if isinstance(epochs.runs, str):
        raise InputError("epochs.runs", epochs.runs, "a range to draw from; given_library reads the file")
    mean, concentration = rng.uniform(*epochs.mean), rng.uniform(*epochs.concentration)
    return drawn_runs(mean, concentration, max(1, round(rng.uniform(*epochs.runs))), rng)


def _draw_one(
    epochs: BetaEpochs | LognormalEpochs | GeometricEpochs | TwoPointEpochs, rng: Generator
) -> EpochDistribution:
    if isinstance(epochs, BetaEpochs):
        return beta_distribution(rng.uniform(*epochs.mean), rng.uniform(*epochs.concentration), epochs.bins)
    if isinstance(epochs, LognormalEpochs):
        return lognormal_distribution(rng.uniform(*epochs.median), rng.uniform(*epochs.sigma), epochs.bins)
    if isinstance(epochs, GeometricEpochs):
        return geometric_distribution(rng.uniform(*epochs.stop_rate), epochs.bins)
    return two_point_distribution(rng.uniform(*epochs.early_at), rng.uniform(*epochs.early_probability))
