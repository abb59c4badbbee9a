"""Checked placement from outside: from files and requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import put_back
from gpusched_env.simulator.run import Board

CONFIGURATION, NODE, GPUS, SHARE, CHAIN, QUOTA = range(1, 7)
"""Errors of a holding, as `hold_at` returns them; 0 for none."""


def apply_holding(board: Board, job: int, config: int, nodes: Sequence[int], gpu: int | None) -> int:
    """Place a job that holds nothing on these nodes with a configuration, if it is free there; return 0, or the error.

    Args:
        nodes: Its node, or all of several, rising; of a spread configuration the node of every GPU.
        gpu: The shared GPU on its node; None for whole ones.
    """
    chain = np.full(len(board.nodes), -1, dtype=np.int64)
    if board.facts.configs[config, at.CONFIG_SPREAD] > 0:
        chain = np.array(nodes, dtype=np.int64)
    else:
        chain[list(nodes[:-1])] = nodes[1:]
    return int(hold_at(board, job, config, nodes[0], -1 if gpu is None else gpu, chain))


@kernel
def hold_at(board: Board, job: int, config: int, node: int, slot: int, chain: Ints) -> int:
    """Place a job that holds nothing in this place with a configuration, if it is free; return 0, or the error.

    Args:
        config: The configuration, ≥ 0; it may be one that does not exist.
        node: The node, or the first of several; it may be one that does not exist.
        slot: The shared GPU on the node, the first of several; -1 for whole ones.
        chain: The node that follows on each, or -1, (N,); of a spread configuration the node of every GPU.
    """
    configs, nodes = board.facts.configs, board.nodes
    if config >= configs.shape[0] or not board.tau[job, config] < np.inf:
        return CONFIGURATION
    if node < 0 or node >= nodes.shape[0] or nodes[node, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
        return NODE
    spread, shared = configs[config, at.CONFIG_SPREAD] > 0, configs[config, at.CONFIG_UNITS] > 0
    wrong = hooks.holding_error(board, job, config, node, slot, chain, 0)
    if not (wrong or spread or shared) and (slot != -1 or nodes[node, at.FREE] < configs[config, at.CONFIG_GPUS]):
        wrong = GPUS
    if wrong:
        return wrong
    n = node if configs[config, at.CONFIG_NODES] > 1 and not (spread or shared) else -1
    while n >= 0:
        nodes[n, at.NEXT] = chain[n]
        n = chain[n]
    put_back(board, job, config, node, slot, chain if spread else nodes[:, at.NEXT].copy())
    return 0
