"""The last step of a round of STS: what is left of shared GPUs speeds up jobs there, and counts for nothing later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.left_shares import give_left_shares
from gpusched_baselines.planning.epochs_left import WORST_CASE, left_of_all
from gpusched_baselines.sts.decision import GIVEN, LEAST
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.room import measure
from gpusched_env.simulator.placement.shared_gpus import slots

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board


@kernel
def finish(board: Board, order: Ints) -> None:
    """Give what is left of shared GPUs to the jobs of the round, `order`, and remember what each had chosen itself.

    A job keeps its own size as the least that it is planned with, so it may give back what it was given.
    """
    if slots(board) == 0:
        return
    jobs, memory, configs = board.jobs, board.memory, board.facts.configs
    own = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        own[i] = int(jobs[order[i], at.CONFIG])
    give_left_shares(board, order, left_of_all(board, order, WORST_CASE))
    measure(board)
    for i in range(order.shape[0]):
        held = int(jobs[order[i], at.CONFIG])
        memory[order[i], GIVEN] = held + 1 if held != own[i] else 0
        if held != own[i]:
            memory[order[i], LEAST] = configs[own[i], at.CONFIG_SIZE]
