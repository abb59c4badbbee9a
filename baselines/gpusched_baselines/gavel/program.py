"""The linear program that all of Gavel's policies share: whose shares of time, and that GPUs are not sold twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.sparse import csr_array, hstack, vstack  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand


class ProgramError(RuntimeError):
    """The solver found no solution where there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An optimum.

    Attributes:
        x: Shares of time, (A, K), in [0, 1].
        extra: The other variables, (E,).
        value: The least value of the objective.
        duals: What the objective would fall by per unit of the rows that were added, ≥ 0.
    """

    x: NDArray[np.float64]
    extra: NDArray[np.float64]
    value: float
    duals: NDArray[np.float64]


class Program:
    """x ≥ 0, Σ_k x[j, k] ≤ 1, Σ_j g[j, k] x[j, k] ≤ W_v over the options k of type v; and further rows.

    There is a variable for every option that exists, and `extra` others ≥ 0. Programs are scaled: jobs' rows should
    have coefficients near 1.
    """

    def __init__(self, demand: Demand, extra: int = 0) -> None:
        self.demand, self.extra = demand, extra
        self.row, self.option = np.nonzero(demand.speed > 0.0)
        jobs, types = demand.speed.shape[0], len(demand.capacity)
        each = np.arange(len(self.row))
        of_jobs = csr_array((np.ones(len(each)), (self.row, each)), (jobs, len(each)))
        kind = demand.kind[self.option]
        gpus = demand.gpus[self.row, self.option] / np.maximum(demand.capacity[kind], 1e-300)
        of_types = csr_array((gpus, (kind, each)), (types, len(each)))
        base = vstack([of_jobs, of_types])
        self.base = hstack([base, csr_array((jobs + types, extra))]) if extra else base

    def per_job(self, worth: NDArray[np.float64]) -> csr_array:
        """Give the matrix that makes Σ_k worth[j, k] x[j, k] of the variables of the options, (A, n)."""
        each = np.arange(len(self.row))
        return csr_array((worth[self.row, self.option], (self.row, each)), (len(worth), len(each)))

    def least(
        self,
        cost: NDArray[np.float64],
        extra_cost: NDArray[np.float64],
        rows: csr_array | None = None,
        most: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
    ) -> Solution | None:
        """Minimise Σ cost · x + Σ extra_cost · extra; None if there is no solution.

        Args:
            cost: What the options cost, (A, K).
            extra_cost: What the other variables cost, (E,).
            rows: Further rows over all variables; they must not exceed `most`.
            most: See there.
            upper: Upper bounds of the other variables, (E,); by default none.

        Raises:
            ProgramError: The solver gave up.
        """
        matrix = self.base if rows is None else vstack([self.base, rows])
        ones = np.ones(self.base.shape[0])
        bound = ones if most is None else np.concatenate([ones, most])
        highest = np.concatenate([np.ones(len(self.row)), np.full(self.extra, np.inf) if upper is None else upper])
        objective = np.concatenate([cost[self.row, self.option], extra_cost])
        bounds = np.column_stack([np.zeros(len(highest)), highest])
        found = linprog(objective, A_ub=matrix, b_ub=bound, bounds=bounds, method="highs")
        if found.status == 2:
            return None
        if found.status != 0:
            raise ProgramError(f"HiGHS: {found.message}")
        x = np.zeros(self.demand.speed.shape)
        n = len(self.row)
        x[self.row, self.option] = np.clip(found.x[:n], 0.0, 1.0)
        x /= np.maximum(1.0, x.sum(axis=1))[:, None]  # the solver takes sums of 1 + 1e-7 for 1
        return Solution(x, found.x[n:], float(found.fun), -found.ineqlin.marginals[len(ones) :])


def raised(
    demand: Demand, worth: NDArray[np.float64], slope: NDArray[np.float64], base: NDArray[np.float64]
) -> Solution:
    """Raise the level t as far as there are GPUs for it: Σ_k worth[j, k] x[j, k] ≥ base_j + slope_j t for all jobs.

    Args:
        demand: The jobs and the GPUs.
        worth: What a share of an option is worth, (A, K).
        slope: What every job gets of the level, ≥ 0 and above 0 for one at least, (A,).
        base: What it gets anyway, which must be possible, (A,).

    Returns:
        An optimum with t in `extra`; `duals` are those of the jobs' rows: where one is above 0, the job cannot get more
        without another one that gets less.

    Raises:
        ProgramError: The solver gave up, or there is no solution.
    """
    program = Program(demand, extra=1)
    scale = np.maximum(worth.max(axis=1), 1e-300)
    rows = hstack([-program.per_job(worth / scale[:, None]), csr_array((slope / scale)[:, None])])
    nothing = np.zeros(worth.shape)
    found = program.least(nothing, np.array([-1.0]), rows, -base / scale)
    if found is None:
        raise ProgramError("the level cannot be met")
    return found
