"""Lower bounds on the total cost, without any capacity limit, at the least rates that a configuration can cost.

An event takes the completions with it that follow within `SAME_TIME_S` + `SAME_TIME` · time seconds. So a job may be
spared that much of its work, on whatever configuration it ends; the bounds are those of the work that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.plan import LATE, lower_hull, solve, write_slopes
from gpusched_env.kernel import kernel
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.rates import least_rate_eur_per_s
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S
from gpusched_env.simulator.survival import DistributionTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.model import Instance
    from gpusched_env.simulator.survival import Curve


def clairvoyant_bound(instance: Instance) -> float:
    """Give a total cost [€] that no policy can undercut on this instance, even one that knows X_j.

    Per job: the cheapest way to run X_j epochs, mixing configurations at will, with lateness priced at ω_j. It holds to
    rounding, for runs that end within `checks.LONGEST_S` (others may have jobs whose tardiness costs next to nothing).
    """
    return float(clairvoyant_bounds(instance).sum())


def clairvoyant_bounds(instance: Instance) -> NDArray[np.float64]:
    """Give the clairvoyant bound of every job [€], (J,)."""
    jobs = instance.jobs
    bounds = np.empty(len(jobs))
    _clairvoyant(
        instance.fastest_seconds_per_epoch,
        least_rate_eur_per_s(instance),
        jobs.epochs_needed,
        jobs.submission_s,
        jobs.due_s,
        jobs.tardiness_weight_eur_per_s,
        bounds,
    )
    return bounds


def non_clairvoyant_bound(instance: Instance) -> float:
    """Give an expected total cost [€] that no policy undercuts that keeps due dates in the worst case.

    Per job: the exact stochastic plan over all configurations (design, section 2). A job that no configuration can
    bring home in time in the worst case has no such plan: it counts with the expectation of its clairvoyant bound,
    which no policy undercuts either.
    """
    return float(non_clairvoyant_bounds(instance).sum())


def non_clairvoyant_bounds(instance: Instance) -> NDArray[np.float64]:
    """Give the non-clairvoyant bound of every job [€], (J,)."""
    jobs = instance.jobs
    table = DistributionTable.of(jobs.distributions)
    rate = least_rate_eur_per_s(instance)
    bounds, seconds = np.empty(len(jobs)), instance.fastest_seconds_per_epoch
    for job, d in enumerate(jobs.distribution.tolist()):
        known = jobs.max_epochs[job], jobs.submission_s[job], jobs.due_s[job], jobs.tardiness_weight_eur_per_s[job]
        bounds[job] = _non_clairvoyant(seconds[job], rate, table.curve(d), *known)
    return bounds


@kernel
def _cheapest_known(tau: Floats, price: Floats, epochs: float, time_left: float, weight: float) -> float:
    """Give the least cost of `epochs` over the points of a hull: speed up while a second costs less than ω."""
    cost = epochs * price[0]
    late = epochs * tau[0] - time_left
    for k in range(tau.shape[0] - 1):
        if late <= 0.0:
            return cost
        saved = epochs * (tau[k] - tau[k + 1])
        dearer = epochs * (price[k + 1] - price[k])
        if dearer > saved * weight:
            break
        cost += dearer * min(1.0, late / saved)
        late -= saved
    return cost + weight * max(0.0, late)


@kernel
def _least_known(tau: Floats, price: Floats, epochs: float, submission: float, due: float, weight: float) -> float:
    """Give the least cost of what must be done of `epochs`: a completion may be taken a little early.

    How early depends on when: a run in which the tardiness alone costs what all epochs cost at best need not be
    looked at.
    """
    cost = _cheapest_known(tau, price, epochs, due - submission, weight)
    latest = min(LONGEST_S, due + cost / weight) if weight > 0.0 else LONGEST_S
    must = max(0.0, epochs - (SAME_TIME_S + SAME_TIME * latest) / tau[-1])
    return _cheapest_known(tau, price, must, due - submission, weight)


@kernel
def _hull_of(tau: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Give seconds and cost per epoch of the points of the hull over all configurations."""
    price = np.where(tau < np.inf, tau * rate, np.inf)
    hull = np.empty(tau.shape[0], dtype=np.int64)
    chosen = hull[: lower_hull(tau, price, hull)]
    return tau[chosen], price[chosen]


@kernel
def _clairvoyant(
    tau: Floats, rate: Floats, needed: Floats, submission: Floats, due: Floats, weight: Floats, bounds: Floats
) -> None:
    for job in range(tau.shape[0]):
        seconds, price = _hull_of(tau[job], rate)
        bounds[job] = _least_known(seconds, price, needed[job], submission[job], due[job], weight[job])


@kernel
def _non_clairvoyant(
    tau: Floats, rate: Floats, curve: Curve, largest: float, submission: float, due: float, weight: float
) -> float:
    seconds, price = _hull_of(tau, rate)
    starts, slope = np.empty(seconds.shape[0] + 1), np.empty(seconds.shape[0] - 1)
    write_slopes(seconds, price, slope)
    early = SAME_TIME_S + SAME_TIME * due
    status, cost = solve(seconds, price, slope, curve, 0.0, largest, due - submission + early, starts)
    if status != LATE:
        # To finish what was spared, on the configuration that it ended on, would have cost no more than this.
        return max(0.0, cost - early * rate[tau < np.inf].max())
    cost, survival = 0.0, curve.survival
    for b in range(survival.shape[0]):
        mass = survival[b] - (survival[b + 1] if b + 1 < survival.shape[0] else 0.0)
        cost += mass * _least_known(seconds, price, curve.edges[b + 1] * largest, submission, due, weight)
    return cost
