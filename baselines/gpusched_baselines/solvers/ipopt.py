"""One job by Ipopt as published, ten iterations whose result is used as it is, and the way to cyipopt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpusched_baselines.planning.single_job import Plan, SingleJobProblem, segments_of
from gpusched_baselines.solvers.errors import SolverFailedError, load
from gpusched_baselines.solvers.smoothed_program import SmoothedSurvival

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PublishedProgram:
    """Minimise Σ p_k · (F(x_k) - F(x_{k-1})) subject to Σ τ_k · (x_k - x_{k-1}) = D, x_0 = w, x_N = E, x_{k-1} ≤ x_k.

    All N + 1 breakpoints are variables in [0, E], in epochs; the due date is an equality. All allowed configurations
    take part, from slow to fast, dominated ones as well. F is the integral of S, smoothed in the published way, over
    S(w). Ipopt starts from 0.

    Attributes:
        configurations: The allowed configurations, slow to fast; of equally fast ones the cheaper first, (N,).
        tau: Their seconds per epoch, (N,).
        price: Their cost per epoch [€], (N,).
        smoothed: The smoothed survival function, over fractions of E.
        alive: S(w); 1 if the job should be dead by now.
        done: w.
        largest: E.
        time_left_s: D [s].
    """

    configurations: NDArray[np.int64]
    tau: NDArray[np.float64]
    price: NDArray[np.float64]
    smoothed: SmoothedSurvival
    alive: float
    done: float
    largest: float
    time_left_s: float

    @classmethod
    def of(cls, problem: SingleJobProblem) -> PublishedProgram:
        """Pose the program of `problem`."""
        tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
        order = np.lexsort((price, -tau))
        order = order[np.isfinite(tau[order])]
        return cls(
            configurations=order,
            tau=tau[order],
            price=price[order],
            smoothed=SmoothedSurvival.published(problem.edges, problem.survival),
            alive=problem.alive if problem.alive > 0.0 else 1.0,
            done=problem.epochs_done,
            largest=problem.max_epochs,
            time_left_s=problem.time_left_s,
        )

    @property
    def start(self) -> NDArray[np.float64]:
        """Give the point that the solver starts from: 0."""
        return np.zeros(len(self.tau) + 1)

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the bounds of the variables: 0 and E."""
        return np.zeros(len(self.tau) + 1), np.full(len(self.tau) + 1, self.largest)

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the bounds of `constraints`: D, w and E exactly, and never after the next breakpoint."""
        fixed, ordered = np.array([self.time_left_s, self.done, self.largest]), np.zeros(len(self.tau))
        return np.append(fixed, ordered - np.inf), np.append(fixed, ordered)

    def objective(self, x: NDArray[np.float64]) -> float:
        """Give the expected cost [€] by the smoothed S."""
        epochs = np.diff(self.smoothed.integral(x / self.largest)) * self.largest
        return float(np.dot(self.price, epochs)) / self.alive

    def gradient(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the first derivatives of the objective: (p_k - p_{k+1}) · S(x_k)/S(w), with p_0 = p_{N+1} = 0."""
        return self._falls * self.smoothed.value(x / self.largest)

    def constraints(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the worst-case time, both ends, and x_{k-1} - x_k for every two neighbours."""
        return np.concatenate([[np.dot(self.tau, np.diff(x)), x[0], x[-1]], x[:-1] - x[1:]])

    def jacobianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give rows and columns of the entries of `jacobian`."""
        count = len(self.tau)
        order = np.arange(count)
        rows = np.concatenate([np.zeros(count + 1, dtype=np.int64), [1, 2], order + 3, order + 3])
        return rows, np.concatenate([np.arange(count + 1), [0, count], order, order + 1])

    def jacobian(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the first derivatives of the constraints, which are linear."""
        ones = np.ones(len(x) - 1)
        seconds = np.append(0.0, self.tau) - np.append(self.tau, 0.0)
        return np.concatenate([seconds, [1.0, 1.0], ones, -ones])

    def hessianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give rows and columns of the entries of `hessian`: the diagonal."""
        diagonal = np.arange(len(self.tau) + 1)
        return diagonal, diagonal

    def hessian(
        self,
        x: NDArray[np.float64],
        multipliers: NDArray[np.float64],  # noqa: ARG002 - of the constraints, which are linear
        factor: float,
    ) -> NDArray[np.float64]:
        """Give the second derivatives of `factor` · objective: (p_k - p_{k+1}) · S'(x_k)/S(w)."""
        return factor * self._falls * self.smoothed.slope(x / self.largest) / self.largest

    @property
    def _falls(self) -> NDArray[np.float64]:
        falls: NDArray[np.float64] = (np.append(0.0, self.price) - np.append(self.price, 0.0)) / self.alive
        return falls


NAME = "Ipopt"
DEBIAN = ("coinor-libipopt-dev", "pkg-config", "liblapack-dev", "libblas-dev", "gcc", "python3-dev")
MOST_SECONDS = 30.0
SOLVED, ACCEPTABLE, OUT_OF_ITERATIONS = 0, 1, -1  # Ipopt's own numbers


class Program(Protocol):
    """What Ipopt needs to know of a program, besides the functions that cyipopt calls by name."""

    @property
    def start(self) -> NDArray[np.float64]:
        """Give the point that the solver starts from, (n,)."""

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the least and greatest values of the variables, (n,) each."""

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the least and greatest values of the constraints, (m,) each."""


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """Where Ipopt stopped.

    Attributes:
        point: The variables, (n,).
        status: Ipopt's own number; 0 and 1: it converged, -1: it was out of iterations.
        message: What that number means.
    """

    point: NDArray[np.float64]
    status: int
    message: str


def load_cyipopt() -> Any:
    """Import `cyipopt`.

    Raises:
        SolverMissingError: cyipopt or the system's Ipopt is missing.
    """
    return load("cyipopt", NAME, "cyipopt", "ipopt", DEBIAN)


def minimise(program: Program, iterations: int, options: Mapping[str, object]) -> Iterate:
    """Run Ipopt, silent, from the program's start for so many iterations at most; it may stop anywhere.

    Raises:
        SolverMissingError: cyipopt or the system's Ipopt is missing.
    """
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
    """Solves single-job problems as `solve_ipopt` does."""

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
    """Read breakpoints from where Ipopt stopped, as who follows the plan does.

    It runs the first configuration whose segment ends after the present epoch, until then, and so on: a segment that
    ends before one of those before it runs nothing, and the last runs to the end. Nothing else is changed: the plan may
    miss the due date, or spare none of the time to it.

    Args:
        point: x_0 … x_N [epochs], (N + 1,); finite.
        problem: The problem.

    Returns:
        Breakpoints from w to E, never falling, (N + 1,).
    """
    ends = np.clip(point[1:-1], problem.epochs_done, problem.max_epochs)
    return np.concatenate([[problem.epochs_done], np.maximum.accumulate(ends), [problem.max_epochs]])


def solve_ipopt(*problem: Any, **named: Any) -> Plan:
    """Solve the single-job problem as the published program does: ten iterations of Ipopt on a smoothed program.

    Slack and late problems need no solver. Else the plan is read from
    where Ipopt stopped, converged or not, feasible or not (see `as_read`), and its cost is the objective there: of the
    smoothed program, and of a point that may be no plan. So the plan may miss a due date that can be met, and its cost
    may be below the exact optimum.

    Args:
        *problem: The arguments of `SingleJobProblem`, by place or by name.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: cyipopt or the system's Ipopt is missing.
        SolverFailedError: Ipopt ended at a point that is not finite.
    """
    return IpoptSolver()(SingleJobProblem(*problem, **named))
