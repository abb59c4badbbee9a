"""STS, the stochastic heuristic: plan every job against the distribution of its epochs, and follow the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpusched_baselines.cheapest import cheapest_fitting
from gpusched_baselines.hull import lower_hull
from gpusched_baselines.plan import LATE, SLACK, solve
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement import place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import View
    from gpusched_env.simulator.arrays import Floats, Ints

Rank = Literal["expected", "published"]

# Columns of the policy's memory of a job.
BETTER = 0  # bit v is set if GPU type v was cheaper than the one it got
BETTER_GPUS = 1  # least GPUs on a node that one of those types would have needed

SHORTEST_SEGMENT = 0.01  # of the maximum epochs; shorter first segments are skipped, as in the thesis


@dataclass(frozen=True, slots=True)
class Sts:
    """STS (Marchi 2022; Filippini et al. 2024), with the exact solver in place of Ipopt.

    Jobs are asked by decreasing pressure. A job that runs as planned keeps its configuration. For any other, every
    GPU type's single-job problem is solved over the configurations with at least the GPUs that the job holds (more,
    once its wake-up is due); the types that can meet the due date are tried by increasing expected cost, each with the
    first segment of its plan that is at least 1 % of the maximum epochs long; the job wakes up when that segment ends.
    If none fits, the job takes the cheapest configuration that fits and meets the due date, else the fastest that fits.

    A plan stays optimal among the configurations of its type while it is followed, so a job is solved again only when
    it waits, when its segment ends, when it cannot keep its place, or when a GPU type that it ranked above its own has
    room again.

    Args:
        rank: "expected" ranks the types by expected cost; "published" ranks a type whose cheapest configuration
            already meets the due date at cost 0, as the published code does.
        name: Name, as tables show it.

    Raises:
        InputError: There is no such rank.
    """

    rank: Rank = "expected"
    name: str = "sts"
    job_order: str = "pressure"
    preemption: bool = True

    def __post_init__(self) -> None:
        if self.rank not in {"expected", "published"}:
            raise InputError("rank", self.rank, "expected or published")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - STS draws nothing
        """Place all active jobs, by decreasing pressure."""
        order = ask_order(view, self.job_order, waiting_only=False)
        _decide(*self._arrays(view, view.nodes, order))

    def choose(self, view: View, job: int) -> int:
        """Choose the configuration of one job, and set its wake-up."""
        return _choose(*self._arrays(view, job))

    def _arrays(self, view: View, *more: Any) -> tuple[Any, ...]:
        table = view.distributions
        return (
            view.jobs,
            view.configs,
            view.gaps,
            view.tau,
            view.planning_rate,
            view.clock,
            table.edges,
            table.survival,
            table.tail,
            view.memory,
            self.rank == "published",
            *more,
        )


@kernel
def _decide(
    jobs: Floats,
    configs: Ints,
    gaps: Ints,
    tau: Floats,
    rate: Floats,
    clock: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    memory: Floats,
    published: bool,
    nodes: Ints,
    order: Ints,
) -> None:
    for job in order:
        config = _choose(jobs, configs, gaps, tau, rate, clock, edges, survival, tail, memory, published, job)
        if config >= 0:
            place(jobs, nodes, configs, gaps, job, config)


@kernel
def _choose(
    jobs: Floats,
    configs: Ints,
    gaps: Ints,
    tau: Floats,
    rate: Floats,
    clock: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    memory: Floats,
    published: bool,
    job: int,
) -> int:
    now = clock[at.NOW]
    held = int(jobs[job, at.OLD_CONFIG])
    due_to_wake = False
    least_gpus = 1
    if held >= 0:
        least_gpus = configs[held, at.CONFIG_GPUS]
        follows_plan = jobs[job, at.WAKE_S] > now
        due_to_wake = not follows_plan and jobs[job, at.WAKE_S] > -np.inf
        fits = gaps[configs[held, at.CONFIG_TYPE]] >= least_gpus
        if follows_plan and fits and not _better_type_has_room(gaps, memory, job):
            return held
    config = -1
    if due_to_wake:
        config = _best_plan(
            jobs, configs, gaps, tau, rate, clock, edges, survival, tail, memory, published, job, least_gpus + 1
        )
    if config < 0:
        config = _best_plan(
            jobs, configs, gaps, tau, rate, clock, edges, survival, tail, memory, published, job, least_gpus
        )
    if config < 0:
        jobs[job, at.WAKE_S] = -np.inf
        config = cheapest_fitting(jobs, configs, gaps, tau, rate, now, job)
    return config


@kernel
def _better_type_has_room(gaps: Ints, memory: Floats, job: int) -> bool:
    better = int(memory[job, BETTER])
    for v in range(gaps.shape[0]):
        if (better >> v) & 1 and gaps[v] >= memory[job, BETTER_GPUS]:
            return True
    return False


@kernel
def _best_plan(
    jobs: Floats,
    configs: Ints,
    gaps: Ints,
    tau: Floats,
    rate: Floats,
    clock: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    memory: Floats,
    published: bool,
    job: int,
    least_gpus: int,
) -> int:
    """Solve every GPU type over configurations with at least `least_gpus`; take the cheapest that fits now.

    Sets the job's wake-up and what it remembers of the types that would have been cheaper.
    """
    types = gaps.shape[0]
    costs = np.full(types, np.inf)
    firsts = np.full(types, -1)
    wakes = np.full(types, np.inf)
    best = -1
    for v in range(types):
        costs[v], firsts[v], wakes[v] = _plan_type(
            jobs, configs, tau, rate, clock, edges, survival, tail, published, job, v, least_gpus
        )
        fits = firsts[v] >= 0 and gaps[v] >= configs[firsts[v], at.CONFIG_GPUS]
        if fits and (best < 0 or costs[v] < costs[best]):
            best = v
    if best < 0:
        return -1
    better = 0
    gpus = np.inf
    for v in range(types):
        if firsts[v] >= 0 and costs[v] < costs[best]:
            better |= 1 << v
            gpus = min(gpus, float(configs[firsts[v], at.CONFIG_GPUS]))
    memory[job, BETTER] = better
    memory[job, BETTER_GPUS] = gpus
    jobs[job, at.WAKE_S] = wakes[best]
    return firsts[best]


@kernel
def _plan_type(
    jobs: Floats,
    configs: Ints,
    tau: Floats,
    rate: Floats,
    clock: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    published: bool,
    job: int,
    gpu_type: int,
    least_gpus: int,
) -> tuple[float, int, float]:
    """Solve one GPU type: expected cost [€], first configuration (-1 if the due date is missed), wake-up [s]."""
    members = np.empty(configs.shape[0], dtype=np.int64)
    n = 0
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == gpu_type and configs[c, at.CONFIG_GPUS] >= least_gpus:
            members[n] = c
            n += 1
    hull = np.empty(n, dtype=np.int64)
    seconds = np.empty(n)
    price = np.empty(n)
    for i in range(n):
        seconds[i] = tau[job, members[i]]
        price[i] = rate[members[i]] * seconds[i]
    points = lower_hull(seconds, price, hull)
    if points == 0:
        return np.inf, -1, np.inf
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    row = int(jobs[job, at.DISTRIBUTION])
    starts = np.empty(points + 1)
    chosen = hull[:points]
    time_left = jobs[job, at.DUE] - clock[at.NOW]
    status, cost = solve(
        seconds[chosen], price[chosen], edges[row], survival[row], tail[row], done, largest, time_left, starts
    )
    if status == LATE:
        return np.inf, -1, np.inf
    if status == SLACK and published:
        cost = 0.0
    k = 0
    while starts[k + 1] < largest and starts[k + 1] - done < SHORTEST_SEGMENT * largest:
        k += 1
    config = members[chosen[k]]
    wake = np.inf
    if starts[k + 1] < largest:
        restarts = config != int(jobs[job, at.OLD_CONFIG]) and not np.isnan(jobs[job, at.START_S])
        wake = clock[at.NOW] + (starts[k + 1] - done) * tau[job, config]
        wake += clock[at.RESTART] if restarts else 0.0
    return cost, config, wake
