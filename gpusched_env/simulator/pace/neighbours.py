"""Who is on which shared GPU, as lists that kernels follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board


@kernel
def neighbours(board: Board) -> tuple[Ints, Ints]:
    """List the active jobs on every shared GPU, by their places in `active`.

    Returns:
        The last of them on GPU g of node n, at n · G + g, (N · G,), and for every active job the one before it on its
        GPU, (A,); -1: none.
    """
    jobs, nodes, count, active = board.jobs, board.nodes, board.count, board.active
    per_node = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    last = np.full(nodes.shape[0] * per_node, -1)
    before = np.full(count[at.ACTIVE], -1)
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] >= 0 and jobs[job, at.SLOT] >= 0:
            gpu = int(jobs[job, at.NODE]) * per_node + int(jobs[job, at.SLOT])
            before[i] = last[gpu]
            last[gpu] = i
    return last, before
