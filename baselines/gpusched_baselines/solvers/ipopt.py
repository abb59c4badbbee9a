"""The thesis's nonlinear program of one job, solved by Ipopt through cyipopt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_baselines.solvers.loading import load
from gpusched_baselines.solvers.repair import repaired
from gpusched_baselines.solvers.smoothed_program import SmoothedProgram
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_baselines.planning.single_job_plan import Plan
    from gpusched_env.model import EpochDistribution

NAME = "Ipopt"
DEBIAN = ("coinor-libipopt-dev", "pkg-config", "liblapack-dev", "libblas-dev", "gcc", "python3-dev")
THESIS_ITERATIONS = 10
MOST_ITERATIONS = 3000
MOST_SECONDS = 30.0
SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS = 0, 1, -1  # Ipopt's own numbers


@dataclass(frozen=True, slots=True)
class IpoptSolver:
    """Solves single-job problems as `solve_ipopt` does.

    Args:
        iterations: Most iterations of Ipopt, ≥ 1; None goes on to convergence.

    Raises:
        InputError: The number of iterations is out of its range.
    """

    iterations: int | None = THESIS_ITERATIONS

    def __post_init__(self) -> None:
        if self.iterations is not None:
            checks.whole("iterations", self.iterations)

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; plan and errors are those of `solve_ipopt`."""
        cyipopt = load("cyipopt", NAME, "cyipopt", "ipopt", DEBIAN)
        plan = problem.plan_without_choice()
        if plan is not None:
            return plan
        ends = _minimise(cyipopt, SmoothedProgram.of(problem), self.iterations)
        return problem.plan_at(repaired(problem, ends * problem.max_epochs))


def solve_ipopt(
    seconds_per_epoch: ArrayLike,
    cost_eur_per_epoch: ArrayLike,
    distribution: EpochDistribution,
    max_epochs: float,
    time_left_s: float,
    epochs_done: float = 0.0,
    *,
    iterations: int | None = THESIS_ITERATIONS,
) -> Plan:
    """Solve the single-job problem as the thesis did: a smoothed nonlinear program, stopped after a few iterations.

    The arguments and the plan are those of `solve_single_job`. Dominated configurations are left out, those between
    the hull and the others stay, as in the thesis. Slack and late problems need no solver. Where Ipopt stops, the plan
    is repaired (see `repair`), so that it always meets the due date, and costed with the true survival function.

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
    solver = IpoptSolver(iterations)
    return solver(SingleJobProblem(tau, price, distribution, max_epochs, time_left_s, epochs_done))


def _minimise(cyipopt: Any, program: SmoothedProgram, iterations: int | None) -> NDArray[np.float64]:
    """Run Ipopt from equally long segments; give the ends of all segments but the last, as fractions."""
    lower, upper = program.bounds
    constraint_lower, constraint_upper = program.constraint_bounds
    solver = cyipopt.Problem(
        n=len(lower),
        m=len(constraint_upper),
        problem_obj=program,
        lb=lower,
        ub=upper,
        cl=constraint_lower,
        cu=constraint_upper,
    )
    options = {
        "print_level": 0,
        "sb": "yes",
        "max_iter": MOST_ITERATIONS if iterations is None else int(iterations),
        "max_cpu_time": MOST_SECONDS,
        "jac_d_constant": "yes",
        "bound_relax_factor": 0.0,  # relaxed by 1e-8 as usual, a converging solve in some hundreds fails
    }
    for option, value in options.items():
        solver.add_option(option, value)
    ends, info = solver.solve(program.start)
    allowed = {SOLVED, ACCEPTABLE} if iterations is None else {SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS}
    if info["status"] not in allowed:
        message = info["status_msg"]
        raise SolverFailedError(NAME, message.decode() if isinstance(message, bytes) else str(message))
    if not np.all(np.isfinite(ends)):
        raise SolverFailedError(NAME, "its answer is not finite")
    return np.asarray(ends, dtype=np.float64)
