"""The smoothed nonlinear program of one job, with exact first and second derivatives, as cyipopt calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.solvers.smoothing import WIDTH, SmoothedSurvival

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job import SingleJobProblem


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedProgram:
    """Minimise Σ p_k · (F(x_k) - F(x_{k-1})) subject to Σ τ_k · (x_k - x_{k-1}) ≤ D and x_{k-1} ≤ x_k.

    Configuration k runs from x_{k-1} to x_k; x_0 = w and x_K = E are fixed, the K - 1 between them are the variables,
    as fractions of E. F is the integral of the smoothed S. The objective is a sum of functions of one variable each,
    with the second derivatives (p_k - p_{k+1}) · S'(x_k) ≥ 0: the Hessian is diagonal, and the program is convex.

    The objective is scaled to the cost of running all epochs left in the dearest configuration, and the time to the
    slowest one's, so that both are about 1.

    Attributes:
        tau: Seconds per epoch, slow to fast, scaled to the slowest, (K,).
        price: Cost per epoch, cheap to dear, scaled, (K,).
        smoothed: The smoothed survival function.
        done: w, as a fraction of E.
        time_left: D, scaled.
    """

    tau: NDArray[np.float64]
    price: NDArray[np.float64]
    smoothed: SmoothedSurvival
    done: float
    time_left: float

    @classmethod
    def of(cls, problem: SingleJobProblem, width: float = WIDTH) -> SmoothedProgram:
        """Scale `problem` and smooth its survival function over `width` of a bin."""
        done = problem.share_done
        alive = problem.alive if problem.alive > 0.0 else 1.0
        return cls(
            tau=problem.tau / problem.tau[0],
            price=problem.price / (problem.price[-1] * alive * (1.0 - done)),
            smoothed=SmoothedSurvival.of(problem.edges, problem.survival, width),
            done=done,
            time_left=problem.time_left_s / (problem.tau[0] * problem.max_epochs),
        )

    @property
    def start(self) -> NDArray[np.float64]:
        """Give the point that the solver starts from: all segments equally long."""
        points: NDArray[np.float64] = np.linspace(self.done, 1.0, len(self.tau) + 1)[1:-1]
        return points

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the bounds of the variables: w and E."""
        return np.full(len(self.tau) - 1, self.done), np.ones(len(self.tau) - 1)

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the bounds of `constraints`: at most the time left, and never after the next breakpoint."""
        count = len(self.tau) - 1
        return np.full(count, -np.inf), np.append(self.time_left, np.zeros(count - 1))

    def objective(self, x: NDArray[np.float64]) -> float:
        """Give the scaled expected cost."""
        ends = self.smoothed.integral(np.concatenate([[self.done], x, [1.0]]))
        return float(np.dot(self.price, np.diff(ends)))

    def gradient(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the first derivatives of the objective: (p_k - p_{k+1}) · S(x_k)."""
        return (self.price[:-1] - self.price[1:]) * self.smoothed.value(x)

    def constraints(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the worst-case time, and x_k - x_{k+1} for every two neighbours."""
        lengths = np.diff(np.concatenate([[self.done], x, [1.0]]))
        return np.append(np.dot(self.tau, lengths), x[:-1] - x[1:])

    def jacobianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give rows and columns of the entries of `jacobian`."""
        count = len(self.tau) - 1
        order = np.arange(1, count)
        rows = np.concatenate([np.zeros(count, dtype=np.int64), order, order])
        return rows, np.concatenate([np.arange(count), order - 1, order])

    def jacobian(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the first derivatives of the constraints, which are linear."""
        ones = np.ones(len(x) - 1)
        return np.concatenate([self.tau[:-1] - self.tau[1:], ones, -ones])

    def hessianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give rows and columns of the entries of `hessian`: the diagonal."""
        diagonal = np.arange(len(self.tau) - 1)
        return diagonal, diagonal

    def hessian(
        self,
        x: NDArray[np.float64],
        multipliers: NDArray[np.float64],  # noqa: ARG002 - of the constraints, which are linear
        factor: float,
    ) -> NDArray[np.float64]:
        """Give the second derivatives of `factor` · objective: (p_k - p_{k+1}) · S'(x_k)."""
        return factor * (self.price[:-1] - self.price[1:]) * self.smoothed.slope(x)
