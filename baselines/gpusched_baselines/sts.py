"""STS, the stochastic heuristic: plan every job against the distribution of its epochs, and follow the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import give_left_shares
from gpusched_baselines.planning.cheapest import WORST_CASE, any_capacity, cheapest_fitting, left_of_all
from gpusched_baselines.planning.plan import (
    LATE,
    SHORTEST_SEGMENT,
    SLACK,
    Scratch,
    find_hull,
    first_segment,
    new_scratch,
    solve_job,
)
from gpusched_baselines.planning.single_job import Plan, SingleJobProblem
from gpusched_baselines.solvers.fallback import SOLVER_NAMES, FallbackSolver, SingleJobSolver, SolverName
from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Choice, Floats, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


# Columns of the policy's memory of a job.
LEAST = 0  # size of the last configuration that it held by its own choice
GIVEN = 1  # 1 + the configuration that it was given in place of its own at the end of a round; 0: none
BETTER = sim.FREE_COLUMNS  # one for each GPU type: 1 + the configuration to begin with there if cheaper; 0: none

# plans: float64 (V, PLAN_COLUMNS). How the plan of each GPU type begins.
COST = 0  # expected cost [€]; inf: it misses the due date
FIRST = 1  # configuration; -1: it misses the due date
TIMER = 2  # when its segment ends [s]; inf: it runs to the end
PLAN_COLUMNS = 3

LATE_RANK = 1e6  # cost at which the published code ranks a type that misses the due date


@kernel
def look(board: Board, job: int, restarts_small: bool) -> tuple[int, float, int, bool]:
    """Return whether a job needs plans: not if nothing fits, or if it follows a plan and no better type fits.

    A job that got more than its own choice is planned again from its own choice: it is ahead of its plan.

    Args:
        restarts_small: Whether a job that waits may take fewer GPUs than it last held.

    Returns:
        The configuration that it gets (-1: none), its timer [s] (NaN: as it is), the least size of configurations to
        plan with (0: no plan, the first two hold), and whether larger ones come first, since its timer has expired.
    """
    jobs, configs, memory = board.jobs, board.facts.configs, board.memory
    held = int(jobs[job, at.OLD_CONFIG])
    own = held >= 0 and int(memory[job, GIVEN]) != held + 1
    if own:
        memory[job, LEAST] = configs[held, at.CONFIG_SIZE]
    if not any_capacity(board):  # no plans: else a long queue would be planned again in every round
        return -1, -np.inf, 0, False
    least = max(1, int(memory[job, LEAST]))
    if held < 0:
        return -1, np.nan, 1 if restarts_small else least, False
    follows_plan = jobs[job, at.TIMER_S] > board.clock[at.NOW]
    if follows_plan and own and sim.can_place(board, job, held) and not better_type_fits(board, job):
        return held, np.nan, 0, False
    speeds_up = not follows_plan and jobs[job, at.TIMER_S] > -np.inf
    return -1, np.nan, least, speeds_up


@kernel
def better_type_fits(board: Board, job: int) -> bool:
    """Return whether the first configuration of `job` on a GPU type that it ranked above its own fits now."""
    for v in range(board.capacity.shape[0]):
        config = int(board.memory[job, BETTER + v]) - 1
        if config >= 0 and sim.can_place(board, job, config):
            return True
    return False


@kernel
def take_best(board: Board, job: int, plans: Floats) -> tuple[int, float]:
    """Take the cheapest plan whose first configuration fits now; remember the cheaper ones that do not fit.

    Returns:
        The configuration, -1 if none fits, and the timer [s].
    """
    best = -1
    for v in range(plans.shape[0]):
        first = int(plans[v, FIRST])
        if (best < 0 or plans[v, COST] < plans[best, COST]) and first >= 0 and sim.can_place(board, job, first):
            best = v
    if best < 0:
        return -1, np.nan
    for v in range(plans.shape[0]):
        board.memory[job, BETTER + v] = plans[v, FIRST] + 1 if plans[v, COST] < plans[best, COST] else 0.0
    return int(plans[best, FIRST]), plans[best, TIMER]


@kernel
def plan_types(board: Board, job: int, least: int, published: bool, scratch: Scratch, plans: Floats) -> None:
    """Solve every GPU type over its configurations of at least the size `least`; write `plans`, (V, PLAN_COLUMNS).

    With `published` a type whose cheapest configuration meets the due date ranks at cost 0, and one that misses it,
    with its fastest configuration, at `LATE_RANK`; else the latter has no plan.
    """
    for v in range(plans.shape[0]):
        plans[v, COST], plans[v, FIRST], plans[v, TIMER] = plan_type(board, job, v, least, published, scratch)


@kernel
def plan_type(
    board: Board, job: int, gpu_type: int, least: int, published: bool, scratch: Scratch
) -> tuple[float, int, float]:
    """Solve one GPU type: expected cost [€], first configuration (-1 if the due date is missed), timer [s]."""
    jobs, members = board.jobs, scratch.members
    points = find_type_hull(board, job, gpu_type, least, scratch)
    if points == 0:
        return np.inf, -1, np.inf
    status, cost = solve_job(board, job, points, jobs[job, at.DUE] - board.clock[at.NOW], scratch)
    if status == LATE:
        return (LATE_RANK, members[scratch.hull[points - 1]], np.inf) if published else (np.inf, -1, np.inf)
    k, timer = first_segment(board, job, points, scratch)
    config = members[scratch.hull[k]]
    timer += sim.switch_s(board, job, config)
    return 0.0 if status == SLACK and published else cost, config, timer


@kernel
def raises_limit(board: Board, job: int, config: int) -> bool:
    """Whether `config` is faster than what a job held when the round began, on the same GPUs: it has more power."""
    held = int(board.jobs[job, at.OLD_CONFIG])
    return held >= 0 and sim.same_gpus(board, config, held) and board.tau[job, config] < board.tau[job, held]


@kernel
def find_type_hull(board: Board, job: int, gpu_type: int, least: int, scratch: Scratch) -> int:
    """Write the hull of a GPU type's configurations to `scratch`; return its points.

    They are those of at least the size `least`, and those that raise the power limit of what the job holds.
    """
    configs, members, size, own = board.facts.configs, scratch.members, 0, int(board.jobs[job, at.APPLICATION])
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == gpu_type and (
            configs[c, at.CONFIG_SIZE] >= least or raises_limit(board, job, c)
        ):
            members[size], scratch.seconds[size] = c, board.tau[job, c]
            scratch.price[size] = board.planning_rate[own, c] * board.tau[job, c]
            size += 1
    return find_hull(scratch.seconds[:size], scratch.price[:size], scratch)


@kernel
def finish(board: Board, order: Ints) -> None:
    """Assign what is left of shared GPUs to the jobs of the round, `order`, and remember the own choice of each.

    A job keeps its own size as the least that it is planned with, so it may return to it later.
    """
    if sim.slots(board) == 0:
        return
    jobs, memory, configs = board.jobs, board.memory, board.facts.configs
    own = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        own[i] = int(jobs[order[i], at.CONFIG])
    give_left_shares(board, order, left_of_all(board, order, WORST_CASE))
    sim.measure(board)
    for i in range(order.shape[0]):
        held = int(jobs[order[i], at.CONFIG])
        memory[order[i], GIVEN] = held + 1 if held != own[i] else 0
        if held != own[i]:
            memory[order[i], LEAST] = configs[own[i], at.CONFIG_SIZE]


NO_PLAN = (np.inf, -1, np.inf)
"""The row of a GPU type on which the due date is missed."""


def choose_by_solver(
    view: View, job: int, published: bool, restarts_small: bool, solver: SingleJobSolver
) -> tuple[int, float]:
    """Choose the configuration, -1 to wait, and the timer [s], NaN to keep it, of one job.

    Args:
        published: Whether a type whose cheapest configuration meets the due date ranks at cost 0, and one that misses
            it, with its fastest configuration, at `LATE_RANK`.
        restarts_small: Whether a job that waits may take fewer GPUs than it last held.
        solver: Solver of single-job problems; must always return a plan.
    """
    config, timer, least, speeds_up = look(view.board, job, restarts_small)
    if least == 0:
        return config, timer
    for size in (least + 1, least) if speeds_up else (least,):
        plans = np.array([_solve_type(view, job, v, size, published, solver) for v in range(len(view.capacity))])
        config, timer = take_best(view.board, job, plans)
        if config >= 0:
            return config, timer
    return cheapest_fitting(view.board, view.board.planning_rate, job), -np.inf


def _solve_type(
    view: View, job: int, gpu_type: int, least: int, published: bool, solver: SingleJobSolver
) -> tuple[float, int, float]:
    """Solve one GPU type; return its row of `plans`."""
    large = view.configs[:, at.CONFIG_SIZE] >= least
    large |= [bool(raises_limit(view.board, job, c)) for c in range(len(large))]
    own = (view.configs[:, at.CONFIG_TYPE] == gpu_type) & large
    members = np.flatnonzero(own & np.isfinite(view.tau[job]))
    if not len(members):
        return NO_PLAN
    tau = view.tau[job, members]
    largest = float(view.jobs[job, at.MAX_EPOCHS])
    done = min(float(view.jobs[job, at.EPOCHS]), float(np.nextafter(largest, 0.0)))  # some epochs are left
    rate = view.planning_rate[int(view.jobs[job, at.APPLICATION])]
    price, time_left = rate[members] * tau, float(view.jobs[job, at.DUE]) - view.now_s
    plan = solver(SingleJobProblem(tau, price, _distribution(view, job), largest, time_left, done))
    if plan.status == "late":
        return (LATE_RANK, int(members[plan.segments[-1].configuration]), np.inf) if published else NO_PLAN
    cost = 0.0 if plan.status == "slack" and published else plan.expected_cost_eur
    return cost, *_start(view, job, plan, members)


def _start(view: View, job: int, plan: Plan, members: NDArray[np.int64]) -> tuple[int, float]:
    jobs = view.jobs
    largest, done = float(jobs[job, at.MAX_EPOCHS]), float(jobs[job, at.EPOCHS])
    for segment in plan.segments[:-1]:
        if segment.end_epoch < largest and segment.end_epoch - done >= SHORTEST_SEGMENT * largest:
            config = int(members[segment.configuration])
            timer = view.now_s + (segment.end_epoch - done) * view.tau[job, config]
            return config, timer + sim.switch_s(view.board, job, config)
    return int(members[plan.segments[-1].configuration]), np.inf


def _distribution(view: View, job: int) -> EpochDistribution:
    edges = view.edges[int(view.jobs[job, at.EDGES])]
    bins = int(np.argmax(edges >= 1.0))
    return EpochDistribution(edges[: bins + 1], view.survival[int(view.jobs[job, at.DISTRIBUTION]), :bins])


Rank = Literal["expected", "published"]


@dataclass(frozen=True, slots=True)
class Sts:
    """STS (Marchi 2022; Filippini et al. 2024), by default with the exact solver in place of Ipopt.

    STS decides the jobs by decreasing pressure. A job that runs as planned keeps its configuration. For any other, STS
    solves the single-job problem of every GPU type over the configurations, of all three kinds, with at least the GPUs
    that the job holds (more, once its timer has expired). It tries the types that can meet the due date by increasing
    expected cost, each with the first segment of its plan that ends 1 % of the maximum epochs from now or later; the
    timer expires when that segment ends. If none fits, the job takes the cheapest configuration that fits and meets
    the due date, else the fastest that fits. Plans of a job that waits use no fewer GPUs than it last held by its own
    choice.

    At the end of a round what is left of shared GPUs goes to jobs there, for that round only. An environment asks job
    by job and has no end of a round: in it STS acts without this step, as with `postprocess=False`, which is the same
    through every interface.

    A plan stays optimal among the configurations of its type while it is followed. So a job is solved again only when
    it waits, when its segment ends, when it cannot keep its place, when it got another configuration than its own
    choice, or when a GPU type that it ranked above its own has free capacity again.

    With another solver than the exact one, all decisions are made in the same way, but in Python and not compiled.
    Where that solver is missing or fails, the exact one makes the plan: a `SolverFallbackWarning` appears once for each
    policy object, and `fallbacks` counts.

    Args:
        rank: "expected" ranks the types by expected cost; "published" ranks a type whose cheapest configuration
            already meets the due date at cost 0, and one that cannot meet it at 1e6, as the published code does.
        name: Name, as tables show it; with another solver than the exact one by default `sts:` and its name.
        solver: "exact"; "highs" for the linear program; "ipopt" for the published nonlinear program, used as it
            is after ten iterations; "nlp" for our own form of it to convergence, "nlp-10" for ten iterations of that.
        postprocess: Whether what is left of shared GPUs goes to jobs there at the end of a round.
        restarts_small: Whether a job that waits may restart with fewer GPUs than it last held; ours.

    Raises:
        InputError: There is no such rank or solver.
    """

    rank: Rank = "expected"
    name: str = "sts"
    job_order: str = "pressure"
    preemption: bool = True
    solver: SolverName = "exact"
    postprocess: bool = True
    restarts_small: bool = False
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
            object.__setattr__(self, "name", f"sts:{self.solver}")

    @property
    def fallbacks(self) -> int:
        """Return the number of plans so far that the exact solver made in place of the chosen one, over all runs."""
        return 0 if self._solve is None else self._solve.fallbacks

    @property
    def solver_s(self) -> float:
        """Return the time in another solver than the exact one so far, over all runs [s]; 0 with the exact one."""
        return 0.0 if self._solve is None else self._solve.solver_s

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - STS draws nothing
        """Place all active jobs, by decreasing pressure."""
        order = sim.ask_order(view, self.job_order, waiting_only=False)
        if self._solve is None:
            place_by_plans(view.board, order, self.rank == "published", self.restarts_small)
        else:
            self._decide_by_solver(view, order.tolist())
        if self.postprocess:
            finish(view.board, order)

    def choose(self, view: View, job: int) -> Choice:
        """Choose the configuration and the timer of one job."""
        published = self.rank == "published"
        if self._solve is None:
            config, timer = _choose_alone(view.board, job, published, self.restarts_small)
        else:
            config, timer = choose_by_solver(view, job, published, self.restarts_small, self._solve)
        return Choice(int(config), None if np.isnan(timer) else float(timer))

    def _decide_by_solver(self, view: View, order: list[int]) -> None:
        for job in order:
            choice = self.choose(view, job)
            view.apply(job, choice)
            if choice.config >= 0:
                view.place(job, choice.config)


@kernel
def place_by_plans(board: Board, order: Ints, published: bool, restarts_small: bool) -> None:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.capacity.shape[0], PLAN_COLUMNS))
    for job in order:
        config, timer = _choose(board, job, published, restarts_small, scratch, plans)
        sim.apply_choice(board, job, False, timer)
        if config >= 0:
            sim.place(board, job, config)


@kernel
def _choose_alone(board: Board, job: int, published: bool, restarts_small: bool) -> tuple[int, float]:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.capacity.shape[0], PLAN_COLUMNS))
    return _choose(board, job, published, restarts_small, scratch, plans)


@kernel
def _choose(
    board: Board, job: int, published: bool, restarts_small: bool, scratch: Scratch, plans: Floats
) -> tuple[int, float]:
    """Choose the configuration, -1 to wait, and the timer, NaN to keep it, of one job."""
    config, timer, least, speeds_up = look(board, job, restarts_small)
    if least == 0:
        return config, timer
    if speeds_up:
        plan_types(board, job, least + 1, published, scratch, plans)
        config, timer = take_best(board, job, plans)
    if config < 0:
        plan_types(board, job, least, published, scratch, plans)
        config, timer = take_best(board, job, plans)
    if config < 0:
        return cheapest_fitting(board, board.planning_rate, job), -np.inf
    return config, timer
