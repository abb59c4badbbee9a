"""The exact solver as a function for users: one job, a list of configurations, its optimal plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning import plan as kernels
from gpusched_baselines.planning.hull import lower_hull
from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.planning.single_job_plan import Plan, Status, segments_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gpusched_env.model import EpochDistribution

_STATUS: tuple[Status, Status, Status] = ("slack", "tight", "late")


def solve_single_job(
    seconds_per_epoch: ArrayLike,
    cost_eur_per_epoch: ArrayLike,
    distribution: EpochDistribution,
    max_epochs: float,
    time_left_s: float,
    epochs_done: float = 0.0,
) -> Plan:
    """Solve the stochastic single-job problem exactly (design, section 2), in O(K² B): K hull points, B bins.

    Args:
        seconds_per_epoch: τ_c [s/epoch], (C,), > 0, in any order; inf where not allowed.
        cost_eur_per_epoch: p_c [€/epoch], (C,), ≥ 0.
        distribution: Distribution of the epochs needed.
        max_epochs: Maximum epochs E, > 0.
        time_left_s: Time to the due date D [s]; may be negative.
        epochs_done: Epochs done w, in [0, E).

    Raises:
        InputError: A value is out of its range, or no configuration is allowed.
    """
    tau, price = np.asarray(seconds_per_epoch), np.asarray(cost_eur_per_epoch)
    return solve_exactly(SingleJobProblem(tau, price, distribution, max_epochs, time_left_s, epochs_done))


def solve_exactly(problem: SingleJobProblem) -> Plan:
    """Give the optimal plan, as `solve_single_job` does."""
    tau, price = problem.seconds_per_epoch, problem.cost_eur_per_epoch
    hull = np.empty(len(tau), dtype=np.int64)
    points = lower_hull(tau, price, hull)
    chosen = hull[:points]
    starts = np.empty(points + 1)
    status, cost = kernels.solve(
        tau[chosen],
        price[chosen],
        problem.curve,
        problem.epochs_done,
        problem.max_epochs,
        problem.time_left_s,
        starts,
    )
    segments = segments_of(chosen, starts)
    worst = sum((s.end_epoch - s.start_epoch) * tau[s.configuration] for s in segments)
    return Plan(_STATUS[status], float(cost), float(worst), segments)
