"""A solver that always returns a plan: the exact one replaces one that is missing or fails."""

from __future__ import annotations

import time
import warnings
from typing import Literal, Protocol, get_args

import numpy as np

from gpusched_baselines.planning.single_job import Plan, SingleJobProblem, solve_exactly
from gpusched_baselines.solvers.bin_program import HighsSolver
from gpusched_baselines.solvers.errors import SolverFailedError, SolverFallbackWarning, SolverMissingError
from gpusched_baselines.solvers.ipopt import PUBLISHED_ITERATIONS, IpoptSolver, NlpSolver
from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim

SolverName = Literal["exact", "highs", "ipopt", "nlp", "nlp-10"]
SOLVER_NAMES: tuple[str, ...] = get_args(SolverName)
USED_AS_IT_IS = {"ipopt"}  # solvers whose plans need not meet the due date
ROUNDING = 1e-9  # relative


class SingleJobSolver(Protocol):
    """A solver of single-job problems: `solve_exactly`, and all that can replace it."""

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Return the plan of one problem."""


def single_job_solver(name: str) -> SingleJobSolver:
    """Make the solver `name`: "ipopt" is the published program, "nlp" our own form, "nlp-10" that after ten iterations.

    Raises:
        InputError: There is no such solver.
    """
    if name == "exact":
        return solve_exactly
    if name == "highs":
        return HighsSolver()
    if name == "ipopt":
        return IpoptSolver()
    if name in {"nlp", "nlp-10"}:
        return NlpSolver(PUBLISHED_ITERATIONS if name == "nlp-10" else None)
    raise InputError("solver", name, f"one of {', '.join(SOLVER_NAMES)}")


class FallbackSolver:
    """A solver that uses the solver `name`, and the exact one where that is missing or fails.

    A solver fails if it raises, or returns an invalid plan: one that is not finite, does not run all epochs left, or
    misses a due date that can be met (the published program's plans are used nevertheless). The first time a
    `SolverFallbackWarning` appears; after that, `fallbacks` only counts. A solver that is missing is not tried again.

    Args:
        name: Name of the solver, as `single_job_solver` knows it.
        solver: The solver itself; by default the one of that name.

    Attributes:
        name: Name of the solver.
        solves: Problems solved so far.
        fallbacks: How many of them the exact solver solved instead.
        solver_s: Time in the solver so far, with making its programs [s].

    Raises:
        InputError: There is no such solver.
    """

    def __init__(self, name: str, solver: SingleJobSolver | None = None) -> None:
        self.name = name
        self.solves = 0
        self.fallbacks = 0
        self.solver_s = 0.0
        self._solver = single_job_solver(name) if solver is None else solver
        self._missing = False

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; never fails."""
        self.solves += 1
        if not self._missing:
            try:
                plan = self._timed(problem)
                _check_plan(self.name, plan, problem)
            except SolverMissingError as error:
                self._missing = True
                reason = str(error)
            except SolverFailedError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - whatever a solver does, the job must get its plan
                reason = str(SolverFailedError(self.name, f"{type(error).__name__}: {error}"))
            else:
                return plan
            self._say_once(reason)
        self.fallbacks += 1
        return solve_exactly(problem)

    def _timed(self, problem: SingleJobProblem) -> Plan:
        begin = time.perf_counter()
        try:
            return self._solver(problem)
        finally:
            self.solver_s += time.perf_counter() - begin

    def _say_once(self, reason: str) -> None:
        if self.fallbacks == 0:
            message = f"{reason}. The exact solver is used instead, now and whenever this happens again."
            warnings.warn(message, SolverFallbackWarning, stacklevel=3)


def _check_plan(solver: str, plan: Plan, problem: SingleJobProblem) -> None:
    numbers = [plan.expected_cost_eur, plan.worst_case_s]
    rounding = ROUNDING * problem.max_epochs
    at = problem.epochs_done
    for segment in plan.segments:
        numbers += [segment.start_epoch, segment.end_epoch]
        if abs(segment.start_epoch - at) > rounding or segment.end_epoch < segment.start_epoch:
            raise SolverFailedError(solver, "its plan has a gap")
        at = segment.end_epoch
    if not np.all(np.isfinite(numbers)):
        raise SolverFailedError(solver, "its plan is not finite")
    if abs(at - problem.max_epochs) > rounding:
        raise SolverFailedError(solver, "its plan does not run all epochs")
    due = plan.status != "late" and solver not in USED_AS_IT_IS
    if due and sim.misses(plan.worst_case_s * (1.0 - ROUNDING), problem.time_left_s):
        raise SolverFailedError(solver, "its plan misses the due date")
