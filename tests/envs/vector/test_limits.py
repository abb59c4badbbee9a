"""Truncation in a vector environment: as in single ones, in every mode, and through a checkpoint."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env import ENVIRONMENT_ID, GpuClusterVectorEnv
from gpusched_env.envs.vector import runs
from refusals import refused
from vector_twins import Twins, assert_same, few_jobs, random_actions

MODES = list(AutoresetMode)
ENVS = 4


def lazy_actions(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make the jobs of the first two environments wait, and draw an action in the others."""
    actions = random_actions(masks, rng)
    actions[:2] = 0
    return actions


def play(twins: Twins, steps: int, seed: int = 0) -> int:
    """Play in both, compare, and give how many episodes were truncated."""
    rng, truncated = np.random.default_rng(seed), 0
    twins.reset(seed=seed)
    for _ in range(steps):
        if twins.native.autoreset_mode is AutoresetMode.DISABLED and twins.ended.any():
            twins.reset(options={"reset_mask": twins.ended.copy()})
        twins.step(lazy_actions(twins.native.action_masks(), rng))
        truncated += int(twins.truncated.sum())
    return truncated


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [{"max_idle_reviews": 3}, {}, {"max_idle_reviews": 2, "preemption": False}])
def test_stalled_episodes_are_those_of_single_environments(mode, settings):
    assert play(Twins([few_jobs(2)], ENVS, mode, **settings), 160) >= 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 7, 20])
def test_a_limit_of_steps_is_gymnasiums(mode, limit):
    twins = Twins([few_jobs(2)], ENVS, mode, max_episode_steps=limit, max_idle_reviews=4)
    assert play(twins, 60) >= 8


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("steps", [0, 5, 18, 33])
def test_reviews_and_steps_are_counted_on_from_a_checkpoint(mode, steps):
    def make() -> GpuClusterVectorEnv:
        return GpuClusterVectorEnv(ENVS, few_jobs(2), autoreset_mode=mode, max_idle_reviews=5, max_episode_steps=14)

    env, other, rng = make(), make(), np.random.default_rng(1)
    env.reset(seed=3)
    for _ in range(steps):
        env.step(lazy_actions(env.action_masks(), rng))
    other.set_state(env.get_state())
    truncated = 0
    for _ in range(40):
        actions = lazy_actions(env.action_masks(), rng)
        mine = env.step(actions)
        assert_same(mine, other.step(actions))
        truncated += int(mine[3].sum())
    assert truncated >= 4


def test_make_vec_takes_a_number_of_steps_in_the_mode_of_its_own():
    env = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, max_episode_steps=50, scenario=few_jobs(20))
    assert isinstance(env, GpuClusterVectorEnv)
    env.reset(seed=0)
    truncated = [env.step(np.zeros(2, int))[3].tolist() for _ in range(50)]
    assert truncated == [[False] * 2] * 49 + [[True] * 2]


@pytest.mark.parametrize("name", ["max_idle_reviews", "max_episode_steps"])
@pytest.mark.parametrize("value", [0, -3, 1.5, "x"])
def test_a_limit_out_of_its_range_is_named(name, value):
    with refused(name, value):
        GpuClusterVectorEnv(2, few_jobs(2), **{name: value})


@pytest.mark.parametrize("steps", [0, 1])
def test_an_interrupted_call_leaves_an_environment_that_is_to_be_reset(steps, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    one, other = (GpuClusterVectorEnv(3, few_jobs(2)) for _ in range(2))
    if steps:
        other.reset(seed=0)
    with monkeypatch.context() as patched:
        patched.setattr(runs, "work", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other.step([0, 0, 0]) if steps else other.reset(seed=0)
    if steps:
        with pytest.raises(gymnasium.error.ResetNeeded):
            other.step([0, 0, 0])
    assert_same(one.reset(seed=3), other.reset(seed=3))
    assert_same(one.step([0, 0, 0]), other.step([0, 0, 0]))


def test_an_interrupted_step_leaves_episodes_that_begin_to_count_anew():
    def fail(energy_eur: float, tardiness_eur: float) -> float:  # noqa: ARG001
        return float("nan") if calls.pop() else 0.0

    calls = [True, False, False]
    env = GpuClusterVectorEnv(1, few_jobs(2), max_episode_steps=3, reward=fail)
    env.reset(seed=0)
    env.step([0])
    env.step([0])
    with refused("reward", float("nan")):
        env.step([0])
    env.reset(seed=0)
    calls[:] = [False] * 3
    assert [env.step([0])[3].item() for _ in range(3)] == [False, False, True]
