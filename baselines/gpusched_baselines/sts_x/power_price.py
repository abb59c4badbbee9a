"""The price of power under a cap: the least one at which the power limits that jobs choose keep the site under it.

The round is planned as if there were no cap, on GPUs at their highest limits. `Offers` has what each job may get
instead of what it has in that plan: the same GPUs at one of K limits, the highest first, or nothing. `level` is the
limit of each job, `PAUSED` for nothing. Formula: docs/theory.md, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.sts_x import plan as of
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, View, at, kernel

PAUSED = -1
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


def chooses_limits(board: Board) -> bool:
    """Whether limits are chosen after the plan: power has a cap, and jobs hold whole GPUs, as shares have no limits."""
    return bool(board.clock[at.CAP_KW] < np.inf) and not board.facts.configs[:, at.CONFIG_UNITS].any()


def without_limits(view: View, board: Board) -> Board:
    """Return a board without a cap, on which a job may use each kind of GPUs at its highest limit alone.

    What is planned on it is written to the same memory; all else that it changes is put back, or a copy.

    Args:
        view: The view of the policy.
        board: Its board, perhaps with other times per epoch.
    """
    groups, full = board.facts.configs[:, at.CONFIG_UNLIMITED], np.arange(len(view.configurations))
    jobs, tau, clock = board.jobs.copy(), board.tau.copy(), board.clock.copy()
    active = board.active[: board.count[at.ACTIVE]]
    highest = np.full((len(active), len(full)), -1)  # configuration of each job and kind of GPUs
    for c in sorted(full, key=lambda c: view.configurations[c].power_limit):
        highest[:, groups[c]] = np.where(np.isfinite(tau[active, c]), c, highest[:, groups[c]])
    tau[:, groups != full] = np.inf
    tau[active] = np.where(highest[:, groups] == full, board.tau[active], np.inf)
    clock[at.CAP_KW] = np.inf
    for column in (at.CONFIG, at.OLD_CONFIG):
        held = jobs[active, column].astype(np.int64)
        jobs[active, column] = np.where(held >= 0, highest[np.arange(len(active)), groups[held]], held)
    rate = np.maximum(board.least_rate[jobs[active, at.APPLICATION].astype(np.int64)], 1e-300)
    price = np.where(np.isfinite(tau[active]) & np.isfinite(rate), tau[active] * rate, np.inf)
    cheapest = price.argmin(axis=1)
    jobs[active, at.CHEAPEST] = np.where(np.isfinite(price.min(axis=1)), cheapest, -1)
    jobs[active, at.CHEAPEST_TAU] = tau[active, cheapest]
    for column, first, cleared in ((of.CHEAPEST, 1, of.CHEAPEST), (of.FIRST, 0, of.SCALE)):
        known = board.memory[active, column].astype(np.int64) - first
        board.memory[active[np.isinf(tau[active, known])], cleared] = 0.0  # a limit, of a round without a cap
    return board.replaced(jobs=jobs, tau=tau, clock=clock)


@kernel
def offers_of(board: Board) -> Offers:
    """Return what the jobs of the plan in `memory` may get; that plan has no limits."""
    jobs, configs, tau, memory = board.jobs, board.facts.configs, board.tau, board.memory
    active, kinds = board.active[: board.count[at.ACTIVE]], configs[:, at.CONFIG_UNLIMITED]
    total, levels = 0, 0  # most limits of the same GPUs
    for job in active:
        total += 1 if memory[job, sim.PLANNED] >= 0.0 else 0
    for c in range(kinds.shape[0]):
        levels = max(levels, (kinds == kinds[c]).sum())
    offers = Offers(
        np.empty(total, dtype=np.int64), np.full((total, levels), -1), np.zeros((total, levels)),
        np.full((total, levels), np.inf), np.empty(total), np.empty(total), np.empty(total, dtype=np.int64),
    )  # fmt: skip
    i = 0
    for job in active:
        if memory[job, sim.PLANNED] < 0.0:
            continue
        first, held, found = int(memory[job, sim.PLANNED]), int(jobs[job, at.OLD_CONFIG]), 0
        application = int(jobs[job, at.APPLICATION])
        offers.jobs[i], offers.value[i] = job, max(0.0, memory[job, of.BARE_VALUE])
        for c in range(kinds.shape[0]):
            if kinds[c] != kinds[first] or tau[job, c] == np.inf:
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
        offers.limited[i] = 1 if held >= 0 and kinds[held] != held else 0
        i += 1
    return offers


@kernel
def write_levels(board: Board, offers: Offers, level: Ints) -> None:
    """Write the limits that were chosen to the plan in `memory`."""
    for i in range(level.shape[0]):
        planned = -1 if level[i] == PAUSED else offers.configs[i, level[i]]
        board.memory[offers.jobs[i], sim.PLANNED] = planned


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
def levels_by_price(board: Board, offers: Offers) -> Ints:
    """Return the limits that jobs choose at the least price of power with which the site is under its cap, (N,).

    The price is found by bisection. At a price μ a job chooses the limit at which an epoch costs least:
    cost + μ · kW · τ. What the steps between limits leave of the cap goes to the jobs whose time has most value per kW.
    If no price suffices, jobs are paused, those of least value per kW first. Power above a soft cap has at most the
    price of that, and no job is paused.
    """
    level, most = np.zeros(offers.jobs.shape[0], dtype=np.int64), np.inf
    if board.has_cap and board.site.shape[0] > 0:
        most = board.site[at.SOFT_EUR] / 3600.0
    _write_choices(board, offers, level, 0.0)
    if fits(board, offers, level, 1.0):
        return level
    best, low, high = level.copy(), 0.0, min(LEAST_PRICE, most)
    _write_choices(board, offers, level, high)
    while not fits(board, offers, level, 1.0) and high < min(MOST_PRICE, most):
        low, high = high, min(10.0 * high, most)
        _write_choices(board, offers, level, high)
    if most < np.inf and not fits(board, offers, level, 1.0):
        return level
    for _ in range(TRIALS):
        middle = 0.5 * (low + high)
        _write_choices(board, offers, level, middle)
        low, high = (low, middle) if fits(board, offers, level, 1.0) else (middle, high)
    _write_choices(board, offers, level, high)
    if not fits(board, offers, level, 1.0):
        for i in range(level.shape[0]):
            level[i] = lowest(offers, i)
    worth = np.empty(level.shape[0])
    for i in range(level.shape[0]):
        worth[i] = -offers.value[i] / _own_kw(board, offers, i)
    pause(board, offers, level, worth)
    raise_levels(board, offers, level, best, worth)
    return level


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
def raise_levels(board: Board, offers: Offers, level: Ints, best: Ints, last: Floats) -> None:
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
def pause(board: Board, offers: Offers, level: Ints, last: Floats) -> None:
    """Pause jobs until the site is under its cap, those with the largest number in `last` first."""
    order = sim.ranked(-last, level.shape[0])
    for i in order:
        if fits(board, offers, level, 1.0):
            return
        level[i] = PAUSED
