"""Features of every GPU type of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.observation.squash import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Singles


@kernel
def write_cluster(
    jobs: Floats, nodes: Ints, configs: Ints, room: Ints, node_rate: Floats, count: Ints, order: Ints, now: float,
    out: Singles,
) -> int:  # fmt: skip
    """Write a row of features per GPU type; return the free GPUs of the cluster."""
    types = room.shape[0]
    # GPUs, free GPUs, nodes, nodes not in use, GPUs of the largest node, free GPUs on nodes in use
    totals = np.zeros((types, 6))
    for n in range(nodes.shape[0]):
        row = totals[nodes[n, at.NODE_TYPE]]
        row[0] += nodes[n, at.NODE_GPUS]
        row[1] += nodes[n, at.FREE]
        row[2] += 1.0
        row[3] += 1.0 if nodes[n, at.FREE] == nodes[n, at.NODE_GPUS] else 0.0
        row[4] = max(row[4], nodes[n, at.NODE_GPUS])
        row[5] += nodes[n, at.FREE] if nodes[n, at.FREE] < nodes[n, at.NODE_GPUS] else 0.0
    most, dearest, gpus, free = 1.0, 0.0, 0.0, 0.0
    for c in range(configs.shape[0]):
        most = max(most, configs[c, at.CONFIG_SIZE] / at.UNITS)
    for v in range(types):
        dearest = max(dearest, node_rate[v, 1])
        gpus += totals[v, 0]
        free += totals[v, 1]
    wanted = wanted_gpus(jobs, configs, count, order, now, types)
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
        out[v, 7] = squash(wanted[v] / totals[v, 4])
        out[v, 8] = min(1.0, totals[v, 5] / totals[v, 4])
    return int(free)


@kernel
def wanted_gpus(jobs: Floats, configs: Ints, count: Ints, order: Ints, now: float, types: int) -> Floats:
    """Count the GPUs that the jobs after the one at hand would like, (V,): their cheapest, if it is in time."""
    wanted = np.zeros(types)
    for i in range(count[at.ASKED] + 1, count[at.TO_ASK]):
        job = order[i]
        config = int(jobs[job, at.CHEAPEST])
        left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
        if config >= 0 and not misses(left * jobs[job, at.CHEAPEST_TAU], jobs[job, at.DUE] - now):
            wanted[configs[config, at.CONFIG_TYPE]] += configs[config, at.CONFIG_SIZE] / at.UNITS
    return wanted
