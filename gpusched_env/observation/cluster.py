"""Features of every GPU type of the cluster."""

from __future__ import annotations

from gpusched_env.arrays import Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.observation import notes as of
from gpusched_env.observation.notes import TALLY_COLUMNS, Notes
from gpusched_env.observation.ratios import Names, squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

_cluster = Names()
FREE = _cluster("free GPUs / GPUs of the type")
IDLE = _cluster("nodes not in use / nodes of the type")
FREE_BLOCK = _cluster("most free GPUs on one node / the most GPUs of any configuration")
GPU_SHARE = _cluster("GPUs of the type / GPUs of the cluster")
ONE_BUSY = _cluster("cost rate of a node with one busy GPU / with all busy, of the type")
START_RATE = _cluster("cost rate of a node with one busy GPU / the largest such of any type")
NODES = _cluster("log10(1 + nodes of the type) / 4")
WISHES = _cluster(
    "squash(GPUs that jobs still to be asked want, at their cheapest if in time / GPUs of its largest node)"
)
FREE_IN_USE = _cluster("GPUs on nodes that are in use, not held / GPUs of its largest node, at most 1")
CLUSTER_FEATURES = tuple(_cluster)


@lean_kernel
def write_cluster(board: Board, notes: Notes, out: Singles) -> None:
    """Write a row of features per GPU type."""
    capacity, types, spare, tallies = board.capacity, notes.types, notes.spare, notes.tallies
    for v in range(capacity.shape[0]):
        if types[v, of.NODES] == 0.0:
            out[v, :] = 0.0
            continue
        largest = types[v, of.LARGEST]
        out[v, FREE] = spare[v, of.FREE] / types[v, of.GPUS]
        out[v, IDLE] = spare[v, of.IDLE] / types[v, of.NODES]
        out[v, FREE_BLOCK] = min(1.0, capacity[v, at.FREE_BLOCK] / types[v, of.MOST])
        out[v, GPU_SHARE] = types[v, of.GPU_SHARE]
        out[v, ONE_BUSY] = types[v, of.ONE_BUSY]
        out[v, START_RATE] = types[v, of.START_RATE]
        out[v, NODES] = types[v, of.NODES_LOG]
        out[v, WISHES] = squash(tallies[TALLY_COLUMNS + v] / at.UNITS / largest)
        out[v, FREE_IN_USE] = min(1.0, spare[v, of.FREE_IN_USE] / largest)
