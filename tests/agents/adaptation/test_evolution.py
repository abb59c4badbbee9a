"""Evolution strategies: they reduce costs, by pairs of changes, and are reproducible."""

from dataclasses import replace

import numpy as np
import pytest

from adapted import MET
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.evolution import Evolution
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_env import GpuType

CONFIG = EsConfig(pairs=8, sigma=0.1, learning_rate=0.1, final_learning_rate=0.01, averaging=0.9, clip=1.0)
GOAL, ALL = np.array([0.5, -0.25, 1.0]), np.ones(3)


def at(weights: np.ndarray) -> Evolution:
    return Evolution(weights.copy(), weights.copy(), np.zeros_like(weights), np.zeros_like(weights))


def descend(steps: int, seed: int = 3, workloads: int = 2) -> Evolution:
    """Follow the distance to `GOAL`, the same on every workload."""
    state = at(np.zeros(3))
    for step in range(steps):
        distance = ((state.candidates(CONFIG, seed, ALL) - GOAL) ** 2).sum(axis=1)
        state.update(CONFIG, seed, ALL, np.tile((distance[0::2] - distance[1::2])[:, None], workloads), step / steps)
    return state


def one_update(
    differences: np.ndarray, config: EsConfig = CONFIG, done: float = 0.0, free: np.ndarray = ALL
) -> Evolution:
    state = at(np.zeros(3))
    state.update(config, 3, free, differences, done)
    return state


def by_first_weight() -> np.ndarray:
    """Return the costs of changes where only the first weight counts, (8, 1)."""
    tried = at(np.zeros(3)).candidates(CONFIG, 3, ALL)[:, :1].astype(np.float64)
    return tried[0::2] - tried[1::2]


def test_it_finds_the_least_of_a_quadratic_the_same_way_with_the_same_seed():
    state = descend(120)
    np.testing.assert_allclose(state.average, GOAL, atol=0.05)
    assert state.updates == 120
    first, again, other = descend(5), descend(5), descend(5, seed=4)
    assert first.weights.tolist() == again.weights.tolist()
    assert first.weights.tolist() != other.weights.tolist()


def test_candidates_are_pairs_on_both_sides_of_the_weights():
    state = at(GOAL)
    tried = state.candidates(CONFIG, 3, ALL)
    assert (tried.shape, tried.dtype) == ((16, 3), np.float32)
    np.testing.assert_allclose((tried[0::2] + tried[1::2]) / 2.0, np.tile(GOAL, (8, 1)), atol=1e-6)
    assert 0.05 < (tried[0::2] - GOAL).std() < 0.2
    state.updates += 1
    assert not np.array_equal(state.candidates(CONFIG, 3, ALL), tried)


def test_it_goes_against_the_differences_of_costs():
    """Adam's first step is as long as the learning rate, in every direction in which there is a difference."""
    tried = at(np.zeros(3)).candidates(CONFIG, 3, ALL)
    state = one_update(0.01 * by_first_weight())
    assert state.weights[0] == pytest.approx(-CONFIG.learning_rate)
    gradient = (0.01 * tried[0::2, :1] * tried[0::2]).mean(axis=0) / CONFIG.sigma**2
    np.testing.assert_allclose(state.mean, 0.1 * gradient, rtol=1e-5)


def test_weights_that_are_not_free_stay():
    free = np.array([0.0, 1.0, 1.0])
    state = at(GOAL)
    tried = state.candidates(CONFIG, 3, free)
    assert set(tried[:, 0].tolist()) == {GOAL[0]}
    np.testing.assert_array_equal(tried[:, 1:], state.candidates(CONFIG, 3, ALL)[:, 1:])
    moved = one_update(by_first_weight(), free=free).weights
    assert moved[0] == 0.0
    np.testing.assert_array_equal(moved[1:], one_update(by_first_weight()).weights[1:])


def test_a_pair_counts_by_the_mean_of_its_workloads_and_what_costs_the_same_both_ways_changes_nothing():
    assert not one_update(np.zeros((8, 2))).weights.any()
    one = 0.1 * np.random.default_rng(0).normal(size=(8, 3))
    means = np.repeat(one.mean(axis=1, keepdims=True), 2, axis=1)
    np.testing.assert_allclose(one_update(one).mean, one_update(means).mean)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_very_costly_run_counts_only_with_its_sign(sign):
    differences = np.zeros((8, 2))
    differences[4, 1] = sign * CONFIG.clip
    moment = one_update(differences).mean.tolist()
    assert one_update(1e6 * differences).mean.tolist() == moment
    assert one_update(0.5 * differences).mean.tolist() != moment
    assert one_update(differences, replace(CONFIG, clip=0.1)).mean.tolist() != moment


@pytest.mark.parametrize(("done", "rate"), [(0.0, 0.1), (0.5, 0.055), (1.0, 0.01), (1.5, 0.01)])
def test_the_learning_rate_falls_in_line_with_what_is_done(done, rate):
    costs = by_first_weight()
    assert one_update(costs, done=done).weights[0] == pytest.approx(-rate)


def test_the_average_follows_the_weights_more_and_more_slowly():
    costs = by_first_weight()
    state = one_update(costs)
    np.testing.assert_allclose(state.average, 0.5 * state.weights)
    alone = one_update(costs, replace(CONFIG, averaging=0.0))
    assert alone.average.tolist() == alone.weights.tolist()
    state.updates = 99
    before = state.average
    state.update(CONFIG, 3, ALL, np.zeros((8, 1)), 0.0)
    np.testing.assert_allclose(state.average, 0.9 * before + 0.1 * state.weights)


def test_a_run_begins_with_no_change_and_a_hidden_layer_of_its_seed():
    asked = {"configurations": MET, "gpu_types": [GpuType("V", 1000.0, 0.0, 16.0, 8)]}
    for kind, random in (("control-set", {"price.0.weight", "common.0.weight"}), ("controls", {"0.weight"})):
        network = EvolvedNetwork(AgentSpec.of(kind, **asked), NetworkConfig(kind, hidden=4))
        first, again, other = (network.first(seed) for seed in (0, 0, 1))
        assert {name for name, array in network.arrays(first).items() if array.any()} == random
        assert first.tolist() == again.tolist() != other.tolist()
    state = Evolution.go_on(first)
    assert first.tolist() == state.weights.tolist() == state.average.tolist()
    assert state.updates == 0
    assert not np.concatenate([state.mean, state.square]).any()
