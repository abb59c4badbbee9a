"""Rewards that are vectors: minus energy [€], tardiness [€] and CO2 [kg], as MO-Gymnasium takes them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, GpuClusterVectorEnv, Instance
from gpusched_env.envs.source import OBJECTIVES
from gpusched_env.mechanisms.prices.model import PriceSeries
from instances import HOUR, random_instance, three_jobs
from refusals import refused
from vector_twins import random_actions


def at_prices(instance: Instance) -> Instance:
    """Return the instance at prices and emissions that change every hour."""
    rng, hours = np.random.default_rng(1), np.arange(100)
    series = PriceSeries(hours * HOUR, rng.uniform(0.05, 0.5, 100), g_per_kwh=rng.uniform(50.0, 700.0, 100))
    return instance.with_mechanisms(series)


def play(env: GpuClusterEnv, seed: int = 0) -> list[tuple]:
    """Play an episode at random, and return what its steps return."""
    rng, rows = np.random.default_rng(seed), []
    _, info = env.reset(seed=0)
    while not rows or not (rows[-1][2] or rows[-1][3]):
        rows.append(env.step(int(rng.choice(np.flatnonzero(info["action_mask"])))))
        info = rows[-1][4]
    return rows


@pytest.mark.parametrize("instance", [three_jobs(), random_instance(3, jobs=6)], ids=["three jobs", "random"])
def test_vectors_sum_to_minus_the_totals_of_the_result(instance):
    env = GpuClusterEnv(instance=at_prices(instance), reward="vector")
    rewards = np.array([row[1] for row in play(env)])
    result = env.result()
    assert rewards.dtype == np.float64
    assert OBJECTIVES == ("energy_eur", "tardiness_eur", "co2_kg")
    assert -rewards.sum(axis=0) == pytest.approx([getattr(result, name) for name in OBJECTIVES], rel=1e-12)
    assert result.co2_kg > 0.0


def test_the_first_two_numbers_add_to_the_usual_reward_of_every_step():
    instance = at_prices(random_instance(4, jobs=6))
    vectors, usual = (play(GpuClusterEnv(instance=instance, reward=reward)) for reward in ("vector", None))
    assert len(vectors) == len(usual)
    for one, other in zip(vectors, usual, strict=True):
        assert one[1][:2].sum() == pytest.approx(other[1], rel=1e-12)


def test_without_a_carbon_intensity_the_third_number_is_0():
    assert not np.array([row[1] for row in play(GpuClusterEnv(instance=three_jobs(), reward="vector"))])[:, 2].any()


def test_the_environment_says_what_its_vectors_are_where_mo_gymnasium_looks():
    env = gymnasium.make(ENVIRONMENT_ID, scenario="tiny", reward="vector", disable_env_checker=True)
    assert env.unwrapped.reward_space == spaces.Box(-np.inf, np.inf, (3,), np.float64)
    assert env.unwrapped.reward_dim == 3
    assert not hasattr(GpuClusterEnv("tiny"), "reward_space")
    env.reset(seed=0)
    assert env.unwrapped.reward_space.contains(env.step(0)[1])


def test_a_vector_environment_returns_the_vectors_of_single_ones():
    instance = at_prices(random_instance(5, jobs=4))
    envs = GpuClusterVectorEnv(3, instance=instance, reward="vector")
    singles = [GpuClusterEnv(instance=instance, reward="vector") for _ in range(3)]
    assert (envs.reward_space, envs.reward_dim) == (singles[0].reward_space, 3)
    rng = np.random.default_rng(2)
    envs.reset(seed=0)
    over = np.zeros(3, dtype=bool)
    for env in singles:
        env.reset(seed=0)
    for _ in range(80):
        actions = random_actions(envs.action_masks(), rng)
        _, rewards, terminated, truncated, _ = envs.step(actions)
        expected = np.zeros((3, 3))
        for i, env in enumerate(singles):
            if over[i]:
                env.reset()
            else:
                expected[i] = env.step(int(actions[i]))[1]
        assert rewards.tobytes() == expected.tobytes() or np.array_equal(rewards, expected)
        over = terminated | truncated
    assert rewards.shape == (3, 3)


def test_a_vector_has_no_scale_and_no_other_name():
    with refused("reward_scale", 5.0):
        GpuClusterEnv("tiny", reward="vector", reward_scale=5.0)
    with refused("reward", "vectors"):
        GpuClusterEnv("tiny", reward="vectors")
