"""Stable-Baselines3 and sb3-contrib use the environment without changes, and evaluation uses their models."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check

from gpusched_agents import evaluate
from gpusched_env import ENVIRONMENT_ID, load_scenario, make_instance

sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="needs the extra `agents`")
contrib = pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
callbacks = pytest.importorskip("stable_baselines3.common.callbacks", reason="needs the extra `agents`")
env_util = pytest.importorskip("stable_baselines3.common.env_util", reason="needs the extra `agents`")
SETTINGS = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "seed": 0, "device": "cpu"}


def make(**settings):
    return gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", scenario="tiny", **settings)


@pytest.mark.parametrize("preemption", [True, False])
def test_the_checkers_find_nothing_to_warn_of(preemption):
    checker.check_env(make(preemption=preemption))
    gymnasium_check(make(preemption=preemption).unwrapped)


@pytest.mark.parametrize("algorithm", [sb3.PPO, contrib.MaskablePPO])
def test_a_trained_model_is_evaluated_alike_each_time(algorithm):
    env = make(reward_scale=100.0)
    model = algorithm("MultiInputPolicy", env, **SETTINGS)
    model.learn(64)
    first, second = evaluate(model, env, [0, 1]), evaluate(model, make(), [0, 1])
    assert [run.result.total_eur for run in first] == [run.result.total_eur for run in second]
    assert all(np.isfinite(run.result.completion_s).all() for run in first)


def test_masking_keeps_a_model_from_invalid_actions():
    env = make()
    masked = evaluate(contrib.MaskablePPO("MultiInputPolicy", env, **SETTINGS), env, [0], deterministic=False)[0]
    free = evaluate(sb3.PPO("MultiInputPolicy", env, **SETTINGS), env, [0], deterministic=False)[0]
    assert masked.invalid_actions == 0
    assert free.invalid_actions > 0


@pytest.mark.parametrize("kind", ["Flat", "Adaptation"])
def test_every_evaluation_of_a_callback_runs_the_validation_workloads_and_no_other(kind):
    """As in the callback: `seed` is set once, and each evaluation resets the environment again."""
    keywords = {"settings": {"jobs.count": 2}, "seeds": "validation"}
    seeds = range(20_000, 20_005)
    scenario = load_scenario("slack").replace(keywords["settings"])
    known = {make_instance(scenario, seed).jobs.submission_s.tobytes(): seed for seed in seeds}
    ran: list[int] = []

    class Noting(gymnasium.Wrapper):
        def step(self, action):
            result = super().step(action)
            if result[2] or result[3]:
                ran.append(known[self.unwrapped.instance.jobs.submission_s.tobytes()])
            return result

    name = f"gpusched_env/Slack{kind}-v0"
    env = env_util.make_vec_env(name, 1, seed=20_000, env_kwargs=keywords, wrapper_class=Noting)
    callback = callbacks.EvalCallback(env, n_eval_episodes=5, eval_freq=16, verbose=0)
    training = env_util.make_vec_env(name, 1, seed=100_000, env_kwargs={"settings": keywords["settings"]})
    sb3.PPO("MlpPolicy", training, **SETTINGS | {"n_steps": 16, "batch_size": 16}).learn(48, callback=callback)
    assert len(ran) == 15
    for k in range(0, 15, 5):
        assert sorted(ran[k : k + 5]) == list(seeds)
