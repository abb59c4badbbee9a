"""Arrivals as uneven as those of a trace: a Poisson process whose rate changes every hour, partly at random."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.workload.tables.arrival_profiles import WEEK_H

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.tables.arrival_profiles import ArrivalProfile

HOUR_S = 3600.0
LONGEST_PROFILED_S = 1e10
LONGEST_PROFILED = "1e10 s (300 years)"
"""The same in words: every hour of it is drawn."""


def profiled_times(profile: ArrivalProfile, mean_gap_s: float, jobs: int, rng: Generator) -> NDArray[np.float64]:
    """Draw submission times [s], (jobs,), the first at 0, from a week that begins at an hour drawn uniformly.

    In hour h of the week the rate is `factors[h]` · G / `mean_gap_s`. G is lognormal with mean 1 and the profile's
    variation; its logarithms follow an autoregression of first order that gives G the profile's persistence.

    Args:
        profile: The profile.
        mean_gap_s: Mean time between submissions over all weeks [s].
        jobs: Number of jobs.
        rng: Randomness.

    Returns:
        The times; all inf if they are expected to take longer than `LONGEST_PROFILED_S`.
    """
    if jobs * mean_gap_s > LONGEST_PROFILED_S:
        return np.full(jobs, np.inf)
    begin = int(rng.integers(WEEK_H))
    # A unit of work is one expected job at the mean rate; times follow from how fast the hours bring it.
    work = np.cumsum(rng.standard_exponential(jobs)) * (mean_gap_s / HOUR_S)
    factors = np.roll(profile.factors, -begin)
    done, weeks = 0.0, [np.zeros(1)]
    for bursts in _bursts(profile, rng):
        weeks.append(done + np.cumsum(factors * bursts))
        done = weeks[-1][-1]
        if done >= work[-1]:
            break
    brought = np.concatenate(weeks)
    hours: NDArray[np.float64] = np.interp(work, brought, np.arange(len(brought)))
    return HOUR_S * (hours - hours[0])


def _bursts(profile: ArrivalProfile, rng: Generator) -> Iterator[NDArray[np.float64]]:
    """Give G of one week of hours after the other, each (168,).

    A lognormal of mean 1 has the variance exp(σ²) − 1, and two of them whose logarithms have the correlation φ the
    covariance exp(φ σ²) − 1.
    """
    spread = np.log1p(profile.variation**2)
    kept = np.log1p(profile.persistence * profile.variation**2) / spread if spread > 0.0 else 0.0
    ago = np.subtract.outer(np.arange(WEEK_H), np.arange(WEEK_H))
    carried = np.where(ago >= 0, kept ** np.maximum(ago, 0), 0.0)  # what is left of each hour's noise in later ones
    last = rng.standard_normal()
    for _ in count():
        noise = np.sqrt(1.0 - kept**2) * rng.standard_normal(WEEK_H)
        noise[0] += kept * last
        level = carried @ noise
        last = level[-1]
        yield np.exp(np.sqrt(spread) * level - spread / 2.0)
