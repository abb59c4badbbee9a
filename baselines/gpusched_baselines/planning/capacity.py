"""The GPUs that active jobs may use: those of other types, of nodes too small for them, or down, are no capacity."""

from __future__ import annotations

import numpy as np

from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

NEVER = 2**62
"""In place of a number of GPUs: no active job may use any."""


@kernel
def least_gpus(board: Board) -> Ints:
    """Return the fewest GPUs that a node of each type needs for an active job to run there, (V,); `NEVER`: none may."""
    configs, least = board.facts.configs, np.full(board.capacity.shape[0], NEVER)
    for c in range(configs.shape[0]):
        gpus = 1 if configs[c, at.CONFIG_SPREAD] > 0 else configs[c, at.CONFIG_GPUS]
        if gpus >= least[configs[c, at.CONFIG_TYPE]]:
            continue
        for i in range(board.count[at.ACTIVE]):
            if board.tau[board.active[i], c] < np.inf:
                least[configs[c, at.CONFIG_TYPE]] = gpus
                break
    return least


@kernel
def gpus_of_types(board: Board) -> Floats:
    """Return the GPUs of the nodes of every type, (V,)."""
    gpus = np.zeros(board.capacity.shape[0])
    for n in range(board.nodes.shape[0]):
        gpus[board.nodes[n, at.NODE_TYPE]] += board.nodes[n, at.USABLE]
    return gpus


@kernel
def usable(board: Board) -> tuple[float, float]:
    """Return the GPUs that active jobs may use, and what all of them busy cost [€/s].

    With cells these are in the cells, or on the hosts in which cells are: those of which there are more.
    """
    nodes, least, hosts = board.nodes, least_gpus(board), sim.first_host(board)
    gpus, rate = np.zeros(2), np.zeros(2)
    for n in range(nodes.shape[0]):
        own = 1 if n >= hosts else 0
        if nodes[n, at.NODE_GPUS] >= least[nodes[n, at.NODE_TYPE]]:
            gpus[own] += nodes[n, at.USABLE]
            rate[own] += board.node_rate[nodes[n, at.NODE_TYPE], nodes[n, at.USABLE]]
    more = 1 if gpus[1] > gpus[0] else 0
    return gpus[more], rate[more]
