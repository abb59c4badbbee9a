"""STS-X: STS with one hull over all configurations, at the rates of full nodes; jobs with slack wait for such nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusched_baselines.planning.cheapest import (
    cheapest_fitting,
    rates_of_shares,
    with_co_runners,
)
from gpusched_baselines.planning.plan import Scratch, new_scratch
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.appraisal import FREE_RATE, appraise
from gpusched_baselines.sts_x.job_plan import WAITING, PlanOptions, Plans, restart_penalty, sees_prices
from gpusched_baselines.sts_x.placements import (
    ALONE,
    FRESH,
    KEPT,
    MARGINAL,
    add_ending,
    cheapest_to_the_end,
    cost_of_placement,
    restarts_are_long,
)
from gpusched_baselines.sts_x.plan import (
    RESTART,
    WEIGHT,
    Adaptation,
    factor,
    plan_ahead,
    price_out,
    rate_at_price,
    spread,
    unadapted,
)
from gpusched_baselines.sts_x.power_price import (
    at_lowest_limits,
    has_limits_to_lower,
    lower_by_price,
    take_plan,
    without_cap,
)
from gpusched_baselines.sts_x.type_prices import MOST_RECENT, with_type_prices
from gpusched_baselines.sts_x.waits import Queue, new_queue, waits_for_plan
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import (
    Board,
    Floats,
    Ints,
    PlannedPolicy,
    View,
    at,
    kernel,
    lean_kernel,
    threaded_kernel,
)

MOST_SLACK = 3.0  # with plans over periods of prices: a job with more, in worst-case times, powers on no node alone


@threaded_kernel
def plan_round(board: Board, options: PlanOptions, adaptation: Adaptation) -> None:
    """Plan the round on an empty cluster; write the plan of every job to `memory`, and nothing else.

    Where restarts are long, it is placed in four ways, and the one whose jobs are expected to cost least is planned.

    Args:
        options: How jobs may be planned.
        adaptation: The adaptation of the round; `unadapted` has only the rates.
    """
    active = board.active[: board.count[at.ACTIVE]]
    scratch = new_scratch(board.facts.configs.shape[0] + 1)
    if board.has_shares and sim.slots(board) > 0:  # their rates follow the active jobs, and so does what is cheapest
        for job in active:
            board.memory[job, of.CHEAPEST] = 0.0
    by_price = sees_prices(board, options)  # then GPU types have prices in each period
    if not by_price:
        adaptation = with_type_prices(board, adaptation)
    plans = appraise(board, active, options, adaptation, scratch)
    held, kept = sim.begin_plan(board, True)
    order, timer = sim.ranked_in_groups(plans.group, plans.key), plans.timer.copy()
    _place_all(board, plans, order, FRESH, held, (options, adaptation, scratch))
    if not options.guarantees and not by_price and restarts_are_long(board, active):
        _compare(board, plans, order, held, timer, (options, adaptation, scratch))
    sim.write_plan(board)
    for i in range(active.shape[0]):
        board.memory[active[i], sim.TIMER] = plans.timer[i]
    sim.end_plan(board, held, kept)


@kernel
def _compare(
    board: Board,
    plans: Plans,
    order: Ints,
    held: Floats,
    timer: Floats,
    rest: tuple[PlanOptions, Adaptation, Scratch],
) -> None:
    """Place the round in the other ways, too; leave the jobs where they are expected to cost least.

    Args:
        held: What jobs held and their previous places, as `begin_plan` returned them, (A, `held_columns`).
        timer: The timers of the jobs before they were placed [s], (A,).
    """
    total, least = plans.jobs.shape[0], np.inf
    best, nodes, timers = np.empty((total, sim.held_columns(board))), np.empty_like(board.nodes), plans.timer.copy()
    for placement in (FRESH, KEPT, ALONE, MARGINAL):
        if placement != FRESH:
            plans.timer[:] = timer
            for i in range(total):
                sim.set_preferred_node(board, plans.jobs[i], int(held[i, sim.HELD]), int(held[i, sim.HELD + 1]))
            sim.clear(board, plans.jobs)
            _place_all(board, plans, order, placement, held, rest)
        cost = cost_of_placement(board, plans, order, rest[1].rate)
        if cost < least:
            least = cost
            sim.keep(board, plans.jobs, best, nodes)
            timers[:] = plans.timer
    sim.restore(board, plans.jobs, best, nodes)
    plans.timer[:] = timers


@kernel
def _place_all(
    board: Board,
    plans: Plans,
    order: Ints,
    placement: int,
    held: Floats,
    rest: tuple[PlanOptions, Adaptation, Scratch],
) -> None:
    """Place the jobs on the empty cluster in one of the ways of `placements`, and give idle GPUs away."""
    plans.keeps[:] = 0
    if placement != FRESH:
        for i in range(plans.jobs.shape[0]):
            config = _kept(board, plans, i)
            if config >= 0 and sim.would_restart(board, plans.jobs[i]) and sim.can_place(board, plans.jobs[i], config):
                plans.keeps[i] = sim.place(board, plans.jobs[i], config)
    _place_jobs(board, plans, order, placement, rest)
    spread(board, plans.jobs, plans.keeps)
    _settle(board, plans.jobs, order, held[:, sim.HELD :])


@kernel
def _place_jobs(
    board: Board, plans: Plans, order: Ints, placement: int, rest: tuple[PlanOptions, Adaptation, Scratch]
) -> None:
    """Place the jobs that do not keep what they hold, in their order."""
    configs, first, queue = board.facts.configs, plans.first, new_queue(board, plans)
    demand = np.zeros(board.capacity.shape[0])  # GPUs that deferrable jobs want and do not have yet, by type
    for i in range(first.shape[0]):
        demand[configs[first[i], at.CONFIG_TYPE]] += _wanted(board, plans, i)
    for i in order[: order.shape[0] - (plans.group == WAITING).sum()]:  # those that wait are the last
        v, wanted = configs[first[i], at.CONFIG_TYPE], _wanted(board, plans, i)
        if not plans.keeps[i]:
            queue.behind[v] -= plans.value[i] if plans.critical[i] else 0.0
            _place_job(board, plans, i, placement, demand[v], queue, rest)
            add_ending(board, plans.jobs[i], queue.ending)
        demand[v] -= wanted


@kernel
def _place_job(
    board: Board,
    plans: Plans,
    i: int,
    placement: int,
    demand: float,
    queue: Queue,
    rest: tuple[PlanOptions, Adaptation, Scratch],
) -> None:
    """Place a job, or let it wait, and write its timer.

    Args:
        demand: GPUs of its type that deferrable jobs want and do not have yet.
    """
    job, first, (options, adaptation, scratch) = plans.jobs[i], plans.first[i], rest
    if placement >= ALONE and board.jobs[job, at.OLD_CONFIG] < 0.0:
        config = cheapest_to_the_end(board, plans, i, placement, adaptation)
        if config >= 0 and _put(board, job, config, True):
            plans.timer[i] = np.inf
            return
    if plans.critical[i]:
        config, scale = _plan_to_follow(board, plans, i, placement)
        if not _put(board, job, config, True):
            may_wait = options.waits and not options.guarantees
            if may_wait and waits_for_plan(board, plans, i, config, adaptation, queue):
                plans.timer[i] = np.inf
            else:
                plans.timer[i] = _put_what_fits(board, plans, i, scale, options, adaptation, scratch)
        return
    by_price = sees_prices(board, options)
    largest = board.capacity[board.facts.configs[first, at.CONFIG_TYPE], at.LARGEST]
    fills_node = demand >= largest or sim.keeps_config(board, job, first)
    longest = of.epochs_at_worst(board, job) * board.jobs[job, at.MIN_TAU]
    stays_on = board.jobs[job, at.OLD_CONFIG] >= 0.0 and not sim.would_restart(board, job)  # its node is on
    has_time = not stays_on and plans.key[i] >= MOST_SLACK * longest
    if _put(board, job, first, fills_node or (by_price and not has_time)):
        plans.timer[i] = plans.timer[i] if by_price else np.inf
    elif sim.would_restart(board, job):  # it keeps its GPUs and does not wait for better ones
        _put(board, job, _kept(board, plans, i), True)
    elif by_price and has_time:  # it is decided again a little after its slack is down to that: it may power on a node
        plans.timer[i] = min(plans.timer[i], board.clock[at.NOW] + plans.key[i] - 0.999 * MOST_SLACK * longest)


@lean_kernel
def _wanted(board: Board, plans: Plans, i: int) -> float:
    """Return the GPUs that a deferrable job wants; 0 for critical jobs, and for those that wait."""
    if plans.critical[i] or plans.group[i] == WAITING:
        return 0.0
    return board.facts.configs[plans.first[i], at.CONFIG_SIZE] / at.UNITS


@lean_kernel
def _kept(board: Board, plans: Plans, i: int) -> int:
    """Return the configuration of a job that keeps its GPUs, -1 if it has none: its plan may set their power limit."""
    held = int(board.jobs[plans.jobs[i], at.OLD_CONFIG])
    return plans.first[i] if sim.same_gpus(board, plans.first[i], held) else held


@lean_kernel
def _plan_to_follow(board: Board, plans: Plans, i: int, placement: int) -> tuple[int, float]:
    """Return the configuration and the scale of prices of a critical job's plan; with `KEPT` write its timer, too."""
    if placement != KEPT:
        return plans.first[i], plans.scale[i]
    bare, until = board.memory[plans.jobs[i]], board.memory[plans.jobs[i], of.BARE_NEXT]
    plans.timer[i] = until if until > board.clock[at.NOW] else np.inf
    return int(bare[of.BARE_FIRST]), 1.0


@kernel
def _put_what_fits(
    board: Board, plans: Plans, i: int, scale: float, options: PlanOptions, adaptation: Adaptation, scratch: Scratch
) -> float:
    """Plan a critical job over what fits now, at the `scale` of prices, place it, and return its timer.

    The timer is inf if nothing fits.
    """
    job, size, any_fits = plans.jobs[i], adaptation.rate.shape[1], False
    for c in range(size):
        any_fits |= board.tau[job, c] < np.inf and sim.can_place(board, job, c)
    if not any_fits:
        return np.inf
    seconds, price = scratch.seconds[:size], scratch.price[:size]
    rate = rate_at_price(board, adaptation.rate, job, scale)
    price_out(board, rate, job, restart_penalty(scale) * factor(adaptation, i, RESTART), seconds, price)
    for c in range(size):
        seconds[c] = seconds[c] if sim.can_place(board, job, c) else np.inf
    heavier = factor(adaptation, i, WEIGHT)
    config, timer, _ = plan_ahead(board, job, seconds, price, scale / heavier, options.guarantees, scratch)
    _put(board, job, config, True)
    return timer


@lean_kernel
def _put(board: Board, job: int, config: int, may_power_on: bool) -> bool:
    """Place a job, on a node that is on if one has the free capacity, on another one only with `may_power_on`."""
    if not sim.can_place(board, job, config):
        return False
    powers_on, leaves = sim.should_consolidate(board, job, config)
    if powers_on and not may_power_on:
        return False
    if leaves:
        sim.clear_preferred_node(board, job)
    return sim.place(board, job, config)


@kernel
def _settle(board: Board, chosen: Ints, order: Ints, preferred: Floats) -> None:
    """Place the jobs again so that no job that keeps its configuration moves, if all planned configurations still fit.

    Jobs for which a move takes a restart return to their places first. If the configurations of the others then do not
    fit, everything stays as it was.

    Args:
        chosen: The jobs of the round, (A,).
        order: The order in which they were placed, (A,).
        preferred: Their previous places, (A, 2).
    """
    jobs, moved = board.jobs, False
    group = np.empty(chosen.shape[0], dtype=np.int64)
    for i in range(chosen.shape[0]):
        config = int(jobs[chosen[i], at.CONFIG])
        group[i] = 0 if config >= 0 and sim.keeps_config(board, chosen[i], config) else 1
        elsewhere = jobs[chosen[i], at.NODE] != jobs[chosen[i], at.OLD_NODE]
        moved |= group[i] == 0 and (elsewhere or jobs[chosen[i], at.SLOT] != jobs[chosen[i], at.OLD_SLOT])
    if not moved:
        return
    held, kept = np.empty((chosen.shape[0], sim.held_columns(board))), np.empty_like(board.nodes)
    sim.keep(board, chosen, held, kept)
    for i in range(chosen.shape[0]):
        sim.set_preferred_node(board, chosen[i], int(preferred[i, 0]), int(preferred[i, 1]))
    sim.clear(board, chosen)
    for turn in range(2):
        for i in order:
            if group[i] == turn and held[i, 0] >= 0.0 and not _put(board, chosen[i], int(held[i, 0]), True):
                sim.restore(board, chosen, held, kept)
                return


@kernel
def execute_plan(board: Board, order: Ints) -> None:
    for job in order:
        config, timer = choose_planned(board, job)
        sim.give(board, job, config, timer)


@kernel
def choose_planned(board: Board, job: int) -> tuple[int, float]:
    """Return the configuration and timer of the job in the plan of the round, or a configuration that fits now."""
    config, timer = int(board.memory[job, sim.PLANNED]), board.memory[job, sim.TIMER]
    if config < 0 or sim.can_place(board, job, config):
        return config, timer
    # The placement differs from the plan.
    if timer <= board.clock[at.NOW]:
        timer = np.inf
    return cheapest_fitting(board, board.least_rate, job), timer


@dataclass(frozen=True, slots=True)
class StsX(PlannedPolicy):
    """STS-X, our own: a job with slack waits for the cheapest GPUs.

    Every job is planned over the configurations of all GPU types at once, shares and whole nodes included, at the rates
    of full nodes. The plan weighs tardiness against energy: it may be late where meeting the due date would cost more.
    Where GPUs are short their power costs more, by what the jobs that wait for them lose; a GPU type costs more where
    other jobs need it more. A share costs as much of its GPU as the expected number of its holders leaves. A job whose
    plan has no slack is critical: it runs now, if possible on a node that is on, or waits for the GPUs of its plan
    where that costs much less than what fits. Jobs that must be late go first, by the value of a second of their time
    over the GPU-seconds that they need; the others go by slack. A job with slack runs only where it is cheapest, on a
    node that is on anyway or that such jobs fill together; else it waits, at most until its slack ends, and less long
    where due work will need the GPUs. Idle GPUs of nodes that are on then go to jobs there while that makes an epoch
    cheaper, and jobs leave nodes that the round does not need. Where restarts take time, a job changes only if the
    change saves more than it costs, and jobs that keep their configuration stay. Where restarts are long, the round is
    also planned with all running jobs where they are, and the round whose jobs are expected to cost least is taken.

    Under a cap the round is planned as if there were none. If that draws too much, power has the least price at which
    the lower power limits that jobs choose fit; if no limits are low enough, the round is planned again, within the cap
    at the lowest limits. Where there are no limits, or jobs may hold shares, which have none, it is planned within the
    cap at once.

    The policy plans the round as a whole at the decision on its first job; then it decides the jobs one by one. So one
    such policy should decide the whole round.

    Args:
        full_nodes: How full nodes are expected to be, 0 to 1: 1 plans at the rates of full nodes, 0 at those of a job
            alone on its node, as STS does.
        waits: Whether jobs with slack may wait, and critical ones for the GPUs of their plan.
        guarantees: Whether plans meet the due date where they can if all epochs are needed, at any cost.
        priced: Whether GPUs cost more than their power where they are short.
        co_located: Whether shares are planned with the expected co-runners; else, and where due dates are guaranteed,
            with the worst possible co-runners.
        by_price: Whether jobs are planned over the periods of prices, where the price of energy changes. Then a job
            with a slack below 3 worst-case times may power on a node alone.
        name: Name, as tables show it.

    Raises:
        InputError: `full_nodes` is not a number from 0 to 1.
    """

    full_nodes: float = 1.0
    waits: bool = True
    guarantees: bool = False
    priced: bool = True
    co_located: bool = True
    by_price: bool = True
    name: str = "sts-x"
    job_order: str = "pressure"
    preemption: bool = True
    jobs_over: ClassVar[int] = MOST_RECENT
    defers: ClassVar[bool] = True  # jobs may wait while GPUs are idle: live decisions check that
    _execute_plan = staticmethod(execute_plan)
    _planned = staticmethod(choose_planned)

    def __post_init__(self) -> None:
        if checks.not_negative("full_nodes", self.full_nodes) > 1.0:
            raise InputError("full_nodes", self.full_nodes, "a number from 0 to 1")

    @property
    def options(self) -> PlanOptions:
        """Return how jobs may be planned, as kernels take it."""
        return PlanOptions(self.waits, self.guarantees, self.priced, self.by_price)

    def rates(self, board: Board) -> Floats:
        """Return the cost rates of configurations to plan the open round with [€/s], (A, C)."""
        full = np.where(np.isfinite(board.least_rate), board.least_rate, board.planning_rate)
        rate = self.full_nodes * full + (1.0 - self.full_nodes) * board.planning_rate
        if not rate.any():  # energy is free: GPUs have a small price instead
            rate = np.tile(FREE_RATE * board.facts.configs[:, at.CONFIG_SIZE] / at.UNITS, (len(rate), 1))
        return rates_of_shares(board, rate)

    def _plan(self, view: View) -> None:
        board = with_co_runners(view.board) if self.co_located and not self.guarantees else view.board
        self.plan_adapted(board, self._adaptation(view, board, self.rates(board)))

    def plan_adapted(self, board: Board, adaptation: Adaptation) -> None:
        """Plan the round with an adaptation, under a cap with its power limits; write all plans to the memory.

        Args:
            board: The board, with the times with which the round is planned.
            adaptation: The adaptation of the round.
        """
        if not has_limits_to_lower(board):
            plan_round(board, self.options, adaptation)
            return
        plan_round(without_cap(board), self.options, adaptation)
        if not self._lower_limits(board):
            shown = at_lowest_limits(board)
            plan_round(shown, self.options, adaptation)
            take_plan(board, shown)

    def _lower_limits(self, board: Board) -> bool:
        """Lower limits of the plan so that the site is under its cap; return whether it is."""
        return lower_by_price(board)

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:  # noqa: ARG002 - see below
        """Return the adaptation of the round: none here; an agent overrides this.

        Args:
            board: Its board, with its cap and all limits, and the times with which the round is planned.
            rate: Cost rates of configurations to plan it with [€/s], (A, C).
        """
        return unadapted(int(board.count[at.ACTIVE]), rate)
