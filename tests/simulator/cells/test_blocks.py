"""Blocks on masks: the same allocator as `buddies`, within nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddies import Buddies, Cell
from gpusched_env.simulator import cell_binding as blocks
from gpusched_env.simulator.cell_binding import choose_block, free_around, mask_of


def hosts_of(*gpus: int) -> np.ndarray:
    """Make empty hosts of one kind."""
    hosts = np.zeros((len(gpus), blocks.HOST_COLUMNS), dtype=np.int64)
    hosts[:, blocks.GPUS] = gpus
    return hosts


def test_the_free_cell_around_a_block_ends_at_the_first_buddy_that_is_taken() -> None:
    taken = mask_of(6, 1)
    assert [free_around(taken, 8, start, 2) for start in (0, 2, 4, 6)] == [4, 4, 2, 0]
    assert free_around(taken, 8, 7, 1) == 1
    assert free_around(0, 8, 3, 1) == 8


def test_a_cell_is_cut_from_the_smallest_free_one_that_holds_it() -> None:
    hosts = hosts_of(8, 8)
    hosts[1, blocks.TAKEN] = mask_of(0, 4) | mask_of(4, 2)
    assert choose_block(hosts, 0, 2) == (1, 6)
    assert choose_block(hosts, 0, 4) == (0, 0)
    assert choose_block(hosts, 1, 1) == (-1, -1)


def test_hosts_without_lent_gpus_come_first_and_then_those_in_use() -> None:
    hosts = hosts_of(4, 4, 4)
    hosts[0, blocks.OPPORTUNISTIC_GPUS], hosts[0, blocks.BUSY] = 1, 1
    assert choose_block(hosts, 0, 4) == (1, 0)
    hosts[2, blocks.BUSY] = 2
    assert choose_block(hosts, 0, 4) == (2, 0)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_free_cells_are_those_of_the_buddies_in_python(data: st.DataObject) -> None:
    gpus = data.draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4))
    starts = np.concatenate([[0], np.cumsum(gpus)[:-1]])
    cells, hosts, held = Buddies(gpus, (1, 2, 4, 8)), hosts_of(*gpus), list[Cell]()
    for _ in range(40):
        if held and data.draw(st.booleans()):
            cell = held.pop(data.draw(st.integers(0, len(held) - 1)))
            cells.release(cell)
            h = int(np.searchsorted(starts, cell.start, side="right")) - 1
            hosts[h, blocks.TAKEN] &= ~mask_of(cell.start - int(starts[h]), cell.size)
        else:
            size = data.draw(st.sampled_from([1, 2, 4, 8]))
            h, first = choose_block(hosts, 0, size)
            if h < 0:
                assert all(cell.size < size for cell in cells.free_cells())
                continue
            hosts[h, blocks.TAKEN] |= mask_of(first, size)
            cell = Cell(int(starts[h]) + first, size)
            assert cells.allocate_at(cell)
            held.append(cell)
        found = {
            Cell(int(starts[h]) + g // size * size, size)
            for h in range(len(gpus))
            for g in range(gpus[h])
            if (size := free_around(int(hosts[h, blocks.TAKEN]), gpus[h], g, 1)) > 0
        }
        assert sorted(found) == cells.free_cells()
