"""What jobs on one GPU do to one another as tables, and the pace with which policies plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Configuration, Instance


def slowdown_table(instance: Instance) -> NDArray[np.float64]:
    """Give the slow-downs of pairs, (V, A, A); (0, 0, 0) if the instance has no interference model."""
    return np.zeros((0, 0, 0)) if instance.interference is None else instance.interference.slowdown.copy()


def planned_slowdown(instance: Instance) -> NDArray[np.float64]:
    """Give the factor on every application's time with which policies plan, (A, C): 1 but on shared GPUs.

    It is the worst that there can be: as many others as have room beside it, all of the worst application that may
    share a GPU of that type.
    """
    planned = np.ones((len(instance.jobs.applications), len(instance.configurations)))
    if instance.interference is None:
        return planned
    types = instance.type_of_configuration
    shared = np.array([c.kind == "shared" for c in instance.configurations])
    for column in np.flatnonzero(shared):
        others = _most_others(instance.configurations[column], instance.configurations)
        beside = _sharing_applications(instance, shared & (types == types[column]))
        slowdown = instance.interference.slowdown[types[column]][:, beside]
        planned[:, column] = 1.0 + others * (slowdown.max(axis=1, initial=1.0) - 1.0)
    return planned


def _sharing_applications(instance: Instance, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List the applications of the jobs that may use one of the configurations `columns`."""
    may_share = np.isfinite(instance.jobs.seconds_per_epoch[:, columns]).any(axis=1)
    return np.unique(instance.jobs.application[may_share])


def _most_others(configuration: Configuration, configurations: tuple[Configuration, ...]) -> int:
    """Count the most jobs that have room on a GPU beside one with this share."""
    shares = [c.share for c in configurations if c.kind == "shared" and c.gpu_type == configuration.gpu_type]
    return (at.UNITS - share_units(configuration.share)) // share_units(min(shares))


def share_units(share: float) -> int:
    """Give a share of a GPU in units, rounded down: shares that sum to 1 always fit together."""
    return max(1, int(share * at.UNITS)) if share < 1.0 else 0
