"""Power limits for the jobs of a planned round: one for all, by tiers, by two thresholds, or by a price of power.

A plan says which GPUs every job gets, without a limit. `Offers` has what each job may get instead: the same GPUs at one
of K limits, the highest first, or nothing. `level` is the limit of each job, `PAUSED` for nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

PAUSED = -1
UNIFORM, PRIORITY, POLCA, PRICE = range(4)
LOSSES = (0.0, 0.10, 0.25, 0.50)  # part of its speed that a job of a tier may lose (Emerald's Flex 0 to 3)
LOW, HIGH, RELEASE = 0.80, 0.89, 0.05  # POLCA's thresholds as parts of the cap, and how far below them it releases
TRIALS = 20  # prices of power that are tried
LEAST_PRICE, MOST_PRICE = 1e-9, 1e3  # [€/kW s]
ROUNDED = 1.0 + 1e-9


class Offers(NamedTuple):
    """What the jobs of a planned round may get.

    Attributes:
        jobs: The jobs that the plan gives GPUs, (N,).
        configs: Their configurations at every limit, (N, K); -1: not offered.
        kilowatts: What each saves there of full busy GPUs [kW], (N, K).
        cost: Cost of an epoch there without a price of power: of energy, GPUs and the job's time [€], (N, K).
        value: Value of a second of the job's time [€/s], (N,).
        slack: Time to spare over the time left, both in the worst case at the first limit, (N,).
        limited: Whether a job holds GPUs below the first limit, (N,).
    """

    jobs: Ints
    configs: Ints
    kilowatts: Floats
    cost: Floats
    value: Floats
    slack: Floats
    limited: Ints


@kernel
def offers_of(board: Board, planned: Ints, value: Floats, levels: int) -> Offers:
    """Return what the jobs of a plan may get.

    Args:
        planned: Configuration that each active job gets without a limit, (A,); -1: none.
        value: Value of a second of the time of each [€/s], (A,).
        levels: Most limits of the same GPUs.
    """
    active, jobs = board.active[: board.count[at.ACTIVE]], board.jobs
    chosen = np.flatnonzero(planned >= 0)
    total = chosen.shape[0]
    offers = Offers(
        active[chosen], np.full((total, levels), -1), np.zeros((total, levels)), np.full((total, levels), np.inf),
        value[chosen], np.zeros(total), np.zeros(total, dtype=np.int64),
    )  # fmt: skip
    configs, tau = board.facts.configs, board.tau
    for i in range(total):
        job, first, found = offers.jobs[i], planned[chosen[i]], 0
        application = int(jobs[job, at.APPLICATION])
        for c in range(configs.shape[0]):
            if configs[c, at.CONFIG_UNLIMITED] != configs[first, at.CONFIG_UNLIMITED] or tau[job, c] == np.inf:
                continue
            kilowatts = sim.saved_kw(board, job, c)
            k = found  # by what they save, in whatever order the configurations are
            while k > 0 and offers.kilowatts[i, k - 1] > kilowatts:
                offers.configs[i, k], offers.kilowatts[i, k] = offers.configs[i, k - 1], offers.kilowatts[i, k - 1]
                offers.cost[i, k] = offers.cost[i, k - 1]
                k -= 1
            offers.configs[i, k], offers.kilowatts[i, k] = c, kilowatts
            offers.cost[i, k] = (offers.value[i] + board.planning_rate[application, c]) * tau[job, c]
            found += 1
        worst = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * tau[job, first]
        offers.slack[i] = (jobs[job, at.DUE] - board.clock[at.NOW]) / max(worst, 1e-9) - 1.0
        held = int(jobs[job, at.OLD_CONFIG])
        offers.limited[i] = 1 if held >= 0 and configs[held, at.CONFIG_UNLIMITED] != held else 0
    return offers


@kernel
def power_of(board: Board, offers: Offers, level: Ints) -> float:
    """Return the power of the site if the jobs get these limits, on the nodes of the plan [kW]."""
    configs, drawn, nodes = board.facts.configs, board.facts.kilowatts, board.nodes
    busy, total = np.zeros(nodes.shape[0], dtype=np.int64), 0.0
    for i in range(offers.jobs.shape[0]):
        if level[i] == PAUSED:
            continue
        c, node = offers.configs[i, level[i]], int(board.memory[offers.jobs[i], sim.NODE])
        total -= offers.kilowatts[i, level[i]]
        if configs[c, at.CONFIG_NODES] > 1:
            total += configs[c, at.CONFIG_NODES] * drawn[configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_GPUS]]
        else:
            busy[node] += configs[c, at.CONFIG_GPUS]
    for n in range(nodes.shape[0]):
        total += drawn[nodes[n, at.NODE_TYPE], busy[n]]
    return total


@kernel
def fits(board: Board, offers: Offers, level: Ints, part: float) -> bool:
    return power_of(board, offers, level) <= part * board.clock[at.CAP_KW] * ROUNDED


@kernel
def lowest(offers: Offers, i: int) -> int:
    found = 0
    for k in range(offers.configs.shape[1]):
        found = k if offers.configs[i, k] >= 0 else found
    return found


@kernel
def choose_levels(board: Board, offers: Offers, rule: int) -> Ints:
    """Return the limit of every job by a rule, (N,): the site is under its cap, if pausing all brings it there."""
    level = np.zeros(offers.jobs.shape[0], dtype=np.int64)
    if rule == UNIFORM:
        _uniform(board, offers, level)
    elif rule == PRIORITY:
        _by_tiers(board, offers, level)
    elif rule == POLCA:
        _by_thresholds(board, offers, level)
    else:
        _by_price(board, offers, level)
    return level


@kernel
def _uniform(board: Board, offers: Offers, level: Ints) -> None:
    """Write the highest limit with which all jobs together stay under the cap; at the lowest, jobs are paused."""
    for k in range(offers.configs.shape[1]):
        for i in range(level.shape[0]):
            level[i] = min(k, lowest(offers, i))
        if fits(board, offers, level, 1.0):
            return
    _pause(board, offers, level, offers.slack)


@kernel
def _by_tiers(board: Board, offers: Offers, level: Ints) -> None:
    """Lower the jobs of the last tier first, as far as their tier allows; then pause, those with most slack first.

    What is left of the cap then goes to those with most slack, which lost most. A job is in the last tier that
    its slack allows: with a part l of its speed lost, it takes 1 / (1 - l) as long.
    """
    for tier in range(len(LOSSES) - 1, 0, -1):
        for i in range(level.shape[0]):
            if _tier_of(offers.slack[i]) == tier and not fits(board, offers, level, 1.0):
                level[i] = _lowest_within(board, offers, i, LOSSES[tier])
    _pause(board, offers, level, offers.slack)
    _raise(board, offers, level, np.zeros_like(level), -offers.slack)


@kernel
def _tier_of(slack: float) -> int:
    tier = 0
    for t in range(1, len(LOSSES)):
        tier = t if slack >= LOSSES[t] / (1.0 - LOSSES[t]) else tier
    return tier


@kernel
def _lowest_within(board: Board, offers: Offers, i: int, loss: float) -> int:
    tau, found = board.tau[offers.jobs[i]], 0
    for k in range(lowest(offers, i) + 1):
        found = k if tau[offers.configs[i, 0]] >= (1.0 - loss) * tau[offers.configs[i, k]] else found
    return found


@kernel
def _by_thresholds(board: Board, offers: Offers, level: Ints) -> None:
    """Lower jobs with slack by one limit above the first threshold; above the second to the lowest, and others by one.

    Where limits are in force already, they are released only `RELEASE` below the threshold. Above the cap all jobs get
    the lowest limit, and then they are paused.
    """
    deferrable, critical = 0, 0
    for i in range(level.shape[0]):
        deferrable += offers.limited[i] if offers.slack[i] > 0.0 else 0
        critical += offers.limited[i] if offers.slack[i] <= 0.0 else 0
    if fits(board, offers, level, LOW - (RELEASE if deferrable > 0 else 0.0)):
        return
    for i in range(level.shape[0]):
        level[i] = min(1, lowest(offers, i)) if offers.slack[i] > 0.0 else 0
    if fits(board, offers, level, HIGH - (RELEASE if critical > 0 else 0.0)):
        return
    for i in range(level.shape[0]):
        level[i] = lowest(offers, i) if offers.slack[i] > 0.0 else min(1, lowest(offers, i))
    if fits(board, offers, level, 1.0):
        return
    for i in range(level.shape[0]):
        level[i] = lowest(offers, i)
    _pause(board, offers, level, offers.slack)


@kernel
def _by_price(board: Board, offers: Offers, level: Ints) -> None:
    """Find the least price of power at which the limits that jobs choose stay under the cap, by bisection.

    At a price μ a job chooses the limit at which an epoch costs least: cost + μ · kW · τ. What the steps between limits
    leave of the cap goes to the jobs whose time has most value per kW. If no price suffices, jobs are paused, those of
    least value per kW first.
    """
    _write_choices(board, offers, level, 0.0)
    if fits(board, offers, level, 1.0):
        return
    low, high = 0.0, LEAST_PRICE
    _write_choices(board, offers, level, high)
    while not fits(board, offers, level, 1.0) and high < MOST_PRICE:
        low, high = high, 10.0 * high
        _write_choices(board, offers, level, high)
    for _ in range(TRIALS):
        middle = 0.5 * (low + high)
        _write_choices(board, offers, level, middle)
        low, high = (low, middle) if fits(board, offers, level, 1.0) else (middle, high)
    _write_choices(board, offers, level, high)
    if not fits(board, offers, level, 1.0):
        for i in range(level.shape[0]):
            level[i] = lowest(offers, i)
    worth = -_value_per_kw(board, offers)
    _pause(board, offers, level, worth)
    best = np.zeros_like(level)
    _write_choices(board, offers, best, 0.0)
    _raise(board, offers, level, best, worth)


@kernel
def _write_choices(board: Board, offers: Offers, level: Ints, price: float) -> None:
    """Write the limit that every job chooses at a price of power [€/kW s]."""
    for i in range(level.shape[0]):
        full, least = _own_kw(board, offers, i), np.inf
        for k in range(lowest(offers, i) + 1):
            used = (full - offers.kilowatts[i, k]) * board.tau[offers.jobs[i], offers.configs[i, k]]
            if offers.cost[i, k] + price * used < least:
                level[i], least = k, offers.cost[i, k] + price * used


@kernel
def _own_kw(board: Board, offers: Offers, i: int) -> float:
    """Return the power of a job's GPUs without a limit, with their part of a full node [kW]."""
    configs, c = board.facts.configs, offers.configs[i, 0]
    v, gpus = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_GPUS]
    most = max(board.capacity[v, at.LARGEST], gpus)
    return board.facts.kilowatts[v, most] * gpus / most * configs[c, at.CONFIG_NODES]


@kernel
def _value_per_kw(board: Board, offers: Offers) -> Floats:
    values = np.empty(offers.jobs.shape[0])
    for i in range(values.shape[0]):
        values[i] = offers.value[i] / _own_kw(board, offers, i)
    return values


@kernel
def _raise(board: Board, offers: Offers, level: Ints, best: Ints, last: Floats) -> None:
    """Raise limits up to `best` while the site stays under its cap, and then resume paused jobs.

    The job with the smallest number in `last` comes first.
    """
    order = sim.ranked(last, level.shape[0])
    for turn in range(2):
        for i in order:
            while level[i] > best[i] or (turn == 1 and level[i] == PAUSED):
                before = level[i]
                level[i] = before - 1 if before != PAUSED else lowest(offers, i)
                if not fits(board, offers, level, 1.0):
                    level[i] = before
                    break


@kernel
def _pause(board: Board, offers: Offers, level: Ints, last: Floats) -> None:
    order = sim.ranked(-last, level.shape[0])
    for i in order:
        if fits(board, offers, level, 1.0):
            return
        level[i] = PAUSED
