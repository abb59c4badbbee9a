"""Features of every GPU type of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation import fixed
from gpusched_env.observation import spare as now_spare
from gpusched_env.observation.squash import squash
from gpusched_env.observation.tallies import TALLY_COLUMNS
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Singles
    from gpusched_env.observation.notes import Notes
    from gpusched_env.simulator.run import Board


@lean_kernel
def write_cluster(board: Board, notes: Notes, out: Singles) -> None:
    """Write a row of features per GPU type."""
    room, types, spare, tallies = board.room, notes.types, notes.spare, notes.tallies
    for v in range(room.shape[0]):
        if types[v, fixed.NODES] == 0.0:
            out[v, :] = 0.0
            continue
        largest = types[v, fixed.LARGEST]
        out[v, 0] = spare[v, now_spare.FREE] / types[v, fixed.GPUS]
        out[v, 1] = spare[v, now_spare.IDLE] / types[v, fixed.NODES]
        out[v, 2] = min(1.0, room[v, at.GAP] / types[v, fixed.MOST])
        out[v, 3] = types[v, fixed.GPU_SHARE]
        out[v, 4] = types[v, fixed.ONE_BUSY]
        out[v, 5] = types[v, fixed.START_RATE]
        out[v, 6] = types[v, fixed.NODES_LOG]
        out[v, 7] = squash(tallies[TALLY_COLUMNS + v] / at.UNITS / largest)
        out[v, 8] = min(1.0, spare[v, now_spare.FREE_IN_USE] / largest)
