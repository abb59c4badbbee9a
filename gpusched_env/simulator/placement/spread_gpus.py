"""GPUs of spread configurations, which may be on any nodes.

A job's row has the node of every such GPU behind the columns of `layout`, in rising order, and after those the same of
when the round began. They mean something only while the job holds a spread configuration.
"""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import gpus_on, most_spread, next_node, nodes_held, same_gpus
from gpusched_env.simulator.placement.whole_gpus import let_go
from gpusched_env.simulator.run import Board


@lean_kernel
def remember_spread(board: Board, job: int) -> None:
    most = most_spread(board)
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + most):
        board.jobs[job, most + i] = board.jobs[job, i]


@lean_kernel
def exchange_spread(board: Board, job: int, other: int) -> None:
    jobs = board.jobs
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + most_spread(board)):
        jobs[job, i], jobs[other, i] = jobs[other, i], jobs[job, i]


@kernel
def can_return(board: Board, job: int, config: int) -> bool:
    jobs, nodes = board.jobs, board.nodes
    n = int(jobs[job, at.OLD_NODE])
    if not same_gpus(board, int(jobs[job, at.OLD_CONFIG]), config) or n < 0 or jobs[job, at.PREFERRED_NODE] != n:
        return False
    while n >= 0:
        if nodes[n, at.FREE] < gpus_on(board, job, config, n, True):
            return False
        n = next_node(board, job, config, n, True)
    return True


@kernel
def let_spread_go(board: Board, job: int, config: int) -> None:
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        let_go(board, int(board.jobs[job, at.JOB_COLUMNS + i]), 1)


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
    if same_gpus(board, int(board.jobs[job, at.CONFIG]), config):
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
