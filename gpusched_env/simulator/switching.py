"""What a change costs a job: seconds without progress.

A job needs `STARTING_S` until it has been ready once, and `RESTART_S` after every other change; a mechanism may make
that depend on where the state of the job is. A change of the power that the same GPUs may draw takes no time.
"""

from __future__ import annotations

from gpusched_env.kernel import lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import same_gpus
from gpusched_env.simulator.run import Board


@lean_kernel
def place_of_state(board: Board, job: int) -> int:
    """Return the first node of those on which the job was last ready; -1 if it never was."""
    jobs = board.jobs
    if jobs[job, at.OLD_CONFIG] >= 0.0 and jobs[job, at.READY_S] <= board.clock[at.NOW]:
        return int(jobs[job, at.OLD_NODE])
    return int(jobs[job, at.LAST_NODE])


@lean_kernel
def longest_switch_s(board: Board, job: int) -> float:
    """Return the most seconds without progress that a change may cost a job that has started."""
    return max(board.jobs[job, at.RESUMING_S], board.jobs[job, at.RESTART_S])


@lean_kernel
def pause_s(board: Board, job: int) -> float:
    """Return the least seconds that a pause now would cost a job later: it continues, or restarts if it has no room."""
    if place_of_state(board, job) < 0:
        return board.jobs[job, at.STARTING_S]
    return hooks.pause_s(board, job, board.jobs[job, at.RESTART_S])


@lean_kernel
def switch_s(board: Board, job: int, config: int) -> float:
    """Return the seconds without progress that `config` would cost the job now; 0 for the GPUs that it holds already.

    The place is that of the next placement: the node where its state is comes first, if the job fits there. On several
    nodes a restart is assumed.
    """
    if same_gpus(board, config, int(board.jobs[job, at.OLD_CONFIG])):
        return 0.0
    if place_of_state(board, job) < 0:
        return board.jobs[job, at.STARTING_S]
    return hooks.switch_s(board, job, config, board.jobs[job, at.RESTART_S])
