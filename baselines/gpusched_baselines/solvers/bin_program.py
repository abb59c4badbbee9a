"""The bin linear program of one job in Pyomo, kept by HiGHS from one solve to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_baselines.solvers.pyomo_highs import NAME, TIGHTEST, load_pyomo, new_highs, solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job import SingleJobProblem


class BinProgram:
    """Minimise Σ S_b/S(w) · p_c · y_{b,c} subject to Σ_c y_{b,c} = L_b in every bin b and Σ τ_c · y_{b,c} ≤ D.

    y_{b,c} ≥ 0 are the epochs of bin b run in configuration c; L_b is the part of bin b that is left. All figures are
    parameters, so that one model serves every problem with as many bins and configurations; HiGHS keeps the model and
    is told only what changes. Epochs, times and costs are scaled to about 1.

    Args:
        bins: Number of bins B.
        configurations: Number of configurations K.
    """

    def __init__(self, bins: int, configurations: int) -> None:
        self._shape = (bins, configurations)
        self._solver = new_highs(tolerance=TIGHTEST)
        self._model = _model(load_pyomo(), bins, configurations)

    def totals(self, problem: SingleJobProblem) -> NDArray[np.float64]:
        """Solve the program of `problem`; give the epochs that each configuration runs in all, (K,).

        Raises:
            SolverFailedError: HiGHS finds no solution.
        """
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
        """Tell the solver to look for nothing but new values of parameters from now on."""
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
    """Give of every bin the part that is left, of all epochs left, and S_b/S(w); 0 and 1 for bins that are past."""
    done, first = problem.share_done, problem.first_bin
    starts = np.maximum(problem.edges[:-1], done)
    lengths = np.maximum(0.0, problem.edges[1:] - starts) / (1.0 - done)
    alive = np.ones(len(problem.survival))
    if problem.alive > 0.0:
        alive[first:] = problem.survival[first:] / problem.alive
    return lengths, alive
