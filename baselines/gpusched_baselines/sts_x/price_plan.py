"""STS-X where the price of energy changes: which jobs run in the present period of prices, and with what.

Every active job is planned over the periods until its due date, at the known and forecast prices of energy and at dual
prices λ of the GPU time of every type in every period. Its plan is the sort of marginal-cost steps that the bounds use
(`bounds.priced`), over the epochs that it may need at most, so that it meets its due date if it can. All of them count:
weighed by the probability that the job still runs then, later periods would always look cheaper than the present one.
The dual prices rise where the plans together are expected to use more GPU time than there is: a few steps of the
subgradient method, in every round from the beginning. Then the jobs are planned once more, one after the other by
slack, over what those before them are expected to leave. What a plan has in the present period is what its job does
now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.bounds.priced import (
    EPOCHS,
    HIGH,
    LOW,
    PERIOD,
    SECONDS,
    Demand,
    MarginalSteps,
    empty_steps,
    least_cost,
)
from gpusched_baselines.planning.capacity import least_gpus
from gpusched_baselines.sts_x.plan import (
    DIFFERENCE,
    EARLY,
    GPU_TIME,
    ROOM,
    Adaptation,
    energy_factor,
    epochs_at_worst,
)
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, Mask, at, kernel, lean_kernel

MOST_PERIODS = 48  # of a plan besides the present one; those after the first half are merged where there are more
TURNS = 24  # steps of the subgradient method
FIRST_STEP = 0.5  # as a multiple of the price of power where twice the GPUs are wanted that there are
PART = 0.3  # of the present period that a plan must use to use all of it; and of that, a configuration
LEAST_PRICE = 0.05  # of the mean price: the least in plans, where an agent widens the differences
MARGIN = 0.02  # of the worst-case time: how long before its due date a plan ends


class Outlook(NamedTuple):
    """What the plans of a round share.

    Attributes:
        grid: Starts of periods and end of the last one [s], from now on, (K + 1,).
        energy: Price of energy in each over that of the rates, (K,).
        held: Price of a held GPU, in the rates [€/s].
        there_is: GPU time of every type in each period [GPU · s], (V, K).
        prices: Dual prices [€ per GPU and s], (V, K).
        used: GPU time that plans are expected to use, (V, K).
        restart: Seconds of a restart of each job, (A,).
        demand: The jobs, as the bounds have them.
    """

    grid: Floats
    energy: Floats
    held: float
    there_is: Floats
    prices: Floats
    used: Floats
    restart: Floats
    demand: Demand


@kernel
def plan_over_prices(board: Board, chosen: Ints, adaptation: Adaptation, first: Ints, timer: Floats) -> Mask:
    """Plan the jobs over the periods of prices.

    Args:
        chosen: The active jobs, (A,).
        first: Written: the configuration of each job in the present period, -1 if it waits, (A,).
        timer: Written: when it is decided again [s], (A,).

    Returns:
        Which jobs have such a plan, (A,): those that meet their due date with a margin and a restart to spare, whatever
        epochs they need.
    """
    total, configs, outlook = chosen.shape[0], adaptation.rate.shape[1], _outlook(board, chosen, adaptation)
    steps = (outlook.grid.shape[0] + 2) * configs
    scratch, margin = (empty_steps(configs), empty_steps(steps), empty_steps(steps)), _margin(adaptation)
    slack, planned = np.empty(total), np.zeros(total, dtype=np.int8)
    for i in range(total):
        worst = epochs_at_worst(board, chosen[i]) * board.jobs[chosen[i], at.MIN_TAU]
        slack[i] = board.jobs[chosen[i], at.DUE] - board.clock[at.NOW] - worst
        planned[i] = slack[i] > margin * worst + outlook.restart[i]
    for turn in range(TURNS):
        outlook.used[:] = 0.0
        for i in range(total):
            _plan_one(board, outlook, chosen, i, False, scratch)
        _move_prices(outlook, turn)
    outlook.used[:] = 0.0
    outlook.prices[:] *= energy_factor(adaptation, GPU_TIME)
    for i in sim.ranked(slack, total):
        _plan_one(board, outlook, chosen, i, True, scratch)
        if planned[i]:
            first[i], timer[i] = _now(scratch[2], outlook, i), outlook.grid[1]
    return planned


@lean_kernel
def _margin(adaptation: Adaptation) -> float:
    """Return how long before its due date a plan ends, as a part of the worst-case time."""
    return MARGIN * energy_factor(adaptation, EARLY)


@kernel
def _outlook(board: Board, chosen: Ints, adaptation: Adaptation) -> Outlook:
    """Return the periods from now to the last due date, their prices, and the jobs; no dual prices."""
    grid, demand = _grid(board, chosen), _demand(board, chosen, adaptation)
    periods, types, total = grid.shape[0] - 1, board.capacity.shape[0], chosen.shape[0]
    energy, there_is = np.empty(periods), np.zeros((types, periods))
    room, difference = energy_factor(adaptation, ROOM), energy_factor(adaptation, DIFFERENCE)
    least = least_gpus(board)
    sim.forecast_prices(board, grid, energy)
    if difference != 1.0:
        mean = energy.mean()
        for k in range(periods):
            energy[k] = max(LEAST_PRICE * mean, mean + difference * (energy[k] - mean))
    for k in range(periods):
        energy[k] /= board.clock[at.PRICE] * board.clock[at.PUE]
        for n in range(board.nodes.shape[0]):
            v, gpus = board.nodes[n, at.NODE_TYPE], board.nodes[n, at.USABLE]
            large_enough = board.nodes[n, at.NODE_GPUS] >= least[v]
            there_is[v, k] += room * gpus * (grid[k + 1] - grid[k]) if large_enough else 0.0
    restart = np.empty(total)
    for i in range(total):
        restart[i] = max(board.jobs[chosen[i], at.RESTART_S], board.jobs[chosen[i], at.RESUMING_S])
    none, held = np.zeros((types, periods)), board.clock[at.GPU_EUR_PER_S]
    return Outlook(grid, energy, held, there_is, none, none.copy(), restart, demand)


@kernel
def _grid(board: Board, chosen: Ints) -> Floats:
    """Return when periods begin from now to the last due date [s], and that: prices' own, later ones merged."""
    now, end = board.clock[at.NOW], board.clock[at.NOW] + 1.0
    for job in chosen:
        end = max(end, board.jobs[job, at.DUE], now + epochs_at_worst(board, job) * board.jobs[job, at.MIN_TAU])
    inside = np.empty(board.prices.shape[0])
    size = 0
    for p in range(board.prices.shape[0]):
        if now + sim.MISSED_S < board.prices[p, at.PERIOD_START] < end:
            inside[size] = board.prices[p, at.PERIOD_START]
            size += 1
    near = min(size, MOST_PERIODS // 2)
    stride = max(1, (size - near + MOST_PERIODS // 2 - 1) // (MOST_PERIODS // 2))
    later = (size - near + stride - 1) // stride
    grid = np.empty(near + later + 2)
    grid[0], grid[near + later + 1] = now, end
    grid[1 : near + 1] = inside[:near]
    for k in range(later):
        grid[near + 1 + k] = inside[near + k * stride]
    return grid


@kernel
def _demand(board: Board, chosen: Ints, adaptation: Adaptation) -> Demand:
    """Return the epochs left of the active jobs, all of them, as the bounds have jobs."""
    total, configs, now = chosen.shape[0], board.facts.configs.shape[0], board.clock[at.NOW]
    jobs, speed, order = np.empty((total, 4)), np.empty((total, configs)), np.empty((total, configs), dtype=np.int64)
    banned, row = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    rate, margin = adaptation.rate, _margin(adaptation)
    for i in range(total):
        job = chosen[i]
        worst, row[i] = epochs_at_worst(board, job) * board.jobs[job, at.MIN_TAU], int(board.jobs[job, at.APPLICATION])
        due = max(now + worst, board.jobs[job, at.DUE] - margin * worst)
        jobs[i, 0], jobs[i, 1], jobs[i, 2], jobs[i, 3] = (
            now,
            due,
            board.jobs[job, at.WEIGHT],
            epochs_at_worst(board, job),
        )
        for c in range(configs):
            speed[i, c] = 1.0 / board.tau[job, c]
            banned[i] += 1 if board.tau[job, c] == np.inf else 0
        order[i] = sim.ranked(speed[i], configs)
    gpus, type_of = np.empty(rate.shape), board.facts.configs[:, at.CONFIG_TYPE].copy()
    for a in range(rate.shape[0]):
        gpus[a] = board.facts.configs[:, at.CONFIG_SIZE] / at.UNITS
    types, held = board.capacity.shape[0], board.clock[at.GPU_EUR_PER_S]
    return Demand(jobs, speed, order, banned, row, rate, gpus, type_of, rate, np.ones(1), types, held)


@kernel
def _plan_one(
    board: Board,
    outlook: Outlook,
    chosen: Ints,
    i: int,
    within: bool,
    scratch: tuple[MarginalSteps, MarginalSteps, MarginalSteps],
) -> None:
    """Plan a job at the dual prices, and add what it is expected to use; its steps are the last of `scratch`.

    Going on as it runs saves a restart: it costs so much less in the present period.

    Args:
        i: The row of the job in `chosen`.
        within: Whether only within what other plans leave.
        scratch: Written: steps.
    """
    demand, grid, periods, usual = outlook.demand, outlook.grid, outlook.energy.shape[0], outlook.energy.mean()
    configs, held, row = demand.rate.shape[1], int(board.jobs[chosen[i], at.OLD_CONFIG]), demand.row[i]
    rates = np.empty((periods + 2, configs))
    for c in range(configs):
        v, gpus = demand.type[c], demand.gpus[row, c]
        own = min(demand.rate[row, c], outlook.held * gpus)  # of the rate the price of held GPUs does not change
        energy = demand.rate[row, c] - own
        for k in range(periods):
            rates[k, c] = energy * outlook.energy[k] + own + gpus * outlook.prices[v, k]
        if held == c:
            rates[0, c] *= max(0.0, 1.0 - outlook.restart[i] / (grid[1] - grid[0]))
        for k in range(periods if within else 0):
            if outlook.there_is[v, k] - outlook.used[v, k] < PART * gpus * (grid[k + 1] - grid[k]):
                rates[k, c] = np.inf
        rates[periods, c] = energy * usual + own
    rates[periods + 1] = 0.0
    best = scratch[2]
    best.size[0] = 0
    least_cost(demand, i, grid, rates, scratch[0], scratch[1], best)
    _add_used(board, outlook, chosen[i], i, best)


@kernel
def _add_used(board: Board, outlook: Outlook, job: int, i: int, best: MarginalSteps) -> None:
    """Add the GPU time that a plan is expected to use: in each period for the epochs that its job is expected to do."""
    demand, periods, row = outlook.demand, outlook.energy.shape[0], outlook.demand.row[i]
    curve, largest, done = sim.curve_of(board, job), board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    now, alive = curve.survival[sim.bin_of(curve.edges, done / largest)], np.zeros(periods)
    for s in range(best.size[0]):
        if best.where[s, PERIOD] < periods:
            alive[best.where[s, PERIOD]] += best.amount[s, EPOCHS]
    for k in range(periods):
        epochs = alive[k]
        if epochs > 0.0 and now > 0.0:  # the expected part of them that it does
            after = sim.survival_after(curve, min(1.0, done / largest))
            after -= sim.survival_after(curve, min(1.0, (done + epochs) / largest))
            alive[k] = after * largest / (epochs * now)
        else:
            alive[k] = 1.0
        done += epochs
    for s in range(best.size[0]):
        k = best.where[s, PERIOD]
        if k < periods:
            seconds = best.amount[s, EPOCHS] * best.amount[s, SECONDS] * alive[k]
            low, high = best.where[s, LOW], best.where[s, HIGH]
            outlook.used[demand.type[high], k] += seconds * demand.gpus[row, high]
            if low >= 0:
                outlook.used[demand.type[low], k] -= seconds * demand.gpus[row, low]


@kernel
def _move_prices(outlook: Outlook, turn: int) -> None:
    """Raise the dual prices where plans use more GPU time than there is, and lower them where they use less."""
    step, rate = FIRST_STEP / (1.0 + turn / 4.0) * outlook.energy.mean(), outlook.demand.rate
    for v in range(outlook.prices.shape[0]):
        power, gpus = 0.0, 0.0
        for c in range(rate.shape[1]):
            if outlook.demand.type[c] == v:
                power += rate[:, c].mean()
                gpus += outlook.demand.gpus[0, c]
        if gpus == 0.0:
            continue
        for k in range(outlook.prices.shape[1]):
            there_is = max(outlook.there_is[v, k], 1e-9)
            excess = max(-1.0, min(1.0, (outlook.used[v, k] - there_is) / there_is))
            outlook.prices[v, k] = max(0.0, outlook.prices[v, k] + step * power / gpus * excess)


@lean_kernel
def _now(best: MarginalSteps, outlook: Outlook, i: int) -> int:
    """Return the configuration of a plan in the present period, -1 for none: the fastest one with `PART` of the time.

    What takes less than `PART` of the period waits, unless it is all that the job needs.
    """
    longest, elsewhere, config, fastest = 0.0, False, -1, 0.0
    for s in range(best.size[0]):
        if best.where[s, PERIOD] == 0:
            longest = max(longest, best.amount[s, EPOCHS] * best.amount[s, SECONDS])
        else:
            elsewhere = True
    for s in range(best.size[0]):
        high = best.where[s, HIGH]
        is_long = best.where[s, PERIOD] == 0 and best.amount[s, EPOCHS] * best.amount[s, SECONDS] >= PART * longest
        if is_long and outlook.demand.speed[i, high] > fastest:
            config, fastest = high, outlook.demand.speed[i, high]
    if elsewhere and longest < PART * (outlook.grid[1] - outlook.grid[0]):
        return -1
    return config
