"""The single-job problem under prices that change by period, as values (theory, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning import priced_plan as kernels
from gpusched_baselines.planning.plan import find_hull, new_scratch
from gpusched_baselines.planning.priced_plan import CONTINUES, GRID_POINTS, RESTARTS, PricedJob, PricedPath
from gpusched_baselines.planning.single_job import Segment, SingleJobProblem, Status, segments_of
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PricedJobProblem:
    """A job with a due date that must be met, or with priced tardiness, and a price of energy for each period.

    Args:
        job: The job. Its `cost_eur_per_epoch` is that at price 1: kWh per epoch, if `price` is in €/kWh.
        period_s: Length of each period from now on [s], (H,), > 0. The last goes on. Kept as a read-only copy.
        price: Price of each, (H,). Kept as a read-only copy; a price below 0 counts as 0.
        restart_s: Seconds without progress when the job begins after a pause, ≥ 0.
        runs: Whether it runs now, and so may continue without a restart.
        tardiness_weight_eur_per_s: Tardiness weight ω [€/s], ≥ 0; None for a due date that must be met.

    Raises:
        InputError: A value is out of its range.
    """

    job: SingleJobProblem
    period_s: NDArray[np.float64]
    price: NDArray[np.float64]
    restart_s: float = 0.0
    runs: bool = False
    tardiness_weight_eur_per_s: float | None = None

    def __post_init__(self) -> None:
        seconds, price = checks.frozen_array(self.period_s), checks.frozen_array(self.price)
        if seconds.ndim != 1 or not len(seconds) or not np.all(np.isfinite(seconds)) or not np.all(seconds > 0):
            raise InputError("period_s", seconds.tolist(), "one number > 0 or more")
        if price.shape != seconds.shape or not np.all(np.isfinite(price)):
            raise InputError("price", price.tolist(), f"{len(seconds)} finite numbers")
        weight = self.tardiness_weight_eur_per_s
        if weight is not None:
            weight = checks.not_negative("tardiness_weight_eur_per_s", weight)
        object.__setattr__(self, "period_s", seconds)
        object.__setattr__(self, "price", checks.frozen_array(np.maximum(price, 0.0)))
        object.__setattr__(self, "restart_s", checks.not_negative("restart_s", self.restart_s))
        object.__setattr__(self, "tardiness_weight_eur_per_s", weight)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    @cached_property
    def configurations(self) -> NDArray[np.int64]:
        """List the configurations on the hull, slow to fast, (K,)."""
        scratch = new_scratch(len(self.job.seconds_per_epoch))
        found = find_hull(self.job.seconds_per_epoch, self.job.cost_eur_per_epoch, scratch)
        return scratch.hull[:found].copy()

    @property
    def last_price(self) -> float:
        """Return the price after the due date."""
        return float(self.until(max(self.job.time_left_s, 1e-9))[1][-1])

    def until(self, end_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lengths and prices of the periods up to `end_s` > 0 from now, (H',), the last one cut or longer.

        A first period that is shorter than a restart joins the next one, at their mean price, so that a job may begin
        at once.
        """
        ends = np.cumsum(self.period_s)
        count = min(int(np.searchsorted(ends, end_s * (1.0 - 1e-12))) + 1, len(ends))
        ends = np.append(ends[: count - 1], end_s)
        seconds, price = np.diff(ends, prepend=0.0), self.price[:count].copy()
        if count > 1 and seconds[0] <= self.restart_s:
            price[1] = np.average(price[:2], weights=seconds[:2])
            seconds[1] += seconds[0]
            return seconds[1:], price[1:]
        return seconds, price


@dataclass(frozen=True, slots=True)
class PeriodPlan:
    """What a job does in one period.

    Attributes:
        start_s: When the period starts, from now [s].
        end_s: When it ends [s].
        restarts: Whether the job restarts in it.
        run_s: Seconds that it runs, the restart included; the rest is a pause.
        segments: Configurations and epochs, slow to fast; empty if it pauses throughout.
    """

    start_s: float
    end_s: float
    restarts: bool
    run_s: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan by period.

    Attributes:
        status: "slack" (ends in time), or "late" (no plan with a due date that must be met ends in time: the fastest
            configuration runs throughout; or the plan accepts tardiness in the worst case).
        expected_cost_eur: Expected cost of the epochs left, tardiness included if that is priced [€].
        periods: The periods up to the due date; up to the end of the job if that must be in time and is not.
        expected_tardiness_eur: The part of that cost that is tardiness; 0 unless priced.
    """

    status: Status
    expected_cost_eur: float
    periods: tuple[PeriodPlan, ...]
    expected_tardiness_eur: float = 0.0


def solve_priced_job(problem: PricedJobProblem, points: int = GRID_POINTS) -> PricedPlan:
    """Find a plan of least expected cost under prices that change, by the dynamic programme of theory, section 3.

    The values of later periods are computed on a grid of epochs, so the cost may be a little above the optimum: at 40
    points 0.1 to 0.2 % in the mean. The plan of theorem 1, without regard to prices, is a candidate where it is in
    time, and then the plan never costs more. Effort: O(M (W + K)) single-job problems, W of the M points being what a
    period has time for and K the points of the hull, and O(H M (W + K)) sums.

    With a price of tardiness, epochs after the last period before the due date are late ones, at the last price.

    For example, an epoch takes 1 h for 1 kWh, the only configuration; two are needed, in three hours at 3, 1 and 2 €:
    the job waits an hour and costs 3 €. If a restart takes 6 minutes, the third hour is too short for the second epoch
    after the one before it.

    Args:
        problem: The job, and prices.
        points: Points of the grid, ≥ 1.

    Raises:
        InputError: `points` is out of its range.
    """
    checks.whole("points", points)
    own, due_s, weight = _priced_job(problem), problem.job.time_left_s, problem.tardiness_weight_eur_per_s
    fastest_s = problem.job.epochs_left * float(own.points[0, -1]) + (0.0 if problem.runs else problem.restart_s)
    if weight is None and sim.misses(fastest_s, due_s):
        return _plan_of(problem, own, *_fastest(problem, own, fastest_s), "late")
    seconds, price = problem.until(due_s) if due_s > 0.0 else (np.empty(0), np.empty(0))
    path = _cheapest(problem, own, seconds, price, points)
    return _plan_of(
        problem, own, path, seconds, price, "slack" if path.epochs[-1] >= problem.job.max_epochs else "late"
    )


def _priced_job(problem: PricedJobProblem) -> PricedJob:
    job = problem.job
    tau, price = job.seconds_per_epoch, job.cost_eur_per_epoch
    scratch = new_scratch(len(tau))
    found = find_hull(tau, price, scratch)
    epochs = np.array([job.epochs_done, job.max_epochs])
    return PricedJob(scratch.points[:, :found].copy(), job.curve, epochs, problem.restart_s, problem.runs)


def _cheapest(
    problem: PricedJobProblem, own: PricedJob, seconds: NDArray[np.float64], price: NDArray[np.float64], points: int
) -> PricedPath:
    """Return the plan of least cost; without periods, if no time is left."""
    if not len(seconds):
        return PricedPath(own.epochs[:1], np.empty(0, dtype=np.int64))
    weight = np.inf if problem.tardiness_weight_eur_per_s is None else problem.tardiness_weight_eur_per_s
    cost, path = kernels.best_path(own, seconds, price, problem.job.time_left_s, weight, points)
    if np.isfinite(cost):
        return path
    return kernels.path_without_prices(own, seconds, problem.job.time_left_s)[1]  # in time up to rounding


def _fastest(
    problem: PricedJobProblem, own: PricedJob, fastest_s: float
) -> tuple[PricedPath, NDArray[np.float64], NDArray[np.float64]]:
    seconds, price = problem.until(fastest_s)
    return kernels.path_without_prices(own, seconds, fastest_s)[1], seconds, price


def _plan_of(
    problem: PricedJobProblem,
    own: PricedJob,
    path: PricedPath,
    seconds: NDArray[np.float64],
    price: NDArray[np.float64],
    status: Status,
) -> PricedPlan:
    """Return a path as a plan with its cost, and its late epochs as one more period."""
    hull = problem.configurations
    ends = np.cumsum(seconds)
    periods = [_period(own, hull, path, h, ends[h] - seconds[h], float(ends[h])) for h in range(len(seconds))]
    cost, late = kernels.path_cost(own, path, seconds, price), (0.0, 0.0)
    weight, done = problem.tardiness_weight_eur_per_s, float(path.epochs[-1])
    if weight is not None and done < own.epochs[1]:
        runs = bool(path.action[-1] in {CONTINUES, RESTARTS}) if len(seconds) else problem.runs
        late = kernels.late_cost(own, done, runs, problem.last_price, weight)
        k = kernels.late_point(own, problem.last_price, weight)
        start = float(ends[-1]) if len(seconds) else 0.0
        run_s = (own.epochs[1] - done) * own.points[0, k] + (0.0 if runs else own.restart_s)
        segment = Segment(int(hull[k]), done, float(own.epochs[1]))
        periods.append(PeriodPlan(start, float(start + run_s), not runs, float(run_s), (segment,)))
    return PricedPlan(status, float(cost + sum(late)), tuple(periods), late[1])


def _period(
    own: PricedJob, hull: NDArray[np.int64], path: PricedPath, h: int, start_s: float, end_s: float
) -> PeriodPlan:
    first, last, restarts = float(path.epochs[h]), float(path.epochs[h + 1]), bool(path.action[h] == RESTARTS)
    if last <= first:
        return PeriodPlan(float(start_s), end_s, False, 0.0, ())
    starts = np.empty(own.points.shape[1] + 1)
    kernels.stage_cost(own, first, last, end_s - start_s, restarts, starts)
    run_s = float(np.dot(np.diff(starts), own.points[0])) + (own.restart_s if restarts else 0.0)
    return PeriodPlan(float(start_s), end_s, restarts, run_s, segments_of(hull, starts))
