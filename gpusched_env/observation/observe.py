"""The whole observation of the job at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.cluster import write_cluster
from gpusched_env.observation.company import write_company
from gpusched_env.observation.job import write_job
from gpusched_env.observation.notes import ROUND, bring_up_to_date, write_spare
from gpusched_env.observation.options import OPTION_FEATURES, write_mask, write_options
from gpusched_env.observation.queue import write_queue
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Mask, Singles
    from gpusched_env.observation.notes import Notes
    from gpusched_env.simulator.run import Board


@lean_kernel
def observe(
    board: Board, notes: Notes, job: Singles, options: Singles, cluster: Singles, queue: Singles, mask: Mask
) -> None:
    """Write the observation and the mask of the job at hand; all zeros, and only wait allowed, when the run is over.

    Args:
        board: The run.
        notes: What its observations remember; brought up to date.
        job: Features of the job at hand.
        options: Features of every configuration, (C, features); the further ones of `company` if there is room.
        cluster: Features of every GPU type, (V, features).
        queue: Features of the other active jobs.
        mask: What can be placed now, (1 + C,).
    """
    count = board.count
    free = write_spare(board, notes.spare)
    if count[at.TO_ASK] == count[at.ASKED]:
        notes.tallies[:] = 0
        notes.tallies[ROUND] = -1
        write_cluster(board, notes, cluster)
        job[:] = 0.0
        options[:, :] = 0.0
        queue[:] = 0.0
        mask[:] = 0
        mask[0] = 1
        return
    bring_up_to_date(board, notes)
    write_cluster(board, notes, cluster)
    at_hand = board.order[count[at.ASKED]]
    write_mask(board, at_hand, mask)
    expected, least = write_job(board, at_hand, job)
    write_options(board, notes, at_hand, expected, least, cluster, mask, options)
    if options.shape[1] > len(OPTION_FEATURES):
        write_company(board, at_hand, mask, options)
    write_queue(board, notes, at_hand, free, queue)
