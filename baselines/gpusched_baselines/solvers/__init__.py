"""Solver references: the single-job problem by Ipopt and HiGHS.

Pyomo, HiGHS and cyipopt are imported when they are first needed; without them everything else works.
"""

from gpusched_baselines.solvers.bin_program import HighsSolver, require_highs, solve_highs
from gpusched_baselines.solvers.errors import SolverFailedError, SolverFallbackWarning, SolverMissingError
from gpusched_baselines.solvers.fallback import SOLVER_NAMES, FallbackSolver, SingleJobSolver, single_job_solver
from gpusched_baselines.solvers.ipopt import IpoptSolver, NlpSolver, solve_ipopt, solve_nlp

__all__ = [
    "SOLVER_NAMES",
    "FallbackSolver",
    "HighsSolver",
    "IpoptSolver",
    "NlpSolver",
    "SingleJobSolver",
    "SolverFailedError",
    "SolverFallbackWarning",
    "SolverMissingError",
    "require_highs",
    "single_job_solver",
    "solve_highs",
    "solve_ipopt",
    "solve_nlp",
]
