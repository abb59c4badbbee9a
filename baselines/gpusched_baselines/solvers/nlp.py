"""The nonlinear program of one job in a form that suits Ipopt, and a plan that always meets the due date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.solvers.bin_program import repaired
from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_baselines.solvers.ipopt import ACCEPTABLE, NAME, OUT_OF_ITERATIONS, SOLVED, load_cyipopt, minimise
from gpusched_baselines.solvers.smoothed_program import SmoothedProgram
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_baselines.planning.single_job import Plan
    from gpusched_env.model import EpochDistribution

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


def solve_nlp(
    seconds_per_epoch: ArrayLike,
    cost_eur_per_epoch: ArrayLike,
    distribution: EpochDistribution,
    max_epochs: float,
    time_left_s: float,
    epochs_done: float = 0.0,
    *,
    iterations: int | None = None,
) -> Plan:
    """Solve the single-job problem as a smoothed nonlinear program in our own form; `solve_ipopt` is the published one.

    The arguments and the plan are those of `solve_single_job`. Dominated configurations are left out, those between
    the hull and the others stay. Slack and late problems need no solver. Where Ipopt stops, the plan is repaired (see
    `repair`), so that it always meets the due date, and costed with the true survival function.

    Args:
        seconds_per_epoch: τ_c [s/epoch], (C,), > 0, in any order; inf where not allowed.
        cost_eur_per_epoch: p_c [€/epoch], (C,), ≥ 0.
        distribution: Distribution of the epochs needed.
        max_epochs: Maximum epochs E, > 0.
        time_left_s: Time to the due date D [s]; may be negative.
        epochs_done: Epochs done w, in [0, E).
        iterations: Most iterations of Ipopt, ≥ 1; None goes on to convergence.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: cyipopt or the system's Ipopt is missing.
        SolverFailedError: Ipopt found no point at all, or without `iterations` none that it calls solved.
    """
    tau, price = np.asarray(seconds_per_epoch), np.asarray(cost_eur_per_epoch)
    solver = NlpSolver(iterations)
    return solver(SingleJobProblem(tau, price, distribution, max_epochs, time_left_s, epochs_done))


def _minimise(program: SmoothedProgram, iterations: int | None) -> NDArray[np.float64]:
    """Run Ipopt from equally long segments; give the ends of all segments but the last, as fractions."""
    stopped = minimise(program, MOST_ITERATIONS if iterations is None else int(iterations), OPTIONS)
    allowed = {SOLVED, ACCEPTABLE} if iterations is None else {SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS}
    if stopped.status not in allowed:
        raise SolverFailedError(NAME, stopped.message)
    if not np.all(np.isfinite(stopped.point)):
        raise SolverFailedError(NAME, "its answer is not finite")
    return stopped.point
