"""STS under prices that change: jobs follow plans of the dynamic programme over published and forecast prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.cheapest import cheapest_fitting
from gpusched_baselines.planning.plan import SHORTEST_SEGMENT, Scratch, new_scratch
from gpusched_baselines.planning.priced_plan import (
    CONTINUES,
    GRID_POINTS,
    PAUSES,
    RESTARTS,
    STOPS,
    PricedJob,
    PricedPath,
    best_path,
    stage_cost,
)
from gpusched_baselines.sts import (
    BETTER,
    COST,
    FIRST,
    PLAN_COLUMNS,
    TIMER,
    Sts,
    find_type_hull,
    finish,
    look,
    plan_type,
)
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Choice, Floats, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator

PAUSED_UNTIL = 2  # column of the policy's memory of a job: until when it waits by its own choice [s]
PAUSE = -2  # in place of the first configuration of a plan that begins with a pause
MOST_PERIODS = 336  # of a plan, two weeks of hours; the rest of the time is one period at its mean price


class Ahead(NamedTuple):
    """The periods of a round, from now on.

    Attributes:
        edges: Times at which prices change [s], the first is now, (P + 1,).
        price: Price of each period relative to the reference price, (P,).
    """

    edges: Floats
    price: Floats


@kernel
def prices_ahead(board: Board, order: Ints) -> Ahead:
    """Return the periods until the last due date of the jobs `order`: published prices, then forecasts."""
    now, starts = board.clock[at.NOW], board.prices[:, at.PERIOD_START]
    until = now
    for job in order:
        until = max(until, board.jobs[job, at.DUE])
    first = int(np.searchsorted(starts, now + sim.MISSED_S, side="right"))  # a shorter rest of a period is rounding
    last = min(max(first, int(np.searchsorted(starts, until))), first + MOST_PERIODS)
    edges = np.empty(last - first + 2)
    edges[0], edges[-1] = now, max(until, now + 1.0)
    edges[1:-1] = starts[first:last]
    price = np.empty(edges.shape[0] - 1)
    sim.forecast_prices(board, edges, price)
    reference = board.clock[at.PRICE] * board.clock[at.PUE]
    for p in range(price.shape[0]):
        price[p] = max(price[p], 0.0) / reference
    return Ahead(edges, price)


@kernel
def periods_until(ahead: Ahead, due: float, shortest: float) -> tuple[Floats, Floats]:
    """Return lengths [s] and relative prices of the periods until a due date after now, (H,).

    A first period of at most `shortest` seconds joins the next one, so that a job can begin at once.
    """
    count = 1
    while count < ahead.price.shape[0] and ahead.edges[count] < due:
        count += 1
    seconds, price = np.diff(ahead.edges[: count + 1]), ahead.price[:count].copy()
    seconds[-1] = due - ahead.edges[count - 1]
    if count > 1 and seconds[0] <= shortest:
        price[1] = (seconds[0] * price[0] + seconds[1] * price[1]) / (seconds[0] + seconds[1])
        seconds[1] += seconds[0]
        return seconds[1:], price[1:]
    return seconds, price


@kernel
def begin_of(job: PricedJob, path: PricedPath, seconds: Floats) -> tuple[int, float]:
    """Return the point of the hull at which a plan begins, -1 for a pause, and after how long another follows [s].

    The time is inf if none follows. Runs of less than `SHORTEST_SEGMENT` of the epochs are not begun, as in STS.
    """
    starts, begin, now = np.empty(job.points.shape[1] + 1), 0.0, PAUSE
    for h in range(seconds.shape[0]):
        if path.action[h] == PAUSES:
            if now >= 0:
                return now, begin
            now, begin = -1, begin + seconds[h]
            continue
        stage_cost(job, path.epochs[h], path.epochs[h + 1], seconds[h], path.action[h] == RESTARTS, starts)
        time = begin + _pause_before(job, path, seconds, h, starts)
        if now == -1 or (now == PAUSE and time > begin):
            return -1, time
        time += job.restart_s if path.action[h] == RESTARTS else 0.0
        for k in range(job.points.shape[1]):
            length = starts[k + 1] - starts[k]
            if length <= 0.0:
                continue
            if now >= 0 and k != now:
                return now, time
            short = length < SHORTEST_SEGMENT * job.epochs[1] and starts[k + 1] < path.epochs[h + 1]
            if now >= 0 or not short:
                now = k
                time += length * job.points[0, k]
        begin += seconds[h]
        if path.action[h] == STOPS and path.epochs[h + 1] < job.epochs[1]:
            return now, time
    return now, np.inf


@kernel
def _pause_before(job: PricedJob, path: PricedPath, seconds: Floats, h: int, starts: Floats) -> float:
    """Return how long a job that restarts in period h pauses first [s]: what is left, if it runs on in the next."""
    goes_on = h + 1 < seconds.shape[0] and (path.action[h + 1] == CONTINUES or path.action[h + 1] == STOPS)
    if path.action[h] != RESTARTS or not goes_on:
        return 0.0
    left = seconds[h] - job.restart_s
    for k in range(job.points.shape[1]):
        left -= (starts[k + 1] - starts[k]) * job.points[0, k]
    return left if sim.misses(left, 0.0) else 0.0


@kernel
def plan_priced(board: Board, job: int, gpu_type: int, ahead: Ahead, scratch: Scratch) -> tuple[float, int, float]:
    """Plan one GPU type: expected cost [€], first configuration (`PAUSE`, or -1: no plan is in time), timer [s]."""
    jobs, now = board.jobs, board.clock[at.NOW]
    points = find_type_hull(board, job, gpu_type, 1, scratch)
    largest, done, due = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS], jobs[job, at.DUE]
    if points == 0 or due <= now or done >= largest:
        return np.inf, -1, np.inf
    held = int(jobs[job, at.OLD_CONFIG])
    runs = held >= 0 and board.facts.configs[held, at.CONFIG_TYPE] == gpu_type and sim.can_place(board, job, held)
    restart = jobs[job, at.RESTART_S] if held >= 0 else max(jobs[job, at.RESTART_S], jobs[job, at.STARTING_S])
    hull = scratch.points[:, :points].copy()
    own = PricedJob(hull, sim.curve_of(board, job), np.array([done, largest]), restart, runs)
    if sim.misses((largest - done) * hull[0, -1], due - now):
        return plan_type(board, job, gpu_type, 1, False, scratch)
    seconds, price = periods_until(ahead, due, restart)
    cost, path = best_path(own, seconds, price, due - now, np.inf, GRID_POINTS)
    if cost == np.inf:  # no time for a restart, or for the grid
        return plan_type(board, job, gpu_type, 1, False, scratch)
    k, time = begin_of(own, path, seconds)
    if k < 0:
        return cost, PAUSE, now + time
    config = scratch.members[scratch.hull[k]]
    return cost, config, now + time


@kernel
def take_best(board: Board, job: int, plans: Floats) -> tuple[int, float]:
    """Take the cheapest plan that begins with a pause or fits now; remember the cheaper ones that do not fit.

    Returns:
        The configuration, `PAUSE` for a pause, -1 if none fits, and the timer [s].
    """
    best = -1
    for v in range(plans.shape[0]):
        first = int(plans[v, FIRST])
        cheaper = best < 0 or plans[v, COST] < plans[best, COST]
        if cheaper and (first == PAUSE or (first >= 0 and sim.can_place(board, job, first))):
            best = v
    if best < 0:
        return -1, np.nan
    for v in range(plans.shape[0]):
        better = plans[v, FIRST] >= 0 and plans[v, COST] < plans[best, COST]
        board.memory[job, BETTER + v] = plans[v, FIRST] + 1 if better else 0.0
    return int(plans[best, FIRST]), min(plans[best, TIMER], sim.next_publication_s(board))


@kernel
def _choose(board: Board, job: int, ahead: Ahead, scratch: Scratch, plans: Floats) -> tuple[int, float]:
    """Choose the configuration, -1 to wait, and the timer, NaN to keep it, of one job."""
    memory, held = board.memory, int(board.jobs[job, at.OLD_CONFIG])
    if held < 0 and memory[job, PAUSED_UNTIL] > board.clock[at.NOW]:
        return -1, memory[job, PAUSED_UNTIL]
    config, timer, least, _ = look(board, job, True)
    if least == 0:
        return config, timer
    for v in range(plans.shape[0]):
        plans[v, COST], plans[v, FIRST], plans[v, TIMER] = plan_priced(board, job, v, ahead, scratch)
    config, timer = take_best(board, job, plans)
    memory[job, PAUSED_UNTIL] = timer if config == PAUSE else 0.0
    if config == -1:
        return cheapest_fitting(board, board.planning_rate, job), -np.inf
    return max(config, -1), timer


@kernel
def _decide(board: Board, order: Ints) -> None:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.capacity.shape[0], PLAN_COLUMNS))
    ahead = prices_ahead(board, order)
    for job in order:
        config, timer = _choose(board, job, ahead, scratch, plans)
        sim.apply_choice(board, job, False, timer)
        if config >= 0:
            sim.place(board, job, config)


@kernel
def _choose_alone(board: Board, job: int) -> tuple[int, float]:
    scratch, plans = new_scratch(board.tau.shape[1]), np.empty((board.capacity.shape[0], PLAN_COLUMNS))
    return _choose(board, job, prices_ahead(board, np.array([job])), scratch, plans)


@dataclass(frozen=True, slots=True)
class StsPriced:
    """STS whose single-job problem has the prices of energy by period, ours; without such prices it is STS.

    Each GPU type is planned by the dynamic programme of theory, section 3, with the published prices, and forecasts
    beyond (`forecast_prices`). A plan may pause until energy is cheaper; it meets the due date in the worst case if the
    job gets its GPUs then. A job is planned again when its plan says that another configuration or a pause follows,
    when prices are published, and when STS would. It may restart with fewer GPUs than it last held.

    Args:
        name: Name, as tables show it.
        postprocess: Whether what is left of shared GPUs goes to jobs there at the end of a round.
    """

    name: str = "sts:priced"
    job_order: str = "pressure"
    preemption: bool = True
    postprocess: bool = True

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs, by decreasing pressure."""
        if not view.board.has_prices or not len(view.board.prices):
            Sts(postprocess=self.postprocess).decide(view, rng)
            return
        order = sim.ask_order(view, self.job_order, waiting_only=False)
        _decide(view.board, order)
        if self.postprocess:
            finish(view.board, order)

    def choose(self, view: View, job: int) -> Choice:
        """Choose the configuration and the timer of one job."""
        if not view.board.has_prices or not len(view.board.prices):
            return Sts().choose(view, job)
        config, timer = _choose_alone(view.board, job)
        return Choice(int(config), None if np.isnan(timer) else float(timer))
