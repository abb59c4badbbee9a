"""The linear program of one job over bins, in Pyomo; HiGHS keeps it from one solve to the next."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpusched_baselines.planning.single_job import Plan, SingleJobProblem
from gpusched_baselines.solvers.errors import SolverFailedError, load

NAME = "HiGHS"
TIGHTEST = 1e-10  # the least tolerance that HiGHS accepts
TOLERANCE = 1e-9  # with the usual 1e-6 a bound may be above the cost of a schedule
INFEASIBLE = {"provenInfeasible", "locallyInfeasible", "infeasibleOrUnbounded"}  # no program here is unbounded


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of a minimisation whose solution was loaded into the model."""

    objective: float
    bound: float
    seconds: float


def load_pyomo() -> Any:
    return _load("pyomo.environ", "pyomo")


def require_highs() -> None:
    """Check that HiGHS is installed.

    Raises:
        SolverMissingError: Pyomo or highspy is missing.
    """
    _load("highspy", "highspy")
    _load("pyomo.contrib.solver.solvers.highs", "pyomo")


def new_highs(*, tolerance: float = TOLERANCE, presolve: bool = True, seconds: float = 60.0) -> Any:
    """Make a HiGHS solver that keeps its model from one solve to the next, one thread, silent.

    Args:
        tolerance: Largest error of a constraint, a reduced cost or a whole number, ≥ 1e-10.
        presolve: Whether to look for simplifications first; with many columns and few rows that is the slowest part.
    """
    require_highs()
    solver = _load("pyomo.contrib.solver.solvers.highs", "pyomo").Highs()
    config = solver.config
    config.load_solutions = False
    config.raise_exception_on_nonoptimal_result = False
    config.time_limit = seconds
    config.threads = 1
    config.rel_gap = 0.0
    tolerances = {f"{kind}_feasibility_tolerance": tolerance for kind in ("primal", "dual", "mip")}
    presolving = {} if presolve else {"presolve": "off"}
    config.solver_options = {"output_flag": False, "random_seed": 0, **tolerances, **presolving}
    return solver


def solve(solver: Any, model: Any) -> Solved | None:
    """Minimise `model`, and load the best solution into it; return None if it surely has none.

    Raises:
        SolverFailedError: No solution was found, though there may be one.
    """
    begin = time.perf_counter()
    result = solver.solve(model)
    seconds = time.perf_counter() - begin
    if result.termination_condition.name in INFEASIBLE:
        return None
    if result.incumbent_objective is None:
        raise SolverFailedError(NAME, f"no solution ({result.termination_condition.name})")
    result.solution_loader.load_vars()
    return Solved(float(result.incumbent_objective), float(result.objective_bound), seconds)


def _load(module: str, package: str) -> Any:
    return load(module, NAME, package, "solvers")


class BinProgram:
    """Minimise Σ S_b/S(w) · p_c · y_{b,c} subject to Σ_c y_{b,c} = L_b in every bin b and Σ τ_c · y_{b,c} ≤ D.

    y_{b,c} ≥ 0 are the epochs of bin b run in configuration c; L_b is the part of bin b that is left. All numbers are
    parameters, so one model is used for all problems with as many bins and configurations. HiGHS keeps the model and
    gets only the parameters that change. Epochs, times and costs are scaled to about 1.

    Args:
        bins: Number of bins B.
        configurations: Number of configurations K.
    """

    def __init__(self, bins: int, configurations: int) -> None:
        self._shape = (bins, configurations)
        self._solver = new_highs(tolerance=TIGHTEST)
        self._model = _model(load_pyomo(), bins, configurations)

    def totals(self, problem: SingleJobProblem) -> NDArray[np.float64]:
        """Solve the program of `problem`; return the epochs that each configuration runs in all, (K,)."""
        model = self._model
        lengths, alive = _bins_ahead(problem)
        costs = np.outer(alive, problem.price / problem.price[-1])
        for b in range(self._shape[0]):
            model.length[b] = float(lengths[b])
            for c in range(self._shape[1]):
                model.price[b, c] = float(costs[b, c])
        for c in range(self._shape[1]):
            model.tau[c] = float(problem.tau[c] / problem.tau[0])
        model.time_left.set_value(problem.time_left_s / (problem.tau[0] * problem.epochs_left))
        if solve(self._solver, model) is None:
            raise SolverFailedError(NAME, "it finds no plan that meets the due date")
        self._keep_structure()
        totals = np.array([model.total[c].value for c in range(self._shape[1])])
        return np.maximum(totals, 0.0) * problem.epochs_left

    def _keep_structure(self) -> None:
        updates = self._solver.config.auto_updates
        for name in updates:
            updates[name] = name == "update_parameters"


def _model(pyomo: Any, bins: int, configurations: int) -> Any:
    model = pyomo.ConcreteModel()
    model.bins, model.configurations = range(bins), range(configurations)
    model.length = pyomo.Param(model.bins, mutable=True, initialize=1.0)
    model.price = pyomo.Param(model.bins, model.configurations, mutable=True, initialize=1.0)
    model.tau = pyomo.Param(model.configurations, mutable=True, initialize=1.0)
    model.time_left = pyomo.Param(mutable=True, initialize=1.0)
    model.epochs = pyomo.Var(model.bins, model.configurations, bounds=(0.0, None))
    model.total = pyomo.Var(model.configurations)

    def every_bin_is_run(model: Any, b: int) -> Any:
        return pyomo.quicksum(model.epochs[b, c] for c in model.configurations) == model.length[b]

    def totals_add_up(model: Any, c: int) -> Any:
        return pyomo.quicksum(model.epochs[b, c] for b in model.bins) == model.total[c]

    worst_case = pyomo.quicksum(model.tau[c] * model.total[c] for c in model.configurations)
    places = [(b, c) for b in model.bins for c in model.configurations]
    model.every_bin_is_run = pyomo.Constraint(model.bins, rule=every_bin_is_run)
    model.totals_add_up = pyomo.Constraint(model.configurations, rule=totals_add_up)
    model.due_date_is_met = pyomo.Constraint(expr=worst_case <= model.time_left)
    model.cost = pyomo.Objective(expr=pyomo.quicksum(model.price[place] * model.epochs[place] for place in places))
    return model


def _bins_ahead(problem: SingleJobProblem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for every bin the part that is left, of all epochs left, and S_b/S(w); 0 and 1 for bins that are past."""
    done, first = problem.share_done, problem.first_bin
    starts = np.maximum(problem.edges[:-1], done)
    lengths = np.maximum(0.0, problem.edges[1:] - starts) / (1.0 - done)
    alive = np.ones(len(problem.survival))
    if problem.alive > 0.0:
        alive[first:] = problem.survival[first:] / problem.alive
    return lengths, alive


def repaired(problem: SingleJobProblem, ends: ArrayLike) -> NDArray[np.float64]:
    """Turn the ends of all segments but the last into breakpoints that cover the epochs left and meet the due date.

    The ends are clipped to [w, E] and sorted. If the worst case then misses the due date, every end moves towards w by
    the same factor θ, so that faster configurations begin earlier. The worst case is linear in θ, and at θ = 0 the
    fastest configuration runs throughout, which meets the due date; so the largest θ that meets it is known.

    Args:
        ends: Epoch at which configuration k ends, for all but the last, (K - 1,); finite.

    Returns:
        Breakpoints from w to E, never falling, (K + 1,).
    """
    w, largest = problem.epochs_done, problem.max_epochs
    inner = np.sort(np.clip(np.asarray(ends, dtype=np.float64), w, largest))
    starts = np.concatenate([[w], inner, [largest]])
    worst = problem.worst_case_s(starts)
    if worst > problem.time_left_s:
        fastest = problem.epochs_left * problem.tau[-1]
        theta = max(0.0, (problem.time_left_s - fastest) / (worst - fastest))
        starts[1:-1] = w + theta * (inner - w)
    return starts


SHORTEST = 1e-12  # of the epochs left; a shorter segment is within the solver's tolerance


class HighsSolver:
    """A solver of many single-job problems, faster than `solve_highs`: it keeps one model for each shape."""

    def __init__(self) -> None:
        self._programs: dict[tuple[int, int], BinProgram] = {}

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; plan and errors are those of `solve_highs`."""
        plan = problem.plan_without_choice()
        if plan is not None:
            require_highs()  # a missing solver raises at the first problem, not at the first hard one
            return plan
        shape = len(problem.survival), len(problem.tau)
        if shape not in self._programs:
            self._programs[shape] = BinProgram(*shape)
        try:
            totals = self._programs[shape].totals(problem)
        except Exception:
            del self._programs[shape]  # its state is unknown
            raise
        totals[totals < SHORTEST * problem.epochs_left] = 0.0
        ends = problem.epochs_done + np.cumsum(totals)[:-1]
        return problem.plan_at(repaired(problem, ends))

    def __reduce__(self) -> tuple[type[HighsSolver], tuple[()]]:
        return type(self), ()


def solve_highs(*problem: Any, **named: Any) -> Plan:
    """Solve the single-job problem as a linear program over the epochs of every bin in every configuration.

    The plan is that of `solve_single_job`. The program has no order within a bin, and of bins that cost the same any
    may be run faster. So the epochs of each configuration are joined, slow to fast. That takes as long and, since S
    does not rise, costs no more.

    Args:
        *problem: The arguments of `SingleJobProblem`, by place or by name.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: HiGHS found no solution.
    """
    return HighsSolver()(SingleJobProblem(*problem, **named))
