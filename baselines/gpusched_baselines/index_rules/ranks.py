"""Ranks of active jobs, and a round by them: which jobs run, their configurations, and their timers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.capacity import usable
from gpusched_baselines.planning.cheapest import any_capacity
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Curve, Floats, at, kernel, lean_kernel


@kernel
def prices(board: Board, gpu_price: float) -> Floats:
    """Return ℓ_c + μ · ρ · g_c by application [€/s], (A, C): the power of a configuration, and the price of its GPUs.

    ℓ_c is the least rate, inf where the type has no node, g_c the number of GPUs held, ρ the rate per GPU of all GPUs
    that active jobs may use. Where energy is free ρ is 1, so that only GPU-seconds count.

    Args:
        gpu_price: μ, the price of a GPU in addition to its rate, in multiples of ρ.
    """
    configs, (gpus, rate) = board.facts.configs, usable(board)
    each = gpu_price * (rate / gpus if rate > 0.0 else 1.0)
    price = np.empty_like(board.least_rate)
    for c in range(configs.shape[0]):
        for a in range(price.shape[0]):
            price[a, c] = board.least_rate[a, c] + each * (configs[c, at.CONFIG_SIZE] / at.UNITS)
    return price


@lean_kernel
def efficient(board: Board, job: int, price: Floats) -> int:
    """Find the configuration in which an epoch costs least; -1 if the job may use none that a node has."""
    best, least, own = -1, np.inf, price[int(board.jobs[job, at.APPLICATION])]
    for c in range(own.shape[0]):
        if board.tau[job, c] < np.inf and board.tau[job, c] * own[c] < least:
            best, least = c, board.tau[job, c] * own[c]
    return best


@kernel
def cheapest_by(board: Board, job: int, left: float, price: Floats) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the cheapest.

    A change of configuration that takes a restart adds its time, and the cost of the GPUs during that time.

    Args:
        left: The estimated number of epochs left.
        price: Cost rates of applications and configurations [€/s], (A, C).

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    jobs, tau = board.jobs, board.tau
    time_left, own = jobs[job, at.DUE] - board.clock[at.NOW], price[int(jobs[job, at.APPLICATION])]
    best, least, late = -1, np.inf, True
    for c in range(own.shape[0]):
        if tau[job, c] == np.inf:
            continue
        seconds = left * tau[job, c] + sim.switch_s(board, job, c)
        cost, misses_it = seconds * own[c], sim.misses(seconds, time_left)
        better = best < 0 or (late and not misses_it) or (late == misses_it and cost < least)
        if better and sim.can_place(board, job, c):
            best, least, late = c, cost, misses_it
    return best


SAME = 1e-12  # relative difference below which ratios of quanta are equal; then the longest is best: fewest preemptions


@kernel
def best_quantum(curve: Curve, fraction: float, restart: float) -> tuple[float, float]:
    """Find the bin edge with the least expected work per completion for a run up to it.

    A run from w = `fraction` to the edge x takes ∫ S(y)/S(w) dy from w to x in expectation, and completes the job with
    probability 1 - S(x)/S(w). Their least ratio is 1 / the Gittins index. Jobs end only at edges, so no other end of a
    run is better.

    Args:
        fraction: Epochs done, as a fraction of the maximum epochs.
        restart: Work of a restart before the run, as a fraction of the maximum epochs.

    Returns:
        The least ratio, as a fraction of the maximum epochs per completion; and the edge, the last of equals. If S(w)
        is 0, the job counts as needing all epochs left.
    """
    b = sim.bin_of(curve.edges, fraction)
    alive = curve.survival[b]
    if alive <= 0.0:
        return 1.0 - fraction + restart, 1.0
    least, end, spent, bins = np.inf, 1.0, restart * alive, curve.survival.shape[0]
    for k in range(b, bins):
        spent += curve.survival[k] * (curve.edges[k + 1] - max(fraction, curve.edges[k]))
        gone = alive - (curve.survival[k + 1] if k + 1 < bins else 0.0)
        if gone > 0.0 and spent <= least * (1.0 + SAME) * gone:
            least, end = spent / gone, curve.edges[k + 1]
    return least, end


EXPECTED, WORST_CASE, GITTINS, ATTAINED = range(4)
"""The measures of a job's work."""

TIE = 1e-9  # relative tolerance: after its quantum a job ranks below a waiting one in spite of rounding


class Rule(NamedTuple):
    """The parameters of an index rule.

    Attributes:
        work: Measure of work: EXPECTED, WORST_CASE, GITTINS or ATTAINED.
        due_scale: K; inf: due dates do not count.
        gpu_price: μ.
        quantum: How much more than a waiting job a running job may attain, as a fraction of the maximum epochs.
    """

    work: int
    due_scale: float
    gpu_price: float
    quantum: float


class Ranks(NamedTuple):
    """The quantities from which a rule ranks the active jobs, (A,) each.

    Attributes:
        left: Estimated epochs left.
        seconds: Time of these in its efficient configuration [s]; inf: it has none.
        epoch: Work of an epoch in its efficient configuration [GPU-s].
        level: Its work per weight [GPU-s · s/€]; inf without a weight.
        key: Its place in the order: the smallest goes first.
    """

    left: Floats
    seconds: Floats
    epoch: Floats
    level: Floats
    key: Floats


@kernel
def rank_jobs(board: Board, rule: Rule, price: Floats) -> Ranks:
    """Rank the active jobs; `price` are the cost rates by application [€/s], (A, C)."""
    active, jobs = board.active[: board.count[at.ACTIVE]], board.jobs
    total = active.shape[0]
    ranks = Ranks(np.empty(total), np.empty(total), np.empty(total), np.empty(total), np.empty(total))
    for i in range(total):
        job, c = active[i], efficient(board, active[i], price)
        seconds, gpus = (
            (board.tau[job, c], board.facts.configs[c, at.CONFIG_SIZE] / at.UNITS) if c >= 0 else (np.inf, 1.0)
        )
        ranks.left[i], ranks.epoch[i] = _epochs_left(board, rule, job), seconds * gpus
        ranks.seconds[i] = ranks.left[i] * seconds
        restart = _restart_s(board, job, c) / seconds
        work = ranks.epoch[i] * _work(board, rule, job, restart)
        ranks.level[i] = work / jobs[job, at.WEIGHT] if jobs[job, at.WEIGHT] > 0.0 else np.inf
    mean_s = ranks.seconds.mean()
    for i in range(total):
        slack = max(0.0, jobs[active[i], at.DUE] - board.clock[at.NOW] - ranks.seconds[i])
        waits = rule.work == ATTAINED and jobs[active[i], at.OLD_CONFIG] < 0
        level = ranks.level[i] * (1.0 - TIE if waits else 1.0)
        ranks.key[i] = _key(level, slack, rule.due_scale, mean_s)
    return ranks


@lean_kernel
def _epochs_left(board: Board, rule: Rule, job: int) -> float:
    if rule.work == WORST_CASE:
        return board.jobs[job, at.MAX_EPOCHS] - board.jobs[job, at.EPOCHS]
    return sim.expected_left(board, job)


@lean_kernel
def _restart_s(board: Board, job: int, config: int) -> float:
    """Return the seconds of a restart that count as work of a job, for its efficient configuration; -1: it has none.

    Restarts count for jobs that do not run: their own restart, or that of the job that is preempted for them.
    """
    jobs = board.jobs
    if config < 0 or jobs[job, at.OLD_CONFIG] >= 0:
        return 0.0
    return max(sim.switch_s(board, job, config), jobs[job, at.RESUMING_S])


@kernel
def _work(board: Board, rule: Rule, job: int, restart: float) -> float:
    """Return the work of a job, in epochs, with that of its `restart` where it counts."""
    jobs = board.jobs
    largest, done, runs = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS], jobs[job, at.OLD_CONFIG] >= 0
    if rule.work == GITTINS:
        return best_quantum(sim.curve_of(board, job), done / largest, restart / largest)[0] * largest
    if rule.work == ATTAINED:
        return done + restart + (0.0 if runs else rule.quantum * largest)
    return _epochs_left(board, rule, job) + restart


@kernel
def review_epochs(board: Board, rule: Rule, job: int, work: float) -> float:
    """Return the epochs done at which a job that runs gets more work than `work`, in epochs; inf: it never does.

    In the worst case work only falls. Attained work grows all the time, expected work jumps up at edges of bins, and
    the work of the Gittins index jumps up at the ends of quanta.
    """
    largest = board.jobs[job, at.MAX_EPOCHS]
    if rule.work == ATTAINED:
        return work
    if rule.work == WORST_CASE:
        return np.inf
    curve, end = sim.curve_of(board, job), board.jobs[job, at.EPOCHS] / largest
    while end < 1.0:
        if rule.work == GITTINS:
            least, following = best_quantum(curve, end, 0.0)
        else:
            least, following = sim.expected_rest(curve, end), curve.edges[sim.bin_of(curve.edges, end) + 1]
        if least * largest > work:
            return end * largest
        end = following
    return np.inf


@lean_kernel
def _key(level: float, slack: float, due_scale: float, mean_s: float) -> float:
    """Return `level`, or -log of the index exp(-slack / (K · mean_s)) / level, which neither overflows nor vanishes."""
    if due_scale == np.inf:
        return level
    if level <= 0.0 or level == np.inf:
        return -np.inf if level <= 0.0 else np.inf
    return np.log(level) + (slack / (due_scale * mean_s) if mean_s > 0.0 else 0.0)


# Columns of the policy's memory of a job; they replace those of its place, which is not planned.
REVIEW = 2  # epochs done at which it is re-evaluated if it runs, else the time [s]; inf for never
LEFT = 3  # estimated epochs left


@kernel
def plan_round(board: Board, rule: Rule) -> None:
    """Plan the round on an empty cluster, in the order of the index; write the plan of every job to `memory`.

    Nothing else changes. Every job takes the cheapest configuration that fits and meets the due date, else the cheapest
    that fits, else it waits.
    """
    active = board.active[: board.count[at.ACTIVE]]
    price = prices(board, rule.gpu_price)
    ranks = rank_jobs(board, rule, price)
    held, kept = sim.begin_plan(board, True)
    for i in sim.ranked(ranks.key, active.shape[0]):
        if not any_capacity(board):
            break
        config = cheapest_by(board, active[i], ranks.left[i], price)
        if config >= 0:
            sim.place(board, active[i], config)
    _remember(board, rule, ranks)
    sim.end_plan(board, held, kept)


@kernel
def _remember(board: Board, rule: Rule, ranks: Ranks) -> None:
    """Write the plans of the jobs, and when they are re-evaluated.

    A running job is re-evaluated when its rank falls below that of the first waiting job; a waiting job, if due dates
    count, when its slack ends.
    """
    jobs, memory, active = board.jobs, board.memory, board.active[: board.count[at.ACTIVE]]
    level = np.inf
    for i in range(active.shape[0]):
        if jobs[active[i], at.CONFIG] < 0:
            level = min(level, ranks.level[i])
    sim.write_plan(board)
    for i in range(active.shape[0]):
        job, weight = active[i], jobs[active[i], at.WEIGHT]
        memory[job, REVIEW], memory[job, LEFT] = np.inf, ranks.left[i]
        if jobs[job, at.CONFIG] < 0 and rule.due_scale < np.inf:
            memory[job, REVIEW] = jobs[job, at.DUE] - ranks.seconds[i]
        elif level < np.inf and weight > 0.0 and jobs[job, at.CONFIG] >= 0:
            memory[job, REVIEW] = review_epochs(board, rule, job, level * weight / ranks.epoch[i])


@kernel
def choose_job(board: Board, rule: Rule, job: int) -> tuple[int, float]:
    """Return the configuration of a job in the plan of the round, -1 to wait, and its timer [s]."""
    config = int(board.memory[job, sim.PLANNED])
    if config >= 0 and not sim.can_place(board, job, config):  # the placement differs from the plan
        config = cheapest_by(board, job, board.memory[job, LEFT], prices(board, rule.gpu_price))
    return config, _timer_s(board, job, config)


@lean_kernel
def _timer_s(board: Board, job: int, config: int) -> float:
    """Return the time at which a job is re-evaluated, or has done the epochs for it [s]; inf for never."""
    jobs, now = board.jobs, board.clock[at.NOW]
    review = board.memory[job, REVIEW]
    if config < 0:
        return review if board.memory[job, sim.PLANNED] < 0 and review > now else np.inf
    if review <= jobs[job, at.EPOCHS]:
        return np.inf
    stays = sim.same_gpus(board, config, int(jobs[job, at.OLD_CONFIG]))
    ready = max(now, jobs[job, at.READY_S]) if stays else now + sim.switch_s(board, job, config)
    return ready + (review - jobs[job, at.EPOCHS]) * board.tau[job, config]
