"""STS, the stochastic heuristic: plan every job against the distribution of its epochs, and follow the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.planning.cheapest import cheapest_fitting
from gpusched_baselines.planning.plan import new_scratch
from gpusched_baselines.solvers.fallback import SOLVER_NAMES, FallbackSolver, SolverName
from gpusched_baselines.sts.by_solver import choose_by_solver
from gpusched_baselines.sts.decision import PLAN_COLUMNS, look, take_best
from gpusched_baselines.sts.plans import finish, plan_types
from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.policy import Choice, apply_choice

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_baselines.planning.plan import Scratch
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board

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
    A job that waits comes back with no fewer GPUs than it last held.

    At the end of a round what is left of shared GPUs goes to jobs there, for that round only. An environment asks job
    by job and knows no end of a round: driven through it, STS acts without this step, as with `postprocess=False`,
    which is the same through every door.

    A plan stays optimal among the configurations of its type while it is followed, so a job is solved again only when
    it waits, when its segment ends, when it cannot keep its place, or when a GPU type that it ranked above its own has
    room again.

    With another solver than the exact one, all decisions are made in the same way, but in Python and not compiled.
    Where that solver is missing or fails, the exact one gives the plan: a `SolverFallbackWarning` says so once for each
    policy object, and `fallbacks` counts.

    Args:
        rank: "expected" ranks the types by expected cost; "published" ranks a type whose cheapest configuration
            already meets the due date at cost 0, and one that cannot meet it at 1e6, as the published code does.
        name: Name, as tables show it; with another solver than the exact one by default `sts-` and its name.
        solver: "exact"; "highs" for the linear program; "ipopt" for the published nonlinear program, used as it
            is after ten iterations; "nlp" for our own form of it to convergence, "nlp-10" for ten iterations of that.
        postprocess: Whether what is left of shared GPUs is given to jobs there.
        restarts_small: Whether a job that waits may come back with fewer GPUs than it last held; ours.

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
            object.__setattr__(self, "name", f"sts-{self.solver}")

    @property
    def fallbacks(self) -> int:
        """Count the plans so far that the exact solver gave in place of the chosen one, over all runs."""
        return 0 if self._solve is None else self._solve.fallbacks

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - STS draws nothing
        """Place all active jobs, by decreasing pressure."""
        order = ask_order(view, self.job_order, waiting_only=False)
        if self._solve is None:
            _decide(view.board, order, self.rank == "published", self.restarts_small)
        else:
            self._decide_by_solver(view, order.tolist())
        if self.postprocess:
            finish(view.board, order)

    def choose(self, view: View, job: int) -> Choice:
        """Choose the configuration and the wake-up of one job."""
        published = self.rank == "published"
        if self._solve is None:
            config, wake = _choose_alone(view.board, job, published, self.restarts_small)
        else:
            config, wake = choose_by_solver(view, job, published, self.restarts_small, self._solve)
        return Choice(int(config), None if np.isnan(wake) else float(wake))

    def _decide_by_solver(self, view: View, order: list[int]) -> None:
        for job in order:
            choice = self.choose(view, job)
            view.apply(job, choice)
            if choice.config >= 0:
                view.place(job, choice.config)


@kernel
def _decide(board: Board, order: Ints, published: bool, restarts_small: bool) -> None:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.room.shape[0], PLAN_COLUMNS))
    for job in order:
        config, wake = _choose(board, job, published, restarts_small, scratch, plans)
        apply_choice(board, job, False, wake)
        if config >= 0:
            place(board, job, config)


@kernel
def _choose_alone(board: Board, job: int, published: bool, restarts_small: bool) -> tuple[int, float]:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.room.shape[0], PLAN_COLUMNS))
    return _choose(board, job, published, restarts_small, scratch, plans)


@kernel
def _choose(
    board: Board, job: int, published: bool, restarts_small: bool, scratch: Scratch, plans: Floats
) -> tuple[int, float]:
    """Choose the configuration, -1 to wait, and the wake-up, NaN to keep it, of one job."""
    config, wake, least, speeds_up = look(board, job, restarts_small)
    if least == 0:
        return config, wake
    if speeds_up:
        plan_types(board, job, least + 1, published, scratch, plans)
        config, wake = take_best(board, job, plans)
    if config < 0:
        plan_types(board, job, least, published, scratch, plans)
        config, wake = take_best(board, job, plans)
    if config < 0:
        return cheapest_fitting(board, board.planning_rate, job), -np.inf
    return config, wake
