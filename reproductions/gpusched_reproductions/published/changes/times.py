"""Other execution times, with due dates that keep their place among them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


def with_times(instance: Instance, seconds: NDArray[np.float64]) -> Instance:
    """Give the instance with other times of an epoch [s], (J, C).

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
    """Give the least and the greatest execution time of all epochs, of every job [s]."""
    greatest = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    return seconds.min(axis=1) * max_epochs, greatest * max_epochs
