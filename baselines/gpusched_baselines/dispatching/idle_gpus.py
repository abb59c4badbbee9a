"""The last step of Greedy: idle GPUs of a node go to the job there that gains the most speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board


@kernel
def give_idle_gpus(board: Board, order: Ints) -> None:
    """Give idle GPUs of every node that is in use to its jobs, again and again to the one that gains the most speed.

    The gain is the ratio of seconds per epoch, before over after; a job takes more GPUs only if it gets faster. Jobs on
    shared GPUs or several nodes keep what they have.

    Args:
        order: The jobs of the round, (A,).
    """
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    first, following = jobs_by_node(board, order)
    for n in range(nodes.shape[0]):
        while nodes[n, at.FREE] > 0:
            winner, config = _most_gain(board, order, first[n], following, n)
            if winner < 0:
                break
            nodes[n, at.FREE] -= configs[config, at.CONFIG_GPUS] - configs[int(jobs[winner, at.CONFIG]), at.CONFIG_GPUS]
            jobs[winner, at.CONFIG] = config


@kernel
def jobs_by_node(board: Board, order: Ints) -> tuple[Ints, Ints]:
    """List the jobs of every node: the place in `order` of the first, (N,), and of each next one, (A,); -1: none."""
    jobs, nodes = board.jobs, board.nodes
    first = np.full(nodes.shape[0], -1)
    following = np.full(order.shape[0], -1)
    for i in range(order.shape[0] - 1, -1, -1):
        node = int(jobs[order[i], at.NODE])
        if node >= 0:
            following[i] = first[node]
            first[node] = i
    return first, following


@kernel
def _most_gain(board: Board, order: Ints, head: int, following: Ints, node: int) -> tuple[int, int]:
    """Find the job on `node`, and its new configuration, that gain the most speed from the idle GPUs; -1 if none."""
    jobs, nodes, configs, tau = board.jobs, board.nodes, board.facts.configs, board.tau
    winner, config = -1, -1
    most = 1.0
    v, free = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
    i = head
    while i >= 0:
        job = order[i]
        old = int(jobs[job, at.CONFIG])
        gpus, before = configs[old, at.CONFIG_GPUS], tau[job, old]
        whole = configs[old, at.CONFIG_UNITS] == 0 and configs[old, at.CONFIG_NODES] == 1
        for c in range(configs.shape[0] if whole else 0):
            if configs[c, at.CONFIG_TYPE] != v or before <= most * tau[job, c]:
                continue
            more = configs[c, at.CONFIG_GPUS] - gpus
            if 0 < more <= free and configs[c, at.CONFIG_UNITS] == 0 and configs[c, at.CONFIG_NODES] == 1:
                winner, config, most = job, c, before / tau[job, c]
        i = following[i]
    return winner, config
