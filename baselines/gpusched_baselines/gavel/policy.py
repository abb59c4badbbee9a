"""Gavel as policies, and the objectives of their shares of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from scipy.sparse import csr_array, hstack  # type: ignore[import-untyped]

from gpusched_baselines.gavel.program import GavelDemand, GavelProgram, ProgramError, elastic, raised, rigid
from gpusched_baselines.gavel.round import ByRounds
from gpusched_baselines.planning.cheapest import Epochs, check_epochs
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.simulator.kernels import View

CLOSE = 1e-3  # relative accuracy of the finish-time ratio
MOST_STEPS = 20  # of the search for it


def proportional_shares(demand: GavelDemand) -> NDArray[np.float64]:
    """Return the fair shares for equally fast types: each GPU type in proportion to its GPUs, (A, K).

    Job j runs min(1, level · w_j / s_j) of the time, with the largest level for which there are GPUs. Of the optima of
    max-min fairness for equal speeds this is the one that treats all types equally.
    """
    there, size = demand.speed > 0.0, np.maximum(demand.size, 1e-300)
    total = demand.capacity.sum()
    want = demand.weight / size  # time for a level of 1
    at_one = np.sort(1.0 / want)  # the levels at which jobs run all the time
    order = np.argsort(1.0 / want, kind="stable")
    full = np.concatenate([[0.0], np.cumsum(size[order])])[:-1]  # GPUs of the jobs that already run all the time
    rising = np.cumsum(demand.weight[order][::-1])[::-1]
    levels = (total - full) / rising
    first = np.flatnonzero(levels <= at_one)
    level = levels[first[0]] if len(first) else np.inf
    time = np.minimum(1.0, np.minimum(level, 1e300) * want)
    share = np.where(there, demand.capacity[demand.kind], 0.0)
    return time[:, None] * share / np.maximum(share.sum(axis=1), 1e-300)[:, None]


def las(demand: GavelDemand) -> NDArray[np.float64]:
    """Maximise min_j s_j / w_j · thr_j(x) / thr_j(x_prop), the time of each job as if all types were equally fast."""
    worth = demand.size[:, None] * demand.speed / (demand.weight * demand.proportional)[:, None]
    ones = np.ones(len(worth))
    return raised(demand, worth, ones, np.zeros(len(worth))).x


def makespan(demand: GavelDemand) -> NDArray[np.float64]:
    """Minimise the time T by which all active jobs end: thr_j(x) ≥ left_j z with the largest z = 1 / T."""
    worth = demand.speed / demand.left[:, None]
    scale = worth.max()
    return raised(demand, worth / scale, np.ones(len(worth)), np.zeros(len(worth))).x


def finish_time(demand: GavelDemand) -> NDArray[np.float64]:
    """Minimise max_j (age_j + left_j / thr_j(x)) / (age_j + left_j / thr_j(x_iso)).

    With x_iso every job has W_v / (m s_j) of type v, for m jobs, at most 1 in all. For a feasible ratio ρ, thr_j(x) ≥
    t left_j / (ρ D_j - age_j) with the largest t yields an x with a smaller ratio; a few steps find the least.
    """
    share = demand.capacity[demand.kind] / (len(demand.speed) * np.maximum(demand.size, 1e-300))[:, None]
    share = np.where(demand.speed > 0.0, share, 0.0)
    x = share / np.maximum(1.0, share.sum(axis=1))[:, None]
    alone_s = demand.age_s + demand.left / np.maximum(demand.thr(x), 1e-300)
    ratio = 1.0
    for _ in range(MOST_STEPS):
        slope = demand.left / np.maximum(ratio * alone_s - demand.age_s, 1e-9 * alone_s)
        better = raised(demand, demand.speed / slope[:, None], np.ones(len(slope)), np.zeros(len(slope))).x
        found = float(((demand.age_s + demand.left / np.maximum(demand.thr(better), 1e-300)) / alone_s).max())
        if found >= ratio * (1.0 - CLOSE):
            return better if found < ratio else x
        ratio, x = found, better
    return x


def cost_slo(demand: GavelDemand) -> NDArray[np.float64]:
    """Maximise the epochs per euro, Σ_j Σ_k T[j, k] x[j, k] / price_k, such that all due dates are met.

    Epochs are counted in units of those that a job does in a second with x_prop, so that jobs weigh equally. The price
    is the cost rate in full nodes; where energy is free, the number of GPUs. thr_j(x) ≥ left_j / (due_j - t); where
    that has no solution, all due dates are left out, as published.
    """
    price = demand.rate if demand.rate.max() > 0.0 else demand.gpus
    worth = demand.speed / np.maximum(price, 1e-300) / demand.proportional[:, None]
    worth = worth / worth.max()
    program = GavelProgram(demand)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    need = demand.left / np.maximum(demand.due_in_s, 1e-9)
    rows = -program.per_job(demand.speed / fastest[:, None])
    nothing = np.zeros(0)
    in_time = program.least(-worth, nothing, rows, -need / fastest) if np.all(need <= fastest) else None
    found = in_time or program.least(-worth, nothing)
    return np.zeros(worth.shape) if found is None else found.x


def fifo(demand: GavelDemand) -> NDArray[np.float64]:
    """Return shares: each job, in the order of submission, has all the time of the fastest type with free capacity.

    At the first job for which no type has free capacity the assignment ends: no job overtakes. As in Gavel's program, a
    job that cannot run on the types with free capacity waits, but does not stop the jobs after it.
    """
    x, free = np.zeros(demand.speed.shape), demand.capacity.astype(np.float64)
    for j in range(len(x)):
        fits = np.where(demand.speed[j] > 0.0, demand.gpus[j], demand.size[j]) <= free[demand.kind]
        if not fits.any():
            break
        k = int(np.where(fits, demand.speed[j], -1.0).argmax())
        if demand.speed[j, k] > 0.0:
            x[j, k] = 1.0
            free[demand.kind[k]] -= demand.gpus[j, k]
    return x


def any_fifo(demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
    """Return shares: each job, in the order of submission, has all the time of a random type with free capacity.

    Jobs keep the type that they have had. At the first job that fits nowhere the assignment ends: no job overtakes.
    """
    x = (demand.before > 0.0).astype(np.float64)
    free = demand.capacity - demand.used(x)
    for j in np.flatnonzero(x.sum(axis=1) == 0.0):
        fits = np.flatnonzero((demand.speed[j] > 0.0) & (demand.gpus[j] <= free[demand.kind]))
        if not len(fits):
            break
        k = int(rng.choice(fits))
        x[j, k] = 1.0
        free[demand.kind[k]] -= demand.gpus[j, k]
    return x


Within = Literal["fairness", "fifo"]
"""How an entity's level is divided among its jobs: by their weights, or all to the first job that can get more."""

STUCK = 1e-7  # a job whose dual value is larger, relative to the largest, cannot get more


def slopes(
    demand: GavelDemand, entity_weight: NDArray[np.float64], within: Within, live: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the rise of every job's share as the level rises by 1, (A,): its part of its entity's weight; 0 if stuck.

    Args:
        demand: The jobs, in the order of their submission.
        entity_weight: Weights of the entities, > 0, (E,).
        within: How an entity divides its weight.
        live: The jobs that are not stuck, (A,).
    """
    entity = demand.entity
    found = np.zeros(len(entity))
    for e in np.unique(entity[live]):
        mine = np.flatnonzero((entity == e) & live)
        if within == "fifo":
            found[mine[0]] = entity_weight[e]
        else:
            found[mine] = entity_weight[e] * demand.weight[mine] / demand.weight[mine].sum()
    return found


def water_filling(demand: GavelDemand, entity_weight: NDArray[np.float64], within: Within) -> NDArray[np.float64]:
    """Raise s_j · thr_j(x) / thr_j(x_prop) of all jobs by their slopes until some are stuck; then go on with the rest.

    A job is stuck if its row of the program has a dual value: it cannot get more unless another one gets less. At least
    one job becomes stuck in every step, so there are at most A steps.

    Args:
        demand: The jobs, in the order of their submission.
        entity_weight: Weights of the entities, > 0, (E,).
        within: How an entity divides its share among its jobs.

    Returns:
        Shares of time, (A, K).

    Raises:
        ProgramError: The solver found no solution.
    """
    worth = demand.size[:, None] * demand.speed / demand.proportional[:, None]
    live, level = np.any(demand.speed > 0.0, axis=1), np.zeros(len(worth))
    x = np.zeros(worth.shape)
    while live.any():
        slope = slopes(demand, entity_weight, within, live)
        found = raised(demand, worth, slope, level * (1.0 - 1e-9))
        x, rise = found.x, float(found.extra[0])
        level = level + slope * rise
        stuck = live & (slope > 0.0) & (found.duals > STUCK * found.duals.max())
        if not stuck.any():
            break
        live = live & ~stuck
    return x


LEAST = 0.01  # least need of every job, of its fastest speed: a job with a late due date might else never run
EAGER = 1e-3  # additional cost of an epoch that is left for later, relative to its energy


def priced(demand: GavelDemand, guard_s: float) -> NDArray[np.float64]:
    """Minimise Σ_j Σ_c r_c x[j, c] + Σ_j (ω_j / fastest_j + e_j) u_j [€/s], (A, C).

    thr_j(x) + u_j ≥ need_j. A job needs left_j / (due_j - t - guard), or its fastest speed where that is not enough.
    Each epoch that is missing makes the job late by the seconds that one takes at its fastest, and must be done later,
    for e_j, its least energy. So energy and tardiness are both in euros per second, and due dates are missed one by one
    where there are too few GPUs.

    Args:
        demand: The jobs and their options.
        guard_s: How long before their due dates jobs are planned to end [s]: rounds only approximate the shares.

    Raises:
        ProgramError: The solver found no solution.
    """
    jobs = len(demand.job)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    time_s = np.maximum(demand.due_in_s - guard_s, 1e-9)
    need = np.clip(demand.left / time_s / fastest, LEAST, 1.0)  # as a fraction of the fastest speed
    epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf).min(axis=1)
    unit = max(float(demand.rate.max()), float(demand.tardiness.max()), 1e-300)
    later = (demand.tardiness + (1.0 + EAGER) * epoch * fastest) / unit + EAGER
    program = GavelProgram(demand, extra=jobs)
    short = csr_array((-np.ones(jobs), (np.arange(jobs), np.arange(jobs))), (jobs, jobs))
    rows = hstack([-program.per_job(demand.speed / fastest[:, None]), short])
    found = program.least(demand.rate / unit, later, rows, -need)
    if found is None:
        raise ProgramError("there is no solution, although jobs may be late")
    return found.x


Objective = Literal["las", "makespan", "finish-time", "cost-slo", "hierarchical", "fifo"]
"""The objective of Gavel's shares of time."""

_AWARE: dict[str, Callable[[GavelDemand], NDArray[np.float64]]] = {
    "las": las,
    "makespan": makespan,
    "finish-time": finish_time,
    "cost-slo": cost_slo,
    "fifo": fifo,
}


@dataclass(frozen=True, slots=True)
class Gavel(ByRounds):
    """Gavel: a linear program sets the share of time of every job on every GPU type, and rounds approximate it.

    Jobs are rigid: of every GPU type a job uses the configuration with least GPU-seconds per epoch. The program is
    solved again after arrivals and completions, but at most every `reset_s`; jobs that arrive in between wait. In a
    round the types are filled one after the other, the fastest first, by share / part of the time of the type that the
    job has had. Idle GPUs go to jobs without a share. Arrivals and completions within a round change nothing.

    Args:
        objective: "las", max-min fairness of the time of jobs; "makespan"; "finish-time", the worst ratio to a fair
            share of the cluster; "cost-slo", epochs per euro with due dates; "hierarchical", max-min fairness between
            entities and within them; "fifo", in order, each on the fastest type with free capacity. Or a function from
            a `GavelDemand` and a generator to shares, (A, K).
        aware: Whether speeds differ by type; else jobs count as equally fast on all, and rounds fill the types in
            random order.
        round_s: Length of a round [s], > 0.
        reset_s: Least time between two programs [s], ≥ 0.
        entities: With "hierarchical": into how many entities jobs are divided, by the quantiles of their tardiness
            weights, ≥ 1; entity e, counted from 1, has weight e. Or a function from the view and the active jobs to
            their entities, 0 to E - 1, (A,).
        within: With "hierarchical": how an entity divides its share among its jobs: by weight ("fairness"), or to the
            first submitted ("fifo").
        idle_too: Whether GPUs that are left in a round go to jobs without a share of their type; never with "fifo".
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    objective: Objective | Callable[[GavelDemand, Generator], NDArray[np.float64]] = "las"
    aware: bool = True
    round_s: float = 360.0
    reset_s: float = 1920.0
    entities: int | Callable[[View, NDArray[np.int64]], NDArray[np.int64]] = 3
    within: Within = "fairness"
    idle_too: bool = True
    name: str = "gavel-las"
    preemption: bool = True
    solver: str = "highs"

    def __post_init__(self) -> None:
        if not callable(self.objective) and self.objective not in get_args(Objective):
            raise InputError("objective", self.objective, f"{', '.join(get_args(Objective))}, or a function")
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)
        if not callable(self.entities):
            checks.whole("entities", self.entities)
        if self.within not in {"fairness", "fifo"}:
            raise InputError("within", self.within, "fairness or fifo")

    @property
    def fills(self) -> bool:
        """Return whether GPUs that are left in a round go to jobs without a share of their type."""
        return self.idle_too and self.objective != "fifo"

    def demand(self, view: View) -> GavelDemand:
        """Return the jobs with an option for each GPU type."""
        found = rigid(view)
        if self.objective != "hierarchical":
            return found
        if callable(self.entities):
            return replace(found, entity=np.asarray(self.entities(view, found.job), dtype=np.int64))
        return replace(found, entity=quantile_entities(found.tardiness, self.entities))

    def shares(self, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
        """Solve for the shares of time, (A, K)."""
        if not isinstance(self.objective, str):
            return self.objective(demand, rng)
        seen = demand if self.aware else demand.agnostic()
        if self.objective == "hierarchical":
            return water_filling(seen, np.arange(1.0, seen.entity.max() + 2.0), self.within)
        if not self.aware and self.objective == "fifo":
            return any_fifo(demand, rng)
        return (
            proportional_shares(demand) if not self.aware and self.objective == "las" else _AWARE[self.objective](seen)
        )

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:
        """Return the GPU types, the one on which jobs are fastest on average first; at random unless `aware`."""
        if not self.aware:
            return rng.permutation(len(demand.capacity))
        relative = demand.speed / np.maximum(demand.speed.max(axis=1), 1e-300)[:, None]
        return np.argsort(-relative.mean(axis=0), kind="stable")


def quantile_entities(weight: NDArray[np.float64], entities: int) -> NDArray[np.int64]:
    """Divide jobs into entities by the quantiles of their weights, the lightest in entity 0, (A,)."""
    edges = np.quantile(weight, np.arange(1, entities) / entities) if entities > 1 else np.empty(0)
    return np.searchsorted(edges, weight, side="left")


@dataclass(frozen=True, slots=True)
class GavelCost(ByRounds):
    """Gavel for elastic jobs: shares of time in all configurations, with least energy cost and a price of tardiness.

    The program is in `priced`. It is solved at arrivals and completions, and `reset_s` later. Every event begins a
    round, in which no GPU is used without need: only jobs with a share of a configuration may get it, the costliest
    per epoch last.

    Args:
        epochs: The estimate of the epochs that jobs have left: "worst-case", "mean" or "conditional-mean".
        guard_s: How long before their due dates jobs are planned to end [s], ≥ 0.
        round_s: Length of a round [s], > 0.
        reset_s: Time after which the program is solved again without arrivals and completions [s], ≥ 0.
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    epochs: Epochs = "worst-case"
    guard_s: float = 360.0
    round_s: float = 360.0
    reset_s: float = 1920.0
    name: str = "gavel-cost"
    preemption: bool = True
    solver: str = "highs"
    at_once = True
    any_configuration = True

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        checks.seconds("guard_s", self.guard_s)
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)

    def demand(self, view: View) -> GavelDemand:
        """Return the jobs with all their configurations."""
        return elastic(view, self.epochs)

    def shares(self, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:  # noqa: ARG002 - nothing is drawn
        """Solve for the shares of time, (A, C)."""
        return priced(demand, self.guard_s)

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:  # noqa: ARG002 - nothing is drawn
        """Return the GPU types, the one with the cheapest epochs on average first."""
        per_epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf)
        least = np.array(
            [per_epoch[:, demand.kind == v].min(axis=1, initial=np.inf) for v in range(len(demand.capacity))]
        )
        relative = np.minimum(least / np.maximum(per_epoch.min(axis=1), 1e-300), 1e3)
        return np.argsort(relative.mean(axis=1), kind="stable")
