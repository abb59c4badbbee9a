"""The last step of STS-X: idle GPUs of a node that is on go to the job there whose epochs get cheapest by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import give_by_gain
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left
from gpusched_env.simulator.switching import place_of_state

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board


@kernel
def spread(board: Board, order: Ints) -> None:
    """Give idle GPUs of nodes that are on to jobs there, as long as that makes some job's epoch cheaper.

    An epoch is charged the power of the job's GPUs and an equal part of the node's base power. So a job that has the
    node for itself gets faster for the base power that it saves. What a restart costs is spread over the epochs that
    the job is expected to need. Jobs on shared GPUs or several nodes keep what they have.

    Args:
        order: The jobs of the round, (A,).
    """
    jobs = board.jobs
    restart = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job = order[i]
        home = place_of_state(board, job)
        change = jobs[job, at.RESUMING_S if int(jobs[job, at.NODE]) == home else at.RESTART_S]
        if change > 0.0 and home >= 0:
            left = max(expected_left(board, job), 1e-12 * jobs[job, at.MAX_EPOCHS])
            restart[i] = change / left
    give_by_gain(board, order, restart, True)
