"""The rank of every active job: what it has yet to take from the cluster, per € of its weight, and its slack."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.index_rules.efficient import efficient
from gpusched_baselines.index_rules.quantum import best_quantum
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import bin_of, curve_of, expected_left, expected_rest
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

EXPECTED, WORST_CASE, GITTINS, ATTAINED = range(4)
"""What counts as a job's work."""

TIE = 1e-9  # relatively: a job that has had its quantum is behind one that waits, whatever rounding says


class Rule(NamedTuple):
    """The numbers of an index rule.

    Attributes:
        work: What counts as work: EXPECTED, WORST_CASE, GITTINS or ATTAINED.
        due_scale: K; inf: due dates do not count.
        gpu_price: μ.
        quantum: How much more than one that waits a job may attain, as a fraction of its maximum epochs.
    """

    work: int
    due_scale: float
    gpu_price: float
    quantum: float


class Ranks(NamedTuple):
    """The active jobs as a rule sees them, a number for each, (A,).

    Attributes:
        left: The epochs that it is taken to have left.
        seconds: How long these take in its efficient configuration [s]; inf: it has none.
        epoch: An epoch in its efficient configuration [GPU-s].
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
    """Rank the active jobs; `price` is what configurations cost [€/s], (C,)."""
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
    return expected_left(board, job)


@lean_kernel
def _restart_s(board: Board, job: int, config: int) -> float:
    """Give the seconds of a restart that count as work of a job, for its efficient configuration; -1: it has none.

    They are those of the jobs that do not run: theirs, or those of the one that makes room for them.
    """
    jobs = board.jobs
    if config < 0 or jobs[job, at.OLD_CONFIG] >= 0:
        return 0.0
    return max(switch_s(board, job, config), jobs[job, at.RESUMING_S])


@kernel
def _work(board: Board, rule: Rule, job: int, restart: float) -> float:
    """Give the work of a job, in epochs, with that of its `restart`, if it counts."""
    jobs = board.jobs
    largest, done, runs = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS], jobs[job, at.OLD_CONFIG] >= 0
    if rule.work == GITTINS:
        return best_quantum(curve_of(board, job), done / largest, restart / largest)[0] * largest
    if rule.work == ATTAINED:
        return done + restart + (0.0 if runs else rule.quantum * largest)
    return _epochs_left(board, rule, job) + restart


@kernel
def review_epochs(board: Board, rule: Rule, job: int, work: float) -> float:
    """Give the epochs done at which a job that runs gets more work than `work`, in epochs; inf: it never does.

    In the worst case work only falls. What is attained grows all the time, what is expected jumps up at edges of bins,
    and what Gittins' index is made of at the ends of quanta.
    """
    largest = board.jobs[job, at.MAX_EPOCHS]
    if rule.work == ATTAINED:
        return work
    if rule.work == WORST_CASE:
        return np.inf
    curve, end = curve_of(board, job), board.jobs[job, at.EPOCHS] / largest
    while end < 1.0:
        if rule.work == GITTINS:
            least, following = best_quantum(curve, end, 0.0)
        else:
            least, following = expected_rest(curve, end), curve.edges[bin_of(curve.edges, end) + 1]
        if least * largest > work:
            return end * largest
        end = following
    return np.inf


@lean_kernel
def _key(level: float, slack: float, due_scale: float, mean_s: float) -> float:
    """Give `level`, or -log of the index exp(-slack / (K · mean_s)) / level, which neither overflows nor vanishes."""
    if due_scale == np.inf:
        return level
    if level <= 0.0 or level == np.inf:
        return -np.inf if level <= 0.0 else np.inf
    return np.log(level) + (slack / (due_scale * mean_s) if mean_s > 0.0 else 0.0)
