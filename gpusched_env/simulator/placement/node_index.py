"""An index of nodes by their free GPUs, so that the search of the best fit does not read every node.

It is in `capacity` behind the columns of `layout`: for every GPU type, a bucket for each pair (free GPUs now, free
GPUs before the round). A bucket has a count and a set of bits, one for every node. Small clusters, and those with nodes
of very many GPUs, have no index, and `best_fit` is used: both return the same nodes.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

WIDE = 65536  # more GPUs than a node can have


@kernel
def fit_key(board: Board, n: int, gpu_type: int, gpus: int, preferred: int) -> int:
    """Rank node `n` for `gpus` GPUs of type `gpu_type`: the smaller the better, unique, -1 if they do not fit.

    First the job's previous node `preferred`, if they still fit there: no needless migration. Then by fewest free GPUs.
    Among equals, nodes on which they fitted before the round began, again the fullest first, so that a later job
    does not take the node of one that returns to it. Then by index.
    """
    nodes = board.nodes
    free = nodes[n, at.FREE]
    if nodes[n, at.NODE_TYPE] != gpu_type or free < gpus:
        return -1
    if n == preferred:
        return 0
    before = nodes[n, at.OLD_FREE]
    return (free * WIDE + (before if before >= gpus else WIDE - 1)) * nodes.shape[0] + n


@kernel
def best_fit(board: Board, gpu_type: int, gpus: int, preferred: int, after: int) -> int:
    """Find the best node by `fit_key` among those whose key is above `after` (-1: all).

    Returns:
        The node's index, or -1 if the GPUs fit nowhere.
    """
    nodes = board.nodes
    if preferred >= 0 and after < 0 and fit_key(board, preferred, gpu_type, gpus, preferred) == 0:
        return preferred
    best, best_key = -1, 0
    for n in range(nodes.shape[0]):
        key = fit_key(board, n, gpu_type, gpus, preferred)
        if key > after and (best < 0 or key < best_key):
            best, best_key = n, key
    return best


MOST_GPUS = 16  # on a node; the buckets grow with the square
LEAST_NODES = 100  # of the cluster; a search of fewer takes no longer than the index
WORD = 32  # nodes in a word of bits


def new_capacity(gpu_types: int, nodes: int, most_gpus: int) -> Ints:
    """Make the array `capacity`, (V, CAPACITY_COLUMNS + index), not filled yet."""
    sizes = most_gpus + 1 if most_gpus <= MOST_GPUS and nodes >= LEAST_NODES else 0
    words = (nodes + WORD - 1) // WORD
    capacity = np.zeros((gpu_types, at.CAPACITY_COLUMNS + sizes * sizes * (1 + words)), dtype=np.int64)
    capacity[:, at.SIZES] = sizes
    return capacity


@kernel
def clear_index(board: Board) -> None:
    capacity = board.capacity
    capacity[:, at.CAPACITY_COLUMNS :] = 0


@kernel
def enter(board: Board, n: int) -> None:
    nodes, capacity = board.nodes, board.capacity
    here = capacity[nodes[n, at.NODE_TYPE]]
    sizes = here[at.SIZES]
    bucket = nodes[n, at.FREE] * sizes + nodes[n, at.OLD_FREE]
    words = (nodes.shape[0] + WORD - 1) // WORD
    here[at.CAPACITY_COLUMNS + bucket] += 1
    here[at.CAPACITY_COLUMNS + sizes * sizes + bucket * words + n // WORD] |= 1 << (n % WORD)


@kernel
def take_out(board: Board, n: int) -> None:
    nodes, capacity = board.nodes, board.capacity
    here = capacity[nodes[n, at.NODE_TYPE]]
    sizes = here[at.SIZES]
    bucket = nodes[n, at.FREE] * sizes + nodes[n, at.OLD_FREE]
    words = (nodes.shape[0] + WORD - 1) // WORD
    here[at.CAPACITY_COLUMNS + bucket] -= 1
    here[at.CAPACITY_COLUMNS + sizes * sizes + bucket * words + n // WORD] &= ~(1 << (n % WORD))


@kernel
def find_node(board: Board, gpu_type: int, gpus: int, preferred: int) -> int:
    """Find the node that `best_fit` finds; -1 if the GPUs fit nowhere."""
    nodes, capacity = board.nodes, board.capacity
    sizes = capacity[gpu_type, at.SIZES]
    if sizes == 0:
        return best_fit(board, gpu_type, gpus, preferred, -1)
    if preferred >= 0 and nodes[preferred, at.NODE_TYPE] == gpu_type and nodes[preferred, at.FREE] >= gpus:
        return preferred
    counts = capacity[gpu_type, at.CAPACITY_COLUMNS : at.CAPACITY_COLUMNS + sizes * sizes]
    for free in range(gpus, sizes):
        for before in range(gpus, sizes):
            if counts[free * sizes + before] > 0:
                return _first(board, gpu_type, free * sizes + before)
        best = -1
        for before in range(gpus):
            if counts[free * sizes + before] > 0:
                n = _first(board, gpu_type, free * sizes + before)
                best = n if best < 0 or n < best else best
        if best >= 0:
            return best
    return -1


@kernel
def count_fitting(board: Board, gpu_type: int, gpus: int) -> int:
    """Count the nodes of a type that have `gpus` free GPUs."""
    nodes, capacity = board.nodes, board.capacity
    sizes = capacity[gpu_type, at.SIZES]
    fitting = 0
    if sizes == 0:
        for n in range(nodes.shape[0]):
            fitting += 1 if nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] >= gpus else 0
        return fitting
    for bucket in range(gpus * sizes, sizes * sizes):
        fitting += capacity[gpu_type, at.CAPACITY_COLUMNS + bucket]
    return fitting


@kernel
def find_ranked(board: Board, gpu_type: int, gpus: int, preferred: int, rank: int) -> int:
    """Find the node that comes after `rank` others by `fit_key`, of which there must be that many; 0: the best."""
    nodes, capacity = board.nodes, board.capacity
    sizes = capacity[gpu_type, at.SIZES]
    if rank == 0:
        return find_node(board, gpu_type, gpus, preferred)
    if sizes == 0:
        node = best_fit(board, gpu_type, gpus, preferred, -1)
        for _ in range(rank):
            node = best_fit(board, gpu_type, gpus, preferred, fit_key(board, node, gpu_type, gpus, preferred))
        return node
    if preferred >= 0 and nodes[preferred, at.NODE_TYPE] == gpu_type and nodes[preferred, at.FREE] >= gpus:
        rank -= 1
    else:
        preferred = -1
    for free in range(gpus, sizes):
        for before in range(gpus, sizes + 1):  # the last stands for all below `gpus`
            first, last = (before, before + 1) if before < sizes else (0, gpus)
            node, passed = _in_buckets(board, gpu_type, free * sizes + first, free * sizes + last, preferred, rank)
            if node >= 0:
                return node
            rank -= passed
    return -1


@kernel
def _in_buckets(board: Board, gpu_type: int, first: int, last: int, preferred: int, rank: int) -> tuple[int, int]:
    """Find the node after `rank` others in the buckets `first` to `last` - 1, by index, `preferred` left out.

    Returns:
        The node, -1 if there are no more than `rank`; and how many there are, if so.
    """
    capacity = board.capacity
    sizes, words = capacity[gpu_type, at.SIZES], (board.nodes.shape[0] + WORD - 1) // WORD
    held = 0
    for bucket in range(first, last):
        held += capacity[gpu_type, at.CAPACITY_COLUMNS + bucket]
    if held == 0:
        return -1, 0
    found = 0
    for word in range(words):
        bits = 0
        for bucket in range(first, last):
            bits |= capacity[gpu_type, at.CAPACITY_COLUMNS + sizes * sizes + bucket * words + word]
        if preferred >= 0 and preferred // WORD == word:
            bits &= ~(1 << (preferred % WORD))
        n = word * WORD
        while bits > 0:
            if bits & 1 == 1:
                if found == rank:
                    return n, 0
                found += 1
            bits >>= 1
            n += 1
    return -1, found


@kernel
def most_free(board: Board, gpu_type: int, at_most: int) -> int:
    """Count the most free GPUs on one node of a type, which are known to be at most `at_most`."""
    nodes, capacity = board.nodes, board.capacity
    sizes = capacity[gpu_type, at.SIZES]
    if sizes == 0:
        most = 0
        for n in range(nodes.shape[0]):
            if nodes[n, at.NODE_TYPE] == gpu_type:
                most = max(most, nodes[n, at.FREE])
        return most
    for free in range(min(at_most, sizes - 1), 0, -1):
        for before in range(sizes):
            if capacity[gpu_type, at.CAPACITY_COLUMNS + free * sizes + before] > 0:
                return free
    return 0


@kernel
def _first(board: Board, gpu_type: int, bucket: int) -> int:
    """Return the node with the least index in a bucket, which must not be empty."""
    nodes, capacity = board.nodes, board.capacity
    sizes = capacity[gpu_type, at.SIZES]
    words = (nodes.shape[0] + WORD - 1) // WORD
    start = at.CAPACITY_COLUMNS + sizes * sizes + bucket * words
    word = 0
    while capacity[gpu_type, start + word] == 0:
        word += 1
    bits = capacity[gpu_type, start + word]
    n = word * WORD
    while bits & 255 == 0:
        bits >>= 8
        n += 8
    while bits & 1 == 0:
        bits >>= 1
        n += 1
    return n
