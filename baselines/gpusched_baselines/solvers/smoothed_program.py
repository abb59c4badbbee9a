"""The nonlinear program of one job, as published and in our own form, with exact derivatives, for cyipopt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_env.errors import InputError

WIDTH = 0.01
"""Width of a ramp, as a fraction of the bin before the edge, or of the narrower of the two bins that it joins."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedSurvival:
    """S with linear ramps in place of steps: continuous, piecewise linear, never rising.

    Its integral F has a continuous derivative and is quadratic on every piece.

    Attributes:
        knots: Where pieces meet, as fractions of the maximum epochs, from 0 to 1, (P,).
        values: The smoothed S at the knots, (P,).
        integrals: F at the knots, (P,).
    """

    knots: NDArray[np.float64]
    values: NDArray[np.float64]
    integrals: NDArray[np.float64]

    @classmethod
    def of(cls, edges: NDArray[np.float64], survival: NDArray[np.float64], width: float = WIDTH) -> SmoothedSurvival:
        """Smooth the survival function that is `survival[b]` from `edges[b]` to `edges[b + 1]`: our own form.

        Every ramp has its middle on an inner edge, so the integral over a whole ramp is that of S.
        """
        if not 0.0 < width <= 1.0:
            raise InputError("width", width, "a number in (0, 1]")
        lengths = np.diff(edges)
        half = 0.5 * width * np.minimum(lengths[:-1], lengths[1:])
        inner = np.stack([edges[1:-1] - half, edges[1:-1] + half], axis=1).ravel()
        knots = np.concatenate([edges[:1], inner, edges[-1:]])
        values = np.repeat(survival, 2)
        pieces = 0.5 * (values[:-1] + values[1:]) * np.diff(knots)
        return cls(knots, values, np.append(0.0, np.cumsum(pieces)))

    @classmethod
    def published(cls, edges: NDArray[np.float64], survival: NDArray[np.float64]) -> SmoothedSurvival:
        """Smooth as the published program does: a ramp from w - h to w before every edge w, down to 0 before the last.

        A bin without mass is joined to the bin after it, and h is `WIDTH` of the bin that ends at w.
        """
        after = np.append(survival[1:], 0.0)
        steps = np.flatnonzero(survival > after)
        ends = edges[1:][steps]
        starts = ends - WIDTH * np.diff(ends, prepend=0.0)
        knots = np.concatenate([edges[:1], np.stack([starts, ends], axis=1).ravel()])
        values = np.concatenate([survival[:1], np.stack([survival[steps], after[steps]], axis=1).ravel()])
        if ends[-1] < edges[-1]:
            knots, values = np.append(knots, edges[-1]), np.append(values, 0.0)
        pieces = 0.5 * (values[:-1] + values[1:]) * np.diff(knots)
        return cls(knots, values, np.append(0.0, np.cumsum(pieces)))

    def value(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        piece, slope = self._piece(x)
        return self.values[piece] + slope * (x - self.knots[piece])

    def slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative of the smoothed S at `x`, ≤ 0; at a knot that of the piece after it."""
        return self._piece(x)[1]

    def integral(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        piece, slope = self._piece(x)
        beyond = x - self.knots[piece]
        return self.integrals[piece] + beyond * (self.values[piece] + 0.5 * slope * beyond)

    def _piece(self, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        piece = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        lengths = self.knots[piece + 1] - self.knots[piece]
        rise = self.values[piece + 1] - self.values[piece]
        return piece, np.divide(rise, lengths, out=np.zeros_like(rise), where=lengths > 0.0)


class BreakpointProgram:
    """The common part of both programs, for cyipopt: costs of one variable each, and linear constraints.

    The objective's derivative by x_k is `falls[k]` times the smoothed S at x_k, so that the Hessian is diagonal. A
    program also has `start`, the point that the solver starts from, (n,), `bounds`, the least and greatest values of
    the variables, (n,) each, and `constraint_bounds`, those of the constraints, (m,) each.
    """

    __slots__ = ()
    smoothed: SmoothedSurvival

    @property
    def most(self) -> float:
        return 1.0

    @property
    def falls(self) -> NDArray[np.float64]:
        """Return p_k - p_{k+1}, scaled, for every variable, (n,)."""
        raise NotImplementedError

    def gradient(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the first derivatives of the objective: (p_k - p_{k+1}) · S(x_k)."""
        return self.falls * self.smoothed.value(x / self.most)

    def hessianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of the entries of `hessian`: the diagonal."""
        diagonal = np.arange(len(self.falls))
        return diagonal, diagonal

    def hessian(
        self,
        x: NDArray[np.float64],
        multipliers: NDArray[np.float64],  # noqa: ARG002 - of the constraints, which are linear
        factor: float,
    ) -> NDArray[np.float64]:
        """Return the second derivatives of `factor` · objective: (p_k - p_{k+1}) · S'(x_k)."""
        return factor * self.falls * self.smoothed.slope(x / self.most) / self.most


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedProgram(BreakpointProgram):
    """Minimise Σ p_k · (F(x_k) - F(x_{k-1})) subject to Σ τ_k · (x_k - x_{k-1}) ≤ D and x_{k-1} ≤ x_k.

    Configuration k runs from x_{k-1} to x_k; x_0 = w and x_K = E are fixed, the K - 1 between them are the variables,
    as fractions of E. F is the integral of the smoothed S. The objective is a sum of functions of one variable each,
    with the second derivatives (p_k - p_{k+1}) · S'(x_k) ≥ 0: the Hessian is diagonal, and the program is convex.

    The objective is scaled to the cost of running all epochs left in the costliest configuration, and the time to the
    slowest one's, so that both are about 1.

    Attributes:
        tau: Seconds per epoch, slow to fast, scaled to the slowest, (K,).
        price: Cost per epoch, cheap to costly, scaled, (K,).
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
        points: NDArray[np.float64] = np.linspace(self.done, 1.0, len(self.tau) + 1)[1:-1]
        return points

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.full(len(self.tau) - 1, self.done), np.ones(len(self.tau) - 1)

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of `constraints`: at most the time left, and never after the next breakpoint."""
        count = len(self.tau) - 1
        return np.full(count, -np.inf), np.append(self.time_left, np.zeros(count - 1))

    def objective(self, x: NDArray[np.float64]) -> float:
        ends = self.smoothed.integral(np.concatenate([[self.done], x, [1.0]]))
        return float(np.dot(self.price, np.diff(ends)))

    def constraints(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the worst-case time, and x_k - x_{k+1} for every two neighbours."""
        lengths = np.diff(np.concatenate([[self.done], x, [1.0]]))
        return np.append(np.dot(self.tau, lengths), x[:-1] - x[1:])

    def jacobianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        count = len(self.tau) - 1
        order = np.arange(1, count)
        rows = np.concatenate([np.zeros(count, dtype=np.int64), order, order])
        return rows, np.concatenate([np.arange(count), order - 1, order])

    def jacobian(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        ones = np.ones(len(x) - 1)
        return np.concatenate([self.tau[:-1] - self.tau[1:], ones, -ones])

    @property
    def falls(self) -> NDArray[np.float64]:
        return self.price[:-1] - self.price[1:]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedProgram(BreakpointProgram):
    """Minimise Σ p_k · (F(x_k) - F(x_{k-1})) subject to Σ τ_k · (x_k - x_{k-1}) = D, x_0 = w, x_N = E, x_{k-1} ≤ x_k.

    All N + 1 breakpoints are variables in [0, E], in epochs; the due date is an equality. All allowed configurations
    take part, from slow to fast, dominated ones as well. F is the integral of S, smoothed in the published way, over
    S(w). Ipopt starts from 0.

    Attributes:
        configurations: The allowed configurations, slow to fast; of equally fast ones the cheaper first, (N,).
        tau: Their seconds per epoch, (N,).
        price: Their cost per epoch [€], (N,).
        smoothed: The smoothed survival function, over fractions of E.
        alive: S(w); 1 if that is 0.
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
        """Make the program of `problem`."""
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
    def most(self) -> float:
        return self.largest

    @property
    def start(self) -> NDArray[np.float64]:
        return np.zeros(len(self.tau) + 1)

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.zeros(len(self.tau) + 1), np.full(len(self.tau) + 1, self.largest)

    @property
    def constraint_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of `constraints`: D, w and E exactly, and never after the next breakpoint."""
        fixed, ordered = np.array([self.time_left_s, self.done, self.largest]), np.zeros(len(self.tau))
        return np.append(fixed, ordered - np.inf), np.append(fixed, ordered)

    def objective(self, x: NDArray[np.float64]) -> float:
        epochs = np.diff(self.smoothed.integral(x / self.largest)) * self.largest
        return float(np.dot(self.price, epochs)) / self.alive

    def constraints(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the worst-case time, both ends, and x_{k-1} - x_k for every two neighbours."""
        return np.concatenate([[np.dot(self.tau, np.diff(x)), x[0], x[-1]], x[:-1] - x[1:]])

    def jacobianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        count = len(self.tau)
        order = np.arange(count)
        rows = np.concatenate([np.zeros(count + 1, dtype=np.int64), [1, 2], order + 3, order + 3])
        return rows, np.concatenate([np.arange(count + 1), [0, count], order, order + 1])

    def jacobian(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        ones = np.ones(len(x) - 1)
        seconds = np.append(0.0, self.tau) - np.append(self.tau, 0.0)
        return np.concatenate([seconds, [1.0, 1.0], ones, -ones])

    @property
    def falls(self) -> NDArray[np.float64]:
        """Return (p_k - p_{k+1}) / S(w), with p_0 = p_{N+1} = 0, (N + 1,)."""
        falls: NDArray[np.float64] = (np.append(0.0, self.price) - np.append(self.price, 0.0)) / self.alive
        return falls
