"""The nonlinear program of one job in a form that suits Ipopt, and a plan that always meets the due date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.solvers.bin_program import repaired
from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_baselines.solvers.ipopt import ACCEPTABLE, NAME, OUT_OF_ITERATIONS, SOLVED, load_cyipopt, minimise
from gpusched_baselines.solvers.smoothed_program import SmoothedProgram
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job import Plan

MOST_ITERATIONS = 3000
OPTIONS = {
    "jac_d_constant": "yes",
    "bound_relax_factor": 0.0,  # relaxed by 1e-8 as usual, a converging solve in some hundreds fails
}


@dataclass(frozen=True, slots=True)
class NlpSolver:
    """Solves single-job problems as `solve_nlp` does.

    Args:
        iterations: Most iterations of Ipopt, ≥ 1; None goes on to convergence.

    Raises:
        InputError: The number of iterations is out of its range.
    """

    iterations: int | None = None

    def __post_init__(self) -> None:
        if self.iterations is not None:
            checks.whole("iterations", self.iterations)

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; plan and errors are those of `solve_nlp`."""
        load_cyipopt()  # a missing solver shows at the first problem, not at the first hard one
        plan = problem.plan_without_choice()
        if plan is not None:
            return plan
        ends = _minimise(SmoothedProgram.of(problem), self.iterations)
        return problem.plan_at(repaired(problem, ends * problem.max_epochs))


def solve_nlp(*problem: Any, iterations: int | None = None, **named: Any) -> Plan:
    """Solve the single-job problem as a smoothed nonlinear program in our own form; `solve_ipopt` is the published one.

    The plan is that of `solve_single_job`. Dominated configurations are left out, those between
    the hull and the others stay. Slack and late problems need no solver. Where Ipopt stops, the plan is repaired (see
    `repair`), so that it always meets the due date, and costed with the true survival function.

    Args:
        *problem: The arguments of `SingleJobProblem`, by place or by name.
        iterations: Most iterations of Ipopt, ≥ 1; None goes on to convergence.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: cyipopt or the system's Ipopt is missing.
        SolverFailedError: Ipopt found no point at all, or without `iterations` none that it calls solved.
    """
    return NlpSolver(iterations)(SingleJobProblem(*problem, **named))


def _minimise(program: SmoothedProgram, iterations: int | None) -> NDArray[np.float64]:
    """Run Ipopt from equally long segments; give the ends of all segments but the last, as fractions."""
    stopped = minimise(program, MOST_ITERATIONS if iterations is None else int(iterations), OPTIONS)
    allowed = {SOLVED, ACCEPTABLE} if iterations is None else {SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS}
    if stopped.status not in allowed:
        raise SolverFailedError(NAME, stopped.message)
    if not np.all(np.isfinite(stopped.point)):
        raise SolverFailedError(NAME, "its answer is not finite")
    return stopped.point
