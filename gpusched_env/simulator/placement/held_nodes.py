"""The nodes that a job holds, in order, and its GPUs there. Whole nodes are chained (NEXT)."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

UNKNOWN = -2  # of `next_held`: no mechanism has an answer
MARK_FACTOR, MARK_MODULUS = 1_000_003, 2**41 - 21  # products of a mark and the factor fit 64 bits


@lean_kernel
def further_places(board: Board) -> int:
    """Return how many places a job may have beside its node, in columns behind `JOB_COLUMNS`: now, then before."""
    return (board.jobs.shape[1] - at.JOB_COLUMNS) // 2


@lean_kernel
def next_node(board: Board, job: int, config: int, node: int, old: bool) -> int:
    """Return the node that follows on `node` among those that a job holds with `config`; -1 after the last.

    Args:
        board: The board.
        job: The job.
        config: What it holds, ≥ 0.
        node: One of its nodes.
        old: Whether it is what the job held when the round began.
    """
    following = hooks.next_held(board, job, config, node, old, UNKNOWN)
    return board.nodes[node, at.OLD_NEXT if old else at.NEXT] if following == UNKNOWN else following


@lean_kernel
def gpus_on(board: Board, job: int, config: int, node: int, old: bool) -> int:
    """Count the GPUs that a job holds with `config`, or has a part of, on one of its nodes; arguments as above."""
    return hooks.gpus_held(board, job, config, node, old, board.facts.configs[config, at.CONFIG_GPUS])


@lean_kernel
def nodes_held(board: Board, job: int, config: int) -> int:
    count, n = 0, int(board.jobs[job, at.NODE])
    while n >= 0:
        count += 1
        n = next_node(board, job, config, n, False)
    return count


def places_of(board: Board, job: int, *, old: bool) -> list[int]:
    """List the nodes that a job holds, or held when the round began, rising; of a spread configuration one per GPU."""
    row = board.jobs[job]
    config, node = int(row[at.OLD_CONFIG if old else at.CONFIG]), int(row[at.OLD_NODE if old else at.NODE])
    places: list[int] = []
    while node >= 0:
        spread = board.facts.configs[config, at.CONFIG_SPREAD] > 0
        places += [node] * (int(gpus_on(board, job, config, node, old)) if spread else 1)
        node = int(next_node(board, job, config, node, old))
    return places


@kernel
def chain_of(board: Board, job: int) -> Ints:
    """Return what `put_back` needs of a job that is released; it is empty for what is on one node."""
    return hooks.chain(board, job, int(board.jobs[job, at.CONFIG]), np.empty(0, dtype=np.int64))


@lean_kernel
def add_to_mark(total: int, node: int) -> int:
    return (total * MARK_FACTOR + node + 1) % MARK_MODULUS


@kernel
def mark_of(board: Board, job: int, old: bool) -> int:
    """Return a number that identifies the set of nodes that a job holds, or held when the round began; 0 for none.

    One node and two have a number of their own in clusters of up to a million nodes; two sets of more nodes have the
    same one with a probability of 1e-12.
    """
    jobs = board.jobs
    config, n = int(jobs[job, at.OLD_CONFIG if old else at.CONFIG]), int(jobs[job, at.OLD_NODE if old else at.NODE])
    total = 0
    while n >= 0:
        total = add_to_mark(total, n)
        n = next_node(board, job, config, n, old)
    return total


@lean_kernel
def same_gpus(board: Board, config: int, other: int) -> bool:
    """Whether two configurations differ in nothing but the power that their GPUs may draw; -1 is nothing held."""
    configs = board.facts.configs
    if config < 0 or other < 0:
        return config == other
    return configs[config, at.CONFIG_UNLIMITED] == configs[other, at.CONFIG_UNLIMITED]


@kernel
def same_nodes(board: Board, job: int) -> bool:
    """Whether a job that holds as many GPUs of a kind as when the round began holds them on the same nodes."""
    jobs, config = board.jobs, int(board.jobs[job, at.CONFIG])
    n, old = int(jobs[job, at.NODE]), int(jobs[job, at.OLD_NODE])
    while n >= 0 and n == old:
        gpus = board.facts.configs[config, at.CONFIG_GPUS]
        if hooks.gpus_held(board, job, config, n, False, gpus) != hooks.gpus_held(board, job, config, n, True, gpus):
            return False
        n, old = next_node(board, job, config, n, False), next_node(board, job, config, old, True)
    return n == old
