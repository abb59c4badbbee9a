"""Synthetic speed-ups: g GPUs are g^α times as fast as one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

_STREAM = 0xA1FA  # beside the instance's seed: the exponents have a stream of their own


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
        """Give the instance with other times and due dates."""
        jobs = instance.jobs
        rng = np.random.default_rng([instance.seed, _STREAM])
        seconds = self._seconds(instance, rng.uniform(self.least, self.greatest, len(jobs)))
        whole = np.array([c.kind == "single-node" for c in instance.configurations])
        old_least, old_greatest = _range_s(jobs.seconds_per_epoch[:, whole], jobs.max_epochs)
        new_least, new_greatest = _range_s(seconds[:, whole], jobs.max_epochs)
        width = old_greatest - old_least
        place = np.divide(jobs.due_s - jobs.submission_s - old_least, width, out=np.zeros(len(jobs)), where=width > 0)
        due = jobs.submission_s + np.maximum(0.0, new_least + place * (new_greatest - new_least))
        return replace(instance, jobs=replace(jobs, seconds_per_epoch=seconds, due_s=due))

    def _seconds(self, instance: Instance, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the new τ, (J, C)."""
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


def _range_s(
    seconds: NDArray[np.float64], max_epochs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the least and the greatest execution time of all epochs, of every job [s]."""
    greatest = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    return seconds.min(axis=1) * max_epochs, greatest * max_epochs
