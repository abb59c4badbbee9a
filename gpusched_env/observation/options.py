"""Features of every configuration, for the job at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.observation.features import ONE_PERCENT
from gpusched_env.observation.squash import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Mask, Singles


@kernel
def write_options(
    jobs: Floats, nodes: Ints, configs: Ints, room: Ints, tau: Floats, rate: Floats, least_rate: Floats,
    node_rate: Floats, cluster: Singles, now: float, job: int, expected: float, least: float, mask: Mask, out: Singles,
) -> None:  # fmt: skip
    """Write a row of features per configuration; a configuration that is not allowed has only zeros."""
    left = max(jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], 1e-12 * jobs[job, at.MAX_EPOCHS])
    fastest = left * jobs[job, at.MIN_TAU]
    time_left = jobs[job, at.DUE] - now
    weight = jobs[job, at.WEIGHT]
    most, dearest = 1.0, 0.0
    for c in range(configs.shape[0]):
        most = max(most, configs[c, at.CONFIG_SIZE] / at.UNITS)
        dearest = max(dearest, rate[c])
    used_gap = np.zeros(
        (room.shape[0], 2), dtype=np.int64
    )  # most free GPUs on a node in use; on one that is no whole one
    for n in range(nodes.shape[0]):
        free, v = nodes[n, at.FREE], nodes[n, at.NODE_TYPE]
        if free < nodes[n, at.NODE_GPUS]:
            used_gap[v, 0] = max(used_gap[v, 0], free)
        if free < room[v, at.LARGEST]:
            used_gap[v, 1] = max(used_gap[v, 1], free)
    adds = added_rates(nodes, configs, room, rate, node_rate)
    cheapest = int(jobs[job, at.CHEAPEST])
    floor = left * tau[job, cheapest] * least_rate[cheapest] if cheapest >= 0 else least
    for c in range(configs.shape[0]):
        row = out[c]
        row[:] = 0.0
        if tau[job, c] == np.inf:
            continue
        v = configs[c, at.CONFIG_TYPE]
        seconds = left * tau[job, c]
        worst = seconds * rate[c] + weight * max(0.0, seconds - time_left)
        mean_s = expected * tau[job, c]
        mean = mean_s * rate[c] + weight * max(0.0, mean_s - time_left)
        row[0] = mask[c + 1]
        row[1] = 0.0 if misses(seconds, time_left) else 1.0
        row[2] = 0.0 if misses(mean_s, time_left) else 1.0
        row[3] = 1.0 - least / (seconds * rate[c]) if rate[c] > 0.0 else 0.0
        row[4] = worst / (worst + least) if worst > 0.0 else 0.0
        row[5] = mean / (mean + least) if mean > 0.0 else 0.0
        row[6] = 1.0 - jobs[job, at.MIN_TAU] / tau[job, c]
        row[7] = squash((time_left - seconds) / fastest)
        row[8] = rate[c] / dearest if dearest > 0.0 else 0.0
        row[9] = configs[c, at.CONFIG_SIZE] / at.UNITS / most
        row[10] = configs[c, at.CONFIG_UNITS] / at.UNITS if configs[c, at.CONFIG_UNITS] > 0 else 1.0
        row[11] = 1.0 if jobs[job, at.OLD_CONFIG] == c else 0.0
        row[12] = cluster[v, 0]
        spare, in_use = _after(configs, room, used_gap, c)
        row[13] = min(1.0, spare / most)
        row[14] = in_use
        added, full = seconds * adds[c], seconds * least_rate[c]
        row[15] = added / (added + floor) if added > 0.0 else 0.0
        row[16] = full / (full + floor) if 0.0 < full < np.inf else 0.0
        row[17] = squash((time_left / seconds - 1.0) / ONE_PERCENT)


@kernel
def added_rates(nodes: Ints, configs: Ints, room: Ints, rate: Floats, node_rate: Floats) -> Floats:
    """Give what every configuration would add to the cluster's cost rate now [€/s], (C,).

    Whole GPUs go to the fullest node in use that has room, else to an idle node; for shares and several nodes it is the
    rate of a job alone.
    """
    most = node_rate.shape[1]
    size = np.zeros((room.shape[0], most), dtype=np.int64)  # GPUs of a node in use with so many free ones; 0: none
    for n in range(nodes.shape[0]):
        if nodes[n, at.FREE] < nodes[n, at.NODE_GPUS]:
            size[nodes[n, at.NODE_TYPE], nodes[n, at.FREE]] = nodes[n, at.NODE_GPUS]
    adds = rate.copy()
    for c in range(configs.shape[0]):
        v, gpus = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_GPUS]
        if configs[c, at.CONFIG_UNITS] > 0 or configs[c, at.CONFIG_NODES] > 1:
            continue
        for free in range(gpus, most):
            if size[v, free] > 0:
                busy = size[v, free] - free
                adds[c] = node_rate[v, busy + gpus] - node_rate[v, busy]
                break
    return adds


@kernel
def _after(configs: Ints, room: Ints, used_gap: Ints, c: int) -> tuple[float, float]:
    """Count the GPUs left on the emptiest node of its type after configuration c, and say if it fits on one in use."""
    v, gpus = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_GPUS]
    gap = room[v, at.GAP]
    if configs[c, at.CONFIG_NODES] > 1:
        return gap if room[v, at.EMPTY] > configs[c, at.CONFIG_NODES] else used_gap[v, 1], 0.0
    if 0 < configs[c, at.CONFIG_UNITS] <= room[v, at.OPENING]:
        return gap, 1.0
    return max(0, gap - gpus), 1.0 if used_gap[v, 0] >= gpus else 0.0
