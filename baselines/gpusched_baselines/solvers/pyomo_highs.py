"""The one door to Pyomo and HiGHS: imported when first needed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from gpusched_baselines.solvers.errors import SolverFailedError, load

NAME = "HiGHS"
TIGHTEST = 1e-10  # the least tolerance that HiGHS takes
TOLERANCE = 1e-9  # at the usual 1e-6 a bound may come out above a schedule
INFEASIBLE = {"provenInfeasible", "locallyInfeasible", "infeasibleOrUnbounded"}  # no program here is unbounded


@dataclass(frozen=True, slots=True)
class Solved:
    """What HiGHS says of a minimisation whose solution was loaded into the model.

    Attributes:
        objective: Value of the best solution found.
        bound: No solution is below this.
        seconds: Wall clock of the solve.
    """

    objective: float
    bound: float
    seconds: float


def load_pyomo() -> Any:
    """Import `pyomo.environ`.

    Raises:
        SolverMissingError: Pyomo is missing.
    """
    return _load("pyomo.environ", "pyomo")


def require_highs() -> None:
    """Make sure that there is a HiGHS to solve with.

    Raises:
        SolverMissingError: Pyomo or highspy is missing.
    """
    _load("highspy", "highspy")
    _load("pyomo.contrib.solver.solvers.highs", "pyomo")


def new_highs(*, tolerance: float = TOLERANCE, presolve: bool = True, seconds: float = 60.0) -> Any:
    """Make a HiGHS solver that keeps its model from one solve to the next, one thread, silent.

    Args:
        tolerance: By how much a constraint, a reduced cost or a whole number may be off, ≥ 1e-10.
        presolve: Whether to look for simplifications first; with many columns and few rows that is the slowest part.
        seconds: Most wall clock of a solve.

    Raises:
        SolverMissingError: Pyomo or highspy is missing.
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
    """Minimise `model`, and load the best solution into it; give None if it surely has none.

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
