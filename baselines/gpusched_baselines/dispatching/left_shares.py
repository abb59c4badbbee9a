"""The published last step of a round where GPUs are shared: what is left of a shared GPU speeds up a job there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.quotas import becomes, may_become
from gpusched_env.simulator.placement.shared_gpus import slots

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def give_left_shares(board: Board, order: Ints, left: Floats) -> None:
    """Give a job that is alone on a shared GPU the whole of it; of other shared GPUs, what is left to one of the jobs.

    That is the job that gains most time, by the largest share that is offered and fits. Nothing is given to who would
    not get faster. The nodes are as busy as before; `room` is not kept up to date.

    Args:
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
    """
    shared = slots(board)
    if shared == 0:
        return
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    first, following = _jobs_by_gpu(board, order)
    for n in range(nodes.shape[0]):
        for gpu in range(shared):
            if first[n, gpu] < 0:
                continue
            winner, config = _most_time(board, order, left, first[n, gpu], following)
            if winner < 0:
                continue
            job = order[winner]
            if configs[config, at.CONFIG_UNITS] == 0:
                nodes[n, at.NODE_COLUMNS + gpu] = 0
                jobs[job, at.SLOT] = -1.0
            else:
                held = configs[int(jobs[job, at.CONFIG]), at.CONFIG_UNITS]
                nodes[n, at.NODE_COLUMNS + gpu] += configs[config, at.CONFIG_UNITS] - held
            becomes(board, job, config)


@kernel
def _jobs_by_gpu(board: Board, order: Ints) -> tuple[Ints, Ints]:
    """List the jobs of every shared GPU: place in `order` of the first, (N, G), of each next one, (A,); -1: none."""
    jobs = board.jobs
    first = np.full((board.nodes.shape[0], slots(board)), -1)
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
    """Find what a job on a shared GPU could hold of it with `free` units more; -1: no more.

    The whole GPU if it is alone, else the largest share that is offered and open to the job.
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
        if fits and configs[c, at.CONFIG_SIZE] > largest and may_become(board, job, c):
            best, largest = c, configs[c, at.CONFIG_SIZE]
    return best
