"""The factors on times with which policies plan on shared GPUs: with the worst co-runners that there can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.mechanisms.shares.model import UtilisationModel
from gpusched_env.model import Configuration
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import share_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


def planned_slowdown(instance: Instance) -> NDArray[np.float64]:
    """Return the factor on every application's time with which policies plan, (A, C): 1 except on shared GPUs.

    It is the worst possible factor: with as many co-runners as fit, all of the worst application that may share a GPU
    of that type.
    """
    planned = np.ones((len(instance.jobs.applications), len(instance.configurations)))
    model = instance.find("shares")
    if model is None:
        return planned
    types = instance.type_of_configuration
    shared = np.array([c.kind == "shared" for c in instance.configurations])
    for column in np.flatnonzero(shared):
        beside = _sharing_applications(instance, shared & (types == types[column]))
        if isinstance(model, UtilisationModel):
            utilisation, most = (
                model.utilisation[types[column]],
                model.utilisation[types[column]][beside].max(initial=0.0),
            )
            planned[:, column] = _worst_by_utilisation(model, instance, int(column), utilisation, float(most))
            planned[:, column] = _worst_with_memory(model, instance, int(column), planned[:, column])
            continue
        others = _most_others(instance.configurations[column], instance.configurations)
        slowdown = model.slowdown[types[column]][:, beside]
        planned[:, column] = 1.0 + others * (slowdown.max(axis=1, initial=1.0) - 1.0)
    return planned


def _worst_by_utilisation(
    model: UtilisationModel, instance: Instance, column: int, utilisation: NDArray[np.float64], most: float
) -> NDArray[np.float64]:
    """Return the worst factor of every application on a share, with co-runners of utilisations `most`, (A,)."""
    own = instance.configurations[column]
    free = at.UNITS - share_units(own.share)
    on_it = [c for c in instance.configurations if c.kind == "shared" and c.gpu_type == own.gpu_type]
    fitting = [c for c in on_it if share_units(c.share) <= free]
    if any(c.priority > own.priority for c in fitting):
        least = min((share_units(c.share) for c in fitting), default=at.UNITS)
        return np.maximum(1.0, utilisation + (free // least) * most) / model.least_speed
    equals = [share_units(c.share) for c in fitting if c.priority == own.priority]
    others = free // min(equals) if equals else 0
    lost = model.overhead if any(c.priority < own.priority for c in fitting) else 0.0
    return np.maximum(1.0, utilisation + others * most) * (1.0 + lost)


def _worst_with_memory(
    model: UtilisationModel, instance: Instance, column: int, factor: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the worst factors, (A,), with no memory where others may take it, from those of computing."""
    own = instance.configurations[column]
    others = [
        c.priority
        for c in instance.configurations
        if c.kind == "shared"
        and c.gpu_type == own.gpu_type
        and share_units(c.share) <= at.UNITS - share_units(own.share)
    ]
    if model.memory is None or all(priority < own.priority for priority in others):
        return factor
    v = int(instance.type_of_configuration[column])
    return np.maximum(factor, 1.0 / model.least_speed) + model.memory.need_gib * model.memory.added()[v]


def _sharing_applications(instance: Instance, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    may_share = np.isfinite(instance.jobs.seconds_per_epoch[:, columns]).any(axis=1)
    return np.unique(instance.jobs.application[may_share])


def _most_others(configuration: Configuration, configurations: tuple[Configuration, ...]) -> int:
    shares = [c.share for c in configurations if c.kind == "shared" and c.gpu_type == configuration.gpu_type]
    return (at.UNITS - share_units(configuration.share)) // share_units(min(shares))
