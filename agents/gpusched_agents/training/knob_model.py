"""Models of Stable-Baselines3 on steering environments, made from settings (extra `agents`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.noise import NormalActionNoise

from gpusched_agents.sb3 import SchedulerVecEnv
from gpusched_agents.training.algorithms import falling
from gpusched_agents.training.steering_config import algorithm_class
from gpusched_baselines.steering_env import GpuSteeringVectorEnv
from gpusched_baselines.steering_env.env import FIRST_WORKLOAD
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_agents.training.steering_config import SteeringConfig


def make_knob_env(config: TrainingConfig, agent: SteeringConfig) -> SchedulerVecEnv:
    """Make the environments of a training run: scenarios share them out.

    Raises:
        InputError: There are fewer environments than scenarios, or scenarios have different numbers of GPU types.
    """
    if config.envs < len(config.scenarios):
        raise InputError("envs", config.envs, f"at least {len(config.scenarios)}, one for each scenario")
    given: dict[str, Any] = {name: getattr(config.network, name) for name in ("rounds", "knobs")}
    given |= {"reward": agent.reward, "workloads": agent.workloads}
    scenarios = config.loaded_scenarios()
    return SchedulerVecEnv(
        GpuSteeringVectorEnv(config.envs, scenarios, autoreset_mode=AutoresetMode.SAME_STEP, **given)
    )


def make_knob_model(config: TrainingConfig, agent: SteeringConfig, env: SchedulerVecEnv) -> BaseAlgorithm:
    """Make the algorithm, untrained, with its environments about to begin. Its first agent is STS-X.

    Raises:
        InputError: A setting is none that the algorithm takes.
    """
    settings, network = dict(agent.settings), config.network
    critic = [settings.pop("critic_hidden")] * 2
    layers = {"pi": [network.hidden] * network.layers, "qf" if agent.squashes else "vf": critic}
    named: dict[str, Any] = {"net_arch": layers}
    if not agent.squashes:
        named["log_std_init"] = settings.pop("log_std_init")
    elif settings["action_noise"] is not None:
        size = len(env.action_space.low)  # type: ignore[attr-defined]
        settings["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, settings["action_noise"]))
    last = settings.pop("final_learning_rate")
    if last is not None:
        settings["learning_rate"] = falling(settings["learning_rate"], last)
    try:
        model = algorithm_class(agent.algorithm)(
            "MlpPolicy", env, policy_kwargs=named, seed=config.seed, device="cpu", **settings
        )
    except (AssertionError, TypeError, ValueError) as error:
        allowed = f"settings that {agent.algorithm} of Stable-Baselines3 takes ({error})"
        raise InputError("agent", agent.settings, allowed) from error
    _begin_as_sts_x(model.policy)
    env.seed_each(first_workloads(config, agent))
    return model


def first_workloads(config: TrainingConfig, agent: SteeringConfig) -> list[int]:
    """Return the seeds of the first episodes, one for each environment: none comes again before all have."""
    order = np.random.default_rng([config.seed, 1]).permutation(agent.workloads)
    return (FIRST_WORKLOAD + np.resize(order, config.envs)).tolist()


def _begin_as_sts_x(policy: Any) -> None:
    """Set the last layer of the actor to 0, so that its mean action is."""
    outputs = policy.action_net if hasattr(policy, "action_net") else policy.actor.mu
    outputs = outputs if isinstance(outputs, torch.nn.Linear) else outputs[-2]  # before tanh
    for parameter in outputs.parameters():
        parameter.data.zero_()
    if hasattr(policy, "actor_target"):
        policy.actor_target.load_state_dict(policy.actor.state_dict())
