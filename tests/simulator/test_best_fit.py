"""Whole GPUs of one node: best fit without needless migration."""

import numpy as np

from boards import board_of
from gpusched_env.simulator.placement.node_index import best_fit, fit_key

# type, GPUs, free now, free before the round
NODES = np.array([[0, 8, 8, 8], [0, 8, 3, 3], [1, 4, 4, 4], [0, 8, 5, 2]], dtype=np.int64)


def fit(gpu_type: int, gpus: int, preferred: int = -1, after: int = -1, nodes: np.ndarray = NODES) -> int:
    return best_fit(board_of(nodes=nodes), gpu_type, gpus, preferred, after)


def test_the_fullest_node_that_fits_is_taken():
    assert [fit(0, g) for g in (1, 3, 4, 5, 6, 8)] == [1, 1, 3, 3, 0, 0]


def test_only_nodes_of_the_type_are_taken():
    assert fit(1, 4) == 2
    assert fit(1, 5) == -1
    assert fit(2, 1) == -1


def test_the_previous_node_comes_first_if_it_still_fits():
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
