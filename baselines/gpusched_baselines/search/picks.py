"""How a random construction picks a job's configuration and node: as published, or in our own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator.placement.best_fit import best_fit, fit_key
from gpusched_env.simulator.placement.node_index import count_fitting, find_node, find_ranked
from gpusched_env.simulator.placement.placement import may_have

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board

BEST = 0.05  # part of the choices that the published picks are among
CHOICES_FOR_TWO = 30  # with fewer choices that part is one of them
NEXT_CONFIGURATION = 0.05  # ours: probability of passing over a configuration for the next best one
NEXT_NODE = 0.2  # ours: probability of passing over a node for the next best one


@lean_kernel
def shortlist(choices: int) -> int:
    """Count the best of some choices that the published picks are among: 5 % rounded half up, at least one."""
    return max(1, int(BEST * choices + 0.5))


@kernel
def pick_config(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator) -> int:
    """Pick one of the best configurations that fit now, all with one probability; -1 if none fits.

    Args:
        ranking: The configurations, best first, (C,).
        allowed: How many of them the job may use.
        rng: Where chance comes from: drawn from only if there is a choice.
    """
    rank = 0
    if allowed >= CHOICES_FOR_TWO:
        choices = 0
        for i in range(allowed):
            choices += 1 if may_have(board, job, ranking[i]) else 0
        short = shortlist(choices)
        rank = int(rng.random() * short) if short > 1 else 0
    for i in range(allowed):
        if may_have(board, job, ranking[i]):
            if rank == 0:
                return ranking[i]
            rank -= 1
    return -1


@kernel
def pick_node(board: Board, gpu_type: int, gpus: int, home: int, rng: Generator) -> int:
    """Pick one of the best nodes by `fit_key` that have room for `gpus` GPUs, of which there must be one."""
    if board.nodes.shape[0] < CHOICES_FOR_TWO:
        return find_node(board, gpu_type, gpus, home)
    short = shortlist(count_fitting(board, gpu_type, gpus))
    rank = int(rng.random() * short) if short > 1 else 0
    return find_ranked(board, gpu_type, gpus, home, rank)


@kernel
def pass_to_config(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator) -> int:
    """Take the best configuration that fits now, or with a small probability the next best, and so on; -1 if none."""
    config = -1
    for i in range(allowed):
        if may_have(board, job, ranking[i]):
            config = ranking[i]
            if rng.random() >= NEXT_CONFIGURATION:
                break
    return config


@kernel
def pass_to_node(board: Board, gpu_type: int, gpus: int, home: int, rng: Generator) -> int:
    """Take the best node by `fit_key`, or with a small probability the next best, and so on; there must be one."""
    node = find_node(board, gpu_type, gpus, home)
    while rng.random() < NEXT_NODE:
        following = best_fit(board, gpu_type, gpus, home, fit_key(board, node, gpu_type, gpus, home))
        if following < 0:
            break
        node = following
    return node
