"""A lower bound on the total cost for given prices of GPU time: the jobs' costs at them, less the price of all GPUs.

Let a job pay λ_{v,k} € for each second that it holds a GPU of type v in period k. All jobs together then pay at most
λ_{v,k} times the GPU time that there is. So the jobs' least costs at these prices, each as if alone, less that sum, are
a lower bound for any prices ≥ 0. Power under a cap is priced likewise, by the second and kW.

Where the price of energy changes, periods of energy prices are periods here too: the cost rate of a configuration in a
period is its rate times the price over the price of the rates.

The cheapest epochs of a job are a fractional knapsack that grows by one interval of time after another. In an interval
in which prices do not change, the seconds may be divided among configurations and idling in any way. The marginal cost
of an epoch then rises in steps along the lower hull of (epochs/s, €/s), which begins at idling, (0, 0). Each
marginal-cost step is a number of epochs at one price.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpusched_baselines.bounds.options import Options
from gpusched_baselines.bounds.periods import Supply, largest_factor, price_factors, supply_of
from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Floats, Ints, kernel, lean_kernel

# Columns of a marginal-cost step: its price [€/epoch], epochs, and seconds of the interval that an epoch takes.
PRICE, EPOCHS, SECONDS = range(3)
# Columns of its place: the period, and the configurations from (-1: idling) and to which the step goes.
PERIOD, LOW, HIGH = range(3)


class MarginalSteps(NamedTuple):
    """Marginal-cost steps, by price from low to high.

    Attributes:
        amount: PRICE, EPOCHS and SECONDS of each, (n, 3).
        where: PERIOD, LOW and HIGH of each, (n, 3).
        size: Number of steps, (1,).
        demand_left: Epochs that no step covers yet, (1,).
    """

    amount: Floats
    where: Ints
    size: Ints
    demand_left: Floats


@kernel
def empty_steps(steps: int) -> MarginalSteps:
    where = np.empty((steps, 3), dtype=np.int64)
    return MarginalSteps(np.empty((steps, 3)), where, np.zeros(1, dtype=np.int64), np.zeros(1))


@lean_kernel
def marginal_steps(
    offered: MarginalSteps, speed: Floats, cost: Floats, order: Ints, fixed: float, stretch: tuple[int, float]
) -> None:
    """Write the marginal-cost steps of an interval of time to `offered`.

    Args:
        offered: Written: the steps.
        speed: Epochs/s of every configuration, (C,).
        cost: Cost of each [€/s], ≥ 0, (C,).
        order: The configurations that may be used, by rising speed, (n,).
        fixed: Additional cost of each [€/s], ≥ 0; idling does not have it.
        stretch: Period, and length of the interval [s].
    """
    at = 0
    for i in range(order.shape[0]):
        c = order[i]
        while True:
            below = offered.where[at - 1, HIGH] if at > 0 else -1
            gained = speed[c] - (speed[below] if below >= 0 else 0.0)
            costlier = cost[c] - cost[below] if below >= 0 else cost[c] + fixed
            slope = costlier / gained if gained > 0.0 else (np.inf if costlier >= 0.0 else -np.inf)
            if at == 0 or slope > offered.amount[at - 1, PRICE]:
                break
            at -= 1
        if slope == np.inf:
            continue
        offered.amount[at, PRICE], offered.amount[at, EPOCHS] = slope, stretch[1] * gained
        offered.amount[at, SECONDS] = 1.0 / gained
        offered.where[at, PERIOD], offered.where[at, LOW], offered.where[at, HIGH] = stretch[0], below, c
        at += 1
    offered.size[0] = at


@lean_kernel
def add(bought_steps: MarginalSteps, offered: MarginalSteps) -> None:
    """Add the steps that the demand left needs, and those cheaper than the costliest bought ones, in their place."""
    amount, where = bought_steps.amount, bought_steps.where
    for s in range(offered.size[0]):
        price, left = offered.amount[s, PRICE], offered.amount[s, EPOCHS]
        bought = min(left, bought_steps.demand_left[0])
        bought_steps.demand_left[0] -= bought
        left -= bought
        size = bought_steps.size[0]
        while left > 0.0 and size > 0 and amount[size - 1, PRICE] > price:
            moved = min(left, amount[size - 1, EPOCHS])
            bought += moved
            left -= moved
            amount[size - 1, EPOCHS] -= moved
            if amount[size - 1, EPOCHS] > 0.0:
                break
            size -= 1
        bought_steps.size[0] = size
        if bought <= 0.0:
            return
        put = size
        while put > 0 and amount[put - 1, PRICE] > price:
            for column in range(3):
                amount[put, column] = amount[put - 1, column]
                where[put, column] = where[put - 1, column]
            put -= 1
        for column in range(3):
            amount[put, column] = offered.amount[s, column]
            where[put, column] = offered.where[s, column]
        amount[put, EPOCHS] = bought
        bought_steps.size[0] = size + 1


@lean_kernel
def cost_with(bought_steps: MarginalSteps, offered: MarginalSteps) -> float:
    """Return what the epochs would cost [€] if `offered` were added; inf if they are still short then."""
    size, demand_left, total = bought_steps.size[0], bought_steps.demand_left[0], 0.0
    kept = bought_steps.amount[size - 1, EPOCHS] if size > 0 else 0.0
    for s in range(offered.size[0]):
        price, left = offered.amount[s, PRICE], offered.amount[s, EPOCHS]
        bought = min(left, demand_left)
        demand_left -= bought
        left -= bought
        while left > 0.0 and size > 0 and bought_steps.amount[size - 1, PRICE] > price:
            moved = min(left, kept)
            bought += moved
            left -= moved
            kept -= moved
            if kept <= 0.0:
                size -= 1
                kept = bought_steps.amount[size - 1, EPOCHS] if size > 0 else 0.0
        if bought <= 0.0:
            break
        total += bought * price
    if demand_left > 0.0:
        return np.inf
    for i in range(size - 1):
        total += bought_steps.amount[i, PRICE] * bought_steps.amount[i, EPOCHS]
    return total + bought_steps.amount[size - 1, PRICE] * kept if size > 0 else total


@lean_kernel
def copy(source: MarginalSteps, target: MarginalSteps) -> None:
    for i in range(source.size[0]):
        for column in range(3):
            target.amount[i, column] = source.amount[i, column]
            target.where[i, column] = source.where[i, column]
    target.size[0], target.demand_left[0] = source.size[0], source.demand_left[0]


# Columns of the jobs.
SUBMISSION, DUE, WEIGHT, EPOCHS_TO_DO = range(4)


class Demand(NamedTuple):
    """The demand of jobs, which does not depend on prices.

    Attributes:
        jobs: SUBMISSION [s], DUE [s], WEIGHT [€/s] and EPOCHS_TO_DO, (J, 4).
        speed: Epochs/s of every configuration, 0 where it is not allowed, (J, C). Configurations are those of
            `Options`.
        order: Every job's configurations by rising speed, (J, C).
        banned: How many of them, at the beginning, are not allowed, (J,).
        row: The row of each job in `rate` and `gpus`, (J,).
        rate: Least cost rate of configurations, without the price of GPU time [€/s], (A, C).
        gpus: GPUs that configurations hold, (A, C).
        type: Index of their GPU type, (C,).
        power: Least power of configurations [kW], (A, C).
        factor: Price of energy in every period, and after the last one, over the price in `rate`, (K + 1,).
        types: Number of GPU types: prices of one more resource are those of power.
        held: Price of a held GPU, in `rate` [€/s]; it does not follow that of energy.
    """

    jobs: Floats
    speed: Floats
    order: Ints
    banned: Ints
    row: Ints
    rate: Floats
    gpus: Floats
    type: Ints
    power: Floats
    factor: Floats
    types: int
    held: float

    @classmethod
    def of(cls, instance: Instance, options: Options, grid_s: NDArray[np.float64]) -> Demand:
        """Take the jobs and options of an instance; after the end of the grid there is no price of GPU time."""
        jobs = instance.jobs
        speed = 1.0 / options.seconds
        held = rent_eur_per_h(instance) / 3600.0
        factor, reference = price_factors(instance, grid_s), instance.energy_price_eur_per_kwh * instance.pue
        columns = (
            jobs.submission_s,
            jobs.due_s,
            jobs.tardiness_weight_eur_per_s,
            _epochs_to_do(instance, options, float(grid_s[-1])),
        )
        return cls(
            np.column_stack(columns),
            speed,
            np.argsort(speed, axis=1, kind="stable"),
            np.count_nonzero(speed == 0.0, axis=1),
            options.row,
            options.rate,
            options.gpus,
            options.type,
            (options.rate - held * options.gpus) * (3600.0 / reference if reference > 0.0 else 0.0),
            factor,
            len(instance.gpu_types),
            held,
        )


def priced_bound(instance: Instance, grid_s: ArrayLike, prices: ArrayLike) -> float:
    """Return a lower bound on the total cost [€] of every policy on this instance; it holds for any prices.

    It is sharpest where a period begins whenever the price of energy changes: a longer one takes the least of its
    prices.

    Args:
        instance: The instance.
        grid_s: Starts of periods and end of the last one [s], rising, from the first submission or before, (K + 1,).
        prices: The price of holding a GPU of each type in each period [€ per GPU and s], ≥ 0, (V, K); with a cap one
            more row, the price of power [€ per kW and s], at most that of a soft cap.

    Raises:
        InputError: An argument has another shape, or is out of its range.
    """
    grid_s, prices = np.array(grid_s, dtype=np.float64), np.array(prices, dtype=np.float64)
    if grid_s.ndim != 1 or len(grid_s) < 2 or not np.all(np.diff(grid_s) > 0.0) or not np.isfinite(grid_s[-1]):
        raise InputError("grid_s", grid_s.tolist(), "two or more finite times, rising")
    if grid_s[0] > instance.jobs.submission_s[0]:
        raise InputError("grid_s[0]", float(grid_s[0]), f"at most {float(instance.jobs.submission_s[0])}")
    supply = supply_of(instance, grid_s)
    shape = supply.there_is.shape
    if prices.shape != shape or not np.all(np.isfinite(prices) & (prices >= 0.0)):
        raise InputError("prices", prices.tolist(), f"finite numbers >= 0, shape {shape}")
    if np.any(prices > supply.highest):
        raise InputError("prices", prices.tolist(), "of power at most what a soft cap costs")
    return value_and_used(Demand.of(instance, Options.of(instance), grid_s), supply, grid_s, prices)[0]


def value_and_used(
    demand: Demand, supply: Supply, grid_s: NDArray[np.float64], prices: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the bound at these prices [€], and what jobs would use of each resource in each period, (R, K)."""
    costs, used = np.zeros(len(demand.jobs)), np.zeros(prices.shape)
    write_costs(demand, grid_s, prices, costs, used)
    return float(costs.sum() - (supply.there_is * prices).sum()), used


def _epochs_to_do(instance: Instance, options: Options, end_s: float) -> NDArray[np.float64]:
    """Return the epochs that must be done of every job, (J,): its completion may count a little early.

    How early depends on its time. A run on the cheapest configuration after `end_s`, at the highest price of energy, is
    no cheaper than the best one. So runs in which the tardiness alone costs as much do not matter.
    """
    jobs = instance.jobs
    tau, needed, weight = options.seconds, jobs.epochs_needed, jobs.tardiness_weight_eur_per_s
    allowed, rate = np.isfinite(tau), options.rate[options.row] * largest_factor(instance)
    price = np.where(allowed, np.where(allowed, tau, 0.0) * np.where(np.isfinite(rate), rate, 0.0), np.inf)
    cheapest = np.argmin(price, axis=1)[:, None]
    seconds, eur = (needed * np.take_along_axis(of, cheapest, axis=1)[:, 0] for of in (tau, price))
    latest = np.full(len(jobs), LONGEST_S)
    np.divide(eur, weight, out=latest, where=weight > eur / LONGEST_S)
    latest = np.minimum(LONGEST_S, latest + np.maximum(jobs.due_s, np.maximum(jobs.submission_s, end_s) + seconds))
    return np.maximum(0.0, needed - (sim.SAME_TIME_S + sim.SAME_TIME * latest) / tau.min(axis=1))


@kernel
def write_costs(demand: Demand, grid: Floats, prices: Floats, costs: Floats, used: Floats) -> None:
    """Write every job's least cost at these prices [€] to `costs`, (J,), and add what it uses to `used`, (R, K).

    Args:
        grid: Starts of periods and end of the last one [s], (K + 1,).
        prices: Prices of GPUs of every type, and of power if there is one more row [€ per GPU or kW, and s], (R, K).
        costs: Written.
        used: Written: GPU-seconds of every type, and kW-seconds.
    """
    configs, periods, row = demand.rate.shape[1], prices.shape[1], -1
    rates, cheapest = np.empty((periods + 2, configs)), float(demand.factor.min())
    steps = (periods + 3) * configs  # every interval of time, and one in which the job completes
    offered, bought_steps, best = empty_steps(configs), empty_steps(steps), empty_steps(steps)
    for job in range(demand.jobs.shape[0]):
        if demand.row[job] != row:
            row = demand.row[job]
            _write_rates(demand, row, prices, rates)
            for c in range(configs):
                rates[periods + 1, c] = _rate_at(demand, row, c, cheapest)
        costs[job] = least_cost(demand, job, grid, rates, offered, bought_steps, best)
        _use(demand, row, best, used)


@lean_kernel
def _write_rates(demand: Demand, row: int, prices: Floats, rates: Floats) -> None:
    """Write what configurations cost in every period, and after the last one [€/s], in the first K + 1 rows."""
    periods = prices.shape[1]
    for c in range(rates.shape[1]):
        for k in range(periods):
            rates[k, c] = _rate_at(demand, row, c, demand.factor[k]) + demand.gpus[row, c] * prices[demand.type[c], k]
            if prices.shape[0] > demand.types:
                rates[k, c] += demand.power[row, c] * prices[demand.types, k]
        rates[periods, c] = _rate_at(demand, row, c, float(demand.factor[periods]))


@lean_kernel
def _rate_at(demand: Demand, row: int, config: int, factor: float) -> float:
    """Return the cost rate of a configuration at a price of energy that is `factor` times that of its rate [€/s]."""
    held = demand.held * demand.gpus[row, config]
    return (demand.rate[row, config] - held) * factor + held


@lean_kernel
def least_cost(
    demand: Demand,
    job: int,
    grid: Floats,
    rates: Floats,
    offered: MarginalSteps,
    bought_steps: MarginalSteps,
    best: MarginalSteps,
) -> float:
    """Return the least cost of a job [€], and write its steps to `best`.

    Intervals of time begin at the submission, at the periods and at the due date; the job may complete in any of them.
    A completion before the due date costs nothing itself. In the interval of a late completion a second of use costs ω
    more, since idle time would come after it; the seconds between the due date and that interval cost ω, used or not.
    """
    begin, due, weight = demand.jobs[job, SUBMISSION], demand.jobs[job, DUE], demand.jobs[job, WEIGHT]
    speed, order = demand.speed[job], demand.order[job, demand.banned[job] :]
    last = grid.shape[0] - 1
    at_least = _least_at_base(demand, job, order, rates[last + 1])
    bought_steps.size[0], bought_steps.demand_left[0] = 0, demand.jobs[job, EPOCHS_TO_DO]
    least = np.inf
    k = max(0, np.searchsorted(grid, begin, side="right") - 1)
    while k <= last:
        period_end = grid[k + 1] if k < last else np.inf
        end = min(period_end, due) if begin < due else period_end
        if begin >= due:
            late = weight * (begin - due)
            if late + at_least >= least:
                break
            marginal_steps(offered, speed, rates[k], order, weight, (k, end - begin))
            cost = late + cost_with(bought_steps, offered)
            if cost < least:
                least = cost
                copy(bought_steps, best)
                add(best, offered)
        marginal_steps(offered, speed, rates[k], order, 0.0, (k, end - begin))
        add(bought_steps, offered)
        begin = end
        k += 1 if end == period_end else 0
    return least


@lean_kernel
def _least_at_base(demand: Demand, job: int, order: Ints, rate: Floats) -> float:
    """Return the least cost of a job's epochs without a price of GPU time, at the least price of energy [€]."""
    least = np.inf
    for i in range(order.shape[0]):
        least = min(least, rate[order[i]] / demand.speed[job, order[i]])
    return least * demand.jobs[job, EPOCHS_TO_DO]


@lean_kernel
def _use(demand: Demand, row: int, best: MarginalSteps, used: Floats) -> None:
    """Add the GPU-seconds of a job's steps, and their kW-seconds if power has a price, to `used`, (R, K)."""
    for i in range(best.size[0]):
        period = best.where[i, PERIOD]
        if period == used.shape[1]:
            continue
        seconds = best.amount[i, EPOCHS] * best.amount[i, SECONDS]
        low, high = best.where[i, LOW], best.where[i, HIGH]
        used[demand.type[high], period] += seconds * demand.gpus[row, high]
        if low >= 0:
            used[demand.type[low], period] -= seconds * demand.gpus[row, low]
        if used.shape[0] > demand.types:
            below = demand.power[row, low] if low >= 0 else 0.0
            used[demand.types, period] += seconds * (demand.power[row, high] - below)
