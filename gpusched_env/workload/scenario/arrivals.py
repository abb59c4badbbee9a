"""The `arrivals` section of a scenario, and when jobs are submitted: by distributions, or by profiles of a day."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from pydantic import model_validator

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.workload.scenario.settings import Count, Duration, Positive, Settings, setting
from gpusched_env.workload.tables.applications import WEEK_H, ArrivalProfile, arrival_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray


HOUR_S = 3600.0
LONGEST_PROFILED_S = 1e10
LONGEST_PROFILED = "1e10 s (300 years)"
"""The same in words: every hour of it is drawn."""


def profiled_times(profile: ArrivalProfile, mean_gap_s: float, jobs: int, rng: Generator) -> NDArray[np.float64]:
    """Draw submission times [s], (jobs,), the first at 0, from a week that begins at an hour drawn uniformly.

    In hour h of the week the rate is `factors[h]` · G / `mean_gap_s`. G is lognormal with mean 1 and the profile's
    variation; its logarithms follow an autoregression of first order that gives G the profile's persistence.

    Returns:
        The times; all inf if they are expected to take longer than `LONGEST_PROFILED_S`.
    """
    if jobs * mean_gap_s > LONGEST_PROFILED_S:
        return np.full(jobs, np.inf)
    begin = int(rng.integers(WEEK_H))
    # A unit of work is one expected job at the mean rate; times follow from the rates of the hours.
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
    """Yield G of one week of hours after the other, each (168,).

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


ArrivalKind = Literal["high", "low", "mixed", "exponential", "poisson", "profile", "simultaneous"]

BY_GAP = ("exponential", "poisson", "profile")
"""Kinds whose mean gap is given."""
BY_SATURATION = ("high", "low", "mixed")
"""Kinds whose rate follows from the jobs' demand."""
JOBS_PER_CLUSTER = 10
"""Jobs in one of the published clusters of arrivals."""


class Arrivals(Settings):
    """When jobs are submitted."""

    kind: ArrivalKind = setting(
        "mixed", "high, low, mixed, exponential, poisson, profile, or simultaneous (all at time 0)."
    )
    rate: Positive = setting(1.0, "Factor on the rate: 2 halves all times between submissions.")
    profile: Literal["philly", "openb"] | None = setting(
        None, "Trace whose uneven arrivals kind = profile has: philly or openb."
    )
    mean_gap_s: Duration | None = setting(
        None, "Mean time between submissions [s]; only with exponential, poisson or profile."
    )
    lambda_s: Duration | None = setting(None, "The same times the number of nodes: mean gap = lambda_s / nodes [s].")
    batch: Count = setting(
        1, "Jobs that are submitted at once, at each of those times; only with exponential, poisson or profile."
    )

    @model_validator(mode="after")
    def _check_gap(self) -> Self:
        given = [name for name in ("mean_gap_s", "lambda_s") if getattr(self, name) is not None]
        if (self.kind == "profile") != (self.profile is not None):
            allowed = "philly or openb" if self.kind == "profile" else "nothing"
            raise InputError("profile", self.profile, f"{allowed} with kind = {self.kind!r}")
        if self.kind in BY_GAP:
            if not given:
                allowed = f"a number of seconds with kind = {self.kind!r}; set it, or lambda_s, but not both"
                raise InputError("mean_gap_s", None, allowed)
            if len(given) == 2:
                allowed = f"nothing beside mean_gap_s = {self.mean_gap_s}: set one of the two"
                raise InputError("lambda_s", self.lambda_s, allowed)
        elif self.batch != 1:
            raise InputError("batch", self.batch, f"1 with kind = {self.kind!r}")
        elif self.kind == "simultaneous" and self.rate != 1.0:
            raise InputError("rate", self.rate, "1 with kind = 'simultaneous': all arrive at once")
        elif given:
            allowed = f"nothing with kind = {self.kind!r}: its own rule sets the rate"
            raise InputError(given[0], getattr(self, given[0]), allowed)
        return self


def submission_times(
    arrivals: Arrivals, saturation_per_s: NDArray[np.float64], nodes: int, rng: Generator
) -> NDArray[np.float64]:
    """Draw when each job is submitted; the first one at 0.

    Args:
        saturation_per_s: λ_j [1/s] of every job: all GPUs / its least one-GPU execution time, shape (J,). Jobs like j
            that arrived so often on one GPU each would keep every GPU busy. Used by high, low and mixed.
        nodes: Number of nodes; used with `lambda_s`.

    Returns:
        Submission times [s], shape (J,); not sorted with high, low and mixed, where cluster comes after cluster.

    Raises:
        InputError: The last one comes later than `LONGEST_S`.
    """
    count = len(saturation_per_s)
    if arrivals.kind == "simultaneous":
        return np.zeros(count)
    if arrivals.kind in BY_GAP:
        batches = -(-count // arrivals.batch)
        mean = arrivals.mean_gap_s if arrivals.mean_gap_s is not None else (arrivals.lambda_s or 0.0) / nodes
        if arrivals.profile is not None:  # inf where they are too long for a profile
            times = profiled_times(arrival_profile(arrivals.profile), mean / arrivals.rate, batches, rng)
        else:
            exponential = arrivals.kind == "exponential"
            gaps = rng.exponential(mean, batches) if exponential else rng.poisson(mean, batches).astype(np.float64)
            gaps[0] = 0.0
            times = np.cumsum(gaps / arrivals.rate)
        if times[-1] > LONGEST_S:
            latest = LONGEST if arrivals.profile is None else LONGEST_PROFILED
            allowed = f"mean gaps with which the last of {count} jobs comes within {latest}"
            name = "lambda_s" if arrivals.mean_gap_s is None else "mean_gap_s"
            raise InputError(f"arrivals.{name}", getattr(arrivals, name), allowed)
        return np.repeat(times, arrivals.batch)[:count]
    return _clustered(arrivals.kind, saturation_per_s * arrivals.rate, rng)


def _clustered(kind: ArrivalKind, saturation_per_s: NDArray[np.float64], rng: Generator) -> NDArray[np.float64]:
    """Assign jobs round-robin to clusters, which come one after the other: one clock, never reset; the first at 0.

    The rate of a cluster is the mean over its jobs of λ_j / 2.5, a quarter of it where arrivals are low.
    """
    count = len(saturation_per_s)
    clusters = max(1, round(count / JOBS_PER_CLUSTER))
    cluster_of = np.arange(count) % clusters
    rate = np.bincount(cluster_of, saturation_per_s) / np.bincount(cluster_of) / 2.5
    slow = np.full(clusters, kind == "low")
    if kind == "mixed":
        slow[1::2] = True
    rate[slow] /= 4.0
    gaps = rng.standard_exponential(count) / rate[cluster_of]
    order = np.argsort(cluster_of, kind="stable")
    gaps[order[0]] = 0.0
    times = np.empty(count)
    times[order] = np.cumsum(gaps[order])
    return times
