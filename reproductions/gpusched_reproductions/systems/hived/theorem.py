"""The theorem: within a feasible assignment no request is refused, if cells are allocated as buddies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.cells import tree as at
from gpusched_env.cells.tree import choose, clear, free_around, give_back, grow, take
from gpusched_env.kernel import kernel
from gpusched_reproductions.systems.validation import Check, Measured

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints

RACKS, TENANTS = 3, 4
SIZES = (1, 2, 4, 8, 16)  # GPUs of cells: parts of nodes, nodes, and racks of two nodes
STEPS = 150  # requests and releases in a trial
RELEASES = 0.4  # of them, while something is held and something is left to request
TRIALS, QUICK_TRIALS = 4000, 1500
MOST_CELLS = RACKS * SIZES[-1]

# held: int64 (MOST_CELLS, 3). Cells that are allocated.
CELL, LEVEL, OWNER = range(3)


def run(quick: bool) -> Measured:
    """Make random legal requests to random clusters that are promised away completely; count those refused."""
    trials = QUICK_TRIALS if quick else TRIALS
    buddy = count(trials, np.random.default_rng(0), buddies=True)
    aligned = count(trials, np.random.default_rng(0), buddies=False)
    source = "Zhao et al., OSDI 2020, theorem on buddy cell allocation"
    what = f"legal requests refused, of {buddy[0]:,}, buddies"
    return Measured(
        (
            Check(what, float(buddy[1]), 0.0, 0.0, 0.0, source, "input"),
            Check("legal requests refused, random aligned blocks [%]", 100.0 * aligned[1] / aligned[0], low=1.0),
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
    tree, _ = grow([(0, SIZES[-1])] * RACKS, {0: SIZES})
    for _ in range(trials):
        one, two = trial(tree, promise(rng), rng, buddies)
        made, refused, struck = made + one, refused + two, struck + (two > 0)
    return made, refused, struck


def promise(rng: Generator) -> Ints:
    """Cut all racks up at random, and give each piece to a tenant: cells by tenant and level, (TENANTS, levels)."""
    promised = np.zeros((TENANTS, len(SIZES)), dtype=np.int64)
    pieces = [len(SIZES) - 1] * RACKS
    while pieces:
        level = pieces.pop()
        if level > 0 and rng.random() < 0.6:
            pieces += [level - 1, level - 1]
        else:
            promised[rng.integers(TENANTS), level] += 1
    return promised


@kernel
def trial(tree: Ints, promised: Ints, rng: Generator, buddies: bool) -> tuple[int, int]:
    """Make random requests within what is promised, and release cells at random; count requests and those refused."""
    held, left, number = np.zeros((MOST_CELLS, 3), dtype=np.int64), promised.copy(), 0
    made = refused = 0
    clear(tree)
    for _ in range(STEPS):
        tenant, level = any_left(left, rng)
        if number > 0 and (tenant < 0 or rng.random() < RELEASES):
            one = int(rng.random() * number)
            give_back(tree, held[one, CELL])
            left[held[one, OWNER], held[one, LEVEL]] += 1
            number -= 1
            held[one] = held[number]
        elif tenant >= 0:
            made += 1
            row = 0
            while tree[row, at.SIZE] > 1 << level:
                row += 1
            cell = choose(tree, row, at.FIRST) if buddies else any_block(tree, row, rng)
            if cell < 0:
                refused += 1
                continue
            take(tree, cell)
            left[tenant, level] -= 1
            held[number, CELL], held[number, LEVEL], held[number, OWNER] = cell, level, tenant
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
def any_block(tree: Ints, level: int, rng: Generator) -> int:
    """Choose a free aligned block of a level at random, all with one probability; -1 if there is none."""
    best, found, cell = -1, 0, level
    while cell < tree.shape[0] and tree[cell, at.LIST] == level:
        if free_around(tree, cell) >= 0:
            found += 1
            if rng.random() * found < 1.0:
                best = cell
        cell += 1
    return best
