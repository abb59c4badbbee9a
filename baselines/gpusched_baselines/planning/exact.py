"""The exact solver as a function for users: one job, a list of configurations, its optimal plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning import plan as kernels
from gpusched_baselines.planning.lateness import add_late_point
from gpusched_baselines.planning.plan import find_hull, new_scratch
from gpusched_baselines.planning.single_job import Plan, SingleJobProblem, Status, segments_of
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_baselines.planning.plan import Scratch
    from gpusched_baselines.planning.single_job import Segment
    from gpusched_env.model import EpochDistribution

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
    """Solve the stochastic single-job problem exactly (design, section 2), in O(K² B): K hull points, B bins.

    Without a tardiness weight the plan meets the due date even if all epochs are needed, where it can. With one, a
    second after the due date costs that much, and the plan is late where being in time would cost more. Tardiness from
    now on counts; what there has been of it before is lost either way.

    For example, epochs of 1 h for 1 € or 40 min for 19/15 €, four at most; half of the jobs end after two; 3.5 h. Half
    an hour must be saved, at 0.8 €/h, or 0.4 in expectation in the second half: 1.5 fast epochs there, 3.2 € in all. At
    0.5 €/h tardiness is cheaper: all epochs are slow and the last half hour is late, 3 € + ½ · ½ h · 0.5 €/h = 3.125 €.
    At 1 €/h it is not, and the plan is as without a weight.

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
    """Give the optimal plan, as `solve_single_job` does."""
    tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
    scratch = new_scratch(len(tau))
    points = find_hull(tau, price, scratch)
    status, cost, starts = _solved(problem, scratch, points, problem.time_left_s)
    segments = segments_of(scratch.hull[:points], starts)
    return Plan(_STATUS[status], float(cost), _worst_case_s(tau, segments), segments)


def _solve_priced(problem: SingleJobProblem, weight: float) -> Plan:
    """Give the plan that costs least, tardiness at `weight` [€/s] included.

    Late epochs are run in the configuration of the last point before theirs, so they lengthen its segment.
    """
    tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
    scratch = new_scratch(len(tau) + 1)
    chosen = find_hull(tau, price, scratch)
    seconds, costs = scratch.points[0], scratch.points[1]
    if not np.isfinite(costs[chosen - 1] + weight * float(seconds[0])):
        raise InputError("tardiness_weight_eur_per_s", weight, "a number at which the tardiness of an epoch is finite")
    points = add_late_point(scratch.points, scratch.hull, chosen, weight)
    time_left = problem.time_left_s if problem.time_left_s > 0.0 else -1.0  # late epochs take no time: this is late
    status, cost, starts = _solved(problem, scratch, points, time_left)
    late = np.append(np.zeros(points - 1), weight * seconds[points - 2])
    tardiness = kernels.expected_cost(late, problem.curve, problem.first_bin, problem.max_epochs, starts)
    segments = segments_of(scratch.hull[: points - 1], np.append(starts[: points - 1], problem.max_epochs))
    return Plan(_STATUS[status], float(cost), _worst_case_s(tau, segments), segments, float(tardiness))


def _solved(
    problem: SingleJobProblem, scratch: Scratch, points: int, time_left_s: float
) -> tuple[int, float, NDArray[np.float64]]:
    """Solve the problem over the hull of `scratch`: what `kernels.solve` gives, and where its points start."""
    seconds, costs, slope = scratch.points[:, :points]
    starts, done, largest = np.empty(points + 1), problem.epochs_done, problem.max_epochs
    found = kernels.solve(seconds, costs, slope[: points - 1], problem.curve, done, largest, time_left_s, starts)
    return *found, starts


def _worst_case_s(tau: NDArray[np.float64], segments: tuple[Segment, ...]) -> float:
    return float(sum((s.end_epoch - s.start_epoch) * tau[s.configuration] for s in segments))
