"""Where whole GPUs go: nodes with room, nodes that guests can leave, and nodes kept for a gang."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.shared_gpus import slots

if TYPE_CHECKING:
    from gpusched_baselines.shared_gpus.gpus import Gpus
    from gpusched_env.arrays import Ints, Mask
    from gpusched_env.simulator.run import Board


@kernel
def free_of_hosts(board: Board, gpus: Gpus, node: int) -> int:
    """Count the GPUs of a node that are free, or on which there are guests only."""
    count, per_node = board.nodes[node, at.FREE], slots(board)
    for gpu in range(per_node):
        index = node * per_node + gpu
        if gpus.jobs[index] > 0.0 and gpus.hosted[index] == 0:
            count += 1
    return count


@kernel
def nodes_for(board: Board, gpus: Gpus, config: int, closed: Mask, moving: bool) -> Ints:
    """Choose the nodes for whole GPUs, (k,); none if they do not fit.

    One node: that with fewest GPUs free that will do; with `moving`, where guests may have to leave, that with most.
    Several: whole nodes, those with most GPUs free first.
    """
    nodes, configs = board.nodes, board.facts.configs
    wanted, needed = configs[config, at.CONFIG_NODES], configs[config, at.CONFIG_GPUS]
    chosen = np.empty(wanted, dtype=np.int64)
    taken = closed.copy()
    for k in range(wanted):
        best, best_free = -1, 0
        for n in range(nodes.shape[0]):
            if taken[n] != 0 or nodes[n, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
                continue
            if wanted > 1 and nodes[n, at.NODE_GPUS] != needed:
                continue
            free = nodes[n, at.FREE]
            if (free_of_hosts(board, gpus, n) if moving else free) < needed:
                continue
            if best < 0 or (free > best_free if moving or wanted > 1 else free < best_free):
                best, best_free = n, free
        if best < 0:
            return chosen[:0]
        chosen[k], taken[best] = best, 1
    return chosen


@kernel
def send_guests_away(board: Board, gpus: Gpus, node: int, needed: int) -> None:
    """Take their GPUs from guests of a node until `needed` are free: GPU by GPU, those without a host."""
    jobs, per_node = board.jobs, slots(board)
    for gpu in range(per_node):
        if board.nodes[node, at.FREE] >= needed:
            return
        index = node * per_node + gpu
        if gpus.jobs[index] == 0.0 or gpus.hosted[index] != 0:
            continue
        for job in board.active[: board.count[at.ACTIVE]]:
            if int(jobs[job, at.NODE]) == node and int(jobs[job, at.SLOT]) == gpu:
                release(board, job)
        gpus.busy[index], gpus.jobs[index] = 0.0, 0.0


@kernel
def roomiest(board: Board, gpus: Gpus, config: int, closed: Mask) -> None:
    """Close the nodes to be kept for a configuration that does not fit: those with most GPUs free of hosts."""
    nodes, configs = board.nodes, board.facts.configs
    needed = configs[config, at.CONFIG_GPUS]
    for _ in range(configs[config, at.CONFIG_NODES]):
        best, most = -1, -1
        for n in range(nodes.shape[0]):
            if closed[n] == 0 and nodes[n, at.NODE_TYPE] == configs[config, at.CONFIG_TYPE]:
                free = free_of_hosts(board, gpus, n)
                if nodes[n, at.NODE_GPUS] >= needed and free > most:
                    best, most = n, free
        if best >= 0:
            closed[best] = 1
