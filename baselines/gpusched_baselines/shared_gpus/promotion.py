"""Guests that become hosts: on an idle GPU, when nobody with a right to it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.shared_gpus.gpus import least_busy, look_again
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.neighbours import neighbours
from gpusched_env.simulator.pace.now import pace_beside
from gpusched_env.simulator.placement.placement import place, prefer_place
from gpusched_env.simulator.placement.quotas import may_become
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.shared_gpus import slots
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_baselines.shared_gpus.gpus import Gpus
    from gpusched_env.arrays import Mask
    from gpusched_env.simulator.run import Board


@kernel
def promote(board: Board, guests: Mask, gpus: Gpus, closed: Mask) -> None:
    """Let the slowest guests move to idle GPUs as hosts, as long as they expect to gain more time than a restart takes.

    Args:
        board: The run.
        guests: The shares of guests, (C,).
        gpus: The GPUs; kept up to date.
        closed: Nodes on which no GPU counts as idle, (N,).
    """
    tried = np.zeros(board.jobs.shape[0], dtype=np.int8)
    while True:
        job, pace = slowest_guest(board, guests, tried)
        if job < 0:
            return
        tried[job] = 1
        config, node, gpu = _idle_gpu(board, guests, gpus, closed, job)
        if config < 0:
            continue
        own, held = int(board.jobs[job, at.APPLICATION]), int(board.jobs[job, at.CONFIG])
        alone_s = expected_left(board, job) * board.tau[job, held] / board.facts.planned[own, held]
        stays = node == int(board.jobs[job, at.NODE])
        if (1.0 / pace - 1.0) * alone_s <= board.jobs[job, at.RESUMING_S if stays else at.RESTART_S]:
            continue
        left_node, left_gpu = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
        release(board, job)
        prefer_place(board, job, node, gpu)
        place(board, job, config)
        look_again(board, guests, gpus, left_node, left_gpu)
        look_again(board, guests, gpus, node, gpu)


@kernel
def slowest_guest(board: Board, guests: Mask, tried: Mask) -> tuple[int, float]:
    """Find the guest with the lowest pace below 1 that was not tried yet, and its pace; -1: none."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    last, before = neighbours(board)
    slowest, least = -1, 1.0
    for job in active:
        config = int(jobs[job, at.CONFIG])
        if config < 0 or guests[config] == 0 or tried[job] != 0:
            continue
        gpu = int(jobs[job, at.NODE]) * slots(board) + int(jobs[job, at.SLOT])
        pace = pace_beside(board, job, config, last[gpu], before)
        if pace < least:
            slowest, least = job, pace
    return slowest, least


@kernel
def _idle_gpu(board: Board, guests: Mask, gpus: Gpus, closed: Mask, job: int) -> tuple[int, int, int]:
    """Find a host's share of an idle GPU of the type on which a guest is: share, node and GPU; -1: none."""
    configs, v = board.facts.configs, board.facts.configs[int(board.jobs[job, at.CONFIG]), at.CONFIG_TYPE]
    for c in range(guests.shape[0]):
        share = configs[c, at.CONFIG_UNITS] > 0 and guests[c] == 0 and configs[c, at.CONFIG_TYPE] == v
        if not share or board.tau[job, c] == np.inf or not may_become(board, job, c):
            continue
        node, gpu = least_busy(board, gpus, c, True, closed, -1.0)
        if node >= 0:
            return c, node, gpu
    return -1, -1, -1
