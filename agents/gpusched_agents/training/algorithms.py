"""The algorithms of Stable-Baselines3 and sb3-contrib, made from settings (extra `agents`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DQN, PPO

from gpusched_agents.network.policies import MaskableScoringPolicy, ScoringDqnPolicy, ScoringExtractor, ScoringPolicy
from gpusched_agents.network.slots import SlottedVecEnv
from gpusched_agents.sb3 import make_sb3_vec_env
from gpusched_agents.training.algorithm_config import DqnConfig
from gpusched_env import FIRST_DRAWN_SEED, InputError, make_instance
from gpusched_env.envs.env_input import shape_of
from gpusched_env.simulator import Asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.training.config import TrainingConfig

CLASSES: dict[str, tuple[type[BaseAlgorithm], type[Any]]] = {
    "maskable-ppo": (MaskablePPO, MaskableScoringPolicy),
    "ppo": (PPO, ScoringPolicy),
    "a2c": (A2C, ScoringPolicy),
    "dqn": (DQN, ScoringDqnPolicy),
}
TRAINED_UNDER = Asking(milestones=0, deadline_wake_ups=True, consolidation=True)
"""How rounds ask where agents are trained and decide."""


@dataclass(frozen=True, slots=True)
class TrainingReward:
    """Minus energy, minus tardiness times a factor [€]."""

    tardiness_factor: float

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Give the reward of one step."""
        return -energy_eur - self.tardiness_factor * tardiness_eur


def make_env(config: TrainingConfig) -> SlottedVecEnv:
    """Make the environments of a training run: scenarios with the same configurations share a vector environment.

    Raises:
        InputError: There are fewer environments than scenarios, or a perceptron is to learn on different clusters.
    """
    if config.envs < len(config.scenarios):
        raise InputError("envs", config.envs, f"at least {len(config.scenarios)}, one for each scenario")
    scenarios = config.loaded_scenarios()
    firsts = [make_instance(scenario, 0) for scenario in scenarios]
    alike: dict[Any, list[int]] = {}
    for index, first in enumerate(firsts):
        alike.setdefault(shape_of(first), []).append(index)
    if config.network.kind == "mlp" and len(alike) > 1:
        raise InputError("scenarios", config.scenarios, "scenarios with the same configurations, for an mlp")
    counts = [len(part) for part in np.array_split(np.arange(config.envs), len(scenarios))]
    groups, types = [], []
    for chosen in alike.values():
        size = sum(counts[index] for index in chosen)
        reward = TrainingReward(config.tardiness_factor)
        groups.append(make_sb3_vec_env(size, [scenarios[i] for i in chosen], reward=reward, **asdict(TRAINED_UNDER)))
        types.append(firsts[chosen[0]].type_of_configuration.tolist())
    return SlottedVecEnv(groups, types, above_least=config.above_least)


def first_seeds(config: TrainingConfig) -> list[int]:
    """Give the seeds of the first episodes, one for each environment: none that is held out."""
    generator = np.random.default_rng([config.seed, 1])
    return generator.integers(FIRST_DRAWN_SEED, 2**31, size=config.envs).tolist()


def falling(first: float, last: float) -> Callable[[float], float]:
    """Give the schedule of a rate that falls in a line, as Stable-Baselines3 asks it: from what is left, 1 to 0."""
    return lambda left: last + (first - last) * left


def make_model(config: TrainingConfig, env: SlottedVecEnv) -> BaseAlgorithm:
    """Make the algorithm, untrained, with its environments about to begin."""
    algorithm, policy = CLASSES[config.agent.algorithm]
    off_policy = isinstance(config.agent, DqnConfig)
    extractor = {
        "kind": config.network.kind,
        "type_of_configuration": env.type_of_slot,
        "hidden": config.network.hidden,
        "distribution": config.network.distribution,
        "masks": not off_policy,  # a random action of DQN may be one that cannot be placed: its value must be finite
    }
    named: dict[str, Any] = {
        "features_extractor_class": ScoringExtractor,
        "features_extractor_kwargs": extractor,
        "net_arch": [],
    }
    if not off_policy:
        named["share_features_extractor"] = False
    settings = {name: value for name, value in asdict(config.agent).items() if value is not None}
    if "final_learning_rate" in settings:
        settings["learning_rate"] = falling(settings["learning_rate"], settings.pop("final_learning_rate"))
    model = algorithm(policy, env, policy_kwargs=named, seed=config.seed, device="cpu", **settings)
    env.seed_each(first_seeds(config))
    return model
