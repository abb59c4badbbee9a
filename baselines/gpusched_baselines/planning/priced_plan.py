"""The single-job problem under prices that change by period: a dynamic programme over periods (theory, section 3).

With a price π_h in period h of L_h seconds, S constant on bins, and G(x, y; L) the least expected cost, at price 1, of
the epochs from x to y in at most L seconds, pauses allowed:

    V_h(x) = min over y ≥ x of  π_h · G(x, y; L_h) + V_{h+1}(y)

G is the problem of `plan.solve` from x to y with L seconds left: a pause costs nothing, so time that is left is a
pause. Prices only scale G, so its table is made once per job and length of periods. V_h is computed on a
grid of epochs; x is a point of it, and y is one, or what a configuration comes to that runs to the end of the period,
with V between points by interpolation. The plan takes the best steps from the job's own epochs on: a job can follow
it, and its exact cost is an upper bound of the optimum.

A job that begins after a pause restarts: for R seconds it makes no progress and costs what its first configuration
does. Whether it ran until the end of the last period is a second state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.plan import LATE, SLACK, expected_cost, solve, speed_up
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Curve, Floats, Ints, kernel, lean_kernel

GRID_POINTS = 40  # within 0.2 % of 320 in the mean (tests/baselines/test_priced_plan.py)
LEAST_STEPS = 6  # of the grid that the fastest configuration does in the longest period, whatever the job's length
MOST_POINTS = 400  # of a grid with `LEAST_STEPS`
MOST_OF_ALL = 10_000  # of any grid: an instant before a due date a period is too short for a step

# What a job does in a period, in `PricedPath.action`.
PAUSES, CONTINUES, STOPS, RESTARTS = range(4)


class PricedJob(NamedTuple):
    """A job as the dynamic programme takes it.

    Attributes:
        points: Of the hull, slow to fast: τ [s/epoch], p at price 1 [€/epoch], cost of a second saved [€/s], (3, K).
        curve: Its survival function.
        epochs: Epochs done w, and the maximum epochs E, (2,).
        restart_s: Seconds without progress when it begins after a pause.
        runs: Whether it runs now, so that it may continue without a restart.
    """

    points: Floats
    curve: Curve
    epochs: Floats
    restart_s: float
    runs: bool


class PricedPath(NamedTuple):
    """A plan by period.

    Attributes:
        epochs: Epochs done at the start of each period and at the end of the last, (H + 1,).
        action: What it does in each, (H,): PAUSES; CONTINUES, it runs from start to end; STOPS, it runs from the start
            and then pauses; RESTARTS, it pauses, unless there is no time for that, and then runs to the end.
    """

    epochs: Floats
    action: Ints


@kernel
def epoch_grid(job: PricedJob, longest: float, points: int) -> Floats:
    """Return a grid of epochs from w to E, of equal steps but the first, which is shorter, (M + 1,).

    The fastest configuration does a whole number of steps in a period of `longest` seconds, at least `LEAST_STEPS`
    unless M would exceed `MOST_POINTS`. So a job that runs fastest throughout loses no time to the grid. M is at most
    `MOST_OF_ALL`: then a period may be shorter than a step, and jobs run to the ends of periods.
    """
    done, largest = job.epochs[0], job.epochs[1]
    periods = (largest - done) * job.points[0, -1] / longest  # in the worst case
    in_period = max(np.ceil(points / periods), min(LEAST_STEPS, np.floor(MOST_POINTS / periods)), 1.0)
    step = max(longest / job.points[0, -1] / in_period, (largest - done) / MOST_OF_ALL)
    size = max(1, int(np.ceil((largest - done) / step - 1e-9)))
    grid = np.empty(size + 1)
    for i in range(size + 1):
        grid[i] = largest - (size - i) * step
    grid[0] = done
    return grid


@kernel
def stage_cost(
    job: PricedJob, first: float, last: float, seconds: float, restart: bool, starts: Floats
) -> tuple[float, bool]:
    """Return G(x, y; L), the least expected cost of the epochs from x = `first` to y = `last` in `seconds`, at price 1.

    Args:
        job: The job; probabilities are given that it has survived its epochs done.
        first: Epochs done at the start.
        last: Epochs done at the end, at most the maximum epochs.
        seconds: Time for them [s], the restart included.
        restart: Whether it restarts first.
        starts: Written: where each point of the hull starts, (K + 1,).

    Returns:
        The cost [€], inf if there is too little time, and whether time is left over for a pause.
    """
    tau, price, slope = job.points[0], job.points[1], job.points[2]
    curve, largest = job.curve, job.epochs[1]
    begin = sim.bin_of(curve.edges, job.epochs[0] / largest)
    left = seconds - job.restart_s if restart else seconds
    starts[-1] = last
    status = speed_up(tau, slope[: tau.shape[0] - 1], curve, first, largest, left, starts)
    if status == LATE:
        return np.inf, False
    cost = expected_cost(price, curve, begin, largest, starts)
    if restart and job.restart_s > 0.0:
        k = 0
        while k + 1 < tau.shape[0] and starts[k + 1] <= first:
            k += 1
        alive, there = curve.survival[begin], curve.survival[sim.bin_of(curve.edges, first / largest)]
        cost += job.restart_s * price[k] / tau[k] * (there / alive if alive > 0.0 else 1.0)
    return cost, status == SLACK and sim.misses(left, (last - first) * tau[0])


class StageCosts(NamedTuple):
    """What a job may do in a period of one length, from each of M + 1 points of the grid.

    Attributes:
        cost: Cost at price 1 of a step of d points for a job that continues, and for one that restarts [€], inf where
            impossible, (2, M + 1, W + 1); d = 0 is not used.
        slack: 1 where a job that continues has time left over, (M + 1, W + 1).
        whole_cost: Cost at price 1 of running a point of the hull to the end of the period [€], (2, M + 1, K); inf if
            the job would end before.
        whole_to: The place on the grid that it comes to, (2, M + 1, K).
    """

    cost: Floats
    slack: Floats
    whole_cost: Floats
    whole_to: Floats


@kernel
def write_stages(job: PricedJob, grid: Floats, seconds: float, last_row: int, stages: StageCosts) -> None:
    """Write what the job may do in a period of `seconds`, from the points of the grid up to `last_row`."""
    starts, width = np.empty(job.points.shape[1] + 1), stages.cost.shape[2]
    for restart in range(2):
        for i in range(last_row + 1):
            stages.cost[restart, i, 1:] = np.inf
            for d in range(1, min(width, grid.shape[0] - i)):
                if restart == 1 and job.restart_s <= 0.0:
                    stages.cost[1, i, d] = stages.cost[0, i, d]
                    continue
                each, left = stage_cost(job, grid[i], grid[i + d], seconds, restart == 1, starts)
                if each == np.inf:
                    break
                stages.cost[restart, i, d] = each
                if restart == 0:
                    stages.slack[i, d] = 1.0 if left else 0.0
            for k in range(job.points.shape[1]):
                end = whole_run(job, grid[i], seconds, restart == 1, k)
                stages.whole_cost[restart, i, k], stages.whole_to[restart, i, k] = np.inf, 0.0
                if grid[i] < end < grid[-1]:
                    each, _ = stage_cost(job, grid[i], end, seconds, restart == 1, starts)
                    stages.whole_cost[restart, i, k], stages.whole_to[restart, i, k] = each, place_on(grid, end)


@lean_kernel
def whole_run(job: PricedJob, first: float, seconds: float, restart: bool, k: int) -> float:
    """Return the epochs done after point k of the hull has run to the end of a period, from `first` on."""
    return first + (seconds - (job.restart_s if restart else 0.0)) / job.points[0, k]


@lean_kernel
def place_on(grid: Floats, epochs: float) -> float:
    """Return the place of a number of epochs on a grid: i on point i, i + 1/2 in the middle between it and the next."""
    if epochs < grid[1]:
        place = (epochs - grid[0]) / (grid[1] - grid[0])
    else:
        place = 1.0 + (epochs - grid[1]) / (grid[-1] - grid[-2])
    nearest = np.round(place)
    return nearest if abs(place - nearest) < 1e-6 else place


@lean_kernel
def value_at(value: Floats, place: float) -> float:
    """Return a value between the points of the grid, by linear interpolation."""
    i = min(int(place), value.shape[0] - 1)
    part = place - i
    return value[i] if part <= 0.0 else (1.0 - part) * value[i] + part * value[i + 1]


@kernel
def cheapest_path(
    job: PricedJob, seconds: Floats, price: Floats, grid: Floats, late: Floats
) -> tuple[float, PricedPath]:
    """Find a plan of least expected cost, in O(H M (W + K)): W is the most steps that a period has time for.

    The table of G takes O(M (W + K)) solutions for every different length of periods.

    Args:
        seconds: Length of each period [s], (H,), H ≥ 1.
        price: Price of each, relative to that of `job.points`, ≥ 0, (H,).
        grid: Epochs, (M + 1,).
        late: Cost of finishing after the last period from each point, paused or not [€], (2, M + 1); 0 at the last.

    Returns:
        The cost [€], inf if no plan ends in time, and the plan.
    """
    periods, size, points = seconds.shape[0], grid.shape[0], job.points.shape[1]
    reach = np.max(seconds) / job.points[0, -1] / (grid[-1] - grid[-2])
    width = min(size - 1, int(reach + 1e-6) + 1)
    value = np.empty((periods + 1, 2, size))
    whole = np.empty((2, 2, size, points))
    stages = StageCosts(np.empty((2, size, width + 1)), np.empty((size, width + 1)), whole[0], whole[1])
    value[periods] = late
    made = -1.0
    for h in range(periods - 1, 0, -1):
        if made != seconds[h]:
            write_stages(job, grid, seconds[h], size - 1, stages)
            made = seconds[h]
        write_values(price[h], stages, value[h + 1], value[h])
    return follow(job, seconds, price, grid, value)


@kernel
def write_values(price: float, stages: StageCosts, after: Floats, value: Floats) -> None:
    """Write V_h of each point of the grid from V_{h+1}.

    Args:
        price: Relative price of the period.
        after: V_{h+1} of a job that is paused, and of one that runs, (2, M + 1).
        value: Written: V_h, (2, M + 1).
    """
    cost, whole = stages.cost, stages.whole_cost
    for i in range(value.shape[1]):
        paused = running = after[0, i]
        for d in range(1, min(cost.shape[2], after.shape[1] - i)):
            if cost[0, i, d] == np.inf:
                break
            paused = min(paused, price * cost[1, i, d] + after[1, i + d])
            next_state = 0 if stages.slack[i, d] > 0.0 else 1
            running = min(running, price * cost[0, i, d] + after[next_state, i + d])
        for k in range(whole.shape[2]):
            if whole[1, i, k] < np.inf:
                paused = min(paused, price * whole[1, i, k] + value_at(after[1], stages.whole_to[1, i, k]))
            if whole[0, i, k] < np.inf:
                running = min(running, price * whole[0, i, k] + value_at(after[1], stages.whole_to[0, i, k]))
        value[0, i], value[1, i] = paused, min(paused, running)


@kernel
def follow(job: PricedJob, seconds: Floats, price: Floats, grid: Floats, value: Floats) -> tuple[float, PricedPath]:
    """Return the plan that takes the best step by V_{h+1} in every period, from the epochs done, and its cost [€].

    Args:
        seconds: Length of each period [s], (H,).
        price: Relative price of each, (H,).
        grid: Epochs, (M + 1,).
        value: V_h of a job that is paused, and of one that runs, (H + 1, 2, M + 1).
    """
    periods, state, total = seconds.shape[0], 1 if job.runs else 0, 0.0
    path = PricedPath(np.empty(periods + 1), np.empty(periods, dtype=np.int64))
    path.epochs[0] = job.epochs[0]
    for h in range(periods):
        step = best_step(job, path.epochs[h], seconds[h], price[h], state, (grid, value[h + 1]))
        path.epochs[h + 1], path.action[h] = step[0], int(step[1])
        total += step[2]
        state = 1 if path.action[h] == CONTINUES or path.action[h] == RESTARTS else 0
    return total + value_at(value[periods, state], place_on(grid, path.epochs[-1])), path


@kernel
def best_step(
    job: PricedJob, first: float, seconds: float, price: float, state: int, ahead: tuple[Floats, Floats]
) -> tuple[float, int, float]:
    """Return the epochs done at the end of a period, the action, and the cost [€] of the best step from `first`.

    Args:
        first: Epochs done.
        seconds: Length of the period [s].
        price: Its relative price.
        state: 1 if the job runs, so that it may continue; 0 if it has to restart.
        ahead: The grid, and V_{h+1} at its points, (2, M + 1).
    """
    grid, after = ahead
    points, starts = job.points.shape[1], np.empty(job.points.shape[1] + 1)
    best, action, paid = first, PAUSES, 0.0
    least = value_at(after[0], place_on(grid, first))
    begin = int(np.searchsorted(grid, first, side="right"))
    for restart in range(2):
        if restart == 0 and state == 0:
            continue
        for n in range(points + grid.shape[0] - begin):
            end = whole_run(job, first, seconds, restart == 1, n) if n < points else grid[begin + n - points]
            if end <= first or end > grid[-1]:
                continue
            cost, left = stage_cost(job, first, end, seconds, restart == 1, starts)
            if cost == np.inf:
                if n >= points:
                    break
                continue
            stops = left and restart == 0
            total = price * cost + value_at(after[0 if stops else 1], place_on(grid, end))
            if total < least:
                least, best, paid = total, end, price * cost
                action = RESTARTS if restart == 1 else (STOPS if stops else CONTINUES)
    return best, action, paid


@kernel
def best_path(
    job: PricedJob, seconds: Floats, price: Floats, time_left: float, weight: float, points: int
) -> tuple[float, PricedPath]:
    """Return the plan of `cheapest_path`, or of `path_without_prices` if that costs less, and its cost [€].

    Args:
        seconds: Length of each period until the due date [s], (H,), H ≥ 1.
        price: Relative price of each, ≥ 0, (H,). The last holds after the due date, too.
        time_left: Time until the due date [s], > 0.
        weight: Tardiness weight ω [€/s]; inf for a due date that must be met.
        points: Points of the grid, ≥ 1.
    """
    grid = epoch_grid(job, np.max(seconds), points)
    late = np.zeros((2, grid.shape[0]))
    for i in range(grid.shape[0] - 1):
        for state in range(2):
            energy, tardiness = late_cost(job, grid[i], state == 1, price[-1], weight)
            late[state, i] = energy + tardiness
    cost, path = cheapest_path(job, seconds, price, grid, late)
    status, known = path_without_prices(job, seconds, time_left)
    if status != LATE:
        of_known = path_cost(job, known, seconds, price)
        if of_known < cost:
            return of_known, known
    return cost, path


@kernel
def late_cost(job: PricedJob, epochs: float, runs: bool, price: float, weight: float) -> tuple[float, float]:
    """Return the expected cost of energy, and of tardiness [€], of finishing from `epochs` after the due date.

    Args:
        epochs: Epochs done at the due date.
        runs: Whether it runs until then.
        price: Relative price after the due date.
        weight: Tardiness weight [€/s]; inf for a due date that must be met.
    """
    if weight == np.inf:
        return 0.0, np.inf
    largest, k = job.epochs[1], late_point(job, price, weight)
    alive = job.curve.survival[sim.bin_of(job.curve.edges, job.epochs[0] / largest)]
    left, there = largest - epochs, 1.0
    if alive > 0.0:
        left = sim.survival_after(job.curve, epochs / largest) * largest / alive
        there = job.curve.survival[sim.bin_of(job.curve.edges, epochs / largest)] / alive
    seconds = left * job.points[0, k] + (0.0 if runs else job.restart_s * there)
    return price * job.points[1, k] / job.points[0, k] * seconds, weight * seconds


@kernel
def late_point(job: PricedJob, price: float, weight: float) -> int:
    """Return the point of the hull at which late epochs run: the cheapest one, tardiness included."""
    return int(np.argmin(price * job.points[1] + weight * job.points[0]))


@kernel
def path_cost(job: PricedJob, path: PricedPath, seconds: Floats, price: Floats) -> float:
    """Return the least expected cost of a plan whose epochs by period are given [€]; inf if a period is too short."""
    starts, total = np.empty(job.points.shape[1] + 1), 0.0
    for h in range(seconds.shape[0]):
        if path.epochs[h + 1] > path.epochs[h]:
            again = path.action[h] == RESTARTS
            cost, _ = stage_cost(job, path.epochs[h], path.epochs[h + 1], seconds[h], again, starts)
            total += price[h] * cost
    return total


@kernel
def path_without_prices(job: PricedJob, seconds: Floats, time_left: float) -> tuple[int, PricedPath]:
    """Return the plan of `plan.solve`, begun at once, by period, and its status.

    Epochs that it does after the last period are left out. It restarts at first, unless the job runs.

    Args:
        seconds: Length of each period [s], (H,).
        time_left: Time until the due date [s].
    """
    tau, price, slope = job.points[0], job.points[1], job.points[2]
    done, largest = job.epochs[0], job.epochs[1]
    starts, periods = np.empty(tau.shape[0] + 1), seconds.shape[0]
    wait = 0.0 if job.runs else job.restart_s
    status, _ = solve(tau, price, slope[: tau.shape[0] - 1], job.curve, done, largest, time_left - wait, starts)
    path = PricedPath(np.empty(periods + 1), np.zeros(periods, dtype=np.int64))
    path.epochs[0], at, k, action = done, done, 0, CONTINUES if job.runs else RESTARTS
    for h in range(periods):
        left, wait = max(0.0, seconds[h] - wait), max(0.0, wait - seconds[h])
        while left > 0.0 and k < tau.shape[0]:
            epochs = min(left / tau[k], starts[k + 1] - at)
            at, left = at + epochs, left - epochs * tau[k]
            if at >= starts[k + 1] - epochs * 1e-12:
                at = max(at, starts[k + 1])
                k += 1
            else:
                break
        path.epochs[h + 1] = min(at, largest)
        if path.epochs[h + 1] > path.epochs[h]:
            path.action[h], action = action, CONTINUES
    return status, path
