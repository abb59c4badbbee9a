"""Taking from a job what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.quotas import count_in
from gpusched_env.simulator.placement.shared_gpus import leave
from gpusched_env.simulator.placement.whole_gpus import let_go
from gpusched_env.simulator.placement.whole_nodes import let_nodes_go

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@kernel
def release(board: Board, job: int) -> None:
    """Take from `job` what it holds in this round, if anything."""
    jobs, configs = board.jobs, board.facts.configs
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    node = int(jobs[job, at.NODE])
    if configs[config, at.CONFIG_UNITS] > 0:
        leave(board, node, int(jobs[job, at.SLOT]), configs[config, at.CONFIG_UNITS])
    elif configs[config, at.CONFIG_NODES] > 1:
        let_nodes_go(board, node)
    else:
        let_go(board, node, configs[config, at.CONFIG_GPUS])
    count_in(board, job, config, -1)
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0
    jobs[job, at.SLOT] = -1.0
