"""Evolution strategies: they go down, in pairs, and the same way every time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_agents.steering.evolution import MOST_DIFFERENCE, Evolution
from gpusched_agents.steering.network import arrays_of
from gpusched_agents.training.config import EsConfig

CONFIG = EsConfig(pairs=8, sigma=0.1, learning_rate=0.1, final_learning_rate=0.01, averaging=0.9, standardise=False)
GOAL = np.array([0.5, -0.25, 1.0])


def at(weights: np.ndarray) -> Evolution:
    """Begin anywhere."""
    return Evolution(weights.copy(), weights.copy(), np.zeros_like(weights), np.zeros_like(weights))


def descend(steps: int, seed: int = 3, workloads: int = 2) -> Evolution:
    """Follow the distance to `GOAL`; on the other workloads everything costs more."""
    state = at(np.zeros(3))
    for step in range(steps):
        distance = ((state.candidates(CONFIG, seed) - GOAL) ** 2).sum(axis=1)
        state.update(CONFIG, seed, distance[:, None] + np.arange(workloads), step / steps)
    return state


def one_update(log_costs: np.ndarray, config: EsConfig = CONFIG, done: float = 0.0) -> Evolution:
    state = at(np.zeros(3))
    state.update(config, 3, log_costs, done)
    return state


def test_it_finds_the_least_of_a_quadratic():
    state = descend(120)
    np.testing.assert_allclose(state.average, GOAL, atol=0.05)
    assert state.updates == 120


def test_the_same_seed_goes_the_same_way_and_another_one_does_not():
    first, again, other = descend(5), descend(5), descend(5, seed=4)
    assert first.weights.tolist() == again.weights.tolist()
    assert first.weights.tolist() != other.weights.tolist()


def test_candidates_are_pairs_on_both_sides_of_the_weights():
    state = at(GOAL)
    tried = state.candidates(CONFIG, 3)
    assert (tried.shape, tried.dtype) == ((16, 3), np.float32)
    np.testing.assert_allclose((tried[0::2] + tried[1::2]) / 2.0, np.tile(GOAL, (8, 1)), atol=1e-6)
    assert 0.05 < (tried[0::2] - GOAL).std() < 0.2
    state.updates += 1
    assert not np.array_equal(state.candidates(CONFIG, 3), tried)


def test_it_goes_against_the_differences_of_costs():
    """Adam's first step is as long as the learning rate, in every direction in which there is a difference."""
    tried = at(np.zeros(3)).candidates(CONFIG, 3)
    state = one_update(0.01 * tried[:, :1].astype(np.float64))
    assert state.weights[0] == pytest.approx(-CONFIG.learning_rate)
    gradient = (0.01 * tried[0::2, :1] * tried[0::2]).mean(axis=0) / CONFIG.sigma**2
    np.testing.assert_allclose(state.mean, 0.1 * gradient, rtol=1e-5)


def test_what_costs_all_candidates_alike_changes_nothing():
    assert not one_update(np.full((16, 2), 3.0)).weights.any()


def test_a_disaster_is_one_however_dear():
    costs = np.zeros((16, 2))
    costs[4, 1] = MOST_DIFFERENCE
    disaster = costs * 1e6
    assert one_update(disaster).mean.tolist() == one_update(costs).mean.tolist()
    assert one_update(0.5 * costs).mean.tolist() != one_update(costs).mean.tolist()


def test_standardised_differences_count_alike_however_large_they_are_on_a_workload():
    """On one workload they are ten times as large: over their scale they are the same, but below the least scale."""
    config = replace(CONFIG, standardise=True)
    one = np.random.default_rng(0).normal(0.0, 0.1, (16, 1))

    def mean_after(costs: np.ndarray) -> np.ndarray:
        state = at(np.zeros(3))
        state.update(config, 3, costs, 0.0)
        return state.mean

    both = mean_after(np.hstack([one, 10.0 * one]))
    np.testing.assert_allclose(both, mean_after(one))
    np.testing.assert_allclose(mean_after(1e-4 * one), mean_after(1e-5 * one) * 10.0)
    assert np.abs(mean_after(1e-4 * one)).max() < 0.01 * np.abs(mean_after(one)).max()


@pytest.mark.parametrize(("done", "rate"), [(0.0, 0.1), (0.5, 0.055), (1.0, 0.01), (1.5, 0.01)])
def test_the_learning_rate_falls_in_line_with_what_is_done(done: float, rate: float):
    costs = at(np.zeros(3)).candidates(CONFIG, 3)[:, :1].astype(np.float64)
    assert one_update(costs, done=done).weights[0] == pytest.approx(-rate)


def test_the_average_follows_the_weights_more_and_more_slowly():
    costs = at(np.zeros(3)).candidates(CONFIG, 3)[:, :1].astype(np.float64)
    state = one_update(costs)
    np.testing.assert_allclose(state.average, 0.5 * state.weights)
    alone = one_update(costs, replace(CONFIG, averaging=0.0))
    assert alone.average.tolist() == alone.weights.tolist()
    state.updates = 99
    before = state.average
    state.update(CONFIG, 3, np.zeros((16, 1)), 0.0)
    np.testing.assert_allclose(state.average, 0.9 * before + 0.1 * state.weights)


def test_a_run_begins_where_nothing_is_said_with_a_hidden_layer_of_its_seed():
    first, again, other = (Evolution.begin(4, seed) for seed in (0, 0, 1))
    drawn = {name for name, array in arrays_of(first.weights, 4).items() if array.any()}
    assert drawn == {"code.weight"}
    assert first.weights.tolist() == first.average.tolist() == again.weights.tolist() != other.weights.tolist()
    assert first.updates == 0
    assert not np.concatenate([first.mean, first.square]).any()
