"""The price of power: the least one at which the power limits that jobs choose keep a site under its cap.

The round is planned as if there were no cap. If it draws too much, jobs get lower limits on the GPUs of that plan:
`Offers` has all limits of these GPUs, K at most, the highest first. `level` is the limit of each job, `PAUSED` for
none. If no limits are low enough, the round is planned within the cap at the lowest ones. Formula: docs/theory.md,
section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.sts_x import plan as of
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

PAUSED = -1
TRIALS = 20  # prices of power that are tried
LEAST_PRICE, MOST_PRICE = 1e-9, 1e3  # [€/kW s]
ROUNDED = 1.0 + 1e-9


class Offers(NamedTuple):
    """What the jobs of a planned round may get.

    Attributes:
        jobs: The jobs that the plan gives GPUs, (N,).
        planned: Their limits in the plan, (N,).
        configs: Their configurations at every limit, (N, K); -1: not offered.
        kilowatts: What each saves there of full busy GPUs [kW], (N, K).
        cost: Cost of an epoch there without a price of power: of energy, GPUs and the job's time [€], (N, K).
        value: Value of a second of the job's time [€/s], (N,).
        slack: Time to spare over the time left, both in the worst case at the first limit, (N,).
        limited: Whether a job holds GPUs below the first limit, (N,).
    """

    jobs: Ints
    planned: Ints
    configs: Ints
    kilowatts: Floats
    cost: Floats
    value: Floats
    slack: Floats
    limited: Ints


def has_limits_to_lower(board: Board) -> bool:
    """Whether power has a cap, and jobs may hold whole GPUs at several limits, and no shares: these have no limits."""
    if board.clock[at.CAP_KW] == np.inf:
        return False
    configs = board.facts.configs
    limited = configs[:, at.CONFIG_UNLIMITED] != np.arange(len(configs))
    return bool(limited.any() and not configs[:, at.CONFIG_UNITS].any())


def without_cap(board: Board) -> Board:
    """Return a board on which the round can be planned as if there were no cap; its memory is the same."""
    clock = board.clock.copy()
    clock[at.CAP_KW] = np.inf
    return board.replaced(clock=clock)


def at_lowest_limits(board: Board) -> Board:
    """Return a board on which jobs may use GPUs at their lowest limits alone; `take_plan` takes what is planned on it.

    Its memory has no plans that may be at other limits.
    """
    shown = board.replaced(tau=board.tau.copy(), memory=board.memory.copy())
    keep_lowest(board, shown.tau)
    active = board.active[: board.count[at.ACTIVE]]
    shown.memory[active[:, None], [of.SCALE, of.CHEAPEST]] = 0.0
    return shown


def take_plan(board: Board, shown: Board) -> None:
    """Write the plan of the round in the memory of a board `at_lowest_limits` to that of its own board."""
    board.memory[:, : of.KNOWN_AT] = shown.memory[:, : of.KNOWN_AT]


@kernel
def keep_lowest(board: Board, tau: Floats) -> None:
    """Close the configurations of the active jobs to which another one is the same GPUs at less power."""
    kinds = board.facts.configs[:, at.CONFIG_UNLIMITED]
    for job in board.active[: board.count[at.ACTIVE]]:
        most = np.zeros(kinds.shape[0])
        for c in range(kinds.shape[0]):
            if tau[job, c] < np.inf:
                most[kinds[c]] = max(most[kinds[c]], sim.saved_kw(board, job, c))
        for c in range(kinds.shape[0]):
            if sim.saved_kw(board, job, c) < most[kinds[c]]:
                tau[job, c] = np.inf


@kernel
def offers_of(board: Board) -> Offers:
    """Return what the jobs of the plan in `memory` may get."""
    jobs, configs, tau, memory = board.jobs, board.facts.configs, board.tau, board.memory
    active, kinds = board.active[: board.count[at.ACTIVE]], configs[:, at.CONFIG_UNLIMITED]
    chosen, levels = active[memory[active, sim.PLANNED] >= 0.0], 0  # most limits of the same GPUs
    for c in range(kinds.shape[0]):
        levels = max(levels, (kinds == kinds[c]).sum())
    shape = chosen.shape[0], levels
    offers = Offers(
        chosen, np.zeros_like(chosen), np.full(shape, -1), np.zeros(shape), np.full(shape, np.inf),
        np.empty(shape[0]), np.empty(shape[0]), np.empty(shape[0], dtype=np.int64),
    )  # fmt: skip
    for i in range(shape[0]):
        job = chosen[i]
        planned, held, found = int(memory[job, sim.PLANNED]), int(jobs[job, at.OLD_CONFIG]), 0
        offers.value[i] = max(0.0, memory[job, of.BARE_VALUE])
        for c in range(kinds.shape[0]):
            if kinds[c] != kinds[planned] or tau[job, c] == np.inf:
                continue
            kilowatts, k = sim.saved_kw(board, job, c), found
            while k > 0 and offers.kilowatts[i, k - 1] > kilowatts:  # in whatever order the configurations are
                offers.configs[i, k], offers.kilowatts[i, k] = offers.configs[i, k - 1], offers.kilowatts[i, k - 1]
                k -= 1
            offers.configs[i, k], offers.kilowatts[i, k] = c, kilowatts
            found += 1
        for k in range(found):
            c = offers.configs[i, k]
            offers.cost[i, k] = (offers.value[i] + board.planning_rate[int(jobs[job, at.APPLICATION]), c]) * tau[job, c]
            offers.planned[i] = k if c == planned else offers.planned[i]
        worst = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * tau[job, offers.configs[i, 0]]
        offers.slack[i] = (jobs[job, at.DUE] - board.clock[at.NOW]) / max(worst, 1e-9) - 1.0
        offers.limited[i] = 1 if held >= 0 and kinds[held] != held else 0
    return offers


@kernel
def write_levels(board: Board, offers: Offers, level: Ints) -> bool:
    """Write limits to the plan in `memory`; return whether they keep the site under its cap."""
    for i in range(level.shape[0]):
        board.memory[offers.jobs[i], sim.PLANNED] = -1 if level[i] == PAUSED else offers.configs[i, level[i]]
    return fits(board, offers, level, 1.0)


@kernel
def power_of(board: Board, offers: Offers, level: Ints) -> float:
    """Return the power of the site if the jobs get these limits, on the nodes of the plan [kW]."""
    configs, drawn, nodes = board.facts.configs, board.facts.kilowatts, board.nodes
    busy, total = np.zeros(nodes.shape[0], dtype=np.int64), 0.0
    for i in range(offers.jobs.shape[0]):
        if level[i] == PAUSED:
            continue
        c, node = offers.configs[i, 0], int(board.memory[offers.jobs[i], sim.NODE])
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
def lower_by_price(board: Board) -> bool:
    """Write the limits that jobs choose at the least price of power with which the site is under its cap.

    The price is found by bisection. At a price μ a job chooses the limit at which an epoch costs least, but none above
    that of the plan: cost + μ · kW · τ. What the steps between limits leave of the cap goes to the jobs whose time has
    most value per kW. Above a soft cap power has at most the price of that.

    Returns:
        Whether there is such a price, or the cap is soft.
    """
    offers, most = offers_of(board), np.inf
    if board.has_cap and board.site.shape[0] > 0:
        most = board.site[at.SOFT_EUR] / 3600.0
    level, low, high = offers.planned.copy(), 0.0, min(LEAST_PRICE, most)
    if fits(board, offers, level, 1.0):
        return True
    _write_choices(board, offers, level, high)
    while not fits(board, offers, level, 1.0) and high < min(MOST_PRICE, most):
        low, high = high, min(10.0 * high, most)
        _write_choices(board, offers, level, high)
    for _ in range(TRIALS if fits(board, offers, level, 1.0) else 0):
        middle = 0.5 * (low + high)
        _write_choices(board, offers, level, middle)
        low, high = (low, middle) if fits(board, offers, level, 1.0) else (middle, high)
    _write_choices(board, offers, level, high)
    worth = np.empty(level.shape[0])
    for i in range(level.shape[0]):
        worth[i] = offers.value[i] / _own_kw(board, offers, i)
    raise_levels(board, offers, level, worth)
    return write_levels(board, offers, level) or most < np.inf


@kernel
def _write_choices(board: Board, offers: Offers, level: Ints, price: float) -> None:
    """Write the limit that every job chooses at a price of power [€/kW s]."""
    for i in range(level.shape[0]):
        full, least = _own_kw(board, offers, i), np.inf
        for k in range(offers.planned[i], lowest(offers, i) + 1):
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
def raise_levels(board: Board, offers: Offers, level: Ints, worth: Floats) -> None:
    """Raise limits up to those of the plan while the site stays under its cap, and then resume paused jobs.

    The job with the largest `worth` comes first.
    """
    order = sim.ranked(-worth, level.shape[0])
    for turn in range(2):
        for i in order:
            while level[i] > offers.planned[i] or (turn == 1 and level[i] == PAUSED):
                before = level[i]
                level[i] = before - 1 if before != PAUSED else lowest(offers, i)
                if not fits(board, offers, level, 1.0):
                    level[i] = before
                    break
