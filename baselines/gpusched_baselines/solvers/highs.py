"""The single-job problem as a linear program over bins, solved by HiGHS through Pyomo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.solvers.bin_program import BinProgram
from gpusched_baselines.solvers.pyomo_highs import require_highs
from gpusched_baselines.solvers.repair import repaired

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gpusched_baselines.planning.single_job_plan import Plan
    from gpusched_env.model import EpochDistribution

SHORTEST = 1e-12  # of the epochs left; a shorter run is the solver's tolerance


class HighsSolver:
    """Solves single-job problems one after the other, faster than `solve_highs`: it keeps a model of every shape."""

    def __init__(self) -> None:
        self._programs: dict[tuple[int, int], BinProgram] = {}

    def __call__(self, problem: SingleJobProblem) -> Plan:
        """Solve one problem; plan and errors are those of `solve_highs`."""
        plan = problem.plan_without_choice()
        if plan is not None:
            require_highs()  # a missing solver shows at the first problem, not at the first hard one
            return plan
        shape = len(problem.survival), len(problem.tau)
        if shape not in self._programs:
            self._programs[shape] = BinProgram(*shape)
        try:
            totals = self._programs[shape].totals(problem)
        except Exception:
            del self._programs[shape]  # whatever state it is in
            raise
        totals[totals < SHORTEST * problem.epochs_left] = 0.0
        ends = problem.epochs_done + np.cumsum(totals)[:-1]
        return problem.plan_at(repaired(problem, ends))

    def __reduce__(self) -> tuple[type[HighsSolver], tuple[()]]:
        """Return what makes a fresh solver in another process."""
        return type(self), ()


def solve_highs(
    seconds_per_epoch: ArrayLike,
    cost_eur_per_epoch: ArrayLike,
    distribution: EpochDistribution,
    max_epochs: float,
    time_left_s: float,
    epochs_done: float = 0.0,
) -> Plan:
    """Solve the single-job problem as a linear program: how many epochs of every bin run in which configuration.

    The arguments and the plan are those of `solve_single_job`. The program gives no order within a bin, and of bins
    that cost the same any may be run faster; so each configuration's epochs are put end to end, slow to fast. That
    takes as long and, since S does not rise, costs no more.

    Args:
        seconds_per_epoch: τ_c [s/epoch], (C,), > 0, in any order; inf where not allowed.
        cost_eur_per_epoch: p_c [€/epoch], (C,), ≥ 0.
        distribution: Distribution of the epochs needed.
        max_epochs: Maximum epochs E, > 0.
        time_left_s: Time to the due date D [s]; may be negative.
        epochs_done: Epochs done w, in [0, E).

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: HiGHS found no solution.
    """
    tau, price = np.asarray(seconds_per_epoch), np.asarray(cost_eur_per_epoch)
    return HighsSolver()(SingleJobProblem(tau, price, distribution, max_epochs, time_left_s, epochs_done))
