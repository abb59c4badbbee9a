"""The pace of jobs on a shared GPU that slow each other down in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.neighbours import neighbours

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


@kernel
def write_pair_paces(board: Board, paces: Floats) -> None:
    """Write the paces of the jobs on shared GPUs: each takes 1 + Σ (slow-down - 1) times as long as alone."""
    jobs, nodes, active = board.jobs, board.nodes, board.active
    slowdown, planned = board.facts.slowdown, board.facts.planned
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    last, before = neighbours(board)
    for i in range(board.count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] < 0 or jobs[job, at.SLOT] < 0:
            continue
        node, own = int(jobs[job, at.NODE]), int(jobs[job, at.APPLICATION])
        factor = 1.0
        other = last[node * per_node + int(jobs[job, at.SLOT])]
        while other >= 0:
            if other != i:
                beside = int(jobs[active[other], at.APPLICATION])
                factor += slowdown[nodes[node, at.NODE_TYPE], own, beside] - 1.0
            other = before[other]
        paces[i] = factor / planned[own, int(jobs[job, at.CONFIG])]
