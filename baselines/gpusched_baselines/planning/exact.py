"""The exact solver as a function for users: one job, a list of configurations, its optimal plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.planning import plan as kernels
from gpusched_baselines.planning.hull import lower_hull
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator.distributions import DistributionTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_env.model import EpochDistribution

Status = Literal["slack", "tight", "late"]
_STATUS: tuple[Status, Status, Status] = ("slack", "tight", "late")


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
        status: "slack" (the cheapest configuration meets the due date), "tight" (the plan ends at the due date if all
            epochs are needed) or "late" (even the fastest misses it; the plan is the fastest).
        expected_cost_eur: Expected cost of the epochs left [€].
        worst_case_s: Time if all epochs left are needed [s].
        segments: The plan, slow to fast, without empty segments.
    """

    status: Status
    expected_cost_eur: float
    worst_case_s: float
    segments: tuple[Segment, ...]


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
    tau = np.asarray(seconds_per_epoch, dtype=np.float64)
    price = np.asarray(cost_eur_per_epoch, dtype=np.float64)
    check_problem(tau, price, max_epochs, time_left_s, epochs_done)
    hull = np.empty(len(tau), dtype=np.int64)
    points = lower_hull(tau, price, hull)
    chosen = hull[:points]
    table = DistributionTable.of([distribution])
    starts = np.empty(points + 1)
    status, cost = kernels.solve(
        tau[chosen],
        price[chosen],
        table.edges[0],
        table.survival[0],
        table.tail[0],
        float(epochs_done),
        float(max_epochs),
        float(time_left_s),
        starts,
    )
    segments = tuple(
        Segment(int(chosen[k]), float(starts[k]), float(starts[k + 1]))
        for k in range(points)
        if starts[k + 1] > starts[k]
    )
    worst = sum((s.end_epoch - s.start_epoch) * tau[s.configuration] for s in segments)
    return Plan(_STATUS[status], float(cost), float(worst), segments)


def check_problem(
    tau: NDArray[np.float64], price: NDArray[np.float64], max_epochs: float, time_left_s: float, epochs_done: float
) -> None:
    """Refuse what is no single-job problem.

    Raises:
        InputError: A value is out of the range that `solve_single_job` names.
    """
    if tau.ndim != 1 or not np.all(tau > 0) or not np.any(np.isfinite(tau)):
        raise InputError("seconds_per_epoch", tau.tolist(), "numbers > 0 (inf: not allowed), at least one finite")
    if price.shape != tau.shape or not np.all(np.isfinite(price)) or np.any(price < 0):
        raise InputError("cost_eur_per_epoch", price.tolist(), f"{len(tau)} finite numbers >= 0")
    checks.positive("max_epochs", max_epochs)
    checks.finite("time_left_s", time_left_s)
    if not 0.0 <= epochs_done < max_epochs:
        raise InputError("epochs_done", epochs_done, f"a number in [0, {max_epochs})")
