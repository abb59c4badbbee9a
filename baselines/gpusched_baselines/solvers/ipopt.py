"""One job by Ipopt: as published, after ten iterations; and in our own form, repaired to meet the due date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.planning.single_job import Plan, SingleJobProblem, segments_of
from gpusched_baselines.solvers.bin_program import repaired
from gpusched_baselines.solvers.errors import SolverFailedError, load
from gpusched_baselines.solvers.smoothed_program import PublishedProgram, SmoothedProgram
from gpusched_env.model import checks

NAME = "Ipopt"
DEBIAN = ("coinor-libipopt-dev", "pkg-config", "liblapack-dev", "libblas-dev", "gcc", "python3-dev")
MOST_SECONDS = 30.0
SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS = 0, 1, -1  # Ipopt's own numbers


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """The point at which Ipopt stopped.

    Attributes:
        point: The variables, (n,).
        status: Ipopt's own number; 0 and 1: it converged, -1: it was out of iterations.
        message: The meaning of that number.
    """

    point: NDArray[np.float64]
    status: int
    message: str


def load_cyipopt() -> Any:
    return load("cyipopt", NAME, "cyipopt", "ipopt", DEBIAN)


def minimise(program: SmoothedProgram | PublishedProgram, iterations: int, options: Mapping[str, object]) -> Iterate:
    """Run Ipopt without output from the program's start, for at most `iterations` iterations."""
    lower, upper = program.bounds
    least, most = program.constraint_bounds
    solver = load_cyipopt().Problem(
        n=len(lower), m=len(most), problem_obj=program, lb=lower, ub=upper, cl=least, cu=most
    )
    usual = {"print_level": 0, "sb": "yes", "max_cpu_time": MOST_SECONDS, "max_iter": iterations}
    for option, value in {**usual, **options}.items():
        solver.add_option(option, value)
    point, info = solver.solve(program.start)
    message = info["status_msg"]
    text = message.decode() if isinstance(message, bytes) else str(message)
    return Iterate(np.asarray(point, dtype=np.float64), int(info["status"]), text)


PUBLISHED_ITERATIONS = 10


@dataclass(frozen=True, slots=True)
class IpoptSolver:
    """A solver of single-job problems by `solve_ipopt`."""

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; plan and errors are those of `solve_ipopt`."""
        load_cyipopt()  # a missing solver shows at the first problem, not at the first hard one
        plan = problem.plan_without_choice()
        if plan is not None:
            return plan
        program = PublishedProgram.of(problem)
        point = minimise(program, PUBLISHED_ITERATIONS, {}).point
        if not np.all(np.isfinite(point)):
            raise SolverFailedError(NAME, "its answer is not finite")
        starts = as_read(point, problem)
        worst_s = float(np.dot(np.diff(starts), program.tau))
        return Plan("tight", program.objective(point), worst_s, segments_of(program.configurations, starts))


def as_read(point: NDArray[np.float64], problem: SingleJobProblem) -> NDArray[np.float64]:
    """Read breakpoints from the point at which Ipopt stopped, in the way in which a plan is followed.

    The job runs the first configuration whose segment ends after the present epoch, until that end, and so on. So a
    segment that ends before an earlier one is empty, and the last runs to the end. Nothing else is changed: the plan
    may miss the due date, or may not use the time until then.

    Args:
        point: x_0 … x_N [epochs], (N + 1,); finite.

    Returns:
        Breakpoints from w to E, never falling, (N + 1,).
    """
    ends = np.clip(point[1:-1], problem.epochs_done, problem.max_epochs)
    return np.concatenate([[problem.epochs_done], np.maximum.accumulate(ends), [problem.max_epochs]])


def solve_ipopt(*problem: Any, **named: Any) -> Plan:
    """Solve the single-job problem as the published program does: ten iterations of Ipopt on a smoothed program.

    Slack and late problems need no solver. Else the plan is read from the point at which Ipopt stopped, converged or
    not, feasible or not (see `as_read`), and its cost is the objective there, of the smoothed program, at a point that
    may not be a plan. So the plan may miss a due date that can be met, and its cost may be below the exact optimum.

    Args:
        *problem: The arguments of `SingleJobProblem`, by place or by name.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: cyipopt or the system's Ipopt is missing.
        SolverFailedError: Ipopt ended at a point that is not finite.
    """
    return IpoptSolver()(SingleJobProblem(*problem, **named))


MOST_ITERATIONS = 3000
OPTIONS = {
    "jac_d_constant": "yes",
    "bound_relax_factor": 0.0,  # with the usual 1e-8 about one in some hundred converging solves fails
}


@dataclass(frozen=True, slots=True)
class NlpSolver:
    """A solver of single-job problems by `solve_nlp`.

    Args:
        iterations: Most iterations of Ipopt, ≥ 1; None for convergence.

    Raises:
        InputError: The number of iterations is out of its range.
    """

    iterations: int | None = None

    def __post_init__(self) -> None:
        if self.iterations is not None:
            checks.whole("iterations", self.iterations)

    def __call__(self, problem: SingleJobProblem) -> Plan:
        load_cyipopt()  # a missing solver shows at the first problem, not at the first hard one
        plan = problem.plan_without_choice()
        if plan is not None:
            return plan
        ends = _minimise(SmoothedProgram.of(problem), self.iterations)
        return problem.plan_at(repaired(problem, ends * problem.max_epochs))


def solve_nlp(*problem: Any, iterations: int | None = None, **named: Any) -> Plan:
    """Solve the single-job problem as a smoothed nonlinear program in our own form; `solve_ipopt` is the published one.

    The plan is that of `solve_single_job`. Dominated configurations are left out; undominated ones stay, also those
    above the hull. Slack and late problems need no solver. The plan at which Ipopt stops is repaired (see `repaired`),
    so that it always meets the due date, and its cost is that with the true survival function.

    Args:
        *problem: The arguments of `SingleJobProblem`, by place or by name.
        iterations: Most iterations of Ipopt, ≥ 1; None goes on to convergence.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: cyipopt or the system's Ipopt is missing.
        SolverFailedError: Ipopt found no point, or without `iterations` none with the status "solved".
    """
    return NlpSolver(iterations)(SingleJobProblem(*problem, **named))


def _minimise(program: SmoothedProgram, iterations: int | None) -> NDArray[np.float64]:
    stopped = minimise(program, MOST_ITERATIONS if iterations is None else int(iterations), OPTIONS)
    allowed = {SOLVED, ACCEPTABLE} if iterations is None else {SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS}
    if stopped.status not in allowed:
        raise SolverFailedError(NAME, stopped.message)
    if not np.all(np.isfinite(stopped.point)):
        raise SolverFailedError(NAME, "its answer is not finite")
    return stopped.point
