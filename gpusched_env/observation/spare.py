"""What is free on the nodes of every GPU type, as features and prices need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board

# spare: int64 (V, SPARE_COLUMNS + G + 1).
FREE = 0  # free GPUs
IDLE = 1  # nodes not in use
FREE_IN_USE = 2  # free GPUs of nodes in use
GAP_IN_USE = 3  # most free GPUs on a node in use
GAP_IN_PART = 4  # most free GPUs on a node that is not an empty one of the largest size
SPARE_COLUMNS = 5  # then, for g = 0 to G: busy GPUs of the fullest node in use with g free ones or more; 0: none


@lean_kernel
def write_spare(board: Board, spare: Ints) -> int:
    """Write what is free now to `spare`; return the free GPUs of the cluster."""
    nodes, room = board.nodes, board.room
    spare[:, :] = 0
    total = 0
    for n in range(nodes.shape[0]):
        v, free, gpus = nodes[n, at.NODE_TYPE], nodes[n, at.FREE], nodes[n, at.NODE_GPUS]
        total += free
        spare[v, FREE] += free
        if free == gpus:
            spare[v, IDLE] += 1
        else:
            spare[v, FREE_IN_USE] += free
            spare[v, GAP_IN_USE] = max(spare[v, GAP_IN_USE], free)
            spare[v, SPARE_COLUMNS + free] = gpus - free
        if free < room[v, at.LARGEST]:
            spare[v, GAP_IN_PART] = max(spare[v, GAP_IN_PART], free)
    for v in range(spare.shape[0]):
        for column in range(spare.shape[1] - 2, SPARE_COLUMNS - 1, -1):
            if spare[v, column] == 0:
                spare[v, column] = spare[v, column + 1]
    return total
