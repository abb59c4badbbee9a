"""The published nonlinear program of one job, as cyipopt calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.solvers.smoothed_program import SmoothedSurvival

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job import SingleJobProblem


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
