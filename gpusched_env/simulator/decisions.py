"""The decision process: one step per job that may change, then time runs to the next round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import due_wake_s
from gpusched_env.simulator.events import advance
from gpusched_env.simulator.placement.placement import forget_place, moves_on, place
from gpusched_env.simulator.rounds import begin_round, commit_round, order_by

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board, Hidden


@kernel
def run_to_round(board: Board, hidden: Hidden) -> None:
    """Run to the next round that asks at least one job, and open it; with none left to ask, every job is done."""
    count = board.count
    preemption = count[at.PREEMPTION] > 0
    count[at.TO_ASK] = 0
    count[at.ASKED] = 0
    while advance(board, hidden):
        if count[at.ACTIVE] == 0:
            continue
        begin_round(board, preemption)
        order_by(board, count[at.ORDER], not preemption)
        if count[at.TO_ASK] > 0:
            return
        commit_round(board, hidden)


@lean_kernel
def decide(board: Board, hidden: Hidden, action: int) -> bool:
    """Apply `action` to the job at hand; after the last job, run to the next round.

    Returns:
        False if the action could not be placed: then the job waits.
    """
    count = board.count
    placed = act(board, board.order[count[at.ASKED]], action)
    count[at.ASKED] += 1
    if count[at.ASKED] == count[at.TO_ASK]:
        commit_round(board, hidden)
        run_to_round(board, hidden)
    return placed


@kernel
def act(board: Board, job: int, action: int) -> bool:
    """Apply `action` to a job: 0 = wait, a = configuration a - 1.

    If `count` asks for it, the job settles on a node that is on, and wakes its round in time for its due date.

    Returns:
        False if the action could not be placed: then the job waits.
    """
    count = board.count
    placed = action == 0
    if action > 0 and board.tau[job, action - 1] < np.inf:
        if count[at.CONSOLIDATES] > 0 and moves_on(board, job, action - 1)[1]:
            forget_place(board, job)
        placed = place(board, job, action - 1)
    if count[at.DUE_WAKES] > 0:
        board.jobs[job, at.WAKE_S] = due_wake_s(board, job)
    return placed
