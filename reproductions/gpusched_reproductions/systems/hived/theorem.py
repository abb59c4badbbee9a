"""The theorem: within a feasible assignment no request is refused, if cells are allocated as buddies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import cell_binding as blocks
from gpusched_env.simulator.cell_binding import choose_block, free_around, mask_of
from gpusched_reproductions.systems.validation import Check, Measured

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints

NODES, GPUS, TENANTS = 6, 8, 4
LEVELS = 4  # cells of 1, 2, 4 and 8 GPUs
STEPS = 150  # requests and releases in a trial
RELEASES = 0.4  # of them, while something is held and something is left to request
TRIALS, QUICK_TRIALS = 4000, 1500
MOST_CELLS = NODES * GPUS

# held: int64 (MOST_CELLS, 4). Cells that are allocated.
HOST, START, LEVEL, OWNER = range(4)


def run(quick: bool) -> Measured:
    """Make random legal requests to random clusters that are promised away completely; count those refused."""
    trials = QUICK_TRIALS if quick else TRIALS
    buddy = count(trials, np.random.default_rng(0), buddies=True)
    aligned = count(trials, np.random.default_rng(0), buddies=False)
    source = "Zhao et al., OSDI 2020, theorem on buddy cell allocation"
    return Measured(
        (
            Check("legal requests made", float(buddy[0]), low=1e5),
            Check("legal requests refused, buddies", float(buddy[1]), 0.0, 0.0, 0.0, source),
            Check("legal requests refused, random aligned blocks [%]", 100.0 * aligned[1] / aligned[0], low=1.0),
            Check("clusters in which one is refused, random aligned blocks [%]", 100.0 * aligned[2] / trials, low=50.0),
        )
    )


def count(trials: int, rng: Generator, *, buddies: bool) -> tuple[int, int, int]:
    """Count requests, those refused, and the trials with one.

    Args:
        trials: Random clusters.
        rng: Where chance comes from.
        buddies: Whether cells are allocated as buddies; else a request gets a free aligned block at random.
    """
    made = refused = struck = 0
    for _ in range(trials):
        one, two = trial(promise(rng), rng, buddies)
        made, refused, struck = made + one, refused + two, struck + (two > 0)
    return made, refused, struck


def promise(rng: Generator) -> Ints:
    """Cut all nodes up at random, and give each piece to a tenant: cells by tenant and level, (TENANTS, LEVELS)."""
    promised = np.zeros((TENANTS, LEVELS), dtype=np.int64)
    pieces = [LEVELS - 1] * NODES
    while pieces:
        level = pieces.pop()
        if level > 0 and rng.random() < 0.6:
            pieces += [level - 1, level - 1]
        else:
            promised[rng.integers(TENANTS), level] += 1
    return promised


@kernel
def trial(promised: Ints, rng: Generator, buddies: bool) -> tuple[int, int]:
    """Make random requests within what is promised, and release cells at random; count requests and those refused."""
    hosts = np.zeros((NODES, blocks.HOST_COLUMNS), dtype=np.int64)
    hosts[:, blocks.GPUS] = GPUS
    held, left, number = np.zeros((MOST_CELLS, 4), dtype=np.int64), promised.copy(), 0
    made = refused = 0
    for _ in range(STEPS):
        tenant, level = any_left(left, rng)
        if number > 0 and (tenant < 0 or rng.random() < RELEASES):
            one = int(rng.random() * number)
            hosts[held[one, HOST], blocks.TAKEN] &= ~mask_of(held[one, START], 1 << held[one, LEVEL])
            left[held[one, OWNER], held[one, LEVEL]] += 1
            number -= 1
            held[one] = held[number]
        elif tenant >= 0:
            made += 1
            size = 1 << level
            host, start = choose_block(hosts, 0, size) if buddies else any_block(hosts, size, rng)
            if host < 0:
                refused += 1
                continue
            hosts[host, blocks.TAKEN] |= mask_of(start, size)
            left[tenant, level] -= 1
            held[number, HOST], held[number, START] = host, start
            held[number, LEVEL], held[number, OWNER] = level, tenant
            number += 1
    return made, refused


@kernel
def any_left(left: Ints, rng: Generator) -> tuple[int, int]:
    """Choose one of the cells that are promised and not held at random; give its tenant and level, -1, -1 if none."""
    of_all = left.sum()
    place = int(rng.random() * of_all)
    for tenant in range(left.shape[0]):
        for level in range(left.shape[1]):
            place -= left[tenant, level]
            if place < 0 and of_all > 0:
                return tenant, level
    return -1, -1


@kernel
def any_block(hosts: Ints, size: int, rng: Generator) -> tuple[int, int]:
    """Choose a free aligned block at random, all with one probability; -1, -1 if there is none."""
    best, first, found = -1, -1, 0
    for h in range(hosts.shape[0]):
        for start in range(0, hosts[h, blocks.GPUS], size):
            if free_around(hosts[h, blocks.TAKEN], hosts[h, blocks.GPUS], start, size) > 0:
                found += 1
                if rng.random() * found < 1.0:
                    best, first = h, start
    return best, first
