"""Nodes for whole GPUs: best fit without needless migration, and the index that finds the same."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import board_of
from gpusched_env.simulator import Board
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.placement.node_index import (
    LEAST_NODES,
    MOST_GPUS,
    best_fit,
    count_fitting,
    find_node,
    find_ranked,
    fit_key,
    most_free,
    new_capacity,
)
from gpusched_env.simulator.placement.whole_gpus import hold, let_go

node = st.tuples(st.integers(0, 1), st.integers(1, 8), st.integers(0, 8), st.integers(0, 8))


def make_nodes(facts: list[tuple[int, int, int, int]]) -> np.ndarray:
    nodes = np.full((len(facts), at.NODE_COLUMNS), -1, dtype=np.int64)
    for row, (gpu_type, gpus, free, before) in zip(nodes, facts, strict=True):
        row[: at.OLD_FREE + 1] = [gpu_type, gpus, min(free, gpus), min(before, gpus)]
        row[at.USABLE] = gpus
    return nodes


def measured(nodes: np.ndarray) -> Board:
    board = board_of(nodes=nodes, capacity=new_capacity(2, len(nodes), 8))
    measure(board)
    return board


@settings(max_examples=60, deadline=None)
@given(facts=st.lists(node, min_size=LEAST_NODES, max_size=LEAST_NODES + 80), data=st.data())
def test_it_finds_what_best_fit_finds_whatever_is_held_and_let_go(facts, data):
    board = measured(make_nodes(facts))
    nodes = board.nodes
    for _ in range(10):
        n = data.draw(st.integers(0, len(nodes) - 1))
        if nodes[n, at.FREE] > 0 and data.draw(st.booleans()):
            hold(board, n, data.draw(st.integers(1, int(nodes[n, at.FREE]))))
        elif nodes[n, at.FREE] < nodes[n, at.NODE_GPUS]:
            let_go(board, n, data.draw(st.integers(1, int(nodes[n, at.NODE_GPUS] - nodes[n, at.FREE]))))
        np.testing.assert_array_equal(board.capacity, measured(nodes).capacity)
        for v in (0, 1):
            of_type = nodes[nodes[:, at.NODE_TYPE] == v, at.FREE]
            assert most_free(board, v, 8) == max(of_type, default=0)
            for gpus in (1, 2, 5, 8):
                preferred = data.draw(st.integers(-1, len(nodes) - 1))
                assert find_node(board, v, gpus, preferred) == best_fit(board, v, gpus, preferred, -1)


@settings(max_examples=40, deadline=None)
@given(
    facts=st.lists(node, min_size=LEAST_NODES, max_size=LEAST_NODES + 80),
    gpus=st.integers(1, 8),
    gpu_type=st.integers(0, 1),
    data=st.data(),
)
def test_nodes_rank_as_best_fit_ranks_them(facts, gpus, gpu_type, data):
    board = measured(make_nodes(facts))
    preferred = data.draw(st.integers(-1, len(facts) - 1))
    keys = {n: fit_key(board, n, gpu_type, gpus, preferred) for n in range(len(facts))}
    fitting = sorted((n for n, key in keys.items() if key >= 0), key=keys.__getitem__)
    assert count_fitting(board, gpu_type, gpus) == len(fitting)
    assert [find_ranked(board, gpu_type, gpus, preferred, rank) for rank in range(len(fitting))] == fitting


def test_small_clusters_and_nodes_of_very_many_gpus_have_no_index():
    assert new_capacity(2, LEAST_NODES, MOST_GPUS).shape[1] > at.CAPACITY_COLUMNS
    assert new_capacity(2, LEAST_NODES, MOST_GPUS + 1).shape == (2, at.CAPACITY_COLUMNS)
    board = measured(make_nodes([(0, 8, 3, 3), (0, 8, 2, 2), (1, 8, 8, 8)]))
    assert board.capacity.shape == (2, at.CAPACITY_COLUMNS)
    assert [find_node(board, 0, g, -1) for g in (1, 2, 3, 4)] == [1, 1, 0, -1]
    assert most_free(board, 0, 8) == 3
    assert [find_ranked(board, 0, 1, -1, rank) for rank in (0, 1)] == [1, 0]
    assert [count_fitting(board, 0, g) for g in (1, 2, 3, 4)] == [2, 2, 1, 0]


# type, GPUs, free now, free before the round
NODES = np.array([[0, 8, 8, 8], [0, 8, 3, 3], [1, 4, 4, 4], [0, 8, 5, 2]], dtype=np.int64)


def fit(gpu_type: int, gpus: int, preferred: int = -1, after: int = -1, nodes: np.ndarray = NODES) -> int:
    return best_fit(board_of(nodes=nodes), gpu_type, gpus, preferred, after)


def test_the_previous_node_of_the_type_comes_first_and_then_the_fullest_that_fits():
    assert [fit(0, g) for g in (1, 3, 4, 5, 6, 8)] == [1, 1, 3, 3, 0, 0]
    assert fit(1, 4) == 2
    assert fit(1, 5) == -1
    assert fit(2, 1) == -1
    assert fit(0, 2, preferred=0) == 0
    assert fit(0, 6, preferred=1) == 0
    assert fit(1, 1, preferred=0) == 2


def test_among_equals_the_one_that_had_room_before_the_round_and_was_fullest():
    """From an empty cluster all are equal; node 1 had 2 GPUs free before, node 2 had 6, node 0 had none."""
    nodes = np.array([[0, 8, 8, 0], [0, 8, 8, 2], [0, 8, 8, 6], [0, 8, 8, 1]], dtype=np.int64)
    assert [fit(0, g, nodes=nodes) for g in (1, 2, 3, 6)] == [3, 1, 2, 2]
    assert fit(0, 7, nodes=nodes) == 0  # it fitted on none: the first


def test_the_nodes_can_be_walked_from_best_to_worst():
    walked, after = [], -1
    while (node := fit(0, 2, preferred=3, after=after)) >= 0:
        walked.append(node)
        after = fit_key(board_of(nodes=NODES), node, 0, 2, 3)
    assert walked == [3, 1, 0]
