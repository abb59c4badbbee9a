"""Features of the other active jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation import tallies as of
from gpusched_env.observation.squash import squash
from gpusched_env.observation.tallies import slack_ratio
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Singles
    from gpusched_env.observation.notes import Notes
    from gpusched_env.simulator.run import Board


@lean_kernel
def write_queue(board: Board, notes: Notes, job: int, free: int, out: Singles) -> None:
    """Write statistics of the other active jobs: the tallies of all but the job at hand."""
    jobs, count, tallies, sums = board.jobs, board.count, notes.tallies, notes.sums
    others = count[at.ACTIVE] - 1
    waiting = tallies[of.WAITING] - (1 if jobs[job, at.CONFIG] < 0 else 0)
    late = tallies[of.LATE] - (1 if jobs[job, at.DUE] - board.clock[at.NOW] < 0.0 else 0)
    own = jobs[job, at.WEIGHT]
    out[0] = min(1.0, np.log10(1.0 + others) / 5.0)
    out[1] = min(1.0, np.log10(1.0 + waiting) / 5.0)
    out[2] = 0.0
    out[3] = 0.0
    out[4] = 0.0
    out[5] = sums[of.SECOND] if job == tallies[of.TIGHTEST_JOB] else sums[of.TIGHTEST]
    out[6] = 1.0
    out[7] = squash((count[at.TO_ASK] - count[at.ASKED]) / max(1, free))
    if others > 0:
        out[2] = waiting / others
        out[3] = late / others
        out[4] = (sums[of.SLACK] - slack_ratio(board, job)) / others
        mean = max(0.0, sums[of.WEIGHT] - own) / others
        out[6] = own / (own + mean) if own + mean > 0.0 else 0.5
