"""Synthetic speed-ups: g GPUs are g^α times as fast as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_reproductions.published.changes.times import with_times

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
        rng = np.random.default_rng([instance.seed, _STREAM])
        return with_times(instance, self._seconds(instance, rng.uniform(self.least, self.greatest, len(instance.jobs))))

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
