"""The constants of a run as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model import Configuration, Instance, Interference, UtilisationModel
from gpusched_env.model.rates import kilowatts, saved_kilowatts
from gpusched_env.model.synchronisation import BACKENDS
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def facts_of(instance: Instance) -> Facts:
    """Make the constants of the runs of an instance."""
    configurations = instance.configurations
    configs = np.zeros((len(configurations), at.CONFIG_COLUMNS), dtype=np.int64)
    configs[:, at.CONFIG_TYPE] = instance.type_of_configuration
    configs[:, at.CONFIG_CONSOLIDATED] = instance.consolidated
    configs[:, at.CONFIG_UNLIMITED] = instance.unlimited
    for row, configuration in zip(configs, configurations, strict=True):
        units = share_units(configuration.share)
        row[at.CONFIG_GPUS] = configuration.gpus_per_node
        row[at.CONFIG_NODES] = configuration.nodes
        row[at.CONFIG_UNITS] = units
        row[at.CONFIG_PRIORITY] = configuration.priority
        row[at.CONFIG_SPREAD] = configuration.spread
        row[at.CONFIG_SIZE] = (units or at.UNITS) * configuration.gpus_per_node * configuration.nodes
    return Facts(
        configs=configs,
        shares=np.array([c.share for c in configurations]),
        kilowatts=kilowatts(instance),
        slowdown=slowdown_table(instance),
        utilisation=utilisation_table(instance),
        filled=filled_table(instance),
        sharing=sharing_numbers(instance),
        below=below_table(instance),
        memory=memory_table(instance),
        gpu_gib=np.array([v.memory_gib for v in instance.gpu_types]),
        idle_saving=idle_saving_kilowatts(instance),
        saved_kw=saved_kilowatts(instance),
        planned=planned_slowdown(instance),
        iteration=iteration_table(instance),
        network=network_numbers(instance),
        site=site_numbers(instance),
    )


def site_numbers(instance: Instance) -> NDArray[np.float64]:
    cap = instance.find("cap")
    return np.empty(0) if cap is None else np.array([np.inf if cap.is_hard else cap.soft_eur_per_kwh])


def iteration_table(instance: Instance) -> NDArray[np.float64]:
    """Return how long iterations compute, synchronise, and do so inside a machine [s], (3, V, A); else (0, 0, 0)."""
    own = instance.synchronisation
    return np.zeros((0, 0, 0)) if own is None else np.stack([own.compute_s, own.sync_s, own.known_inside_s])


def network_numbers(instance: Instance) -> NDArray[np.float64]:
    own = instance.synchronisation
    if own is None:
        return np.zeros(0)
    numbers = np.zeros(at.NETWORK_COLUMNS)
    numbers[at.BACKEND], numbers[at.CPU_MACHINES] = BACKENDS.index(own.backend), own.cpu_machines
    numbers[at.CPU_KILOWATTS] = own.cpu_machine_w / 1000.0
    numbers[at.BUSY_PER_NODE], numbers[at.MOST_BUSY] = own.busy(1.0), own.busy(len(instance.nodes))
    return numbers


def slowdown_table(instance: Instance) -> NDArray[np.float64]:
    """Return the slow-downs of pairs, (V, A, A); (0, 0, 0) if the instance has no such model."""
    model = instance.interference
    return model.slowdown.copy() if isinstance(model, Interference) else np.zeros((0, 0, 0))


def utilisation_table(instance: Instance) -> NDArray[np.float64]:
    """Return the utilisations, (V, A); (0, 0) if GPUs are not shared by utilisation."""
    model = instance.interference
    return model.utilisation.copy() if isinstance(model, UtilisationModel) else np.zeros((0, 0))


def below_table(instance: Instance) -> NDArray[np.float64]:
    """Return the factors on times beside jobs of higher priority, (V, A, A); (0, 0, 0) where utilisations give them."""
    model = instance.interference
    below = model.below if isinstance(model, UtilisationModel) else None
    return np.zeros((0, 0, 0)) if below is None else below.copy()


def memory_table(instance: Instance) -> NDArray[np.float64]:
    """Return what applications need of a GPU whose memory moves, (V, A, MEMORY_COLUMNS); (0, 0, ..): it does not."""
    model = instance.interference
    own = model.memory if isinstance(model, UtilisationModel) else None
    if own is None:
        return np.zeros((0, 0, at.MEMORY_COLUMNS))
    table = np.empty((*own.iteration_s.shape, at.MEMORY_COLUMNS))
    table[:, :, at.NEED], table[:, :, at.LEAST], table[:, :, at.ADDED] = own.need_gib, own.least_gib, own.added()
    return table


def sharing_numbers(instance: Instance) -> NDArray[np.float64]:
    """Return the numbers of the interference model, (SHARING_COLUMNS,)."""
    numbers, model = np.zeros(at.SHARING_COLUMNS), instance.interference
    numbers[at.FASTEST] = 0.0 if model is None else float(model.fastest)
    if isinstance(model, UtilisationModel):
        numbers[[at.OVERHEAD, at.LEAST_SPEED, at.PROFILE_S]] = model.overhead, model.least_speed, model.profile_s
        numbers[at.FILLED] = 0.0 if isinstance(model.filled, np.ndarray) else model.filled
        numbers[at.ADAPT_S] = 0.0 if model.memory is None else model.memory.adapt_s
    return numbers


def filled_table(instance: Instance) -> NDArray[np.float64]:
    """Return the part that others can use by application and number of others, (A, M); (0, 0) without such a table."""
    model = instance.interference
    table = model.filled if isinstance(model, UtilisationModel) else None
    return table.copy() if isinstance(table, np.ndarray) else np.zeros((0, 0))


def idle_saving_kilowatts(instance: Instance) -> NDArray[np.float64]:
    """Return the idle-power saving of a held GPU of each type [kW], (V,).

    (0,) if GPUs that are held draw the power of busy ones.
    """
    model = instance.interference
    if not isinstance(model, UtilisationModel) or model.idle_power_w is None:
        return np.zeros(0)
    return (np.array([v.gpu_power_w for v in instance.gpu_types]) - model.idle_power_w) / 1000.0


def planned_slowdown(instance: Instance) -> NDArray[np.float64]:
    """Return the factor on every application's time with which policies plan, (A, C): 1 except on shared GPUs.

    It is the worst possible factor: with as many co-runners as fit, all of the worst application that may share a GPU
    of that type.
    """
    planned = np.ones((len(instance.jobs.applications), len(instance.configurations)))
    model = instance.interference
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
        if model.below is not None:
            others = free // min(share_units(c.share) for c in fitting)
            return 1.0 + others * (model.below[instance.type_index("", own.gpu_type)].max(axis=1) - 1.0)
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


def share_units(share: float) -> int:
    """Return a share of a GPU in units, rounded down: shares that sum to 1 always fit together."""
    return max(1, int(share * at.UNITS)) if share < 1.0 else 0
