"""Sums over the active jobs that hold for a whole round, and counts that each decision changes by one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.notation import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.observation.notes import Notes
    from gpusched_env.simulator.run import Board

# tallies: int64 (TALLY_COLUMNS + V,). They are of one round, and of the moment when one of its jobs is at hand.
ROUND = 0  # the round; -1: none, so that the next observation counts anew
ASKED = 1  # jobs of the round asked before that moment
WAITING = 2  # active jobs that hold nothing then
LATE = 3  # active jobs that are late
TIGHTEST_JOB = 4  # the job with the least slack ratio
TALLY_COLUMNS = 5  # then, by GPU type, the units that jobs asked later want

# sums: float64 (SUM_COLUMNS,).
SLACK = 0  # sum of the slack ratios of the active jobs
TIGHTEST = 1  # the least of them, at most 1
SECOND = 2  # the least but that one, at most 1
WEIGHT = 3  # sum of the tardiness weights [€/s]
SUM_COLUMNS = 4


@lean_kernel
def slack_ratio(board: Board, job: int) -> float:
    """Give squash(D / T): the time to the due date over the least execution time left in the worst case."""
    jobs = board.jobs
    fastest = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * jobs[job, at.MIN_TAU]
    return squash((jobs[job, at.DUE] - board.clock[at.NOW]) / max(fastest, 1e-9))


@lean_kernel
def bring_up_to_date(board: Board, notes: Notes) -> None:
    """Bring tallies and sums to the job at hand: job by job if they are of an earlier one of this round, else anew."""
    jobs, count, order, tallies = board.jobs, board.count, board.order, notes.tallies
    asked = count[at.ASKED]
    if tallies[ROUND] != count[at.ROUND] or tallies[ASKED] > asked:
        _tally(board, notes)
    for i in range(tallies[ASKED], asked):
        if jobs[order[i], at.CONFIG] >= 0:
            tallies[WAITING] -= 1
        _add_wish(board, order[i + 1], -1, tallies)
    tallies[ASKED] = asked


@lean_kernel
def _tally(board: Board, notes: Notes) -> None:
    """Count and sum over all active jobs."""
    jobs, count, active, order = board.jobs, board.count, board.active, board.order
    tallies, sums, now = notes.tallies, notes.sums, board.clock[at.NOW]
    waiting, late, slack, weight = 0, 0, 0.0, 0.0
    tightest, second, tightest_job = 1.0, 1.0, -1
    for i in range(count[at.ACTIVE]):
        job = active[i]
        waiting += 1 if jobs[job, at.CONFIG] < 0 else 0
        late += 1 if jobs[job, at.DUE] - now < 0.0 else 0
        weight += jobs[job, at.WEIGHT]
        ratio = slack_ratio(board, job)
        slack += ratio
        if ratio < tightest:
            tightest, second, tightest_job = ratio, tightest, job
        else:
            second = min(second, ratio)
    tallies[ROUND], tallies[ASKED] = count[at.ROUND], count[at.ASKED]
    tallies[WAITING], tallies[LATE], tallies[TIGHTEST_JOB] = waiting, late, tightest_job
    sums[SLACK], sums[TIGHTEST], sums[SECOND], sums[WEIGHT] = slack, tightest, second, weight
    tallies[TALLY_COLUMNS:] = 0
    for i in range(count[at.ASKED], count[at.TO_ASK]):
        if jobs[order[i], at.CONFIG] >= 0:  # through a view, before it is asked: its own decision will change less
            tallies[ROUND] = -1
        if i > count[at.ASKED]:
            _add_wish(board, order[i], 1, tallies)


@lean_kernel
def _add_wish(board: Board, job: int, times: int, tallies: Ints) -> None:
    """Count the units of the job's cheapest configuration, if that is in time in the worst case."""
    jobs, configs = board.jobs, board.facts.configs
    config = int(jobs[job, at.CHEAPEST])
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    if config >= 0 and not misses(left * jobs[job, at.CHEAPEST_TAU], jobs[job, at.DUE] - board.clock[at.NOW]):
        tallies[TALLY_COLUMNS + configs[config, at.CONFIG_TYPE]] += times * configs[config, at.CONFIG_SIZE]
