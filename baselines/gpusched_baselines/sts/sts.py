"""STS, the stochastic heuristic: plan every job against the distribution of its epochs, and follow the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpusched_baselines.planning.cheapest import any_room, cheapest_fitting
from gpusched_baselines.planning.hull import lower_hull
from gpusched_baselines.planning.plan import LATE, SHORTEST_SEGMENT, SLACK, solve
from gpusched_baselines.solvers.fallback import SOLVER_NAMES, FallbackSolver, SolverName
from gpusched_baselines.sts.by_solver import StsBySolver
from gpusched_baselines.sts.memory import BETTER, better_type_has_room
from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.placement import fits, place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View

Rank = Literal["expected", "published"]


@dataclass(frozen=True, slots=True)
class Sts:
    """STS (Marchi 2022; Filippini et al. 2024), by default with the exact solver in place of Ipopt.

    Jobs are asked by decreasing pressure. A job that runs as planned keeps its configuration. For any other, every
    GPU type's single-job problem is solved over the configurations, of all three kinds, with at least the GPUs that
    the job holds (more, once its wake-up is due); the types that can meet the due date are tried by increasing expected
    cost, each with the first segment of its plan that is at least 1 % of the maximum epochs long; the job wakes up when
    that segment ends.
    If none fits, the job takes the cheapest configuration that fits and meets the due date, else the fastest that fits.

    A plan stays optimal among the configurations of its type while it is followed, so a job is solved again only when
    it waits, when its segment ends, when it cannot keep its place, or when a GPU type that it ranked above its own has
    room again.

    With another solver than the exact one, all decisions are made in the same way, but in Python and not compiled.
    Where that solver is missing or fails, the exact one gives the plan: a `SolverFallbackWarning` says so once for each
    policy object, and `fallbacks` counts.

    Args:
        rank: "expected" ranks the types by expected cost; "published" ranks a type whose cheapest configuration
            already meets the due date at cost 0, as the published code does.
        name: Name, as tables show it; with another solver than the exact one by default `sts-` and its name.
        solver: "exact"; "highs" for the linear program; "ipopt" for the thesis's nonlinear program stopped after 10
            iterations, as in the thesis, and "ipopt-converged" for the same without that limit.

    Raises:
        InputError: There is no such rank or solver.
    """

    rank: Rank = "expected"
    name: str = "sts"
    job_order: str = "pressure"
    preemption: bool = True
    solver: SolverName = "exact"
    _solve: FallbackSolver | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.rank not in {"expected", "published"}:
            raise InputError("rank", self.rank, "expected or published")
        if self.solver not in SOLVER_NAMES:
            raise InputError("solver", self.solver, f"one of {', '.join(SOLVER_NAMES)}")
        if self.solver == "exact":
            return
        object.__setattr__(self, "_solve", FallbackSolver(self.solver))
        if self.name == "sts":
            object.__setattr__(self, "name", f"sts-{self.solver}")

    @property
    def fallbacks(self) -> int:
        """Count the plans so far that the exact solver gave in place of the chosen one, over all runs."""
        return 0 if self._solve is None else self._solve.fallbacks

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - STS draws nothing
        """Place all active jobs, by decreasing pressure."""
        order = ask_order(view, self.job_order, waiting_only=False)
        if self._solve is not None:
            StsBySolver(view, self._solve, self.rank == "published").decide(order)
            return
        _decide(*self._arrays(view, view.nodes, order))

    def choose(self, view: View, job: int) -> int:
        """Choose the configuration of one job, and set its wake-up."""
        if self._solve is not None:
            return StsBySolver(view, self._solve, self.rank == "published").choose(job)
        return _choose(*self._arrays(view, job))

    def _arrays(self, view: View, *more: Any) -> tuple[Any, ...]:
        table = view.distributions
        return (
            view.jobs,
            view.configs,
            view.room,
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
    room: Ints,
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
        config = _choose(jobs, configs, room, tau, rate, clock, edges, survival, tail, memory, published, job)
        if config >= 0:
            place(jobs, nodes, configs, room, job, config)


@kernel
def _choose(
    jobs: Floats,
    configs: Ints,
    room: Ints,
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
    if not any_room(room):  # nothing to plan for: without this, a long queue is planned anew in every round
        jobs[job, at.WAKE_S] = -np.inf
        return -1
    now = clock[at.NOW]
    held = int(jobs[job, at.OLD_CONFIG])
    due_to_wake = False
    least = 1
    if held >= 0:
        least = configs[held, at.CONFIG_SIZE]
        follows_plan = jobs[job, at.WAKE_S] > now
        due_to_wake = not follows_plan and jobs[job, at.WAKE_S] > -np.inf
        if follows_plan and fits(configs, room, held) and not better_type_has_room(configs, room, memory, job):
            return held
    config = -1
    if due_to_wake:
        config = _best_plan(
            jobs, configs, room, tau, rate, clock, edges, survival, tail, memory, published, job, least + 1
        )
    if config < 0:
        config = _best_plan(jobs, configs, room, tau, rate, clock, edges, survival, tail, memory, published, job, least)
    if config < 0:
        jobs[job, at.WAKE_S] = -np.inf
        config = cheapest_fitting(jobs, configs, room, tau, rate, now, job)
    return config


@kernel
def _best_plan(
    jobs: Floats,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rate: Floats,
    clock: Floats,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    memory: Floats,
    published: bool,
    job: int,
    least: int,
) -> int:
    """Solve every GPU type over configurations of at least the size `least`; take the cheapest that fits now.

    Sets the job's wake-up and what it remembers of the types that would have been cheaper.
    """
    types = room.shape[0]
    costs = np.full(types, np.inf)
    firsts = np.full(types, -1)
    wakes = np.full(types, np.inf)
    best = -1
    for v in range(types):
        costs[v], firsts[v], wakes[v] = _plan_type(
            jobs, configs, tau, rate, clock, edges, survival, tail, published, job, v, least
        )
        if (best < 0 or costs[v] < costs[best]) and firsts[v] >= 0 and fits(configs, room, firsts[v]):
            best = v
    if best < 0:
        return -1
    for v in range(types):
        memory[job, BETTER + v] = firsts[v] + 1 if costs[v] < costs[best] else 0.0
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
    least: int,
) -> tuple[float, int, float]:
    """Solve one GPU type: expected cost [€], first configuration (-1 if the due date is missed), wake-up [s]."""
    members = np.empty(configs.shape[0], dtype=np.int64)
    n = 0
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == gpu_type and configs[c, at.CONFIG_SIZE] >= least:
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
        wake += jobs[job, at.RESTART_S] if restarts else 0.0
    return cost, config, wake
