"""The published picks of random constructions: one of the best twentieth, at least the best."""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.search.constructions import pick_config, pick_node, shortlist
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator.placement.placement import take

CERTAIN = EpochDistribution.certain()


def opened(nodes: int, gpus: int = 2) -> State:
    configurations = [Configuration("V", g + 1) for g in range(gpus)]
    job = Job(0.0, 1e6, 0.01, 1.0, CERTAIN, 1.0, dict.fromkeys(configurations, 100.0))
    gpu = GpuType("V", 1000.0, 0.0, 16.0, gpus)
    return begin_run(Instance.from_jobs([gpu], [Node("V", gpus)] * nodes, [job], configurations))


@pytest.mark.parametrize(("choices", "short"), [(1, 1), (16, 1), (29, 1), (30, 2), (49, 2), (50, 3), (100, 5)])
def test_the_shortlist_is_a_twentieth_rounded_half_up(choices, short):
    assert shortlist(choices) == short


@pytest.mark.parametrize(("nodes", "expected"), [(29, {0}), (30, {0, 1}), (120, {0, 1, 2, 3, 4, 5})])
def test_nodes_are_picked_from_the_best_twentieth_of_those_that_fit(nodes, expected):
    board, rng = opened(nodes).board, np.random.default_rng(0)
    picked = [int(pick_node(board, 0, 1, -1, rng)) for _ in range(300)]
    assert set(picked) == expected
    assert min(picked.count(n) for n in expected) > 0.7 * 300 / len(expected)


def test_a_node_in_use_is_the_best_and_the_previous_one_better_still():
    state, rng = opened(40), np.random.default_rng(0)
    take(state.board, 0, 0, 17, -1)
    assert {int(pick_node(state.board, 0, 1, -1, rng)) for _ in range(100)} == {17, 0}
    assert {int(pick_node(state.board, 0, 1, 25, rng)) for _ in range(100)} == {25, 17}
    assert {int(pick_node(state.board, 0, 2, -1, rng)) for _ in range(100)} == {0, 1}


def test_configurations_are_picked_from_the_best_twentieth_of_those_that_fit():
    ranking, rng = np.arange(40)[::-1].copy(), np.random.default_rng(0)
    board = opened(1, gpus=40).board
    assert {int(pick_config(board, 0, ranking, 40, rng)) for _ in range(100)} == {39, 38}
    assert {int(pick_config(board, 0, ranking, 29, rng)) for _ in range(100)} == {39}
    take(board, 0, 9, 0, -1)  # 30 GPUs are left
    assert {int(pick_config(board, 0, ranking, 40, rng)) for _ in range(100)} == {29, 28}
    take(board, 0, 0, 0, -1)  # 29
    assert {int(pick_config(board, 0, ranking, 40, rng)) for _ in range(100)} == {28}
    take(board, 0, 28, 0, -1)
    assert pick_config(board, 0, ranking, 40, rng) == -1
