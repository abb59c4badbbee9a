"""GPUs of spread configurations, which may be on any nodes.

A job's row has the node of every such GPU behind the columns of `layout`, in rising order, and after those the same of
when the round began. They mean something only while the job holds a spread configuration.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge_on
from gpusched_env.simulator.holdings import GPUS
from gpusched_env.simulator.placement.held_nodes import further_places, gpus_on, next_node, nodes_held, same_gpus
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.placement.whole_gpus import hold, let_go
from gpusched_env.simulator.run import Board


@lean_kernel
def is_spread(board: Board, config: int) -> bool:
    return board.facts.configs[config, at.CONFIG_SPREAD] > 0


@lean_kernel
def remember_spread(board: Board, job: int) -> None:
    most = further_places(board)
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + most):
        board.jobs[job, most + i] = board.jobs[job, i]


@lean_kernel
def exchange_spread(board: Board, job: int, other: int) -> None:
    jobs = board.jobs
    for i in range(at.JOB_COLUMNS, at.JOB_COLUMNS + further_places(board)):
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


@kernel
def slow_down(board: Board, slowdowns: Floats) -> None:
    """Multiply the times of jobs whose spread GPUs are on as few nodes as can be: they are as fast as consolidated."""
    for i in range(board.count[at.ACTIVE] if further_places(board) > 0 else 0):
        job, config = board.active[i], int(board.jobs[board.active[i], at.CONFIG])
        if config >= 0 and is_spread(board, config):
            slowdowns[i] *= consolidated_factor(board, job, config, nodes_held(board, job, config))


@lean_kernel
def speed_if_placed(board: Board, job: int, config: int, speed: float) -> float:
    if not is_spread(board, config):
        return speed
    if int(board.jobs[job, at.CONFIG]) != config and not can_place(board, job, config):
        return 0.0
    return 1.0 / factor_now(board, job, config)


@kernel
def held_charge(board: Board, job: int, config: int, rate: float) -> float:
    """Return the part of a spread configuration in the cost rate of its nodes [€/s]."""
    if not is_spread(board, config):
        return rate
    rate, n = 0.0, int(board.jobs[job, at.NODE])
    while n >= 0:
        rate += charge_on(board, n, gpus_on(board, job, config, n, False))
        n = next_node(board, job, config, n, False)
    return rate


@lean_kernel
def write_interval(board: Board, job: int, config: int, node: int, old: bool, row: Floats) -> None:
    if further_places(board) > 0:
        row[at.LOG_GPUS] = gpus_on(board, job, config, node, old)


@lean_kernel
def fits_kind(board: Board, config: int, fits: int) -> int:
    configs = board.facts.configs
    if not is_spread(board, config):
        return fits
    free = board.capacity[configs[config, at.CONFIG_TYPE], at.FREE_GPUS]
    return 1 if free >= configs[config, at.CONFIG_NODES] else 0


@kernel
def put(board: Board, job: int, config: int, placed: bool) -> bool:
    """Place `job`, which holds nothing, with a spread configuration, which fits.

    It returns to its place if that is free. Else it takes, again and again, the node with fewest free GPUs that has all
    that are still wanted, or, if none has, all of the node with most: so it is on as few nodes as can be.
    """
    if not is_spread(board, config):
        return placed
    jobs, configs, capacity = board.jobs, board.facts.configs, board.capacity
    v, wanted, taken = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_NODES], 0
    back = can_return(board, job, config)
    while taken < wanted:
        size = 1 if back else min(wanted - taken, capacity[v, at.FREE_BLOCK])
        if back:
            n = int(jobs[job, at.JOB_COLUMNS + further_places(board) + taken])
        else:
            n = find_node(board, v, size, int(jobs[job, at.PREFERRED_NODE]) if taken == 0 else -1)
        for _ in range(size):
            _hold_one(board, job, taken, n)
            taken += 1
    _enter(board, job, config)
    return True


@kernel
def _hold_one(board: Board, job: int, i: int, node: int) -> None:
    hooks.use_node(board, node)
    hold(board, node, 1)
    at_i = at.JOB_COLUMNS + i
    while at_i > at.JOB_COLUMNS and board.jobs[job, at_i - 1] > node:
        board.jobs[job, at_i] = board.jobs[job, at_i - 1]
        at_i -= 1
    board.jobs[job, at_i] = node


@kernel
def _enter(board: Board, job: int, config: int) -> None:
    hooks.count_in(board, job, config, 1)
    board.jobs[job, at.CONFIG], board.jobs[job, at.NODE] = config, board.jobs[job, at.JOB_COLUMNS]


@kernel
def put_back(board: Board, job: int, config: int, node: int, chain: Ints, placed: bool) -> bool:  # noqa: ARG001
    if not is_spread(board, config):
        return placed
    for i in range(chain.shape[0]):
        _hold_one(board, job, i, chain[i])
    _enter(board, job, config)
    return True


@kernel
def let_kind_go(board: Board, job: int, config: int, released: bool) -> bool:
    if not is_spread(board, config):
        return released
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        let_go(board, int(board.jobs[job, at.JOB_COLUMNS + i]), 1)
    return True


@kernel
def chain(board: Board, job: int, config: int, nodes: Ints) -> Ints:
    if config < 0 or not is_spread(board, config):
        return nodes
    held = board.facts.configs[config, at.CONFIG_NODES]
    return board.jobs[job, at.JOB_COLUMNS : at.JOB_COLUMNS + held].astype(np.int64)


@kernel
def are_free(board: Board, config: int, places: Ints) -> bool:
    """Whether `places` are the nodes of as many free GPUs of a type as a spread configuration has, rising."""
    configs, nodes, before, used = board.facts.configs, board.nodes, 0, 0
    for n in places:
        if n < before or n >= nodes.shape[0] or nodes[n, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
            return False
        used = used + 1 if n == before else 1
        before = n
        if nodes[n, at.FREE] < used:
            return False
    return places.shape[0] == configs[config, at.CONFIG_NODES]


@kernel
def holding_error(board: Board, job: int, config: int, node: int, slot: int, chain: Ints, wrong: int) -> int:  # noqa: ARG001
    if wrong or not is_spread(board, config):
        return wrong
    return 0 if slot == -1 and are_free(board, config, chain) else GPUS


@lean_kernel
def next_held(board: Board, job: int, config: int, node: int, old: bool, following: int) -> int:
    if not is_spread(board, config):
        return following
    first = at.JOB_COLUMNS + (further_places(board) if old else 0)
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        if board.jobs[job, first + i] > node:
            return int(board.jobs[job, first + i])
    return -1


@lean_kernel
def gpus_held(board: Board, job: int, config: int, node: int, old: bool, gpus: int) -> int:
    if not is_spread(board, config):
        return gpus
    first, on_it = at.JOB_COLUMNS + (further_places(board) if old else 0), 0
    for i in range(board.facts.configs[config, at.CONFIG_NODES]):
        on_it += 1 if board.jobs[job, first + i] == node else 0
    return on_it


register(
    "spread",
    {
        hooks.remember: remember_spread,
        hooks.slow_down: slow_down,
        hooks.speed_if_placed: speed_if_placed,
        hooks.held_charge: held_charge,
        hooks.write_interval: write_interval,
        hooks.fits_kind: fits_kind,
        hooks.put: put,
        hooks.put_back: put_back,
        hooks.let_kind_go: let_kind_go,
        hooks.chain: chain,
        hooks.holding_error: holding_error,
        hooks.next_held: next_held,
        hooks.gpus_held: gpus_held,
        hooks.exchange_held: exchange_spread,
    },
)
