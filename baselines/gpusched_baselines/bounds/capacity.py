"""A lower bound with the capacity of the cluster: `priced_bound` at prices that make it large.

Prices rise where jobs would use more GPUs than there are, and fall where they leave some: a subgradient of the bound,
relative to the capacity, and Polyak's step towards a level above the best value so far. The level is lowered when the
bound does not reach it. Few long periods come first; then they are divided where GPUs are used most. The result does
not depend on the speed of the machine.

Bounds per job have no capacity. An event includes the completions that follow within `SAME_TIME_S` + `SAME_TIME` · time
seconds. So a job may be without that much of its work, on any configuration on which it ends; the bounds are those of
the rest of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.bounds.options import Options
from gpusched_baselines.bounds.periods import price_starts, prices_of, supply_of
from gpusched_baselines.bounds.priced import Demand, value_and_used, write_costs
from gpusched_baselines.planning.plan import LATE, lower_hull, solve, write_slopes
from gpusched_env.model import Instance
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Curve, DistributionTable, Floats, kernel


def clairvoyant_bound(instance: Instance) -> float:
    """Return a lower bound on the total cost [€] of every policy on this instance, even one that knows X_j.

    Per job: the cheapest way to run X_j epochs in any mix of configurations, with tardiness priced at ω_j. It holds up
    to rounding, for runs that end within `checks.LONGEST_S` (longer runs may have jobs whose tardiness costs almost
    nothing).
    """
    return float(clairvoyant_bounds(instance).sum())


def clairvoyant_bounds(instance: Instance) -> NDArray[np.float64]:
    """Return the clairvoyant bound of every job [€], (J,)."""
    jobs, options = instance.jobs, Options.of(instance)
    bounds = np.empty(len(jobs))
    if prices_of(instance) is not None:
        _, end_s, _ = _in_a_queue(instance)
        grid_s = _grid(instance, float(jobs.submission_s[0]), end_s)
        none = np.zeros_like(supply_of(instance, grid_s).there_is)
        write_costs(Demand.of(instance, options, grid_s), grid_s, none, bounds, none.copy())
        return bounds
    _clairvoyant(
        options.seconds,
        options.rate[options.row],
        jobs.epochs_needed,
        jobs.submission_s,
        jobs.due_s,
        jobs.tardiness_weight_eur_per_s,
        bounds,
    )
    return bounds


def non_clairvoyant_bound(instance: Instance) -> float:
    """Return a lower bound on the expected total cost [€] of every policy that meets due dates in the worst case.

    Per job: the exact stochastic plan over all configurations (theory, section 2). A job that no configuration can
    complete in time in the worst case has no such plan: it counts with the expectation of its clairvoyant bound.

    Where the price of energy changes, a job counts with the larger of two: that plan at the least of all prices, and
    the expectation of its clairvoyant bound at the prices.
    """
    return float(non_clairvoyant_bounds(instance).sum())


def non_clairvoyant_bounds(instance: Instance) -> NDArray[np.float64]:
    """Return the non-clairvoyant bound of every job [€], (J,)."""
    jobs = instance.jobs
    table = DistributionTable.of(jobs.distributions)
    options, bounds, rate = Options.of(instance), np.empty(len(jobs)), _least_rates(instance)
    for job, d in enumerate(jobs.distribution.tolist()):
        known = jobs.max_epochs[job], jobs.submission_s[job], jobs.due_s[job], jobs.tardiness_weight_eur_per_s[job]
        bounds[job] = _non_clairvoyant(options.seconds[job], rate[options.row[job]], table.curve(d), *known)
    return (
        bounds if instance.find("prices") is None else np.maximum(bounds, _expected_clairvoyant_bounds(instance, table))
    )


def _least_rates(instance: Instance) -> NDArray[np.float64]:
    """Return the least cost rates of options at the least of all prices of energy [€/s], (A, O)."""
    options, prices = Options.of(instance), prices_of(instance)
    if prices is None:
        return options.rate
    held = options.gpus * rent_eur_per_h(instance) / 3600.0  # does not follow the price of energy
    return (options.rate - held) * prices.factor.min() + held


def _expected_clairvoyant_bounds(instance: Instance, table: DistributionTable) -> NDArray[np.float64]:
    """Return the expectation of the clairvoyant bound of every job over the epochs that it may need [€], (J,)."""
    jobs, expected = instance.jobs, np.zeros(len(instance.jobs))
    curves = [table.curve(d) for d in jobs.distribution.tolist()]
    survival = np.array([np.append(curve.survival, 0.0) for curve in curves])
    edges = np.array([curve.edges for curve in curves])
    for b in range(survival.shape[1] - 1):
        needed = edges[:, b + 1] * jobs.max_epochs
        drawn = replace(instance, jobs=replace(jobs, epochs_needed=needed))
        expected += (survival[:, b] - survival[:, b + 1]) * clairvoyant_bounds(drawn)
    return expected


@kernel
def _cheapest_known(tau: Floats, price: Floats, epochs: float, time_left: float, weight: float) -> float:
    """Return the least cost of `epochs` over the points of a hull: speed up while a second costs less than ω."""
    cost = epochs * price[0]
    late = epochs * tau[0] - time_left
    for k in range(tau.shape[0] - 1):
        if late <= 0.0:
            return cost
        saved = epochs * (tau[k] - tau[k + 1])
        costlier = epochs * (price[k + 1] - price[k])
        if costlier > saved * weight:
            break
        cost += costlier * min(1.0, late / saved)
        late -= saved
    return cost + weight * max(0.0, late)


@kernel
def _least_known(tau: Floats, price: Floats, epochs: float, submission: float, due: float, weight: float) -> float:
    """Return the least cost of the part of `epochs` that must be done: a completion may count a little early.

    How early depends on its time. Runs in which the tardiness alone costs more than all epochs at best do not matter.
    """
    cost = _cheapest_known(tau, price, epochs, due - submission, weight)
    latest = min(LONGEST_S, due + cost / weight) if weight > 0.0 else LONGEST_S
    must = max(0.0, epochs - (sim.SAME_TIME_S + sim.SAME_TIME * latest) / tau[-1])
    return _cheapest_known(tau, price, must, due - submission, weight)


@kernel
def _hull_of(tau: Floats, rate: Floats) -> tuple[Floats, Floats]:
    price = np.where(tau < np.inf, tau * rate, np.inf)
    hull = np.empty(tau.shape[0], dtype=np.int64)
    chosen = hull[: lower_hull(tau, price, hull)]
    return tau[chosen], price[chosen]


@kernel
def _clairvoyant(
    tau: Floats, rate: Floats, needed: Floats, submission: Floats, due: Floats, weight: Floats, bounds: Floats
) -> None:
    for job in range(tau.shape[0]):
        seconds, price = _hull_of(tau[job], rate[job])
        bounds[job] = _least_known(seconds, price, needed[job], submission[job], due[job], weight[job])


@kernel
def _non_clairvoyant(
    tau: Floats, rate: Floats, curve: Curve, largest: float, submission: float, due: float, weight: float
) -> float:
    seconds, price = _hull_of(tau, rate)
    starts, slope = np.empty(seconds.shape[0] + 1), np.empty(seconds.shape[0] - 1)
    write_slopes(seconds, price, slope)
    early = sim.SAME_TIME_S + sim.SAME_TIME * due
    status, cost = solve(seconds, price, slope, curve, 0.0, largest, due - submission + early, starts)
    if status != LATE:
        # The work that is missing costs at most this on the configuration on which the job ended.
        return max(0.0, cost - early * rate[tau < np.inf].max())
    cost, survival = 0.0, curve.survival
    for b in range(survival.shape[0]):
        mass = survival[b] - (survival[b + 1] if b + 1 < survival.shape[0] else 0.0)
        cost += mass * _least_known(seconds, price, curve.edges[b + 1] * largest, submission, due, weight)
    return cost


PERIODS = (32, 64, 128)  # of the grids, one after the other
STEPS = 150  # at most, on each grid
MOST_DOUBLINGS = 6  # of the time that has prices
FIRST_LEVEL, NEXT_LEVEL, LAST_LEVEL = 0.1, 0.01, 1e-5  # above the best value, relative: first, on finer grids, last
PATIENCE = 6  # steps without much progress after which the level is lowered
NEARER, FARTHER = 0.6, 1.5
TINY = 1e-300  # in place of 0 as a denominator


@dataclass(frozen=True, slots=True, eq=False)
class CapacityPrices:
    """Prices of GPU time, and the bound at these prices.

    Attributes:
        grid_s: When periods begin, and when the last one ends [s], rising, (K + 1,). After that there is no price.
        prices: The price of each GPU type in each period [€ per GPU and s], ≥ 0, (V, K); under a cap also that of power
            [€ per kW and s], (V + 1, K).
        bound_eur: The bound at these prices [€].
        used: What jobs would use at these prices, each as if alone [GPU · s, kW · s], (V, K) or (V + 1, K).
        types: V.
    """

    grid_s: NDArray[np.float64]
    prices: NDArray[np.float64]
    bound_eur: float
    used: NDArray[np.float64]
    types: int

    @property
    def eur_per_gpu_s(self) -> NDArray[np.float64]:
        """Return the price of each GPU type in each period [€ per GPU and s], (V, K)."""
        return self.prices[: self.types]

    @property
    def eur_per_kw_s(self) -> NDArray[np.float64]:
        """Return the price of power in each period [€ per kW and s], (K,); 0 without a cap."""
        return self.prices[self.types] if len(self.prices) > self.types else np.zeros(self.prices.shape[1])

    @property
    def used_gpu_s(self) -> NDArray[np.float64]:
        """Return the GPU time of each type that jobs would use in each period [GPU · s], (V, K)."""
        return self.used[: self.types]


def capacity_bound(instance: Instance) -> float:
    """Return a lower bound on the total cost [€] of every policy, even one that knows X_j and all arrivals.

    It is the clairvoyant bound with the number of GPUs of each type as a limit at any time, and is never below that
    bound. It holds up to rounding, for runs that end within `checks.LONGEST_S`.
    """
    return max(capacity_prices(instance).bound_eur, clairvoyant_bound(instance))


def capacity_prices(instance: Instance) -> CapacityPrices:
    """Return prices at which the bound is large: the value of a GPU second to other jobs, by GPU type and time."""
    options = Options.of(instance)
    begin_s, end_s, tardiness_eur = _in_a_queue(instance)
    for _ in range(MOST_DOUBLINGS):
        grid_s = _grid(instance, begin_s, end_s)
        free = _valued(instance, options, grid_s, np.zeros_like(supply_of(instance, grid_s).there_is))
        found = _raised(instance, options, free, FIRST_LEVEL * (free.bound_eur + tardiness_eur))
        if not np.any(found.prices[:, -1] > 0.0):
            break
        end_s = begin_s + 2.0 * (end_s - begin_s)
    for before, periods in pairwise(PERIODS):
        found = _valued(instance, options, *_finer(found, max(periods, len(found.grid_s) - 1 + periods - before)))
        found = _raised(instance, options, found, NEXT_LEVEL * found.bound_eur)
    return found


def _grid(instance: Instance, begin_s: float, end_s: float) -> NDArray[np.float64]:
    """Return the first grid: periods of equal lengths, and one whenever the price of energy changes [s]."""
    return np.union1d(np.linspace(begin_s, end_s, PERIODS[0] + 1), price_starts(instance, begin_s, end_s))


def _in_a_queue(instance: Instance) -> tuple[float, float, float]:
    """Return when jobs begin and end [s], and the cost of tardiness [€], if one after the other gets all GPUs.

    Each takes its fewest GPU seconds. This is an estimate, not a bound. The time of the longest job is added to the
    end.
    """
    jobs, seconds = instance.jobs, instance.fastest_seconds_per_epoch
    gpus = np.array([c.gpus for c in instance.configurations])
    work_s = (seconds * gpus).min(axis=1) * jobs.epochs_needed / sum(node.gpus for node in instance.nodes)
    ends_s = np.empty(len(jobs))
    begin_s = now_s = float(jobs.submission_s[0])
    for job, submission_s in enumerate(jobs.submission_s.tolist()):
        ends_s[job] = now_s = max(now_s, submission_s) + work_s[job]
    tardiness_eur = float((jobs.tardiness_weight_eur_per_s * np.maximum(0.0, ends_s - jobs.due_s)).sum())
    longest_s = float((seconds.min(axis=1) * jobs.epochs_needed).max())
    if prices_of(instance) is not None:  # work that waits for low prices
        now_s = max(now_s, float(jobs.due_s.max()))
    # Long enough that periods differ in 64-bit floats.
    return begin_s, begin_s + max(now_s + longest_s - begin_s, 1e-9 * begin_s), tardiness_eur


def _finer(found: CapacityPrices, periods: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divide periods with much GPU time used, so that there are `periods` of them; prices stay as they are."""
    used = np.cumsum(found.used_gpu_s.sum(axis=0))
    more = np.rint(used / max(used[-1], TINY) * (periods - len(used)))
    pieces = 1 + np.diff(more, prepend=0.0).astype(np.int64)
    number = np.concatenate([np.arange(n) / n for n in pieces.tolist()])
    begins_s = np.repeat(found.grid_s[:-1], pieces) + number * np.repeat(np.diff(found.grid_s), pieces)
    grid_s = np.append(begins_s, found.grid_s[-1])
    rising = np.diff(grid_s) > 0.0
    return grid_s[np.append(True, rising)], np.repeat(found.prices, pieces, axis=1)[:, rising]


def _valued(
    instance: Instance, options: Options, grid_s: NDArray[np.float64], prices: NDArray[np.float64]
) -> CapacityPrices:
    demand, supply = Demand.of(instance, options, grid_s), supply_of(instance, grid_s)
    return CapacityPrices(grid_s, prices, *value_and_used(demand, supply, grid_s, prices), len(instance.gpu_types))


def _raised(instance: Instance, options: Options, best: CapacityPrices, ahead_eur: float) -> CapacityPrices:
    """Raise the bound from these prices on; the first level is `ahead_eur` above its value."""
    grid_s = best.grid_s
    demand, supply = Demand.of(instance, options, grid_s), supply_of(instance, grid_s)
    there_is = np.maximum(supply.there_is, TINY)
    now, reference_eur, waited = best, best.bound_eur, 0
    for _ in range(STEPS):
        too_much = now.used - there_is
        too_much[(now.prices <= 0.0) & (too_much < 0.0)] = 0.0
        too_much[(now.prices >= supply.highest) & (too_much > 0.0)] = 0.0
        steepness = float((too_much**2 / there_is).sum())
        if steepness <= 0.0 or ahead_eur <= LAST_LEVEL * best.bound_eur:
            break
        step = (best.bound_eur + ahead_eur - now.bound_eur) / steepness
        prices = np.clip(now.prices + step * too_much / there_is, 0.0, supply.highest)
        now = CapacityPrices(grid_s, prices, *value_and_used(demand, supply, grid_s, prices), best.types)
        best = max(best, now, key=lambda prices: prices.bound_eur)
        waited += 1
        if best.bound_eur >= reference_eur + 0.5 * ahead_eur:
            ahead_eur *= FARTHER if waited <= PATIENCE // 2 else 1.0
        elif waited >= PATIENCE:
            ahead_eur *= NEARER
        else:
            continue
        reference_eur, waited = best.bound_eur, 0
    return best
