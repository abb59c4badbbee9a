"""Best fit: how nodes rank for whole GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board

WIDE = 65536  # more GPUs than a node can have


@kernel
def fit_key(board: Board, n: int, gpu_type: int, gpus: int, home: int) -> int:
    """Rank node `n` for `gpus` GPUs of type `gpu_type`: the smaller the better, unique, -1 if they do not fit.

    First the job's previous node `home`, if they still fit there: no needless migration. Then by fewest free GPUs.
    Among equals, nodes on which they fitted before the round began, again the fullest first, so that a job that came
    later does not drive out one that will want its node back. Then by index.
    """
    nodes = board.nodes
    free = nodes[n, at.FREE]
    if nodes[n, at.NODE_TYPE] != gpu_type or free < gpus:
        return -1
    if n == home:
        return 0
    before = nodes[n, at.OLD_FREE]
    return (free * WIDE + (before if before >= gpus else WIDE - 1)) * nodes.shape[0] + n


@kernel
def best_fit(board: Board, gpu_type: int, gpus: int, home: int, after: int) -> int:
    """Find the best node by `fit_key` among those whose key is above `after` (-1: all).

    Returns:
        The node's index, or -1 if the GPUs fit nowhere.
    """
    nodes = board.nodes
    if home >= 0 and after < 0 and fit_key(board, home, gpu_type, gpus, home) == 0:
        return home
    best, best_key = -1, 0
    for n in range(nodes.shape[0]):
        key = fit_key(board, n, gpu_type, gpus, home)
        if key > after and (best < 0 or key < best_key):
            best, best_key = n, key
    return best
