"""The last step of a round: idle GPUs of a node go to the job there that gains most from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.quotas import becomes, may_become

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def give_idle_gpus(board: Board, order: Ints) -> None:
    """Give idle GPUs of every node that is in use to its jobs, again and again to the one that gains the most speed.

    The gain is the ratio of seconds per epoch, before over after; a job takes more GPUs only if it gets faster. Jobs on
    shared GPUs or several nodes keep what they have.

    Args:
        order: The jobs of the round, (A,).
    """
    give_by_gain(board, order, np.zeros(order.shape[0]), False)


@kernel
def give_by_gain(board: Board, order: Ints, restart: Floats, by_cost: bool) -> None:
    """Give idle GPUs of every node that is in use to its jobs, again and again to the one that gains most.

    The gain is the ratio, before over after, of seconds per epoch or, with `by_cost`, of what an epoch costs: the power
    of the job's GPUs and an equal part of the node's base power. Jobs on shared GPUs or several nodes keep what they
    have.

    Args:
        order: The jobs of the round, (A,).
        restart: What a change adds to an epoch of each [s], (A,).
        by_cost: Whether the gain is in cost; else it is in speed.
    """
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    first, following = _jobs_by_node(board, order)
    for n in range(nodes.shape[0]):
        while first[n] >= 0 and nodes[n, at.FREE] > 0:
            base, each = _charged(board, n, first[n], following) if by_cost else (1.0, 0.0)
            winner, config = _most_gain(board, order, restart, first[n], following, (base, each))
            if winner < 0:
                break
            nodes[n, at.FREE] -= configs[config, at.CONFIG_GPUS] - configs[int(jobs[winner, at.CONFIG]), at.CONFIG_GPUS]
            becomes(board, winner, config)


@kernel
def _jobs_by_node(board: Board, order: Ints) -> tuple[Ints, Ints]:
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


@lean_kernel
def _charged(board: Board, node: int, head: int, following: Ints) -> tuple[float, float]:
    """Give what each job on `node` is charged for the node, and what for each of its GPUs [€/s]."""
    nodes, node_rate = board.nodes, board.node_rate
    v, most_gpus = nodes[node, at.NODE_TYPE], nodes[node, at.NODE_GPUS]
    each = (node_rate[v, most_gpus] - node_rate[v, 1]) / max(1, most_gpus - 1)
    sharers, i = 0, head
    while i >= 0:
        sharers += 1
        i = following[i]
    return (node_rate[v, 1] - each) / sharers, each


@lean_kernel
def _most_gain(
    board: Board, order: Ints, restart: Floats, head: int, following: Ints, charged: tuple[float, float]
) -> tuple[int, int]:
    """Find the job of a node, and its new configuration, that gain most from the idle GPUs; -1 if none."""
    jobs, nodes, configs, tau = board.jobs, board.nodes, board.facts.configs, board.tau
    node, (base, each) = int(jobs[order[head], at.NODE]), charged
    v, free = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
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
            if configs[c, at.CONFIG_TYPE] != v or more <= 0 or more > free or tau[job, c] == np.inf:
                continue
            then = (tau[job, c] + (restart[i] if c != before else 0.0)) * (base + each * (gpus + more))
            if configs[c, at.CONFIG_UNITS] > 0 or configs[c, at.CONFIG_NODES] > 1:
                continue
            if cost > most * then and may_become(board, job, c):
                winner, better, most = job, c, cost / then
        i = following[i]
    return winner, better
