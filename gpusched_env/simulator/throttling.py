"""What the simulator does where a policy leaves the site above a hard cap: jobs are throttled, in a fixed order."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.site_power import has_hard_cap, is_above_cap, measure_power
from gpusched_env.simulator.sorting import pressure, ranked


@kernel
def throttle(board: Board) -> None:
    """Bring the site under its hard cap, at the end of a round; `count[FORCED]` has how many jobs were throttled.

    Running jobs are paused, that of the least pressure first, until the rest stays under the cap.
    """
    if not has_hard_cap(board):
        return
    measure_power(board)
    board.count[at.FORCED] = 0
    if not is_above_cap(board, 0.0):
        return
    for job in _by_pressure(board):
        if is_above_cap(board, 0.0):
            release(board, job)
            board.count[at.FORCED] += 1
    measure_power(board)


@kernel
def _by_pressure(board: Board) -> Ints:
    """Return the running jobs, that of the least pressure in the worst case first."""
    jobs, active, running = board.jobs, board.active, 0
    keys, chosen = np.empty(board.count[at.ACTIVE]), np.empty(board.count[at.ACTIVE], dtype=np.int64)
    for i in range(board.count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] >= 0.0:
            keys[running] = pressure(board, job, jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS])
            chosen[running] = job
            running += 1
    return chosen[ranked(keys, running)]
