"""Lower bounds on the total cost, without any capacity limit, at the least rates that a configuration can cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.hull import lower_hull
from gpusched_baselines.planning.plan import LATE, solve
from gpusched_env.kernel import kernel
from gpusched_env.model.rates import least_rate_eur_per_s
from gpusched_env.simulator.survival import DistributionTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.model import Instance
    from gpusched_env.simulator.survival import Curve


def clairvoyant_bound(instance: Instance) -> float:
    """Give a total cost [€] that no policy can undercut on this instance, even one that knows X_j.

    Per job: the cheapest way to run X_j epochs, mixing configurations at will, with lateness priced at ω_j.
    """
    return float(clairvoyant_bounds(instance).sum())


def clairvoyant_bounds(instance: Instance) -> NDArray[np.float64]:
    """Give the clairvoyant bound of every job [€], (J,)."""
    jobs = instance.jobs
    time_left = jobs.due_s - jobs.submission_s
    rate = least_rate_eur_per_s(instance)
    bounds = np.empty(len(jobs))
    _clairvoyant(jobs.seconds_per_epoch, rate, jobs.epochs_needed, time_left, jobs.tardiness_weight_eur_per_s, bounds)
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
    rate, time_left = least_rate_eur_per_s(instance), jobs.due_s - jobs.submission_s
    bounds = np.empty(len(jobs))
    for job, d in enumerate(jobs.distribution.tolist()):
        known = jobs.max_epochs[job], time_left[job], jobs.tardiness_weight_eur_per_s[job]
        bounds[job] = _non_clairvoyant(jobs.seconds_per_epoch[job], rate, table.curve(d), *known)
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
def _hull_of(tau: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Give seconds and cost per epoch of the points of the hull over all configurations."""
    price = np.where(tau < np.inf, tau * rate, np.inf)
    hull = np.empty(tau.shape[0], dtype=np.int64)
    chosen = hull[: lower_hull(tau, price, hull)]
    return tau[chosen], price[chosen]


@kernel
def _clairvoyant(tau: Floats, rate: Floats, needed: Floats, time_left: Floats, weight: Floats, bounds: Floats) -> None:
    for job in range(tau.shape[0]):
        seconds, price = _hull_of(tau[job], rate)
        bounds[job] = _cheapest_known(seconds, price, needed[job], time_left[job], weight[job])


@kernel
def _non_clairvoyant(tau: Floats, rate: Floats, curve: Curve, largest: float, time_left: float, weight: float) -> float:
    seconds, price = _hull_of(tau, rate)
    starts = np.empty(seconds.shape[0] + 1)
    status, cost = solve(seconds, price, curve, 0.0, largest, time_left, starts)
    if status != LATE:
        return cost
    cost, survival = 0.0, curve.survival
    for b in range(survival.shape[0]):
        mass = survival[b] - (survival[b + 1] if b + 1 < survival.shape[0] else 0.0)
        cost += mass * _cheapest_known(seconds, price, curve.edges[b + 1] * largest, time_left, weight)
    return cost
