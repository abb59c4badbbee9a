"""Slow-downs of co-runners on one GPU, by pairs or by utilisation, and the speed with which policies plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model import Configuration, Instance, Interference, UtilisationModel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board


def slowdown_table(instance: Instance) -> NDArray[np.float64]:
    """Return the slow-downs of pairs, (V, A, A); (0, 0, 0) if the instance has no such model."""
    model = instance.interference
    return model.slowdown.copy() if isinstance(model, Interference) else np.zeros((0, 0, 0))


def utilisation_table(instance: Instance) -> NDArray[np.float64]:
    """Return the utilisations, (V, A); (0, 0) if GPUs are not shared by utilisation."""
    model = instance.interference
    return model.utilisation.copy() if isinstance(model, UtilisationModel) else np.zeros((0, 0))


def sharing_numbers(instance: Instance) -> NDArray[np.float64]:
    """Return the numbers of the interference model, (SHARING_COLUMNS,)."""
    numbers, model = np.zeros(at.SHARING_COLUMNS), instance.interference
    numbers[at.FASTEST] = 0.0 if model is None else float(model.fastest)
    if isinstance(model, UtilisationModel):
        numbers[[at.OVERHEAD, at.LEAST_SPEED, at.PROFILE_S]] = model.overhead, model.least_speed, model.profile_s
        numbers[at.FILLED] = 0.0 if isinstance(model.filled, np.ndarray) else model.filled
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


def _sharing_applications(instance: Instance, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List the applications of the jobs that may use one of the configurations `columns`."""
    may_share = np.isfinite(instance.jobs.seconds_per_epoch[:, columns]).any(axis=1)
    return np.unique(instance.jobs.application[may_share])


def _most_others(configuration: Configuration, configurations: tuple[Configuration, ...]) -> int:
    """Count the most co-runners that fit on a GPU with a job of this share."""
    shares = [c.share for c in configurations if c.kind == "shared" and c.gpu_type == configuration.gpu_type]
    return (at.UNITS - share_units(configuration.share)) // share_units(min(shares))


def share_units(share: float) -> int:
    """Return a share of a GPU in units, rounded down: shares that sum to 1 always fit together."""
    return max(1, int(share * at.UNITS)) if share < 1.0 else 0


@kernel
def neighbours(board: Board) -> tuple[Ints, Ints]:
    """List the active jobs on every shared GPU, by their places in `active`.

    Returns:
        The last of them on GPU g of node n, at n · G + g, (N · G,), and for every active job the one before it on its
        GPU, (A,); -1: none.
    """
    jobs, nodes, count, active = board.jobs, board.nodes, board.count, board.active
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    last = np.full(nodes.shape[0] * per_node, -1)
    before = np.full(count[at.ACTIVE], -1)
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] >= 0 and jobs[job, at.SLOT] >= 0:
            gpu = int(jobs[job, at.NODE]) * per_node + int(jobs[job, at.SLOT])
            before[i] = last[gpu]
            last[gpu] = i
    return last, before


@lean_kernel
def filled_part(board: Board, last: int, before: Ints, job: int, config: int) -> float:
    """Return the part that others can use of what the highest priority on a GPU leaves.

    Args:
        board: The run.
        last: The last of the jobs on the GPU, a place in `active`; -1: none.
        before: The one before each job on its GPU, (A,) (`neighbours`).
        job: A job that counts with the share `config`, whether it is on the GPU or not; -1: none.
        config: That share.
    """
    jobs, active, configs, filled = board.jobs, board.active, board.facts.configs, board.facts.filled
    if filled.shape[0] == 0:
        return board.facts.sharing[at.FILLED]
    own = configs[config, at.CONFIG_PRIORITY] if job >= 0 else -1
    top, others, i = own, 0, last
    while i >= 0:
        if active[i] != job:
            top = max(top, configs[int(jobs[active[i], at.CONFIG]), at.CONFIG_PRIORITY])
        i = before[i]
    i = last
    while i >= 0:
        if active[i] != job and configs[int(jobs[active[i], at.CONFIG]), at.CONFIG_PRIORITY] < top:
            others += 1
        i = before[i]
    others += 1 if job >= 0 and own < top else 0
    column = min(max(others, 1), filled.shape[1]) - 1
    part = filled[int(jobs[job, at.APPLICATION]), column] if job >= 0 and own == top else 1.0
    i = last
    while i >= 0:
        if active[i] != job and configs[int(jobs[active[i], at.CONFIG]), at.CONFIG_PRIORITY] == top:
            part = min(part, filled[int(jobs[active[i], at.APPLICATION]), column])
        i = before[i]
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
    """Write the speeds of the jobs on shared GPUs: true seconds per epoch over planned ones."""
    jobs, active, configs, planned = board.jobs, board.active, board.facts.configs, board.facts.planned
    last, before = neighbours(board)
    demand = np.zeros(at.PRIORITIES)
    for gpu in range(last.shape[0]):
        if last[gpu] < 0:
            continue
        write_demand(board, last[gpu], before, demand)
        filled = filled_part(board, last[gpu], before, -1, -1)
        i = last[gpu]
        while i >= 0:
            job = active[i]
            config = int(jobs[job, at.CONFIG])
            speed = speed_by_utilisation(demand, configs[config, at.CONFIG_PRIORITY], filled, board.facts.sharing)
            slowdowns[i] = 1.0 / (speed * planned[int(jobs[job, at.APPLICATION]), config])
            i = before[i]


@lean_kernel
def write_demand(board: Board, last: int, before: Ints, demand: Floats) -> None:
    """Write the sum of the utilisations of the jobs on a GPU, by priority; `last` is the last of them in `active`."""
    jobs, active, configs, utilisation = board.jobs, board.active, board.facts.configs, board.facts.utilisation
    demand[:] = 0.0
    i = last
    while i >= 0:
        config = int(jobs[active[i], at.CONFIG])
        own = utilisation[configs[config, at.CONFIG_TYPE], int(jobs[active[i], at.APPLICATION])]
        demand[configs[config, at.CONFIG_PRIORITY]] += own
        i = before[i]


@kernel
def write_pair_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Write the speeds of the jobs on shared GPUs: each takes 1 + Σ (slow-down - 1) times as long as alone."""
    jobs, nodes, active = board.jobs, board.nodes, board.active
    slowdown, planned = board.facts.slowdown, board.facts.planned
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    last, before = neighbours(board)
    for i in range(board.count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] < 0 or jobs[job, at.SLOT] < 0:
            continue
        node, own = int(jobs[job, at.NODE]), int(jobs[job, at.APPLICATION])
        factor = 1.0
        other = last[node * per_node + int(jobs[job, at.SLOT])]
        while other >= 0:
            if other != i:
                beside = int(jobs[active[other], at.APPLICATION])
                factor += slowdown[nodes[node, at.NODE_TYPE], own, beside] - 1.0
            other = before[other]
        slowdowns[i] = factor / planned[own, int(jobs[job, at.CONFIG])]
