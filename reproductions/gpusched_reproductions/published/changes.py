"""Pure changes of an instance, for the experiments on what the saving depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, Instance, JobTable, checks


def with_times(instance: Instance, seconds: NDArray[np.float64]) -> Instance:
    """Return the instance with other times of an epoch [s], (J, C).

    Due dates keep their place between the job's least and greatest execution time on whole GPUs of one node, which are
    other times now.
    """
    jobs = instance.jobs
    whole = np.array([c.kind == "single-node" for c in instance.configurations])
    old_least, old_greatest = _range_s(jobs.seconds_per_epoch[:, whole], jobs.max_epochs)
    new_least, new_greatest = _range_s(seconds[:, whole], jobs.max_epochs)
    width = old_greatest - old_least
    place = np.divide(jobs.due_s - jobs.submission_s - old_least, width, out=np.zeros(len(jobs)), where=width > 0)
    due = jobs.submission_s + np.maximum(0.0, new_least + place * (new_greatest - new_least))
    return replace(instance, jobs=replace(jobs, seconds_per_epoch=seconds, due_s=due))


def _range_s(
    seconds: NDArray[np.float64], max_epochs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest execution time of all epochs, of every job [s]."""
    greatest = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    return seconds.min(axis=1) * max_epochs, greatest * max_epochs


@dataclass(frozen=True, slots=True)
class Slower:
    """Let everything take `factor` times as long on one GPU type; due dates keep their place (`with_times`).

    Args:
        gpu_type: Name of the type.
        factor: Factor on its times, > 0.

    Raises:
        InputError: The factor is out of its range; or, when it is applied, the instance has no such type.
    """

    gpu_type: str
    factor: float

    def __post_init__(self) -> None:
        checks.positive("factor", self.factor)

    def __call__(self, instance: Instance) -> Instance:
        names = [c.gpu_type for c in instance.configurations]
        if self.gpu_type not in names:
            raise InputError("gpu_type", self.gpu_type, f"one of {', '.join(dict.fromkeys(names))}")
        factors = np.array([self.factor if name == self.gpu_type else 1.0 for name in names])
        return with_times(instance, instance.jobs.seconds_per_epoch * factors)


@dataclass(frozen=True, slots=True)
class BasePower:
    """Let every node draw more while it is on, whatever is busy on it.

    Args:
        share: How much, in units of what the node draws with one busy GPU, ≥ 0.

    Raises:
        InputError: The share is out of its range.
    """

    share: float

    def __post_init__(self) -> None:
        checks.not_negative("share", self.share)

    def __call__(self, instance: Instance) -> Instance:
        types = []
        for v in instance.gpu_types:
            extra = self.share * v.power_w(1)
            powers = tuple(v.power_w(busy) + extra for busy in range(1, v.max_gpus_per_node + 1))
            types.append(replace(v, node_power_w=powers))
        return replace(instance, gpu_types=tuple(types))


_EXPONENT_STREAM = 0xA1FA  # beside the instance's seed: the exponents have a stream of their own


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Replace every measured speed-up by a power law: on each GPU type τ(g) = τ(g₀) · (g₀/g)^α.

    g₀ is the least number of GPUs that the job may use on the type; its time stays, and so does what is closed. Times
    on a share of a GPU stay too. Each job draws its α uniformly. Due dates keep their place between the job's
    least and greatest execution time on whole GPUs of one node, which are other times now.

    Args:
        least: Least exponent, ≥ 0: 0 means that more GPUs do not help at all, 1 that twice the GPUs halve the time.
        greatest: Greatest exponent, ≥ `least`.

    Raises:
        InputError: An exponent is negative or not finite, or the greatest lies below the least.
    """

    least: float
    greatest: float

    def __post_init__(self) -> None:
        checks.not_negative("least", self.least)
        if checks.not_negative("greatest", self.greatest) < self.least:
            raise InputError("greatest", self.greatest, f"a number >= least ({self.least})")

    def __call__(self, instance: Instance) -> Instance:
        rng = np.random.default_rng([instance.seed, _EXPONENT_STREAM])
        return with_times(instance, self._seconds(instance, rng.uniform(self.least, self.greatest, len(instance.jobs))))

    def _seconds(self, instance: Instance, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the new τ, (J, C)."""
        seconds = instance.jobs.seconds_per_epoch.copy()
        gpus = np.array([c.gpus for c in instance.configurations])
        types = instance.type_of_configuration
        for v in range(len(instance.gpu_types)):
            columns = np.flatnonzero((types == v) & (gpus >= 1.0))
            held = np.where(np.isfinite(seconds[:, columns]), gpus[columns], np.inf)
            for job in np.flatnonzero(np.isfinite(held).any(axis=1)):
                open_, first = np.isfinite(held[job]), int(np.argmin(held[job]))
                ratio = held[job, first] / held[job, open_]
                seconds[job, columns[open_]] = seconds[job, columns[first]] * ratio ** exponents[job]
        return seconds


_MISSPECIFIED_STREAM = 0x701D  # beside the instance's seed: which job has whose distribution has a stream of its own
_BINS = 100

_Misspecified = tuple[tuple[EpochDistribution, ...], "NDArray[np.int64]"]


def _optimistic(jobs: JobTable, _: int) -> _Misspecified:
    return tuple(EpochDistribution(d.edges, d.survival**2, d.family) for d in jobs.distributions), jobs.distribution


def _pessimistic(jobs: JobTable, _: int) -> _Misspecified:
    return tuple(EpochDistribution(d.edges, d.survival**0.5, d.family) for d in jobs.distributions), jobs.distribution


def _uniform(jobs: JobTable, _: int) -> _Misspecified:
    flat = EpochDistribution.from_masses(np.ones(_BINS), family="uniform")
    return (flat,), np.zeros(len(jobs), dtype=np.int64)


def _average(jobs: JobTable, _: int) -> _Misspecified:
    edges = np.unique(np.concatenate([d.edges for d in jobs.distributions]))
    share = np.bincount(jobs.distribution, minlength=len(jobs.distributions)) / len(jobs)
    survival = np.zeros(len(edges) - 1)
    for weight, d in zip(share, jobs.distributions, strict=True):
        survival += weight * d.survival[np.searchsorted(d.edges, edges[:-1], side="right") - 1]
    # Weights sum to 1 but for rounding, and the survival of all must begin with 1 exactly.
    return (EpochDistribution(edges, survival / survival[0], "average"),), np.zeros(len(jobs), dtype=np.int64)


def _shuffled(jobs: JobTable, seed: int) -> _Misspecified:
    return jobs.distributions, np.random.default_rng([seed, _MISSPECIFIED_STREAM]).permutation(jobs.distribution)


def _worst_case(jobs: JobTable, _: int) -> _Misspecified:
    return (EpochDistribution.certain(),), np.zeros(len(jobs), dtype=np.int64)


_WAYS: dict[str, Callable[[JobTable, int], _Misspecified]] = {
    "optimistic": _optimistic,
    "pessimistic": _pessimistic,
    "shuffled": _shuffled,
    "average": _average,
    "uniform": _uniform,
    "worst case": _worst_case,
}

WAYS = tuple(_WAYS)
"""Ways of misspecifying, from the mildest to the bluntest."""


@dataclass(frozen=True, slots=True)
class Misspecified:
    """Tell policies something else than what jobs follow: the epochs needed stay as they were drawn.

    Args:
        way: *optimistic*: S², jobs are said to stop earlier than they do (twice the hazard). *pessimistic*: √S, half
            the hazard. *shuffled*: every job has another job's distribution. *average*: every job has the mean
            of all. *uniform*: every job is planned to stop anywhere in (0, E]. *worst case*: that it needs all E.

    Raises:
        InputError: There is no such way.
    """

    way: str

    def __post_init__(self) -> None:
        if self.way not in _WAYS:
            raise InputError("way", self.way, f"one of {', '.join(WAYS)}")

    def __call__(self, instance: Instance) -> Instance:
        distributions, index = _WAYS[self.way](instance.jobs, instance.seed)
        return replace(instance, jobs=replace(instance.jobs, distributions=distributions, distribution=index))
