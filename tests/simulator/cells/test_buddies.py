"""Buddy allocation: splitting, merging, and that no request within what was promised is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddies import Buddies, Cell
from gpusched_env.model.tenant import feasible
from refusals import refused

IN_NODE = (1, 2, 4, 8)
WITH_RACKS = (1, 2, 4, 8, 24)


def test_a_request_splits_the_lowest_free_cell_that_holds_it() -> None:
    cells = Buddies([8], IN_NODE)
    assert cells.allocate(2) == Cell(0, 2)
    assert cells.free_cells() == [Cell(2, 2), Cell(4, 4)]
    assert cells.allocate(1) == Cell(2, 1)
    assert cells.allocate(4) == Cell(4, 4)
    assert cells.allocate(2) is None
    assert cells.allocate(1) == Cell(3, 1)


def test_buddies_merge_when_all_are_free_and_not_before() -> None:
    cells = Buddies([8], IN_NODE)
    first, second = cells.allocate(4), cells.allocate(4)
    assert first is not None
    assert second is not None
    cells.release(first)
    assert cells.free_cells() == [Cell(0, 4)]
    cells.release(second)
    assert cells.free_cells() == [Cell(0, 8)]


def test_a_rack_of_three_nodes_merges_from_its_nodes() -> None:
    cells = Buddies([24, 24], WITH_RACKS)
    nodes = [cells.allocate(8) for _ in range(4)]
    assert nodes == [Cell(0, 8), Cell(8, 8), Cell(16, 8), Cell(24, 8)]
    assert cells.allocate(24) is None
    for node in nodes[:3]:
        assert node is not None
        cells.release(node)
    assert cells.allocate(24) == Cell(0, 24)


def test_a_certain_cell_can_be_asked_for() -> None:
    cells = Buddies([8, 8], IN_NODE)
    assert cells.allocate_at(Cell(12, 2))
    assert not cells.allocate_at(Cell(8, 8))
    assert not cells.allocate_at(Cell(12, 1))
    assert cells.free_cells() == [Cell(0, 8), Cell(8, 4), Cell(14, 2)]
    cells.release(Cell(12, 2))
    assert cells.free_cells() == [Cell(0, 8), Cell(8, 8)]


@pytest.mark.parametrize("cell", [Cell(1, 2), Cell(6, 4), Cell(-8, 8), Cell(16, 8), Cell(0, 3)])
def test_what_is_no_cell_is_refused(cell: Cell) -> None:
    with refused("cell.size", 3) if cell.size == 3 else refused("cell", cell):
        Buddies([8, 8], IN_NODE).allocate_at(cell)


def test_a_cell_that_is_not_held_cannot_be_released() -> None:
    cells = Buddies([8], IN_NODE)
    cells.allocate(4)
    for cell in (Cell(4, 4), Cell(0, 2)):
        with refused("cell", cell):
            cells.release(cell)


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
    assert feasible(wanted, tops, IN_NODE) is fits


def test_racks_are_split_into_whole_nodes() -> None:
    assert feasible({24: 1, 8: 3}, {24: 2}, WITH_RACKS)
    assert not feasible({24: 2, 8: 1}, {24: 2}, WITH_RACKS)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_request_within_what_a_tenant_was_promised_is_ever_refused(data: st.DataObject) -> None:
    levels = data.draw(st.sampled_from([IN_NODE, WITH_RACKS, (1, 3, 6)]))
    tops = data.draw(st.lists(st.sampled_from(levels[1:]), min_size=1, max_size=5))
    promised = cut_up(data, Buddies(tops, levels))
    cells = Buddies(tops, levels)
    held: list[Cell] = []
    for _ in range(60):  # of every size, as many as all tenants were promised: whose they are does not matter
        idle = list(promised)
        for cell in held:
            idle.remove(cell.size)
        if held and (not idle or data.draw(st.booleans())):
            cells.release(held.pop(data.draw(st.integers(0, len(held) - 1))))
        elif idle:
            cell = cells.allocate(data.draw(st.sampled_from(idle)))
            assert cell is not None
            assert all(cell.start + cell.size <= c.start or c.start + c.size <= cell.start for c in held)
            held.append(cell)
    free = sum(cell.size for cell in cells.free_cells())
    assert free + sum(cell.size for cell in held) == cells.gpus


def cut_up(data: st.DataObject, cells: Buddies) -> list[int]:
    """Promise cells of drawn sizes until nothing is left, so that the assignment is feasible and as tight as can be."""
    sizes = data.draw(st.lists(st.sampled_from(cells.levels), max_size=12))
    promised = [size for size in sizes if cells.allocate(size) is not None]
    while (cell := cells.allocate(1)) is not None:
        promised.append(cell.size)
    return promised
