"""Configurations of several whole nodes: empty ones of the largest size, chained (NEXT)."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge_on
from gpusched_env.simulator.holdings import CHAIN, GPUS
from gpusched_env.simulator.placement.whole_gpus import hold, let_go
from gpusched_env.simulator.run import Board


@lean_kernel
def is_of_nodes(board: Board, config: int) -> bool:
    """Whether a configuration is one of several whole nodes."""
    configs = board.facts.configs
    several = configs[config, at.CONFIG_NODES] > 1 and configs[config, at.CONFIG_UNITS] == 0
    return several and configs[config, at.CONFIG_SPREAD] == 0


@kernel
def choose_nodes(board: Board, gpu_type: int, wanted: int, preferred: int) -> int:
    """Chain `wanted` empty nodes of the largest size of a type, which must be there; return the first.

    Nodes that the job held before the round come first, then those of the group that a mechanism prefers, then nodes
    that were empty before it, then by index. (The chain of those begins at `preferred`; on one node it ends there.)
    """
    nodes = board.nodes
    chosen = np.zeros(nodes.shape[0], dtype=np.bool_)
    left = wanted
    n = preferred
    while n >= 0 and left > 0:
        if is_empty(board, gpu_type, n):
            chosen[n] = True
            left -= 1
        n = nodes[n, at.OLD_NEXT]
    group = hooks.group_for(board, gpu_type, wanted, -1) if left == wanted else -1
    for turn in range(3):
        for n in range(nodes.shape[0] if turn > 0 or group >= 0 else 0):
            if left == 0:
                break
            was_empty = nodes[n, at.OLD_FREE] == nodes[n, at.NODE_GPUS]
            is_next = hooks.in_group(board, n, group, False) if turn == 0 else turn == 2 or was_empty
            if not chosen[n] and is_next and is_empty(board, gpu_type, n):
                chosen[n] = True
                left -= 1
    following = -1
    for n in range(nodes.shape[0] - 1, -1, -1):
        if chosen[n]:
            nodes[n, at.NEXT] = following
            following = n
    return following


@kernel
def is_empty(board: Board, gpu_type: int, n: int) -> bool:
    nodes, capacity = board.nodes, board.capacity
    return nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] == capacity[gpu_type, at.LARGEST]


@kernel
def hold_nodes(board: Board, first: int) -> None:
    nodes = board.nodes
    n = first
    while n >= 0:
        hold(board, n, nodes[n, at.NODE_GPUS])
        n = nodes[n, at.NEXT]


@kernel
def let_nodes_go(board: Board, first: int) -> None:
    nodes = board.nodes
    n = first
    while n >= 0:
        following = nodes[n, at.NEXT]
        let_go(board, n, nodes[n, at.NODE_GPUS])
        nodes[n, at.NEXT] = -1
        n = following


@kernel
def held_charge(board: Board, job: int, config: int, rate: float) -> float:
    """Return the cost rate of all its nodes [€/s]; where nodes are bound to others, `node_charge` has them all."""
    if not is_of_nodes(board, config):
        return rate
    node, gpus = int(board.jobs[job, at.NODE]), board.facts.configs[config, at.CONFIG_GPUS]
    rate = hooks.node_charge(board, node, gpus, np.nan)
    return charge_on(board, node, gpus) * board.facts.configs[config, at.CONFIG_NODES] if np.isnan(rate) else rate


@lean_kernel
def fits_kind(board: Board, config: int, fits: int) -> int:
    if not is_of_nodes(board, config):
        return fits
    configs, capacity, v = board.facts.configs, board.capacity, board.facts.configs[config, at.CONFIG_TYPE]
    largest = capacity[v, at.LARGEST] == configs[config, at.CONFIG_GPUS]
    return 1 if largest and capacity[v, at.EMPTY] >= configs[config, at.CONFIG_NODES] else 0


@kernel
def put(board: Board, job: int, config: int, placed: bool) -> bool:
    if not is_of_nodes(board, config):
        return placed
    configs, preferred = board.facts.configs, int(board.jobs[job, at.PREFERRED_NODE])
    node = choose_nodes(board, configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_NODES], preferred)
    _take(board, job, config, node)
    return True


@kernel
def _take(board: Board, job: int, config: int, first: int) -> None:
    n = first
    while n >= 0:
        hooks.use_node(board, n)
        n = board.nodes[n, at.NEXT]
    hold_nodes(board, first)
    hooks.count_in(board, job, config, 1)
    board.jobs[job, at.CONFIG], board.jobs[job, at.NODE] = config, first


@kernel
def put_back(board: Board, job: int, config: int, node: int, chain: Ints, placed: bool) -> bool:
    if not is_of_nodes(board, config):
        return placed
    for n in range(chain.shape[0]):
        board.nodes[n, at.NEXT] = chain[n]
    _take(board, job, config, node)
    return True


@kernel
def let_kind_go(board: Board, job: int, config: int, released: bool) -> bool:
    if not is_of_nodes(board, config):
        return released
    let_nodes_go(board, int(board.jobs[job, at.NODE]))
    return True


@kernel
def chain(board: Board, job: int, config: int, nodes: Ints) -> Ints:  # noqa: ARG001 - of the hook
    return board.nodes[:, at.NEXT].copy() if config >= 0 and is_of_nodes(board, config) else nodes


@kernel
def are_empty(board: Board, config: int, first: int, chain: Ints) -> bool:
    """Whether a chain is one of as many empty nodes of the largest size of their type, in rising order."""
    configs, nodes = board.facts.configs, board.nodes
    v, n, last = configs[config, at.CONFIG_TYPE], first, -1
    for _ in range(configs[config, at.CONFIG_NODES]):
        if n <= last or n >= nodes.shape[0] or nodes[n, at.NODE_TYPE] != v:
            return False
        whole = nodes[n, at.NODE_GPUS] == board.capacity[v, at.LARGEST] == configs[config, at.CONFIG_GPUS]
        if not whole or nodes[n, at.FREE] != nodes[n, at.USABLE]:
            return False
        last, n = n, chain[n]
    return n == -1


@kernel
def holding_error(board: Board, job: int, config: int, node: int, slot: int, chain: Ints, wrong: int) -> int:  # noqa: ARG001
    if wrong or not is_of_nodes(board, config):
        return wrong
    if slot != -1 or board.nodes[node, at.FREE] < board.facts.configs[config, at.CONFIG_GPUS]:
        return GPUS
    return 0 if are_empty(board, config, node, chain) else CHAIN


register(
    "nodes",
    {
        hooks.held_charge: held_charge,
        hooks.fits_kind: fits_kind,
        hooks.put: put,
        hooks.put_back: put_back,
        hooks.holding_error: holding_error,
        hooks.let_kind_go: let_kind_go,
        hooks.chain: chain,
    },
)
