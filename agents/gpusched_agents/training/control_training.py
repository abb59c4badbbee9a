"""A training run on the adaptation environment: an algorithm of Stable-Baselines3 sets the controls of STS-X."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.noise import NormalActionNoise

from gpusched_agents.network.policies import actor_of_model
from gpusched_agents.policy import control_policy
from gpusched_agents.sb3 import SchedulerVecEnv
from gpusched_agents.spec import AgentSpec
from gpusched_agents.training.algorithm_config import AdaptationConfig, algorithm_class
from gpusched_agents.training.algorithms import falling
from gpusched_agents.training.evolution import relative_cost
from gpusched_agents.training.sb3_training import Logs, Sb3Training
from gpusched_baselines.adaptation_env import GpuAdaptationVectorEnv
from gpusched_baselines.adaptation_env.env import FIRST_WORKLOAD
from gpusched_env.errors import InputError
from gpusched_env.simulator import Asking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_agents.training.config import TrainingConfig


def make_control_env(config: TrainingConfig, agent: AdaptationConfig) -> SchedulerVecEnv:
    """Make the environments of a training run, distributed over the scenarios.

    Raises:
        InputError: There are fewer environments than scenarios, or scenarios have different numbers of GPU types.
    """
    if config.envs < len(config.scenarios):
        raise InputError("envs", config.envs, f"at least {len(config.scenarios)}, one for each scenario")
    given: dict[str, Any] = {name: getattr(config.network, name) for name in ("rounds", "controls")}
    given |= {"reward": agent.reward, "workloads": agent.workloads}
    scenarios = config.loaded_scenarios()
    return SchedulerVecEnv(
        GpuAdaptationVectorEnv(config.envs, scenarios, autoreset_mode=AutoresetMode.SAME_STEP, **given)
    )


def make_control_model(config: TrainingConfig, agent: AdaptationConfig, env: SchedulerVecEnv) -> BaseAlgorithm:
    """Make the untrained algorithm, with environments before their first episode. Its first agent is STS-X.

    Raises:
        InputError: The algorithm does not have such a setting.
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


def first_workloads(config: TrainingConfig, agent: AdaptationConfig) -> list[int]:
    """Return the seeds of the first episodes, one for each environment; all are used before one repeats."""
    order = np.random.default_rng([config.seed, 1]).permutation(agent.workloads)
    return (FIRST_WORKLOAD + np.resize(order, config.envs)).tolist()


def _begin_as_sts_x(policy: Any) -> None:
    """Set the last layer of the actor to 0, so that its mean action is 0."""
    outputs = policy.action_net if hasattr(policy, "action_net") else policy.actor.mu
    outputs = outputs if isinstance(outputs, torch.nn.Linear) else outputs[-2]  # before tanh
    for parameter in outputs.parameters():
        parameter.data.zero_()
    if hasattr(policy, "actor_target"):
        policy.actor_target.load_state_dict(policy.actor.state_dict())


MOST_CONFIGURATIONS = 256  # that an agent may be used with


class ControlTraining(Sb3Training):
    """A training run of an agent that sets the controls of STS-X: see `Sb3Training`.

    The agent begins as STS-X. The run keeps the agent of the evaluation with the least cost on the validation workloads
    over that of STS-X: `relative` in the curve, a geometric mean over scenarios. The scenarios must have the same
    number of GPU types, and there must be at least as many environments as scenarios.
    """

    def _prepare(self) -> None:
        if not isinstance(self.config.agent, AdaptationConfig):
            raise InputError("agent", self.config.agent.algorithm, "an AdaptationConfig; make_training takes all")
        torch.set_num_threads(self.config.threads)
        self._take(make_control_model(self.config, self.config.agent, make_control_env(self.config, self.config.agent)))

    def _imitate(self, logs: Logs) -> None:
        """Begin the episodes, and evaluate the untrained agent; there is no imitation."""
        self._begin_episodes()
        self._evaluate(logs, {})
        self.progress.phase = "learning"
        self._write_checkpoint()

    def _relative(self, totals: NDArray[np.float64]) -> dict[str, float]:
        _ = self.references  # measures the costs of STS-X
        return {"relative": relative_cost(self.config, totals, np.array(self._run.record["base_eur_each"]))}

    def _weights(self) -> dict[str, NDArray[np.float32]]:
        return actor_of_model(self.model).arrays()

    def _policy(self, weights: Mapping[str, NDArray[np.float32]]) -> ControlPolicy:
        return control_policy(self.name, self._spec(), self.config.network, weights, self.config.agent.algorithm)

    def _spec(self) -> AgentSpec:
        """Return the spec, with the configurations of all scenarios."""
        met = {each.name: each for instance in self._instances for each in instance.configurations}
        asking: Any = asdict(Asking(milestones=0, due_date_timers=True, consolidation=True))
        gpu_types = self._instances[0].gpu_types
        most = max(MOST_CONFIGURATIONS, len(met))
        return AgentSpec.of("controls", list(met.values()), gpu_types, max_configurations=most, **asking)
