"""What jobs hold against what nodes say is free: in a state from outside, one must follow from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.simulator.run import Board


def nodes_as_held(board: Board, *, old: bool) -> bool:
    """Say whether free GPUs, shared GPUs and chains of nodes are those that the jobs' holdings leave.

    Args:
        board: The state; its constant columns must be right.
        old: Whether to look at what was held when the round began, or at what is held now.
    """
    columns = (at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT) if old else (at.CONFIG, at.NODE, at.SLOT)
    nodes, rows = board.nodes, board.jobs[board.active[: board.count[at.ACTIVE]]]
    shared = (nodes.shape[1] - at.NODE_COLUMNS) // 2
    used = nodes[:, at.NODE_COLUMNS + shared :] if old else nodes[:, at.NODE_COLUMNS : at.NODE_COLUMNS + shared]
    following = nodes[:, at.OLD_NEXT if old else at.NEXT]
    whole, units, chained = np.zeros(len(nodes), np.int64), np.zeros_like(used), np.full(len(nodes), -1)
    for config, node, slot in rows[:, columns]:
        if not (-1 <= config < len(board.facts.configs) and config == int(config)):
            return False
        if config < 0:
            if node != -1 or slot != -1:
                return False
        elif not _hold(board, (int(config), node, slot), following, whole, units, chained):
            return False
    free = nodes[:, at.NODE_GPUS] - whole - (units > 0).sum(axis=1)
    return (
        bool(np.all(free >= 0) and np.all(units <= at.UNITS))
        and np.array_equal(nodes[:, at.OLD_FREE if old else at.FREE], free)
        and np.array_equal(used, units)
        and np.array_equal(following, chained)
    )


def _hold(
    board: Board,
    held: tuple[int, float, float],
    following: NDArray[np.int64],
    whole: NDArray[np.int64],
    units: NDArray[np.int64],
    chained: NDArray[np.int64],
) -> bool:
    """Count what one job holds; False if it cannot hold that there."""
    config, place, slot = board.facts.configs[held[0]], held[1], held[2]
    last = len(board.nodes) - 1
    if not 0 <= place <= last or place != int(place):
        return False
    node = int(place)
    gpus = board.nodes[node, at.NODE_GPUS]
    shares = config[at.CONFIG_UNITS] > 0
    if shares != (slot != -1) or (shares and not (0 <= slot < gpus and slot == int(slot))):
        return False
    for k in range(config[at.CONFIG_NODES]):
        if not 0 <= node <= last or board.nodes[node, at.NODE_TYPE] != config[at.CONFIG_TYPE]:
            return False
        if shares:
            units[node, int(slot)] += config[at.CONFIG_UNITS]
        else:
            whole[node] += config[at.CONFIG_GPUS]
        if k + 1 < config[at.CONFIG_NODES]:
            chained[node] = following[node]
            node = int(following[node])
    return True
