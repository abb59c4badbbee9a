"""The single-job problem (theory, section 2) as every solver takes it, and its exact solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpusched_baselines.planning import plan as kernels
from gpusched_baselines.planning.plan import Scratch, add_late_point, find_hull, new_scratch
from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Curve, DistributionTable

Status = Literal["slack", "tight", "late"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of epochs run in one configuration.

    Attributes:
        configuration: Index into the configurations given to the solver.
        start_epoch: First epoch.
        end_epoch: Last epoch.
    """

    configuration: int
    start_epoch: float
    end_epoch: float


@dataclass(frozen=True, slots=True)
class Plan:
    """An optimal plan: which configuration runs at which epoch.

    Attributes:
        status: If the due date must be met, "slack" (the cheapest configuration meets it), "tight" (the plan ends at
            the due date if all epochs are needed) or "late" (even the fastest misses it; the plan is the fastest). If
            tardiness is priced, "slack" as before, "late" if no time is left until the due date, and else "tight": if
            all epochs are needed, the plan uses up that time, and may go on after it.
        expected_cost_eur: Expected cost of the epochs left, and of the tardiness from now on if that is priced [€].
        worst_case_s: Time if all epochs left are needed [s].
        segments: The plan, slow to fast, without empty segments. Epochs after the due date are part of the last one.
        expected_tardiness_eur: The part of `expected_cost_eur` that is tardiness; 0 unless that is priced.
    """

    status: Status
    expected_cost_eur: float
    worst_case_s: float
    segments: tuple[Segment, ...]
    expected_tardiness_eur: float = 0.0


def segments_of(configurations: NDArray[np.int64], starts: NDArray[np.float64]) -> tuple[Segment, ...]:
    """List the segments in which `configurations[k]` runs from `starts[k]` to `starts[k + 1]`, without empty ones.

    Args:
        configurations: Indices of configurations, (K,).
        starts: Epochs, never falling, (K + 1,).
    """
    return tuple(
        Segment(int(c), float(start), float(end))
        for c, start, end in zip(configurations, starts[:-1], starts[1:], strict=True)
        if end > start
    )


NOTHING_LEFT = 1e-12  # of the maximum epochs: a rest that rounding leaves


@dataclass(frozen=True, eq=False)
class SingleJobProblem:
    """A job with epochs done, its due date, and the time and cost of its epochs in every configuration.

    Args:
        seconds_per_epoch: τ_c [s/epoch], (C,), > 0, in any order; inf where not allowed. Kept as a read-only copy.
        cost_eur_per_epoch: p_c [€/epoch], (C,), ≥ 0. Kept as a read-only copy.
        distribution: Distribution of the epochs needed.
        max_epochs: Maximum epochs E, > 0.
        time_left_s: Time to the due date D [s]; may be negative.
        epochs_done: Epochs done w, in [0, E).

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
    """

    seconds_per_epoch: NDArray[np.float64]
    cost_eur_per_epoch: NDArray[np.float64]
    distribution: EpochDistribution
    max_epochs: float
    time_left_s: float
    epochs_done: float = 0.0

    def __post_init__(self) -> None:
        tau, price = checks.frozen_array(self.seconds_per_epoch), checks.frozen_array(self.cost_eur_per_epoch)
        if tau.ndim != 1 or not np.all(tau > 0) or not np.any(np.isfinite(tau)):
            raise InputError("seconds_per_epoch", tau.tolist(), "numbers > 0 (inf: not allowed), at least one finite")
        if price.shape != tau.shape or not np.all(np.isfinite(price)) or np.any(price < 0):
            raise InputError("cost_eur_per_epoch", price.tolist(), f"{len(tau)} finite numbers >= 0")
        largest = checks.positive("max_epochs", self.max_epochs)
        time_left = checks.finite("time_left_s", self.time_left_s)
        if not 0.0 <= self.epochs_done < self.max_epochs:
            raise InputError("epochs_done", self.epochs_done, f"a number in [0, {self.max_epochs})")
        object.__setattr__(self, "seconds_per_epoch", tau)
        object.__setattr__(self, "cost_eur_per_epoch", price)
        object.__setattr__(self, "max_epochs", largest)
        object.__setattr__(self, "time_left_s", time_left)
        object.__setattr__(self, "epochs_done", float(self.epochs_done))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    @cached_property
    def configurations(self) -> NDArray[np.int64]:
        """List the undominated configurations, slow and cheap to fast and costly, (K,).

        A configuration dominates another one if it is at least as fast and costs no more. An optimal plan uses no
        dominated configuration. The points need not be convex.
        """
        return undominated(self.seconds_per_epoch, self.cost_eur_per_epoch)

    @cached_property
    def tau(self) -> NDArray[np.float64]:
        """Return the seconds per epoch of `configurations`, strictly falling, (K,)."""
        return self.seconds_per_epoch[self.configurations]

    @cached_property
    def price(self) -> NDArray[np.float64]:
        """Return the cost per epoch of `configurations` [€], strictly rising, (K,)."""
        return self.cost_eur_per_epoch[self.configurations]

    @cached_property
    def curve(self) -> Curve:
        """Return the survival function in the form that kernels take."""
        return DistributionTable.of([self.distribution]).curve(0)

    @property
    def edges(self) -> NDArray[np.float64]:
        """Return the bin edges as fractions of the maximum epochs, (B + 1,)."""
        return self.curve.edges

    @property
    def survival(self) -> NDArray[np.float64]:
        """Return S on each bin, (B,)."""
        return self.curve.survival

    @property
    def share_done(self) -> float:
        """Return the epochs done as a fraction of the maximum epochs."""
        return self.epochs_done / self.max_epochs

    @property
    def epochs_left(self) -> float:
        """Return the epochs left in the worst case, E - w."""
        return self.max_epochs - self.epochs_done

    @property
    def first_bin(self) -> int:
        """Return the bin that holds the present epoch."""
        return int(sim.bin_of(self.edges, self.share_done))

    @property
    def alive(self) -> float:
        """Return S(w), the probability that the job needs more than w epochs; 0 if none should be left."""
        return float(self.survival[self.first_bin])

    def plan_without_choice(self) -> Plan | None:
        """Return the plan if there is nothing to solve: slack, late, or epochs left within rounding; else None."""
        if sim.misses(self.epochs_left * self.tau[-1], self.time_left_s):
            return self._throughout(len(self.tau) - 1, "late")
        if not sim.misses(self.epochs_left * self.tau[0], self.time_left_s):
            return self._throughout(0, "slack")
        if self.epochs_left <= NOTHING_LEFT * self.max_epochs:
            return self._throughout(len(self.tau) - 1, "tight")
        return None

    def plan_at(self, starts: NDArray[np.float64], status: Status = "tight") -> Plan:
        """Make the plan in which the k-th of `configurations` runs from `starts[k]` to `starts[k + 1]`, with its cost.

        Args:
            starts: Epochs, never falling, from w to E, (K + 1,).
            status: Status of the plan.
        """
        cost = kernels.expected_cost(self.price, self.curve, self.first_bin, self.max_epochs, starts)
        segments = segments_of(self.configurations, starts)
        return Plan(status, float(cost), self.worst_case_s(starts), segments)

    def worst_case_s(self, starts: NDArray[np.float64]) -> float:
        """Return the time of a plan if all epochs left are needed [s]."""
        return float(np.dot(np.diff(starts), self.tau))

    def _throughout(self, k: int, status: Status) -> Plan:
        starts = np.full(len(self.tau) + 1, self.epochs_done)
        starts[k + 1 :] = self.max_epochs
        return self.plan_at(starts, status)


def undominated(tau: NDArray[np.float64], price: NDArray[np.float64]) -> NDArray[np.int64]:
    """List the configurations that no other dominates, slow and cheap to fast and costly; of equal ones the first.

    Args:
        tau: Seconds per epoch, (C,); inf where not allowed.
        price: Cost per epoch [€], (C,).
    """
    by_speed = np.lexsort((price, tau))
    kept: list[int] = []
    for c in by_speed[np.isfinite(tau[by_speed])]:
        if not kept or price[c] < price[kept[-1]]:
            kept.append(int(c))
    return np.array(kept[::-1], dtype=np.int64)


_STATUS: tuple[Status, Status, Status] = ("slack", "tight", "late")


def solve_single_job(
    seconds_per_epoch: ArrayLike,
    cost_eur_per_epoch: ArrayLike,
    distribution: EpochDistribution,
    max_epochs: float,
    time_left_s: float,
    epochs_done: float = 0.0,
    tardiness_weight_eur_per_s: float | None = None,
) -> Plan:
    """Solve the stochastic single-job problem exactly (theory, section 2), in O(K² B): K hull points, B bins.

    Without a tardiness weight the plan meets the due date even if all epochs are needed, where that is possible. With
    one, a second after the due date costs that much, and the plan is late where meeting the due date would cost more.
    Only tardiness from now on counts: no plan changes earlier tardiness.

    For example, an epoch takes 1 h for 1 €, or 40 min for 19/15 €; there are four at most, and half of the jobs end
    after two; 3.5 h are left. Half an hour must be saved, at 0.8 €/h, or 0.4 €/h in expectation in the second half: 1.5
    fast epochs there, 3.2 € in all. With a weight of 0.5 €/h tardiness is cheaper: all epochs are slow and the last
    half hour is late, 3 € + ½ · ½ h · 0.5 €/h = 3.125 €. With 1 €/h it is not, and the plan is as without a weight.

    Args:
        seconds_per_epoch: τ_c [s/epoch], (C,), > 0, in any order; inf where not allowed.
        cost_eur_per_epoch: p_c [€/epoch], (C,), ≥ 0.
        distribution: Distribution of the epochs needed.
        max_epochs: Maximum epochs E, > 0.
        time_left_s: Time to the due date D [s]; may be negative.
        epochs_done: Epochs done w, in [0, E).
        tardiness_weight_eur_per_s: Tardiness weight ω [€/s], ≥ 0; None for a due date that must be met.

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
    """
    tau, price = np.asarray(seconds_per_epoch), np.asarray(cost_eur_per_epoch)
    problem = SingleJobProblem(tau, price, distribution, max_epochs, time_left_s, epochs_done)
    if tardiness_weight_eur_per_s is None:
        return solve_exactly(problem)
    return _solve_priced(problem, checks.not_negative("tardiness_weight_eur_per_s", tardiness_weight_eur_per_s))


def solve_exactly(problem: SingleJobProblem) -> Plan:
    tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
    scratch = new_scratch(len(tau))
    points = find_hull(tau, price, scratch)
    status, cost, starts = _solved(problem, scratch, points, problem.time_left_s)
    segments = segments_of(scratch.hull[:points], starts)
    return Plan(_STATUS[status], float(cost), _worst_case_s(tau, segments), segments)


def _solve_priced(problem: SingleJobProblem, weight: float) -> Plan:
    """Return the plan that costs least, tardiness at `weight` [€/s] included.

    Late epochs run in the configuration of the point before theirs, so they lengthen its segment.
    """
    tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
    scratch = new_scratch(len(tau) + 1)
    chosen = find_hull(tau, price, scratch)
    seconds, costs = scratch.points[0], scratch.points[1]
    if not np.isfinite(costs[chosen - 1] + weight * float(seconds[0])):
        raise InputError("tardiness_weight_eur_per_s", weight, "a number at which the tardiness of an epoch is finite")
    points = add_late_point(scratch.points, scratch.hull, chosen, weight)
    time_left = problem.time_left_s if problem.time_left_s > 0.0 else -1.0  # below 0, since late epochs take no time
    status, cost, starts = _solved(problem, scratch, points, time_left)
    late = np.append(np.zeros(points - 1), weight * seconds[points - 2])
    tardiness = kernels.expected_cost(late, problem.curve, problem.first_bin, problem.max_epochs, starts)
    segments = segments_of(scratch.hull[: points - 1], np.append(starts[: points - 1], problem.max_epochs))
    return Plan(_STATUS[status], float(cost), _worst_case_s(tau, segments), segments, float(tardiness))


def _solved(
    problem: SingleJobProblem, scratch: Scratch, points: int, time_left_s: float
) -> tuple[int, float, NDArray[np.float64]]:
    """Solve the problem over the hull of `scratch`; return what `plan.solve` returns, and where its points start."""
    seconds, costs, slope = scratch.points[:, :points]
    starts, done, largest = np.empty(points + 1), problem.epochs_done, problem.max_epochs
    found = kernels.solve(seconds, costs, slope[: points - 1], problem.curve, done, largest, time_left_s, starts)
    return *found, starts


def _worst_case_s(tau: NDArray[np.float64], segments: tuple[Segment, ...]) -> float:
    return float(sum((s.end_epoch - s.start_epoch) * tau[s.configuration] for s in segments))
