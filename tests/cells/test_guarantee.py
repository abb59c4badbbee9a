"""The theorem of buddy allocation: within what fits at one time no request is refused; with aligned blocks some are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpusched_env.cells import tree as at
from gpusched_env.cells.tree import choose, clear, free_around, give_back, grow, take
from gpusched_env.model.tenant import feasible

RACKS = 3
SIZES = (1, 2, 4, 8, 16)  # GPUs of cells: parts of nodes, nodes, and racks of two nodes
STEPS = 150  # requests and releases in a trial
RELEASES = 0.4  # of them, while something is held and something is left to request


def promise(rng: np.random.Generator) -> list[int]:
    """Cut all racks up at random, and return the level of every piece: all of them are promised to somebody."""
    promised, pieces = [], [len(SIZES) - 1] * RACKS
    while pieces:
        level = pieces.pop()
        if level > 0 and rng.random() < 0.6:
            pieces += [level - 1, level - 1]
        else:
            promised.append(level)
    return promised


def trial(tree: np.ndarray, rng: np.random.Generator, block: Callable[[int], int]) -> tuple[int, int]:
    """Make random requests within what is promised, and release cells at random; count requests and those refused."""
    held, left, made, refused = list[tuple[int, int]](), promise(rng), 0, 0
    level_rows = [int(tree[np.flatnonzero(tree[:, at.SIZE] == size)[0], at.LIST]) for size in SIZES]
    clear(tree)
    for _ in range(STEPS):
        if held and (not left or rng.random() < RELEASES):
            cell, level = held.pop(int(rng.integers(len(held))))
            give_back(tree, cell)
            left.append(level)
        else:
            level = left.pop(int(rng.integers(len(left))))
            made, cell = made + 1, block(level_rows[level])
            if cell < 0:
                refused += 1
                left.append(level)
            else:
                take(tree, cell)
                held.append((cell, level))
    return made, refused


def test_buddies_refuse_nothing_and_blocks_at_random_something() -> None:
    tree, _ = grow([(0, SIZES[-1])] * RACKS, {0: SIZES})
    rng = np.random.default_rng(1)

    def any_block(level: int) -> int:
        cells = [c for c in range(len(tree)) if tree[c, at.LIST] == level and free_around(tree, c) >= 0]
        return int(rng.choice(cells)) if cells else -1

    buddies = np.sum([trial(tree, rng, lambda level: choose(tree, level, at.FIRST)) for _ in range(30)], axis=0)
    aligned = np.sum([trial(tree, rng, any_block) for _ in range(10)], axis=0)
    assert buddies[0] > 2000
    assert buddies[1] == 0
    assert aligned[1] > 50


@pytest.mark.parametrize(
    ("wanted", "tops", "fits"),
    [
        ({8: 2}, {8: 2}, True),
        ({8: 2, 1: 1}, {8: 2}, False),
        ({4: 3, 2: 1, 1: 2}, {8: 2}, True),
        ({4: 3, 2: 1, 1: 3}, {8: 2}, False),
        ({8: 1}, {4: 2}, False),
    ],
)
def test_what_is_promised_must_fit_at_one_time(wanted: dict[int, int], tops: dict[int, int], *, fits: bool) -> None:
    assert feasible(wanted, tops, (1, 2, 4, 8)) is fits


def test_racks_are_split_into_whole_nodes() -> None:
    assert feasible({24: 1, 8: 3}, {24: 2}, (1, 2, 4, 8, 24))
    assert not feasible({24: 2, 8: 1}, {24: 2}, (1, 2, 4, 8, 24))
