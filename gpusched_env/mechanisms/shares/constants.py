"""The constants of shared GPUs: the model of interference, and the memory that jobs need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.mechanisms.shares.model import CoRunners, Interference, UtilisationModel
from gpusched_env.mechanisms.shares.planned import planned_slowdown
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class ShareFacts(Facts):
    """Adds how jobs on one GPU slow one another down.

    Attributes:
        slowdown: Slow-downs of pairs of applications on one GPU, (V, A, A), A applications; (0, 0, 0) without a model.
        utilisation: Part of the time for which an application keeps a GPU busy, (V, A); (0, 0) if GPUs are not shared
            by utilisation.
        filled: Part of what an application of the highest priority leaves that M others can use, (A, M); (0, 0) if it
            is the same for all.
        sharing: Numbers of the interference model, (SHARING_COLUMNS,).
        memory: What applications need of a GPU whose memory moves between jobs, (V, A, MEMORY_COLUMNS); (0, 0, ..): it
            does not.
        gpu_gib: Memory of a GPU [GiB], (V,).
    """

    slowdown: Annotated[Floats, 3]
    utilisation: Annotated[Floats, 2]
    filled: Annotated[Floats, 2]
    sharing: Annotated[Floats, 1]
    memory: Annotated[Floats, 3]
    gpu_gib: Annotated[Floats, 1]


def constants(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the constants of the runs of an instance, and the factors with which policies plan on shares."""
    return {
        "slowdown": slowdown_table(instance),
        "utilisation": utilisation_table(instance),
        "filled": filled_table(instance),
        "sharing": sharing_numbers(instance),
        "memory": memory_table(instance),
        "gpu_gib": np.array([v.memory_gib for v in instance.gpu_types]),
        "planned": planned_slowdown(instance),
    }


def slowdown_table(instance: Instance) -> NDArray[np.float64]:
    """Return the slow-downs of pairs, (V, A, A); (0, 0, 0) if the instance has no such model."""
    model = instance.of(Interference)
    return model.slowdown.copy() if model is not None else np.zeros((0, 0, 0))


def utilisation_table(instance: Instance) -> NDArray[np.float64]:
    """Return the utilisations, (V, A); (0, 0) if GPUs are not shared by utilisation."""
    model = instance.of(UtilisationModel)
    return model.utilisation.copy() if model is not None else np.zeros((0, 0))


def filled_table(instance: Instance) -> NDArray[np.float64]:
    """Return the part that others can use by application and number of others, (A, M); (0, 0) without such a table."""
    model = instance.of(UtilisationModel)
    table = model.filled if model is not None else None
    return table.copy() if isinstance(table, np.ndarray) else np.zeros((0, 0))


def memory_table(instance: Instance) -> NDArray[np.float64]:
    """Return what applications need of a GPU whose memory moves, (V, A, MEMORY_COLUMNS); (0, 0, ..): it does not."""
    model = instance.of(UtilisationModel)
    own = model.memory if model is not None else None
    if own is None:
        return np.zeros((0, 0, at.MEMORY_COLUMNS))
    table = np.empty((*own.iteration_s.shape, at.MEMORY_COLUMNS))
    table[:, :, at.NEED], table[:, :, at.LEAST], table[:, :, at.ADDED] = own.need_gib, own.least_gib, own.added()
    return table


def sharing_numbers(instance: Instance) -> NDArray[np.float64]:
    """Return the numbers of the interference model, (SHARING_COLUMNS,)."""
    numbers, model = np.zeros(at.SHARING_COLUMNS), instance.of(CoRunners)
    numbers[at.FASTEST] = 0.0 if model is None else float(model.fastest)
    if isinstance(model, UtilisationModel):
        numbers[[at.OVERHEAD, at.LEAST_SPEED, at.PROFILE_S]] = model.overhead, model.least_speed, model.profile_s
        numbers[at.FILLED] = 0.0 if isinstance(model.filled, np.ndarray) else model.filled
        numbers[at.ADAPT_S] = 0.0 if model.memory is None else model.memory.adapt_s
    return numbers
