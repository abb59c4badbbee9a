"""One round of an index rule: who runs now, on what, and when it is asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.index_rules.ranks import cheapest_by, prices, rank_jobs, review_epochs
from gpusched_baselines.planning.cheapest import any_room
from gpusched_baselines.search.solution import HELD, keep, restore
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import may_have, place
from gpusched_env.simulator.placement.room import clear, measure
from gpusched_env.simulator.sorting import ranked
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_baselines.index_rules.ranks import Ranks, Rule
    from gpusched_env.simulator.run import Board

# Columns of the policy's memory of a job.
ROUND = 0  # round that the other columns are of
PLANNED = 1  # configuration that it shall get in this round, -1 for none
REVIEW = 2  # epochs done at which it is asked again if it runs, else the time [s]; inf for never
LEFT = 3  # the epochs that it is taken to have left


@kernel
def plan_round(board: Board, rule: Rule) -> None:
    """Plan the round on an empty cluster, in the order of the index; write what every job shall get to `memory`.

    Nothing else changes. Every job takes the cheapest configuration that fits and meets the due date, else the cheapest
    that fits, else it waits.
    """
    active = board.active[: board.count[at.ACTIVE]]
    price = prices(board, rule.gpu_price)
    ranks = rank_jobs(board, rule, price)
    held, kept = np.empty((active.shape[0], HELD)), np.empty_like(board.nodes)
    keep(board, active, held, kept)
    clear(board, active)
    for i in ranked(ranks.key, active.shape[0]):
        if not any_room(board):
            break
        config = cheapest_by(board, active[i], ranks.left[i], price)
        if config >= 0:
            place(board, active[i], config)
    _remember(board, rule, ranks)
    restore(board, active, held, kept)
    measure(board)


@kernel
def _remember(board: Board, rule: Rule, ranks: Ranks) -> None:
    """Write what the jobs shall get, and when they are asked again.

    Those that run as they fall behind the first that waits; those that wait, if due dates count, as their slack ends.
    """
    jobs, memory, active = board.jobs, board.memory, board.active[: board.count[at.ACTIVE]]
    level = np.inf
    for i in range(active.shape[0]):
        if jobs[active[i], at.CONFIG] < 0:
            level = min(level, ranks.level[i])
    for i in range(active.shape[0]):
        job, weight = active[i], jobs[active[i], at.WEIGHT]
        memory[job, ROUND], memory[job, PLANNED] = board.count[at.ROUND], jobs[job, at.CONFIG]
        memory[job, REVIEW], memory[job, LEFT] = np.inf, ranks.left[i]
        if jobs[job, at.CONFIG] < 0 and rule.due_scale < np.inf:
            memory[job, REVIEW] = jobs[job, at.DUE] - ranks.seconds[i]
        elif level < np.inf and weight > 0.0 and jobs[job, at.CONFIG] >= 0:
            memory[job, REVIEW] = review_epochs(board, rule, job, level * weight / ranks.epoch[i])


@kernel
def choose_job(board: Board, rule: Rule, job: int) -> tuple[int, float]:
    """Give what the plan of the round says of a job: its configuration, -1 to wait, and its wake-up [s]."""
    config = int(board.memory[job, PLANNED])
    if config >= 0 and not may_have(board, job, config):  # the placement came out otherwise than planned
        config = cheapest_by(board, job, board.memory[job, LEFT], prices(board, rule.gpu_price))
    return config, _wake_s(board, job, config)


@lean_kernel
def _wake_s(board: Board, job: int, config: int) -> float:
    """Give when a job is asked again, or will have done the epochs at which it is [s]; inf for never."""
    jobs, now = board.jobs, board.clock[at.NOW]
    review = board.memory[job, REVIEW]
    if config < 0:
        return review if board.memory[job, PLANNED] < 0 and review > now else np.inf
    if review <= jobs[job, at.EPOCHS]:
        return np.inf
    stays = config == int(jobs[job, at.OLD_CONFIG])
    ready = max(now, jobs[job, at.READY_S]) if stays else now + switch_s(board, job, config)
    return ready + (review - jobs[job, at.EPOCHS]) * board.tau[job, config]
