"""Wrong distributions: policies are told one, jobs follow another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpusched_env.model import Instance, JobTable

_STREAM = 0x701D  # beside the instance's seed: who is told whose distribution has a stream of its own
_BINS = 100

_Told = tuple[tuple[EpochDistribution, ...], "NDArray[np.int64]"]


def _optimistic(jobs: JobTable, _: int) -> _Told:
    return tuple(EpochDistribution(d.edges, d.survival**2, d.family) for d in jobs.distributions), jobs.distribution


def _pessimistic(jobs: JobTable, _: int) -> _Told:
    return tuple(EpochDistribution(d.edges, d.survival**0.5, d.family) for d in jobs.distributions), jobs.distribution


def _uniform(jobs: JobTable, _: int) -> _Told:
    flat = EpochDistribution.from_masses(np.ones(_BINS), family="uniform")
    return (flat,), np.zeros(len(jobs), dtype=np.int64)


def _average(jobs: JobTable, _: int) -> _Told:
    edges = np.unique(np.concatenate([d.edges for d in jobs.distributions]))
    share = np.bincount(jobs.distribution, minlength=len(jobs.distributions)) / len(jobs)
    survival = np.zeros(len(edges) - 1)
    for weight, d in zip(share, jobs.distributions, strict=True):
        survival += weight * d.survival[np.searchsorted(d.edges, edges[:-1], side="right") - 1]
    # Weights sum to 1 but for rounding, and the survival of all must begin with 1 exactly.
    return (EpochDistribution(edges, survival / survival[0], "average"),), np.zeros(len(jobs), dtype=np.int64)


def _shuffled(jobs: JobTable, seed: int) -> _Told:
    return jobs.distributions, np.random.default_rng([seed, _STREAM]).permutation(jobs.distribution)


def _worst_case(jobs: JobTable, _: int) -> _Told:
    certain = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]), "certain")
    return (certain,), np.zeros(len(jobs), dtype=np.int64)


_WAYS: dict[str, Callable[[JobTable, int], _Told]] = {
    "optimistic": _optimistic,
    "pessimistic": _pessimistic,
    "shuffled": _shuffled,
    "average": _average,
    "uniform": _uniform,
    "worst case": _worst_case,
}

WAYS = tuple(_WAYS)
"""Ways of being told wrong, from the mildest to the bluntest."""


@dataclass(frozen=True, slots=True)
class Told:
    """Tell policies something else than what jobs follow: the epochs needed stay as they were drawn.

    Args:
        way: *optimistic*: S², jobs are said to stop earlier than they do (twice the hazard). *pessimistic*: √S, half
            the hazard. *shuffled*: every job is told another job's distribution. *average*: every job is told the mean
            of all. *uniform*: every job is told that it stops anywhere in (0, E]. *worst case*: that it needs all E.

    Raises:
        InputError: There is no such way.
    """

    way: str

    def __post_init__(self) -> None:
        if self.way not in _WAYS:
            raise InputError("way", self.way, f"one of {', '.join(WAYS)}")

    def __call__(self, instance: Instance) -> Instance:
        """Give the instance with other distributions and the same epochs needed."""
        distributions, index = _WAYS[self.way](instance.jobs, instance.seed)
        return replace(instance, jobs=replace(instance.jobs, distributions=distributions, distribution=index))
