"""Rows of single other active jobs: those with the most pressure."""

from __future__ import annotations

from gpusched_env.arrays import Singles
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.observation.job import ASKED, JOB_FEATURES, write_job
from gpusched_env.observation.notes import SUM_COLUMNS, TALLY_COLUMNS, Notes
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.sorting import pressure

HOLDS = ASKED  # a feature of the round; here one of the job stands in its place
THERE = len(JOB_FEATURES)
JOBS_FEATURES = (
    *JOB_FEATURES[:HOLDS],
    "1 if it holds GPUs now",
    *JOB_FEATURES[HOLDS + 1 :],
    "1 if there is such a job",
)
"""Features of a row of another job: those of the current job but one, and whether there is such a job."""


@kernel
def count_jobs(board: Board, notes: Notes) -> None:
    """Find the K + 1 active jobs with the most pressure, the most first, equal ones by index; write their rows."""
    jobs, count, active, rows = board.jobs, board.count, board.active, notes.rows
    chosen, pressures = notes.tallies[TALLY_COLUMNS + board.capacity.shape[0] :], notes.sums[SUM_COLUMNS:]
    most, found = rows.shape[0], 0
    for i in range(count[at.ACTIVE]):
        job = active[i]
        key = pressure(board, job, jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS])
        k = found
        while k > 0 and (key > pressures[k - 1] or (key == pressures[k - 1] and job < chosen[k - 1])):
            k -= 1
        if k == most:
            continue
        found = min(found + 1, most)
        for later in range(found - 1, k, -1):
            chosen[later], pressures[later] = chosen[later - 1], pressures[later - 1]
        chosen[k], pressures[k] = job, key
    for k in range(found):
        write_job(board, chosen[k], rows[k])
        rows[k, THERE] = 1.0


@lean_kernel
def write_jobs(board: Board, notes: Notes, current_job: int, out: Singles) -> None:
    """Write the rows of the K active jobs with the most pressure but the current one; missing ones are 0."""
    jobs, rows, written = board.jobs, notes.rows, 0
    chosen = notes.tallies[TALLY_COLUMNS + board.capacity.shape[0] :]
    for k in range(min(board.count[at.ACTIVE], rows.shape[0])):
        if chosen[k] == current_job or written == out.shape[0]:
            continue
        for f in range(out.shape[1]):
            out[written, f] = rows[k, f]
        out[written, HOLDS] = 1.0 if jobs[chosen[k], at.CONFIG] >= 0 else 0.0
        written += 1
    out[written:, :] = 0.0
