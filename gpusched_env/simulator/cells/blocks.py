"""Buddy allocation within nodes, on masks: bit g of a node's mask says that its GPU g lies in a cell that is bound.

What is free of a node follows from its mask alone: a block is an aligned power of two of GPUs, and the free cell in
which it lies is the largest free block around it. So binding and letting go are two operations on bits, and cells merge
by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints

MOST_GPUS = 32  # on a node with cells: bits of a mask, with room for sums of them

# hosts: int64 (H, HOST_COLUMNS). The physical nodes on which the cells of tenants lie.
KIND = 0  # index of the kind of hardware, the same for hosts and cells that fit
GPUS = 1  # number of GPUs, a power of two
TAKEN = 2  # mask of the GPUs in cells that are bound
LENT = 3  # GPUs held by opportunistic jobs
BUSY = 4  # GPUs held by any job
HOST_COLUMNS = 5


@lean_kernel
def mask_of(start: int, size: int) -> int:
    """Give the mask of a block."""
    return ((1 << size) - 1) << start


@lean_kernel
def free_around(taken: int, gpus: int, start: int, size: int) -> int:
    """Give the size of the free cell in which a block lies, on a node of `gpus` GPUs; 0 if it is not free itself."""
    if taken & mask_of(start, size) != 0:
        return 0
    while size < gpus:
        above = start // (2 * size) * (2 * size)
        if taken & mask_of(above, 2 * size) != 0:
            break
        start, size = above, 2 * size
    return size


@lean_kernel
def choose_block(hosts: Ints, kind: int, size: int) -> tuple[int, int]:
    """Choose the block for a cell: from the smallest free cell that holds it, so that none is split without need.

    Among those the one on the host with fewest GPUs lent, then on one that is in use, then by index: cells of two
    tenants on one host share the power that it draws anyway.

    Args:
        hosts: The hosts, (H, HOST_COLUMNS).
        kind: The kind of hardware.
        size: GPUs of the cell, a power of two.

    Returns:
        The host and the first GPU of the block; -1, -1 if there is none.
    """
    best, first = -1, -1
    best_key = (0, 0, 0)
    for h in range(hosts.shape[0]):
        if hosts[h, KIND] != kind or hosts[h, GPUS] < size:
            continue
        for start in range(0, hosts[h, GPUS], size):
            around = free_around(hosts[h, TAKEN], hosts[h, GPUS], start, size)
            key = (around, hosts[h, LENT], 1 if hosts[h, BUSY] == 0 else 0)
            if around > 0 and (best < 0 or key < best_key):
                best, first, best_key = h, start, key
    return best, first
