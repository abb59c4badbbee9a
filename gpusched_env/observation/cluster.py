"""Features of every GPU type of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Singles


@kernel
def write_cluster(nodes: Ints, configs: Ints, room: Ints, node_rate: Floats, out: Singles) -> int:
    """Write a row of features per GPU type; return the free GPUs of the cluster."""
    types = room.shape[0]
    totals = np.zeros((types, 5))  # GPUs, free GPUs, nodes, nodes not in use, GPUs of the largest node
    for n in range(nodes.shape[0]):
        row = totals[nodes[n, at.NODE_TYPE]]
        row[0] += nodes[n, at.NODE_GPUS]
        row[1] += nodes[n, at.FREE]
        row[2] += 1.0
        row[3] += 1.0 if nodes[n, at.FREE] == nodes[n, at.NODE_GPUS] else 0.0
        row[4] = max(row[4], nodes[n, at.NODE_GPUS])
    most, dearest, gpus, free = 1.0, 0.0, 0.0, 0.0
    for c in range(configs.shape[0]):
        most = max(most, configs[c, at.CONFIG_SIZE] / at.UNITS)
    for v in range(types):
        dearest = max(dearest, node_rate[v, 1])
        gpus += totals[v, 0]
        free += totals[v, 1]
    for v in range(types):
        out[v, :] = 0.0
        if totals[v, 2] == 0.0:
            continue
        full = node_rate[v, int(totals[v, 4])]
        out[v, 0] = totals[v, 1] / totals[v, 0]
        out[v, 1] = totals[v, 3] / totals[v, 2]
        out[v, 2] = min(1.0, room[v, at.GAP] / most)
        out[v, 3] = totals[v, 0] / gpus
        out[v, 4] = node_rate[v, 1] / full if full > 0.0 else 0.0
        out[v, 5] = node_rate[v, 1] / dearest if dearest > 0.0 else 0.0
        out[v, 6] = min(1.0, np.log10(1.0 + totals[v, 2]) / 4.0)
    return int(free)
