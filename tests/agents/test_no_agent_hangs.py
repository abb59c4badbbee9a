"""Stable-Baselines3's own tools with their defaults end with any agent."""

import gymnasium
import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from gpusched_env import ENVIRONMENT_ID
from vector_twins import few_jobs

pytestmark = pytest.mark.usefixtures("one_thread")


def make(**settings: object) -> gymnasium.Env:
    return gymnasium.make(ENVIRONMENT_ID, scenario=few_jobs(2), **settings)


class Lazy:
    """A model with which every job waits."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return [0] * len(observation["job"]), state


def test_an_agent_that_always_waits_is_evaluated():
    ends: list[bool] = []
    with pytest.warns(UserWarning, match="Monitor"):
        mean, _ = evaluate_policy(
            Lazy(), make(), callback=lambda told, _: ends.append(told["info"]["stalled"]) if told["done"] else None
        )
    assert ends == [True] * 10
    assert mean < 0.0


@pytest.mark.parametrize("seed", range(4))
def test_untrained_agents_are_evaluated_by_the_callback(seed):
    model = DQN("MultiInputPolicy", make(), seed=seed, device="cpu", learning_starts=100)
    callback = EvalCallback(Monitor(make()), eval_freq=32, verbose=0)
    model.learn(32, callback=callback)
    assert callback.last_mean_reward < 0.0


def test_a_learner_puts_a_value_to_what_is_left_of_a_stalled_episode():
    """PPO adds it to the last reward, so that waiting until the end does not avoid the costs."""
    model = PPO("MultiInputPolicy", make(max_idle_reviews=1), n_steps=64, batch_size=64, seed=0, device="cpu")
    asked: list[dict] = []
    predict = model.policy.predict_values
    with torch.no_grad():
        model.policy.action_net.bias[0] = 1e6  # waits
    model.policy.predict_values = lambda observation: asked.append(observation) or predict(observation)
    model.learn(64)
    assert len(asked) > 1, "once at the end of the rollout, and once for each truncated episode"
