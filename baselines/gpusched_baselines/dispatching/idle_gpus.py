"""The last step of a round: idle GPUs, and free shares, go to the job there that gains most.

`order`, (A,), are the jobs of the round, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel


@kernel
def give_idle_gpus(board: Board, order: Ints) -> None:
    """Assign idle GPUs of every node in use to its jobs, one step after another to the job that gains the most speed.

    The gain is the ratio of seconds per epoch, before over after; a job takes more GPUs only if it gets faster. Jobs on
    shared GPUs or several nodes keep what they have.
    """
    give_by_gain(board, order, np.zeros(order.shape[0]), 0.0)


@kernel
def give_by_gain(board: Board, order: Ints, restart: Floats, holders: float) -> None:
    """Assign idle GPUs of every node in use to its jobs, one step after another to the job that gains most.

    The gain is the ratio, before over after, of seconds per epoch or, with `holders`, of the cost of an epoch: that of
    the power of the job's GPUs and of an equal part of the node's base power. Then a job on a share of one GPU may
    leave it for whole GPUs, too. Jobs on several nodes keep what they have.

    Args:
        restart: Time that a change adds to an epoch of each [s], (A,).
        holders: Expected jobs on a shared GPU, ≥ 1: a share costs at least 1 / so much of its GPU. 0: by seconds.
    """
    nodes = board.nodes
    first, following = _jobs_by_node(board, order)
    for n in range(nodes.shape[0]):
        while first[n] >= 0 and nodes[n, at.FREE] > 0:
            base, each = _charged(board, n, first[n], following) if holders > 0.0 else (1.0, 0.0)
            winner, config = _most_gain(board, order, restart, first[n], following, (base, each, holders))
            if winner < 0:
                break
            sim.grow(board, winner, config)


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
    """Return the cost rates of each job on `node`: its part of the node's, and that of each of its GPUs [€/s]."""
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
    board: Board, order: Ints, restart: Floats, head: int, following: Ints, charged: tuple[float, float, float]
) -> tuple[int, int]:
    """Find the job of a node, and its new configuration, that gain most from the idle GPUs; -1 if none."""
    jobs, nodes, configs, tau = board.jobs, board.nodes, board.facts.configs, board.tau
    node, (base, each, holders) = int(jobs[order[head], at.NODE]), charged
    v, free = nodes[node, at.NODE_TYPE], nodes[node, at.FREE]
    winner, better, most = -1, -1, 1.0
    i = head
    while i >= 0:
        job = order[i]
        now, before = int(jobs[job, at.CONFIG]), int(jobs[job, at.OLD_CONFIG])
        own = int(jobs[job, at.APPLICATION])
        gpus, units = configs[now, at.CONFIG_GPUS], configs[now, at.CONFIG_UNITS]
        larger = configs[now, at.CONFIG_NODES] == 1 and (units == 0 or (holders > 0.0 and gpus == 1))
        less = sim.planned_saving_rate(board, own, now) if each > 0.0 else 0.0
        change = 0.0 if sim.same_gpus(board, now, before) else restart[i]
        cost = (tau[job, now] + change) * (base + each * gpus - less)
        if larger and units > 0:
            cost = (tau[job, now] + change) * (base + (each - less) * max(units / at.UNITS, 1.0 / holders))
            gpus = 1 if nodes[node, at.NODE_COLUMNS + int(jobs[job, at.SLOT])] == units else 0  # that it leaves
        for c in range(configs.shape[0] if larger else 0):
            more = configs[c, at.CONFIG_GPUS] - gpus
            if configs[c, at.CONFIG_TYPE] != v or more <= 0 or more > free or tau[job, c] == np.inf:
                continue
            less = sim.planned_saving_rate(board, own, c) if each > 0.0 else 0.0
            change = 0.0 if sim.same_gpus(board, c, before) else restart[i]
            then = (tau[job, c] + change) * (base + each * configs[c, at.CONFIG_GPUS] - less)
            if configs[c, at.CONFIG_UNITS] > 0 or configs[c, at.CONFIG_NODES] > 1:
                continue
            if cost > most * then and sim.can_resize(board, job, c):
                winner, better, most = job, c, cost / then
        i = following[i]
    return winner, better


@kernel
def give_left_shares(board: Board, order: Ints, left: Floats) -> None:
    """Assign a shared GPU with one job to that job as a whole; on other shared GPUs, the free share to one of the jobs.

    That is the job that gains most time with the largest share that is offered and fits. A job that would not get
    faster gets nothing. The nodes are as busy as before; `capacity` is not kept up to date.
    """
    shared = sim.slots(board)
    if shared == 0:
        return
    nodes = board.nodes
    first, following = _jobs_by_gpu(board, order)
    of_several = _nodes_with_shares_of_several(board, order)
    for n in range(nodes.shape[0]):
        for gpu in range(shared):
            if first[n, gpu] < 0 or of_several[n] != 0:
                continue
            winner, config = _most_time(board, order, left, first[n, gpu], following)
            if winner >= 0:
                sim.grow(board, order[winner], config)


@kernel
def _nodes_with_shares_of_several(board: Board, order: Ints) -> Ints:
    """Return for every node whether a job of `order` has a share of several of its GPUs, (N,)."""
    jobs, found = board.jobs, np.zeros(board.nodes.shape[0], dtype=np.int64)
    for job in order:
        config, node = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE])
        if config >= 0 and sim.of_several(board, config):
            found[node : node + board.facts.configs[config, at.CONFIG_NODES]] = 1
    return found


@kernel
def _jobs_by_gpu(board: Board, order: Ints) -> tuple[Ints, Ints]:
    """List the jobs of every shared GPU: place in `order` of the first, (N, G), of each next one, (A,); -1: none."""
    jobs = board.jobs
    first = np.full((board.nodes.shape[0], sim.slots(board)), -1)
    following = np.full(order.shape[0], -1)
    for i in range(order.shape[0] - 1, -1, -1):
        slot = int(jobs[order[i], at.SLOT])
        if slot >= 0:
            node = int(jobs[order[i], at.NODE])
            following[i] = first[node, slot]
            first[node, slot] = i
    return first, following


@lean_kernel
def _most_time(board: Board, order: Ints, left: Floats, head: int, following: Ints) -> tuple[int, int]:
    """Find the place in `order` of a shared GPU's job that gains most time, and its new configuration; -1: none."""
    jobs, nodes, tau = board.jobs, board.nodes, board.tau
    node, slot = int(jobs[order[head], at.NODE]), int(jobs[order[head], at.SLOT])
    free = at.UNITS - nodes[node, at.NODE_COLUMNS + slot]
    winner, better, most = -1, -1, 0.0
    i = head
    while i >= 0:
        job = order[i]
        config = _larger(board, job, free, following[head] < 0)
        gain = left[i] * (tau[job, int(jobs[job, at.CONFIG])] - tau[job, config]) if config >= 0 else 0.0
        if gain > most:
            winner, better, most = i, config, gain
        i = following[i]
    return winner, better


@lean_kernel
def _larger(board: Board, job: int, free: int, alone: bool) -> int:
    """Find the configuration of a job on a shared GPU with up to `free` more units of it; -1: none.

    It is the whole GPU if the job is alone, else the largest share that is offered and allowed for the job.
    """
    jobs, configs, tau = board.jobs, board.facts.configs, board.tau
    held = int(jobs[job, at.CONFIG])
    best, largest = -1, configs[held, at.CONFIG_SIZE]
    most = configs[held, at.CONFIG_UNITS] + free
    for c in range(configs.shape[0]):
        whole = configs[c, at.CONFIG_UNITS] == 0
        one_gpu = (configs[c, at.CONFIG_GPUS] == 1) & (configs[c, at.CONFIG_NODES] == 1)
        if configs[c, at.CONFIG_TYPE] != configs[held, at.CONFIG_TYPE] or not one_gpu or tau[job, c] == np.inf:
            continue
        fits = alone if whole else configs[c, at.CONFIG_UNITS] <= most
        if fits and configs[c, at.CONFIG_SIZE] > largest and sim.can_resize(board, job, c):
            best, largest = c, configs[c, at.CONFIG_SIZE]
    return best
