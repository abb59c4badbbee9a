"""The last step of STS-X: idle GPUs of a node that is on go to the job there whose epochs get cheapest by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import jobs_by_node
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def spread(board: Board, order: Ints) -> None:
    """Give idle GPUs of nodes that are on to jobs there, as long as that makes some job's epoch cheaper.

    An epoch is charged the power of the job's GPUs and an equal part of the node's base power. So a job that has the
    node for itself gets faster for the base power that it saves. What a restart costs is spread over the epochs that
    the job is expected to need. Jobs on shared GPUs or several nodes keep what they have.

    Args:
        order: The jobs of the round, (A,).
    """
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    first, following = jobs_by_node(board, order)
    restart = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job = order[i]
        if jobs[job, at.RESTART_S] > 0.0 and not np.isnan(jobs[job, at.START_S]):
            left = max(expected_left(board, job), 1e-12 * jobs[job, at.MAX_EPOCHS])
            restart[i] = jobs[job, at.RESTART_S] / left
    for n in range(nodes.shape[0]):
        while first[n] >= 0 and nodes[n, at.FREE] > 0:
            winner, config = _best_gain(board, order, restart, first[n], following, n)
            if winner < 0:
                break
            nodes[n, at.FREE] -= configs[config, at.CONFIG_GPUS] - configs[int(jobs[winner, at.CONFIG]), at.CONFIG_GPUS]
            jobs[winner, at.CONFIG] = config


@kernel
def _best_gain(board: Board, order: Ints, restart: Floats, head: int, following: Ints, node: int) -> tuple[int, int]:
    """Find the job on `node` whose epoch gets cheaper by the largest factor, and its new configuration; -1 if none."""
    jobs, nodes, configs, tau, node_rate = board.jobs, board.nodes, board.facts.configs, board.tau, board.node_rate
    v, most_gpus = nodes[node, at.NODE_TYPE], nodes[node, at.NODE_GPUS]
    each = (node_rate[v, most_gpus] - node_rate[v, 1]) / max(1, most_gpus - 1)
    sharers, i = 0, head
    while i >= 0:
        sharers += 1
        i = following[i]
    base = (node_rate[v, 1] - each) / sharers
    winner, better, most = -1, -1, 1.0
    i = head
    while i >= 0:
        job = order[i]
        now, before = int(jobs[job, at.CONFIG]), int(jobs[job, at.OLD_CONFIG])
        gpus = configs[now, at.CONFIG_GPUS]
        whole = configs[now, at.CONFIG_UNITS] == 0 and configs[now, at.CONFIG_NODES] == 1
        cost = (tau[job, now] + (restart[i] if now != before else 0.0)) * (base + each * gpus)
        for c in range(configs.shape[0] if whole else 0):
            more = configs[c, at.CONFIG_GPUS] - gpus
            one_node = configs[c, at.CONFIG_UNITS] == 0 and configs[c, at.CONFIG_NODES] == 1
            if configs[c, at.CONFIG_TYPE] != v or not one_node or more <= 0 or more > nodes[node, at.FREE]:
                continue
            then = (tau[job, c] + (restart[i] if c != before else 0.0)) * (base + each * (gpus + more))
            if cost > most * then:
                winner, better, most = job, c, cost / then
        i = following[i]
    return winner, better
