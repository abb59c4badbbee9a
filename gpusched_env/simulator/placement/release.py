"""Release of what jobs hold."""

from __future__ import annotations

from gpusched_env.kernel import kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.whole_gpus import let_go
from gpusched_env.simulator.run import Board


@kernel
def release(board: Board, job: int) -> None:
    """Release what `job` holds in this round, if anything."""
    jobs = board.jobs
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    if not hooks.let_kind_go(board, job, config, False):
        let_go(board, int(jobs[job, at.NODE]), board.facts.configs[config, at.CONFIG_GPUS])
    hooks.count_in(board, job, config, -1)
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0
    jobs[job, at.SLOT] = -1.0
