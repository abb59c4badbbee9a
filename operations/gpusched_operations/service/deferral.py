"""Jobs that a policy defers while GPUs are idle: until when, and what that saves; one that saves nothing runs now.

A job that waits for GPUs of others, or for cheaper energy, saves what it costs less then. Only what is known counts:
the jobs that are there, their expected ends, and prices, published or forecast. That other jobs may come and fill a
node saves nothing.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel
from gpusched_env.mechanisms.prices.priced_time import forecast_prices, period_at
from gpusched_env.simulator import Board
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate, seconds_per_epoch
from gpusched_env.simulator.placement.placement import can_place, place
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.sorting import ranked
from gpusched_env.simulator.survival import bin_of, curve_of, expected_left, survival_after
from gpusched_env.simulator.switching import longest_switch_s, switch_s

LEAST_EUR = 0.01
"""The least that a wait while GPUs are idle must save [€]."""
MOST_PERIODS = 24 * 14
"""Periods of prices that a job may wait for, from now on."""
UNTIL_S, SAVES, ENERGY, TARDINESS, COLUMNS = 0, 1, 2, 3, 4


@kernel
def settle_deferrals(board: Board, least_eur: float) -> Floats:
    """Let the jobs of the open round that wait while GPUs are idle run there if waiting does not save `least_eur`.

    Each gets the GPUs with which it is expected to cost least to its end; jobs that would be stopped come first.

    Args:
        least_eur: The least that a wait must save [€]; -inf: all of them wait.

    Returns:
        Of each active job until when it waits [s], what that saves, and its expected energy and tardiness then [€],
        (A, COLUMNS); NaN of jobs that run, or wait because nothing is free for them.
    """
    active, jobs = board.active[: board.count[at.ACTIVE]], board.jobs
    found, ends_s = np.full((active.shape[0], COLUMNS), np.nan), _ends_s(board, active)
    for stopped in (True, False):
        for i in range(active.shape[0]):
            job = active[i]
            if jobs[job, at.CONFIG] >= 0.0 or (jobs[job, at.OLD_CONFIG] >= 0.0) != stopped:
                continue
            config, rate, now = _cheapest_now(board, job)
            if config < 0:
                continue
            row, v, end_s = _cheapest_later(board, job, config, rate, now, _first(ends_s))
            found[i] = row
            found[i, SAVES] = now[SAVES] - found[i, SAVES]
            if not found[i, SAVES] >= least_eur:
                place(board, job, config)
                jobs[job, at.TIMER_S] = np.inf
                found[i] = np.nan
            elif least_eur > -np.inf:
                jobs[job, at.TIMER_S] = min(jobs[job, at.TIMER_S], found[i, UNTIL_S])
                if v >= 0:  # the next one waits for the next GPUs
                    ends_s[np.argmin(ends_s[:, v]), v] = end_s
    return found


@kernel
def _cheapest_now(board: Board, job: int) -> tuple[int, float, Floats]:
    """Return the configuration that fits now and costs a job least to its end, by how much the bill rises, and a row.

    The row is one of costs as `_cheapest_later` returns it, never to wait; the configuration is -1 if none fits.
    """
    best, best_rate, row = -1, 0.0, np.full(COLUMNS, np.inf)
    before, now, weight = bill_rate(board), board.clock[at.NOW], board.jobs[job, at.WEIGHT]
    for c in range(board.facts.configs.shape[0]):
        if board.tau[job, c] == np.inf or not can_place(board, job, c):
            continue
        pause = switch_s(board, job, c)
        place(board, job, c)
        rate, each_s = bill_rate(board) - before, seconds_per_epoch(board, job)
        release(board, job)
        length, late = pause + each_s * expected_left(board, job), weight * late_s(board, job, now + pause, each_s)
        cost = rate * _price(board, c, rate, now, now + length) * length + late
        if best < 0 or cost < row[SAVES]:
            best, best_rate = c, rate
            row[SAVES], row[ENERGY], row[TARDINESS] = cost, rate * length, late
    return best, best_rate, row


@kernel
def _cheapest_later(
    board: Board, job: int, config: int, rate: float, now: Floats, free_s: Floats
) -> tuple[Floats, int, float]:
    """Return when a job would cost least, that cost, and its energy at the reference price and tardiness [€], a row.

    It has the configuration that it could have now in cheaper periods, or one that becomes free, alone on its node;
    else it is as if it ran `now`. With the row come the GPU type that it waits for, -1 for none, and its end then [s].

    Args:
        rate: By how much the bill rises with that configuration [€/s].
        now: The row of `_cheapest_now`.
        free_s: When GPUs of each type are expected to become free [s], (V,).
    """
    best, wanted, end_s = now.copy(), -1, np.inf
    weight, left = board.jobs[job, at.WEIGHT], expected_left(board, job)
    own, tau = int(board.jobs[job, at.APPLICATION]), board.tau[job]
    pause = board.jobs[job, at.STARTING_S] if np.isnan(board.jobs[job, at.START_S]) else longest_switch_s(board, job)
    length = pause + left * tau[config]
    if board.has_prices and board.clock[at.NOW] + length < board.jobs[job, at.DUE]:
        begin, end, price = _cheapest_periods(board, job, config, rate, length)
        late = weight * late_s(board, job, end - left * tau[config], tau[config])
        if begin > board.clock[at.NOW] and rate * price * length + late < best[SAVES]:
            best[UNTIL_S], best[SAVES] = begin, rate * price * length + late
            best[ENERGY], best[TARDINESS] = rate * length, late
    for c in range(tau.shape[0]):
        v = int(board.facts.configs[c, at.CONFIG_TYPE])
        if tau[c] == np.inf or free_s[v] == np.inf or can_place(board, job, c):
            continue
        length, alone = pause + left * tau[c], board.planning_rate[own, c]
        late = weight * late_s(board, job, free_s[v] + pause, tau[c])
        cost = alone * length * _price(board, c, alone, free_s[v], free_s[v] + length) + late
        if cost < best[SAVES]:
            best[UNTIL_S], best[SAVES], best[ENERGY], best[TARDINESS] = free_s[v], cost, alone * length, late
            wanted, end_s = v, free_s[v] + length
    return best, wanted, end_s


@kernel
def _ends_s(board: Board, active: Ints) -> Floats:
    """Return when each active job that runs is expected to end, in the column of its GPU type [s], (A, V); else inf."""
    found, now = np.full((active.shape[0], board.capacity.shape[0]), np.inf), board.clock[at.NOW]
    for i in range(active.shape[0]):
        job, config = active[i], int(board.jobs[active[i], at.CONFIG])
        if config >= 0:
            begin = max(now, board.jobs[job, at.READY_S])
            end = begin + board.tau[job, config] * expected_left(board, job)
            found[i, int(board.facts.configs[config, at.CONFIG_TYPE])] = end
    return found


@kernel
def _first(ends_s: Floats) -> Floats:
    """Return the first end on each GPU type [s], (V,)."""
    found = np.full(ends_s.shape[1], np.inf)
    for i in range(ends_s.shape[0]):
        for v in range(found.shape[0]):
            found[v] = min(found[v], ends_s[i, v])
    return found


@kernel
def _price(board: Board, config: int, rate: float, begin: float, end: float) -> float:
    """Return what a rate costs between two times, over what it costs at the reference price."""
    if not board.has_prices or rate <= 0.0 or end <= begin:
        return 1.0
    mean = np.empty(1)
    forecast_prices(board, np.array([begin, end]), mean)
    return _with_held(board, config, rate, mean[0])


@kernel
def _with_held(board: Board, config: int, rate: float, price: float) -> float:
    """Return the part of a rate at a price of energy, PUE included; what held GPUs cost does not change."""
    held = board.clock[at.GPU_EUR_PER_S] * board.facts.configs[config, at.CONFIG_SIZE] / at.UNITS
    held = min(rate, held)
    return (held + (rate - held) * price / (board.clock[at.PRICE] * board.clock[at.PUE])) / rate if rate > 0.0 else 1.0


@kernel
def _cheapest_periods(board: Board, job: int, config: int, rate: float, length: float) -> tuple[float, float, float]:
    """Return begin and end of the cheapest periods before its due date in which a job can run so long [s], and a price.

    The price is over the reference; of equal periods the first count.
    """
    now, due = board.clock[at.NOW], board.jobs[job, at.DUE]
    edges = np.empty(MOST_PERIODS + 2)
    edges[0], count = now, 0
    for k in range(period_at(board.prices, now) + 1, board.prices.shape[0]):
        if board.prices[k, at.PERIOD_START] >= due or count == MOST_PERIODS:
            break
        if board.prices[k, at.PERIOD_START] > now:
            count += 1
            edges[count] = board.prices[k, at.PERIOD_START]
    edges[count + 1] = due
    price = np.empty(count + 1)
    forecast_prices(board, edges[: count + 2], price)
    begin, end, left, total = due, now, length, 0.0
    for k in ranked(price, count + 1):
        if left > 0.0:
            part = min(left, edges[k + 1] - edges[k])
            begin, end = min(begin, edges[k]), max(end, edges[k] + part)
            total += part * _with_held(board, config, rate, price[k])
            left -= part
    return begin, end, total / length


@kernel
def late_s(board: Board, job: int, ready: float, each_s: float) -> float:
    """Return the expected time from the due date, or from now, to the end of a job that makes progress from a time."""
    due, jobs = max(board.clock[at.NOW], board.jobs[job, at.DUE]), board.jobs
    epochs = max(0.0, due - ready) / each_s
    largest, done, curve = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS], curve_of(board, job)
    then = min(1.0, (done + epochs) / largest)
    alive = curve.survival[bin_of(curve.edges, done / largest)]
    after = (1.0 - then) * largest if alive <= 0.0 else survival_after(curve, then) / alive * largest
    return max(0.0, ready - due) + each_s * after
