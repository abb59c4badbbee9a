"""What observations say of an instance that never changes: written once, read at every decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

# types: float64 (V, TYPE_COLUMNS). All 0 for a type without nodes, but MOST.
GPUS = 0  # GPUs of the type
NODES = 1  # nodes of the type
LARGEST = 2  # GPUs of its largest node
GPU_SHARE = 3  # GPUs of the type / GPUs of the cluster
ONE_BUSY = 4  # cost rate of a node with one busy GPU / with all busy
START_RATE = 5  # cost rate of a node with one busy GPU / the largest such of any type
NODES_LOG = 6  # log10(1 + nodes) / 4, at most 1
MOST = 7  # the most GPUs of any configuration, whatever its type
TYPE_COLUMNS = 8

# offers: float64 (C, OFFER_COLUMNS).
SIZE_SHARE = 0  # its GPUs / the most GPUs of any configuration
RATE_SHARE = 1  # its cost rate / the largest of any configuration
GPU_PART = 2  # share of each GPU
INVERSE_RATE = 3  # 1 / its cost rate [s/€]; 0 where that is 0
OFFER_COLUMNS = 4


@lean_kernel
def write_fixed(board: Board, types: Floats, offers: Floats) -> None:
    """Write the facts of every GPU type to `types` and of every configuration to `offers`."""
    nodes, configs, room = board.nodes, board.facts.configs, board.room
    rate, node_rate = board.planning_rate, board.node_rate
    most, dearest = 1.0, 0.0
    for c in range(configs.shape[0]):
        most = max(most, configs[c, at.CONFIG_SIZE] / at.UNITS)
        dearest = max(dearest, rate[c])
    for c in range(configs.shape[0]):
        units = configs[c, at.CONFIG_UNITS]
        offers[c, SIZE_SHARE] = configs[c, at.CONFIG_SIZE] / at.UNITS / most
        offers[c, RATE_SHARE] = rate[c] / dearest if dearest > 0.0 else 0.0
        offers[c, INVERSE_RATE] = 1.0 / rate[c] if rate[c] > 0.0 else 0.0
        offers[c, GPU_PART] = units / at.UNITS if units > 0 else 1.0
    types[:, :] = 0.0
    for n in range(nodes.shape[0]):
        v, gpus = nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]
        types[v, GPUS] += gpus
        types[v, NODES] += 1.0
        types[v, LARGEST] = max(types[v, LARGEST], gpus)
    gpus_of_all, dearest_start = 0.0, 0.0
    for v in range(room.shape[0]):
        gpus_of_all += types[v, GPUS]
        dearest_start = max(dearest_start, node_rate[v, 1])
    for v in range(room.shape[0]):
        types[v, MOST] = most
        if types[v, NODES] == 0.0:
            continue
        start, full = node_rate[v, 1], node_rate[v, int(types[v, LARGEST])]
        types[v, GPU_SHARE] = types[v, GPUS] / gpus_of_all
        types[v, ONE_BUSY] = start / full if full > 0.0 else 0.0
        types[v, START_RATE] = start / dearest_start if dearest_start > 0.0 else 0.0
        types[v, NODES_LOG] = min(1.0, np.log10(1.0 + types[v, NODES]) / 4.0)
