"""The plans of the active jobs of a round, and how one of them is planned at a price of GPU-seconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.plan import Scratch, cost_of_waiting, solve_late
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.plan import (
    PRICE,
    RESTART,
    WEIGHT,
    Adaptation,
    best_throughout,
    cost_with_changes,
    epochs_expected,
    factor,
    plan_ahead,
    price_out,
    rate_at_price,
)
from gpusched_env.simulator.kernels import Board, Floats, Ints, Mask, at, kernel, lean_kernel

SAME_SCALE = 0.1  # prices that differ by less than this count as the same
RESTART_PENALTY = 3.0  # additional restarts of a change where GPUs are short: the job may soon have to change again

# The order in which a round places its jobs: in groups, and by a key within a group.
MUST_BE_LATE, CRITICAL, DEFERRABLE_RUNNING, DEFERRABLE, WAITING = range(5)  # the last are not placed


class PlanOptions(NamedTuple):
    """How jobs may be planned; see `StsX`."""

    waits: bool
    guarantees: bool
    priced: bool
    by_price: bool


class Plans(NamedTuple):
    """The plans of the active jobs, a row for each.

    Attributes:
        jobs: The jobs, (A,).
        first: The configuration that each begins with, (A,).
        timer: When it is decided again [s], (A,).
        critical: Whether its plan leaves no time to wait, (A,).
        group: Its group in the order, (A,).
        key: Its key there, (A,): of deferrable jobs their slack [s].
        work: GPU-seconds that it is expected to need where its epochs are cheapest, restart included, (A,).
        value: Value of a second of its time where GPUs have no price [€/s], (A,).
        scale: 1 + the price of GPUs to a critical job, as a multiple of that of power, (A,).
        keeps: Whether it keeps what it holds, whatever its plan, (A,).
        due_load: Part of its time left in which it may not wait, since due work needs the GPUs, 0 to 1, (A,).
    """

    jobs: Ints
    first: Ints
    timer: Floats
    critical: Mask
    group: Ints
    key: Floats
    work: Floats
    value: Floats
    scale: Floats
    keeps: Mask
    due_load: Floats


@kernel
def new_plans(chosen: Ints) -> Plans:
    total = chosen.shape[0]
    whole, masks, figures = (
        np.zeros((2, total), dtype=np.int64),
        np.zeros((2, total), dtype=np.int8),
        np.zeros((6, total)),
    )
    figures[4][:] = 1.0
    return Plans(
        chosen, whole[0], figures[0], masks[0], whole[1], figures[1], figures[2], figures[3], figures[4], masks[1],
        figures[5],
    )  # fmt: skip


@kernel
def sees_prices(board: Board, options: PlanOptions) -> bool:
    if not board.has_prices:
        return False
    prices = board.prices
    if not options.by_price or board.count[at.PUBLISHED] < prices.shape[0]:
        return options.by_price
    for period in range(1, prices.shape[0]):
        for column in (at.PERIOD_PRICE, at.PERIOD_PUE):
            if prices[period, column] != prices[period - 1, column]:
                return True
    return False


@lean_kernel
def restart_penalty(scale: float) -> float:
    return 1.0 + RESTART_PENALTY * (scale - 1.0) / scale


@lean_kernel
def _standing(board: Board, job: int) -> float:
    """Return the configuration that a job holds; -1 if it has not started, -2 if it waits and would have to restart."""
    held = board.jobs[job, at.OLD_CONFIG]
    return held if held >= 0.0 or np.isnan(board.jobs[job, at.START_S]) else -2.0


@lean_kernel
def holds(board: Board, job: int) -> bool:
    memory, now = board.memory, board.clock[at.NOW]
    same = memory[job, of.HELD] == _standing(board, job) and memory[job, of.SCALE] > 0.0
    return same and now < memory[job, of.UNTIL] and now < memory[job, of.NEXT]


@kernel
def plan_at_price(
    board: Board,
    adaptation: Adaptation,
    plans: Plans,
    i: int,
    price: float,
    wait: float,
    options: PlanOptions,
    scratch: Scratch,
) -> None:
    """Plan a critical job at a price of GPU-seconds, unless its last plan is one at about the same price.

    Args:
        i: The row of the job in `plans`, where its scale of prices is written.
        price: What a GPU-second costs the other jobs, as a multiple of what its power costs.
    """
    job, scale = plans.jobs[i], 1.0 + factor(adaptation, i, PRICE) * price
    plans.scale[i] = scale
    if abs(scale - board.memory[job, of.SCALE]) > SAME_SCALE * scale:
        plan_job(board, adaptation, i, job, scale, wait, options, scratch)


@kernel
def plan_job(
    board: Board,
    adaptation: Adaptation,
    i: int,
    job: int,
    scale: float,
    wait: float,
    options: PlanOptions,
    scratch: Scratch,
) -> None:
    """Plan a job that is critical, or may be after a wait, and remember the plan and its value.

    The value of a second is the additional cost of the plan if it begins after the `wait` [s], over the wait. The plan
    over the hull changes configuration without a cost; if with the restarts of its changes it costs more than the best
    configuration to the end, that one is taken. A restart to come makes the plan later, too. Plans that guarantee due
    dates change as they must.
    """
    memory, size = board.memory, adaptation.rate.shape[1]
    rate = rate_at_price(board, adaptation.rate, job, scale)
    heavier, careful = factor(adaptation, i, WEIGHT), factor(adaptation, i, RESTART)
    seconds, price = scratch.seconds[:size], scratch.price[:size]
    price_out(board, rate, job, restart_penalty(scale) * careful, seconds, price)
    config, timer, points = plan_ahead(board, job, seconds, price, scale / heavier, options.guarantees, scratch)
    weight = board.jobs[job, at.WEIGHT] / (scale / heavier)
    restart = max(board.jobs[job, at.RESTART_S], board.jobs[job, at.RESUMING_S])
    total, changes = cost_with_changes(board, job, points, rate, restart, scratch)
    value = cost_of_waiting(board, job, points, wait, weight, scratch) * scale / wait
    if restart > 0.0:
        best, least = best_throughout(board, rate, job, restart_penalty(scale) * careful, weight)
        if changes and total < least:
            solve_late(board, job, points, board.jobs[job, at.DUE] - board.clock[at.NOW], scratch)
            total += cost_of_waiting(board, job, points, restart, weight, scratch)
        if changes and least <= total and not options.guarantees:
            config, timer = best, np.inf
        total = min(least, total) if changes else least
    if scale == 1.0:
        memory[job, of.PER_EPOCH] = total / epochs_expected(board, job)
    memory[job, of.HELD], memory[job, of.SCALE] = _standing(board, job), scale
    memory[job, of.FIRST], memory[job, of.NEXT], memory[job, of.VALUE] = config, timer, value
    if scale == 1.0:
        memory[job, of.BARE_VALUE], memory[job, of.BARE_FIRST], memory[job, of.BARE_NEXT] = value, config, timer
