"""Features of the other active jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation import notes as of
from gpusched_env.observation.notation import Names, squash
from gpusched_env.observation.notes import slack_ratio
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Singles
    from gpusched_env.observation.notes import Notes
    from gpusched_env.simulator.run import Board

feature = Names()
JOBS = feature("log10(1 + other active jobs) / 5")
WAITING = feature("log10(1 + other jobs that hold nothing) / 5")
WAITING_SHARE = feature("share of the other active jobs that hold nothing")
LATE_SHARE = feature("share of the other active jobs that are late")
MEAN_SLACK = feature("mean of squash(D / T) over the other active jobs")
LEAST_SLACK = feature("least squash(D / T) of the other active jobs")
WEIGHT = feature("ω / (ω + mean ω of the other active jobs)")
STILL_TO_ASK = feature("squash(jobs still to be asked in this round / free GPUs)")
QUEUE_FEATURES = tuple(feature)


@lean_kernel
def write_queue(board: Board, notes: Notes, job: int, free: int, out: Singles) -> None:
    """Write statistics of the other active jobs: the tallies of all but the job at hand."""
    jobs, count, tallies, sums = board.jobs, board.count, notes.tallies, notes.sums
    others = count[at.ACTIVE] - 1
    waiting = tallies[of.WAITING] - (1 if jobs[job, at.CONFIG] < 0 else 0)
    late = tallies[of.LATE] - (1 if jobs[job, at.DUE] - board.clock[at.NOW] < 0.0 else 0)
    own = jobs[job, at.WEIGHT]
    mean = max(0.0, sums[of.WEIGHT] - own) / max(1, others)
    out[JOBS] = min(1.0, np.log10(1.0 + others) / 5.0)
    out[WAITING] = min(1.0, np.log10(1.0 + waiting) / 5.0)
    out[WAITING_SHARE] = waiting / max(1, others)
    out[LATE_SHARE] = late / max(1, others)
    out[MEAN_SLACK] = (sums[of.SLACK] - slack_ratio(board, job)) / others if others > 0 else 0.0
    out[LEAST_SLACK] = sums[of.SECOND] if job == tallies[of.TIGHTEST_JOB] else sums[of.TIGHTEST]
    out[WEIGHT] = 1.0 if others == 0 else own / (own + mean) if own + mean > 0.0 else 0.5
    out[STILL_TO_ASK] = squash((count[at.TO_ASK] - count[at.ASKED]) / max(1, free))
