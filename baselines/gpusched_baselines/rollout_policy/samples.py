"""Samples of realised demand and of arrivals; plans that deviate; and the choice among them.

`rate`, (A, C), are the cost rates to plan with [€/s], and `base` is the policy that plans on the `copy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.rollout_policy.simulation import CONFIG, TIMER, Base, SimulationCopy, plan_by, reset
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator


def uniforms(rng: Generator, draws: int, jobs: int) -> Floats:
    """Draw numbers in [0, 1), (D, J), stratified: every column has one in each of D equal intervals."""
    places = rng.permuted(np.tile(np.arange(draws), (jobs, 1)), axis=1).T
    return (places + rng.random((draws, jobs))) / draws


@kernel
def needed(board: Board, job: int, uniform: float) -> float:
    """Return the epochs that a job needs at a quantile of its distribution, given those done: a right edge of a bin."""
    curve, largest = sim.curve_of(board, job), board.jobs[job, at.MAX_EPOCHS]
    b = sim.bin_of(curve.edges, board.jobs[job, at.EPOCHS] / largest)
    level = uniform * curve.survival[b]
    while b + 1 < curve.survival.shape[0] and curve.survival[b + 1] > level:
        b += 1
    return curve.edges[b + 1] * largest if curve.survival[b] > 0.0 else largest


@kernel
def needs_of(board: Board, jobs: Ints, uniform: Floats) -> Floats:
    """Return the epochs that `jobs`, (A,), need at quantiles of their distributions, (D, A), given those done."""
    found = np.empty(uniform.shape)
    for draw in range(uniform.shape[0]):
        for i in range(jobs.shape[0]):
            found[draw, i] = needed(board, jobs[i], uniform[draw, i])
    return found


@kernel
def sample_outcome(start: Board, uniform: Floats, outcome: Floats) -> None:
    """Write the demand of active jobs, and when running ones would be complete, to `outcome`, (J, OUTCOME_COLUMNS).

    `uniform` are quantiles of their distributions, (A,).
    """
    jobs = start.jobs
    for i in range(start.count[at.ACTIVE]):
        job = start.active[i]
        outcome[job, at.NEEDED] = needed(start, job, uniform[i])
        outcome[job, at.FINISH_S] = np.inf
        held = int(jobs[job, at.OLD_CONFIG])
        if held >= 0:
            to_do = max(0.0, outcome[job, at.NEEDED] - jobs[job, at.ANCHOR_EPOCHS])
            seconds = start.tau[job, held] * jobs[job, at.SLOWDOWN]
            outcome[job, at.FINISH_S] = jobs[job, at.ANCHOR_S] + to_do * seconds


class SampledArrivals:
    """Sampled arrivals: jobs like those so far, at the arrival rate so far.

    Args:
        board: The board with the open round.
        copy: The simulation copy on which they arrive.
        rng: Source of the samples.
        draws: Number of samples.
    """

    def __init__(self, board: Board, copy: SimulationCopy, rng: Generator, draws: int) -> None:
        self._size = len(copy.start.jobs) - int(copy.start.count[at.ACTIVE])
        known, now = int(board.count[at.SUBMITTED]), board.clock[at.NOW]
        past = now - board.jobs[0, at.SUBMISSION]
        if not self._size:
            return
        interval = past / (known - 1) if known > 1 and past > 0.0 else np.inf
        picked = rng.integers(known, size=(draws, self._size))
        gaps = rng.exponential(size=picked.shape) * interval
        self.jobs, self.tau = arrivals_like(board, picked, gaps)
        self._uniform = rng.random(picked.shape)

    def come(self, copy: SimulationCopy, draw: int, outcome: Floats) -> None:
        if not self._size:
            return
        first = len(copy.start.jobs) - self._size
        copy.hidden.jobs[first:], copy.hidden.tau[first:] = self.jobs[draw], self.tau[draw]
        copy.plan.tau[first:] = self.tau[draw]
        copy.start.jobs[first:] = self.jobs[draw]
        for job, uniform in enumerate(self._uniform[draw], first):
            outcome[job] = needed(copy.start, job, uniform), np.inf


def arrivals_like(board: Board, picked: Ints, gaps: Floats) -> tuple[Floats, Floats]:
    """Make jobs that arrive from now on, like some of the board's.

    Args:
        picked: The jobs that the arrivals are like, (D, K).
        gaps: The time from each to the one before it, of the first from now [s], (D, K).

    Returns:
        Their first rows, (D, K, JOB_COLUMNS), by submission; and their rows of `tau`, (D, K, C).
    """
    rows = board.jobs[picked]
    come = board.clock[at.NOW] + np.cumsum(gaps, axis=1)
    rows[..., at.DUE] += come - rows[..., at.SUBMISSION]
    rows[..., at.SUBMISSION] = come
    _renew(rows)
    return rows, board.tau[picked]


def _renew(rows: Floats) -> None:
    """Set every column of jobs that changes in a run to its value at submission."""
    zero = [at.EPOCHS, at.BASE_EPOCHS, at.BASE_S, at.READY_S, at.ENERGY, at.TARDINESS, at.SWITCHES]
    nowhere = [
        at.CONFIG,
        at.NODE,
        at.SLOT,
        at.OLD_CONFIG,
        at.OLD_NODE,
        at.OLD_SLOT,
        at.PREFERRED_NODE,
        at.PREFERRED_SLOT,
        at.POOL_NODE,
    ]
    rows[..., [*zero, at.ANCHOR_EPOCHS, at.ANCHOR_S, at.LAST_NODES, at.BESIDE]] = 0.0
    rows[..., at.JOB_COLUMNS :] = -1.0
    rows[..., [*nowhere, at.LAST_NODE]] = -1.0
    rows[..., [at.START_S, at.END_S]] = np.nan
    rows[..., at.TIMER_S], rows[..., at.MILESTONE], rows[..., at.SLOWDOWN] = -np.inf, 1.0, 1.0


LEFT = 4  # one in so many goes on from the first heat to the second
LEAST = 3  # samples after which a challenger may lose early


def best_arm(cost: Callable[[int, int], float], size: int, heats: tuple[int, int, int], certainty: float) -> int:
    """Find by best-arm racing an alternative that is significantly cheaper than the first one, 0; return 0 if none is.

    In the first heat all others are simulated, in the second the cheapest quarter of them. The cheapest after both is
    the challenger of alternative 0 on new samples, since the best of many on some samples is partly so by chance. It
    wins if its mean difference to alternative 0 there is below 0 by `certainty` standard errors, and loses as soon as
    that mean is not below 0.

    Args:
        cost: Function from an alternative and a sample to the cost [€].
        heats: Samples of the first heat, ≥ 1, of the second, ≥ 0, and of the challenger, ≥ 2.
        certainty: Least advantage, in standard errors, ≥ 0.
    """
    if size == 1:
        return 0
    first, second, last = np.cumsum(heats).tolist()
    ways = np.arange(1, size)
    sums = np.zeros(size)
    for draw in range(second):
        if draw == first:
            best = np.argsort(sums[ways], kind="stable")
            ways = ways[best[: -(-len(ways) // LEFT)]]
        for way in (0, *ways.tolist()):
            sums[way] += cost(way, draw)
    challenger = int(ways[np.argmin(sums[ways])])
    if sums[challenger] >= sums[0]:
        return 0
    gains: list[float] = []
    for draw in range(second, last):
        gains.append(cost(0, draw) - cost(challenger, draw))
        if len(gains) >= LEAST and not _is_sure(np.array(gains), 0.0):
            return 0
    return challenger if _is_sure(np.array(gains), certainty) else 0


def _is_sure(gains: Floats, certainty: float) -> bool:
    """Return whether the mean of gains is above 0 by more than `certainty` standard errors."""
    return bool(gains.mean() > certainty * gains.std(ddof=1) / np.sqrt(len(gains)))


DEFERRAL = 0.05  # how long a job waits if its order is to wait, as a part of the time that it is expected to run yet
PLANNED = [sim.PLANNED, sim.NODE, sim.GPU, sim.TIMER]  # the columns of memory from which a plan is read
REMEMBERED = slice(sim.ROUND + 1, None)  # the columns of memory of a job; 0 for nothing


class Order(NamedTuple):
    """A fixed decision on a job: the only configuration that it may use, -1 to wait."""

    job: int
    config: int


def plan_of(copy: SimulationCopy, rate: Floats, base: Base, order: Order | None = None) -> Floats:
    """Plan the round by a policy, (A, PLAN_COLUMNS), with the decision on one job fixed, or with None."""
    work, times = copy.work, copy.plan.tau
    reset(copy.start, work)
    size = int(work.count[at.ACTIVE])
    if order is None:
        plan_by(copy.plan, rate, base)
    elif order.config < 0:
        work.active[order.job : size - 1] = copy.start.active[order.job + 1 : size]
        work.count[at.ACTIVE] = size - 1
        plan_by(copy.plan, rate, base)
        work.memory[order.job, PLANNED] = -1.0, -1.0, -1.0, _wait_until(copy.start, order.job)
    else:
        own = times[order.job].copy()
        times[order.job] = np.where(np.arange(len(own)) == order.config, own, np.inf)
        work.memory[order.job, REMEMBERED] = 0.0
        plan_by(copy.plan, rate, base)
        times[order.job] = own
    return np.ascontiguousarray(work.memory[:size, PLANNED])


def _wait_until(start: Board, job: int) -> float:
    """Return the time at which a job that must wait is re-evaluated [s]."""
    seconds = sim.expected_left(start, job) * start.jobs[job, at.CHEAPEST_TAU]
    return float(start.clock[at.NOW] + max(1.0, DEFERRAL * seconds))


@kernel
def worthwhile(board: Board, rate: Floats) -> Ints:
    """List the decisions to try, rows of job and configuration, (n, 2): to wait, and undominated configurations.

    A configuration dominates another one if its epochs take at most as long and cost at most as much, and one of the
    two is less; of equal ones the first dominates.
    """
    tau, size = board.tau, board.count[at.ACTIVE]
    found, n = np.empty((size * (tau.shape[1] + 1), 2), dtype=np.int64), 0
    for job in range(size):
        own = rate[int(board.jobs[job, at.APPLICATION])]
        for c in range(-1, tau.shape[1]):
            if c < 0 or (tau[job, c] < np.inf and not _dominated(tau[job], own, c)):
                found[n, 0], found[n, 1] = job, c
                n += 1
    return found[:n]


@kernel
def _dominated(seconds: Floats, rate: Floats, config: int) -> bool:
    own = rate[config] * seconds[config]
    for c in range(seconds.shape[0]):
        cost = rate[c] * seconds[c]
        if (
            c != config
            and seconds[c] <= seconds[config]
            and cost <= own
            and (seconds[c] < seconds[config] or cost < own or c < config)
        ):
            return True
    return False


def deviations(copy: SimulationCopy, rate: Floats, base: Base, own: Floats, most: int, rng: Generator) -> list[Floats]:
    """Draw plans that differ from the policy's own by a fixed decision on one job; all are different.

    Args:
        own: Its own plan, (A, PLAN_COLUMNS).
        most: Number of draws; equal plans count once.
    """
    reset(copy.start, copy.work)
    orders = worthwhile(copy.plan, rate)
    orders = orders[own[orders[:, 0], CONFIG] != orders[:, 1]]
    known = [own]
    for job, config in orders[rng.permutation(len(orders))[:most]].tolist():
        plan = plan_of(copy, rate, base, Order(job, config))
        if not any(same_plan(plan, other) for other in known):
            known.append(plan)
    return known[1:]


def same_plan(one: Floats, other: Floats) -> bool:
    return bool(np.array_equal(one[:, :TIMER], other[:, :TIMER]))
