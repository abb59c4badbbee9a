"""GPUs of spread configurations: on which nodes they are, which may be any, and the nodes of any holding in order.

A job's row has the node of every such GPU behind the columns of `layout`, in rising order, and after those the same of
when the round began. They mean something only while the job holds a spread configuration.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.whole_gpus import add_to_mark, let_go, mark, same_chain
from gpusched_env.simulator.run import Board


@lean_kernel
def most_spread(board: Board) -> int:
    """Return the GPUs of the largest spread configuration; 0 if there is none."""
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
    if board.facts.configs[config, at.CONFIG_SPREAD] == 0:
        return board.nodes[node, at.OLD_NEXT if old else at.NEXT]
    first = at.JOB_COLUMNS + (most_spread(board) if old else 0)
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        if board.jobs[job, first + i] > node:
            return int(board.jobs[job, first + i])
    return -1


@lean_kernel
def gpus_on(board: Board, job: int, config: int, node: int, old: bool) -> int:
    """Count the GPUs that a job holds with `config` on one of its nodes; the arguments are those of `next_node`."""
    if board.facts.configs[config, at.CONFIG_SPREAD] == 0:
        return board.facts.configs[config, at.CONFIG_GPUS]
    first, gpus = at.JOB_COLUMNS + (most_spread(board) if old else 0), 0
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        gpus += 1 if board.jobs[job, first + i] == node else 0
    return gpus


@lean_kernel
def nodes_held(board: Board, job: int, config: int) -> int:
    """Count the nodes on which a job holds `config`."""
    count, n = 0, int(board.jobs[job, at.NODE])
    while n >= 0:
        count += 1
        n = next_node(board, job, config, n, False)
    return count


@lean_kernel
def remember_spread(board: Board, job: int) -> None:
    """Store where a job's spread GPUs are as the round begins."""
    most = most_spread(board)
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + most):
        board.jobs[job, most + i] = board.jobs[job, i]


@lean_kernel
def exchange_spread(board: Board, job: int, other: int) -> None:
    """Exchange where the spread GPUs of two jobs are."""
    jobs = board.jobs
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + most_spread(board)):
        jobs[job, i], jobs[other, i] = jobs[other, i], jobs[job, i]


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
    """Return what `put_back` needs of a job that is released: the column NEXT, or the node of every spread GPU."""
    jobs, configs, config = board.jobs, board.facts.configs, int(board.jobs[job, at.CONFIG])
    if config < 0 or configs[config, at.CONFIG_SPREAD] == 0:
        return board.nodes[:, at.NEXT].copy()
    return jobs[job, at.JOB_COLUMNS : at.JOB_COLUMNS + configs[config, at.CONFIG_NODES]].astype(np.int64)


@kernel
def can_return(board: Board, job: int, config: int) -> bool:
    """Whether a job had `config` when the round began, its place is preferred, and all GPUs of it are free."""
    jobs, nodes = board.jobs, board.nodes
    n = int(jobs[job, at.OLD_NODE])
    if jobs[job, at.OLD_CONFIG] != config or n < 0 or jobs[job, at.PREFERRED_NODE] != n:
        return False
    while n >= 0:
        if nodes[n, at.FREE] < gpus_on(board, job, config, n, True):
            return False
        n = next_node(board, job, config, n, True)
    return True


@kernel
def let_spread_go(board: Board, job: int, config: int) -> None:
    """Release the GPUs of a spread configuration."""
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        let_go(board, int(board.jobs[job, at.JOB_COLUMNS + i]), 1)


@kernel
def mark_of(board: Board, job: int, old: bool) -> int:
    """Return the `mark` of the nodes that a job holds, or held when the round began."""
    jobs = board.jobs
    config, first = int(jobs[job, at.OLD_CONFIG if old else at.CONFIG]), int(jobs[job, at.OLD_NODE if old else at.NODE])
    if board.facts.configs[config, at.CONFIG_SPREAD] == 0:
        return mark(board, first, old)
    total, n = 0, first
    while n >= 0:
        total = add_to_mark(total, n)
        n = next_node(board, job, config, n, old)
    return total


@kernel
def same_nodes(board: Board, job: int) -> bool:
    """Whether a job that holds the same configuration as when the round began holds it on the same nodes."""
    jobs, config, most = board.jobs, int(board.jobs[job, at.CONFIG]), most_spread(board)
    if board.facts.configs[config, at.CONFIG_SPREAD] == 0:
        return same_chain(board, int(jobs[job, at.NODE]), int(jobs[job, at.OLD_NODE]))
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + board.facts.configs[config, at.CONFIG_NODES]):
        if jobs[job, i] != jobs[job, most + i]:
            return False
    return True


@lean_kernel
def consolidated_factor(board: Board, job: int, config: int, nodes: int) -> float:
    """Return the factor on the time of a job with a spread configuration on so many nodes, 1 on many.

    On no more nodes than the configuration of as many GPUs on one node, or on whole nodes, has, it is as fast as with
    that one, if the job may use it.
    """
    configs, tau, whole = board.facts.configs, board.tau, board.facts.configs[config, at.CONFIG_CONSOLIDATED]
    if whole < 0 or nodes > configs[whole, at.CONFIG_NODES] or tau[job, whole] == float("inf"):
        return 1.0
    return tau[job, whole] / tau[job, config]


@lean_kernel
def factor_now(board: Board, job: int, config: int) -> float:
    """Return the `consolidated_factor` that a spread configuration would have if it were placed now, and fits."""
    configs, capacity = board.facts.configs, board.capacity
    v, gpus, nodes = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_NODES], 0
    if int(board.jobs[job, at.CONFIG]) == config:
        nodes = nodes_held(board, job, config)
    elif can_return(board, job, config):
        n = int(board.jobs[job, at.OLD_NODE])
        while n >= 0:
            nodes += 1
            n = next_node(board, job, config, n, True)
    elif capacity[v, at.FREE_BLOCK] >= gpus:
        nodes = 1
    else:
        whole, largest = gpus // capacity[v, at.LARGEST], capacity[v, at.LARGEST]
        nodes = whole if whole * largest == gpus and capacity[v, at.EMPTY] >= whole else gpus
    return consolidated_factor(board, job, config, nodes)
