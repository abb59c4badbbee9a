"""What the simulator does where a policy leaves the site above a hard cap: jobs are throttled, in a fixed order."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.mechanisms.cap.power import has_hard_cap, is_above_cap, measure_power, saved_kw
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import resize
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.sorting import pressure, ranked


@kernel
def throttle(board: Board) -> None:
    """Bring the site under its hard cap, at the end of a round; `count[FORCED]` has how many jobs were throttled.

    Running jobs get the lowest power limit of their GPUs, that of the least pressure first, until the site is under the
    cap. If all have it and that does not suffice, they are paused in the same order.
    """
    if not has_hard_cap(board):
        return
    measure_power(board)
    board.count[at.FORCED] = 0
    if not is_above_cap(board, 0.0):
        return
    running = _by_pressure(board)
    limited = np.zeros(running.shape[0], dtype=np.bool_)
    for i in range(running.shape[0]):
        config = _lowest_limit(board, running[i])
        if is_above_cap(board, 0.0) and config != int(board.jobs[running[i], at.CONFIG]):
            resize(board, running[i], config)
            limited[i] = True
    for i in range(running.shape[0]):
        if is_above_cap(board, 0.0):
            release(board, running[i])
            limited[i] = True
    board.count[at.FORCED] = limited.sum()
    measure_power(board)


@kernel
def _lowest_limit(board: Board, job: int) -> int:
    """Return the configuration with the GPUs that a job holds that saves most power, of those that it may use."""
    configs, held = board.facts.configs, int(board.jobs[job, at.CONFIG])
    best = held
    for c in range(configs.shape[0]):
        same = configs[c, at.CONFIG_UNLIMITED] == configs[held, at.CONFIG_UNLIMITED] and board.tau[job, c] < np.inf
        if same and saved_kw(board, job, c) > saved_kw(board, job, best):
            best = c
    return best


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
