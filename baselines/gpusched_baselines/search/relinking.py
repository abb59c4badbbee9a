"""The path from one solution of a round towards another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search.guidance import guidance, merit
from gpusched_baselines.search.solution import keep
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.placement.release import release

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def relink(board: Board, order: Ints, left: Floats, goal: Floats, held: Floats, kept: Ints) -> float:
    """Go from what the jobs hold towards `goal`, a job at a time; keep the best solution on the way, but the start.

    A move gives a job the configuration that it holds in the goal, in its best place, or lets it wait as there. Those
    that gain most come first. One that does not fit is tried again after the others; if none fits, the running job
    that would gain least waits until its configuration fits.

    Args:
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
        goal: The configurations that they hold in the goal, (A,); -1: none.
        held: What the jobs hold in the best solution, (A, HELD); written.
        kept: The state of the nodes in it, (N, columns of `layout`); written.

    Returns:
        The guidance of the best solution [s/€]; -inf if nothing could be moved.
    """
    best = -np.inf
    to_do = _moves(board, order, left, goal)
    while to_do.shape[0] > 0:
        failed = 0
        for i in to_do:
            if _move(board, order[i], int(goal[i])):
                value = guidance(board, order, left)
                if value > best:
                    best = value
                    keep(board, order, held, kept)
            else:
                to_do[failed] = i
                failed += 1
        if failed == to_do.shape[0] and not _let_one_wait(board, order, to_do):
            break
        to_do = to_do[:failed]
    return best


@kernel
def _moves(board: Board, order: Ints, left: Floats, goal: Floats) -> Ints:
    """List the positions of the jobs that hold another configuration in the goal, by decreasing gain.

    The gain is that of the guidance, as if every job were alone on its nodes.
    """
    jobs, tau, rate = board.jobs, board.tau, board.planning_rate
    gains = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job, old, new = order[i], int(jobs[order[i], at.CONFIG]), int(goal[i])
        if new >= 0:
            gains[i] += merit(board, job, left[i], left[i] * tau[job, new], rate[new])
        if old >= 0:
            gains[i] -= merit(board, job, left[i], left[i] * tau[job, old], rate[old])
    ranks = np.argsort(-gains, kind="mergesort")
    return ranks[jobs[order[ranks], at.CONFIG] != goal[ranks]]


@kernel
def _move(board: Board, job: int, config: int) -> bool:
    """Give `job` a configuration, if it fits, or let it wait (-1)."""
    if config >= 0:
        return place(board, job, config)
    release(board, job)
    return True


@kernel
def _let_one_wait(board: Board, order: Ints, to_do: Ints) -> bool:
    """Let the last job of `to_do` that runs wait; return False if none runs."""
    jobs = board.jobs
    for i in to_do[::-1]:
        if jobs[order[i], at.CONFIG] >= 0:
            release(board, order[i])
            return True
    return False
