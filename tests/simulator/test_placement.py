"""Placement: best fit without needless migration."""

from __future__ import annotations

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement import best_fit, fit_key, largest_gap, place, release

# type, GPUs, free now, free before the round
NODES = np.array([[0, 8, 8, 8], [0, 8, 3, 3], [1, 4, 4, 4], [0, 8, 5, 2]], dtype=np.int64)


def fit(gpu_type: int, gpus: int, home: int = -1, after: int = -1, nodes: np.ndarray = NODES) -> int:
    return best_fit(nodes, gpu_type, gpus, home, after)


def test_the_fullest_node_that_fits_is_taken():
    assert [fit(0, g) for g in (1, 3, 4, 5, 6, 8)] == [1, 1, 3, 3, 0, 0]


def test_only_nodes_of_the_type_are_taken():
    assert fit(1, 4) == 2
    assert fit(1, 5) == -1
    assert fit(2, 1) == -1


def test_the_previous_node_comes_first_if_it_still_fits():
    assert fit(0, 2, home=0) == 0
    assert fit(0, 6, home=1) == 0
    assert fit(1, 1, home=0) == 2


def test_among_equals_the_one_that_had_room_before_the_round_and_was_fullest():
    """From an empty cluster all are equal; node 1 had 2 GPUs free before, node 2 had 6, node 0 had none."""
    nodes = np.array([[0, 8, 8, 0], [0, 8, 8, 2], [0, 8, 8, 6], [0, 8, 8, 1]], dtype=np.int64)
    assert [fit(0, g, nodes=nodes) for g in (1, 2, 3, 6)] == [3, 1, 2, 2]
    assert fit(0, 7, nodes=nodes) == 0  # none had room: the first


def test_the_nodes_can_be_walked_from_best_to_worst():
    walked, after = [], -1
    while (node := fit(0, 2, home=3, after=after)) >= 0:
        walked.append(node)
        after = fit_key(NODES, node, 0, 2, 3)
    assert walked == [3, 1, 0]


def test_the_largest_gap_is_the_most_free_gpus_on_one_node():
    assert [largest_gap(NODES, v) for v in range(3)] == [8, 4, 0]


def new_round() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make two jobs, two nodes of one type with 4 and 2 GPUs, and configurations of 1, 2 and 4 GPUs."""
    jobs = np.zeros((2, at.JOB_COLUMNS))
    jobs[:, [at.CONFIG, at.NODE, at.OLD_CONFIG, at.OLD_NODE]] = -1.0
    nodes = np.array([[0, 4, 4, 4], [0, 2, 2, 2]], dtype=np.int64)
    configs = np.array([[0, 1], [0, 2], [0, 4]], dtype=np.int64)
    return jobs, nodes, configs, np.array([4], dtype=np.int64)


def test_placing_and_releasing_keep_the_books():
    jobs, nodes, configs, gaps = new_round()
    assert place(jobs, nodes, configs, gaps, 0, 1)
    assert (jobs[0, at.NODE], nodes[1, at.FREE], gaps[0]) == (1, 0, 4)
    assert place(jobs, nodes, configs, gaps, 1, 2)
    assert (jobs[1, at.NODE], nodes[0, at.FREE], gaps[0]) == (0, 0, 0)
    release(jobs, nodes, configs, gaps, 0)
    assert (jobs[0, at.CONFIG], nodes[1, at.FREE], gaps[0]) == (-1, 2, 2)
    release(jobs, nodes, configs, gaps, 0)
    assert nodes[1, at.FREE] == 2


def test_placing_anew_replaces_what_the_job_holds():
    jobs, nodes, configs, gaps = new_round()
    assert place(jobs, nodes, configs, gaps, 0, 0)
    assert place(jobs, nodes, configs, gaps, 0, 2)
    assert (jobs[0, at.CONFIG], jobs[0, at.NODE]) == (2, 0)
    assert nodes[:, at.FREE].tolist() == [0, 2]


def test_a_configuration_that_does_not_fit_changes_nothing():
    jobs, nodes, configs, gaps = new_round()
    assert place(jobs, nodes, configs, gaps, 0, 2)
    assert place(jobs, nodes, configs, gaps, 1, 1)
    before = jobs.copy(), nodes.copy(), gaps.copy()
    assert not place(jobs, nodes, configs, gaps, 1, 2)
    for now, then in zip((jobs, nodes, gaps), before, strict=True):
        np.testing.assert_array_equal(now, then)
