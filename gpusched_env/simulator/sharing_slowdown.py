"""Slow-downs of co-runners on one GPU, by pairs or by utilisation, and the speed with which policies plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model import Configuration, Instance, Interference, UtilisationModel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

ROUNDED = 1e-12
"""Part of a minimum by which a limit may be below it by rounding."""


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


class Residents(NamedTuple):
    """The jobs on every shared GPU, as lists of places; a job has a place on each of its GPUs.

    Attributes:
        last: The last place on GPU g of node n, at n · G + g, (N · G,); -1: none.
        before: For every place the one before it on its GPU, (P,); -1: none.
        holder: The number in `active` of its job, (P,).
    """

    last: Ints
    before: Ints
    holder: Ints


@kernel
def residents(board: Board) -> Residents:
    """List the active jobs on every shared GPU."""
    jobs, nodes, count, active, configs = board.jobs, board.nodes, board.count, board.active, board.facts.configs
    per_node, places = (nodes.shape[1] - at.NODE_COLUMNS) // 2, 0
    for i in range(count[at.ACTIVE]):
        if jobs[active[i], at.CONFIG] >= 0 and jobs[active[i], at.SLOT] >= 0:
            config = int(jobs[active[i], at.CONFIG])
            places += configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES]
    on = Residents(np.full(nodes.shape[0] * per_node, -1), np.full(places, -1), np.empty(places, dtype=np.int64))
    places = 0
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] < 0 or jobs[job, at.SLOT] < 0:
            continue
        config, node, slot = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
        for n in range(node, node + configs[config, at.CONFIG_NODES]):
            for gpu in range(n * per_node + slot, n * per_node + slot + configs[config, at.CONFIG_GPUS]):
                on.before[places], on.holder[places] = on.last[gpu], i
                on.last[gpu] = places
                places += 1
    return on


@lean_kernel
def filled_part(board: Board, gpu: int, on: Residents, job: int, config: int) -> float:
    """Return the part that others can use of what the highest priority on a GPU leaves.

    Args:
        board: The run.
        gpu: The GPU, n · G + g.
        on: The jobs on every GPU.
        job: A job that counts with the share `config`, whether it is on the GPU or not; -1: none.
        config: That share.
    """
    jobs, active, configs, filled = board.jobs, board.active, board.facts.configs, board.facts.filled
    if filled.shape[0] == 0:
        return board.facts.sharing[at.FILLED]
    own = configs[config, at.CONFIG_PRIORITY] if job >= 0 else -1
    top, others, place = own, 0, on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job:
            top = max(top, configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY])
        place = on.before[place]
    place = on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job and configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY] < top:
            others += 1
        place = on.before[place]
    others += 1 if job >= 0 and own < top else 0
    column = min(max(others, 1), filled.shape[1]) - 1
    part = filled[int(jobs[job, at.APPLICATION]), column] if job >= 0 and own == top else 1.0
    place = on.last[gpu]
    while place >= 0:
        other = active[on.holder[place]]
        if other != job and configs[int(jobs[other, at.CONFIG]), at.CONFIG_PRIORITY] == top:
            part = min(part, filled[int(jobs[other, at.APPLICATION]), column])
        place = on.before[place]
    return part


@lean_kernel
def speed_by_utilisation(demand: Floats, priority: int, filled: float, sharing: Floats) -> float:
    """Return the speed of the jobs of a priority on a GPU, 1 as alone.

    Args:
        demand: Sum of the utilisations of the jobs on it, by priority, (PRIORITIES,).
        priority: The priority, which some job has.
        filled: Part of what the highest priority leaves that others can use (`filled_part`).
        sharing: The numbers of the model, (SHARING_COLUMNS,).
    """
    top, lowest, others = -1, 0, 0.0
    for p in range(demand.shape[0] - 1, -1, -1):
        if demand[p] > 0.0:
            lowest = p
            if top < 0:
                top = p
            else:
                others += demand[p]
    left, speed = 1.0, 1.0
    for p in range(top, priority - 1, -1):
        if demand[p] == 0.0:
            continue
        part = min(1.0, left / demand[p])
        speed = part / (1.0 + sharing[at.OVERHEAD]) if p > lowest else part
        if p < top:
            speed = max(speed, sharing[at.LEAST_SPEED] / max(1.0, others))
        left -= demand[p] * part
        if p == top:
            left *= filled
    return speed


@kernel
def write_utilisation_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write true seconds per epoch over planned ones of the jobs on shared GPUs, by the slowest of a job's GPUs."""
    jobs, active, planned = board.jobs, board.active, board.facts.planned
    on, demand = residents(board), np.zeros(at.PRIORITIES)
    for place in range(on.holder.shape[0]):
        slowdowns[on.holder[place]] = 0.0
    for gpu in range(on.last.shape[0]):
        if on.last[gpu] < 0:
            continue
        write_demand(board, gpu, on, demand)
        place = on.last[gpu]
        while place >= 0:
            job = active[on.holder[place]]
            config = int(jobs[job, at.CONFIG])
            speed = speed_among(board, job, config, gpu, on, demand)
            slowdown = 1.0 / (speed * planned[int(jobs[job, at.APPLICATION]), config])
            slowdowns[on.holder[place]] = max(slowdowns[on.holder[place]], slowdown)
            place = on.before[place]


@lean_kernel
def speed_among(board: Board, job: int, config: int, gpu: int, on: Residents, demand: Floats) -> float:
    """Return the speed of `job` with a share of a GPU beside the jobs on it, 1 as alone.

    Args:
        job: The job; it need not be on the GPU.
        gpu: The GPU, n · G + g.
        demand: Sum of the utilisations of the jobs on it, its own included, by priority, (PRIORITIES,).
    """
    speed = _computing_speed(board, job, config, gpu, on, demand)
    return speed if board.facts.memory.shape[0] == 0 else _with_memory(board, job, config, gpu, on, speed)


@lean_kernel
def _with_memory(board: Board, job: int, config: int, gpu: int, on: Residents, speed: float) -> float:
    """Return the speed of `job`, `speed` by computing alone, with the memory that its co-runners leave."""
    facts, v, own = board.facts, board.facts.configs[config, at.CONFIG_TYPE], int(board.jobs[job, at.APPLICATION])
    need, limit = facts.memory[v, own, at.NEED], memory_limit(board, job, config, gpu, on)
    if limit < facts.memory[v, own, at.LEAST] * (1.0 - ROUNDED):
        return min(speed, facts.sharing[at.LEAST_SPEED])
    return 1.0 / (1.0 / speed + (need - limit) * facts.memory[v, own, at.ADDED])


@lean_kernel
def memory_limit(board: Board, job: int, config: int, gpu: int, on: Residents) -> float:
    """Return the memory that `job` has, or would have, with a share of a GPU beside the jobs on it [GiB]."""
    facts, v = board.facts, board.facts.configs[config, at.CONFIG_TYPE]
    need, priority = (
        facts.memory[v, int(board.jobs[job, at.APPLICATION]), at.NEED],
        facts.configs[config, at.CONFIG_PRIORITY],
    )
    above, equals, place = 0.0, need, on.last[gpu]
    while place >= 0:
        other = board.active[on.holder[place]]
        its = facts.configs[int(board.jobs[other, at.CONFIG]), at.CONFIG_PRIORITY]
        if other != job and its >= priority:
            wanted = facts.memory[v, int(board.jobs[other, at.APPLICATION]), at.NEED]
            above, equals = (above + wanted, equals) if its > priority else (above, equals + wanted)
        place = on.before[place]
    left = max(0.0, facts.gpu_gib[v] - above)
    return need if equals <= left else need * left / equals


@lean_kernel
def _computing_speed(board: Board, job: int, config: int, gpu: int, on: Residents, demand: Floats) -> float:
    """Return `speed_among` where memory is no matter."""
    priority, below = board.facts.configs[config, at.CONFIG_PRIORITY], board.facts.below
    above = 0.0
    for p in range(priority + 1, at.PRIORITIES):
        above += demand[p]
    if below.shape[0] == 0 or above == 0.0:
        filled = filled_part(board, gpu, on, job, config)
        return speed_by_utilisation(demand, priority, filled, board.facts.sharing)
    v, own, factor = board.facts.configs[config, at.CONFIG_TYPE], int(board.jobs[job, at.APPLICATION]), 1.0
    place = on.last[gpu]
    while place >= 0:
        other = board.active[on.holder[place]]
        if other != job:
            factor += below[v, own, int(board.jobs[other, at.APPLICATION])] - 1.0
        place = on.before[place]
    return 1.0 / factor


@lean_kernel
def write_demand(board: Board, gpu: int, on: Residents, demand: Floats) -> None:
    """Write the sum of the utilisations of the jobs on a GPU, n · G + g, by priority."""
    jobs, active, configs, utilisation = board.jobs, board.active, board.facts.configs, board.facts.utilisation
    demand[:] = 0.0
    place = on.last[gpu]
    while place >= 0:
        job = active[on.holder[place]]
        config = int(jobs[job, at.CONFIG])
        own = utilisation[configs[config, at.CONFIG_TYPE], int(jobs[job, at.APPLICATION])]
        demand[configs[config, at.CONFIG_PRIORITY]] += own
        place = on.before[place]


@kernel
def write_pair_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write the speeds of the jobs on shared GPUs: each takes 1 + Σ (slow-down - 1) times as long as alone."""
    jobs, active, configs = board.jobs, board.active, board.facts.configs
    slowdown, planned = board.facts.slowdown, board.facts.planned
    on = residents(board)
    for place in range(on.holder.shape[0]):
        slowdowns[on.holder[place]] = 0.0
    for gpu in range(on.last.shape[0]):
        place = on.last[gpu]
        while place >= 0:
            i = on.holder[place]
            config, own = int(jobs[active[i], at.CONFIG]), int(jobs[active[i], at.APPLICATION])
            factor, other = 1.0, on.last[gpu]
            while other >= 0:
                if on.holder[other] != i:
                    beside = int(jobs[active[on.holder[other]], at.APPLICATION])
                    factor += slowdown[configs[config, at.CONFIG_TYPE], own, beside] - 1.0
                other = on.before[other]
            slowdowns[i] = max(slowdowns[i], factor / planned[own, config])
            place = on.before[place]
