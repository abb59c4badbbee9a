"""A training run on the adaptation environment: an algorithm of Stable-Baselines3 sets the controls of STS-X."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.noise import NormalActionNoise

from gpusched_agents.network.control_models import actor_of_model, job_set_policy
from gpusched_agents.policy import control_policy
from gpusched_agents.sb3 import SchedulerVecEnv
from gpusched_agents.training.adaptation_training import spec_of
from gpusched_agents.training.algorithm_config import AdaptationConfig, algorithm_class
from gpusched_agents.training.constants import constants_of, imitate
from gpusched_agents.training.evolution import relative_cost
from gpusched_agents.training.sb3_training import Sb3Training
from gpusched_baselines.adaptation_env import GpuAdaptationVectorEnv
from gpusched_baselines.adaptation_env.env import FIRST_WORKLOAD
from gpusched_env.child_processes import ProcessPool
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.logger import Logger

    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import TrainingConfig


def make_control_env(config: TrainingConfig, agent: AdaptationConfig) -> SchedulerVecEnv:
    if config.envs < len(config.scenarios):
        raise InputError("envs", config.envs, f"at least {len(config.scenarios)}, one for each scenario")
    given: dict[str, Any] = {name: getattr(config.network, name) for name in ("rounds", "controls", "job_features")}
    given |= {"reward": agent.reward, "workloads": agent.workloads}
    scenarios = config.loaded_scenarios()
    return SchedulerVecEnv(
        GpuAdaptationVectorEnv(config.envs, scenarios, autoreset_mode=AutoresetMode.SAME_STEP, **given)
    )


def falling(first: float, last: float) -> Callable[[float], float]:
    """Return the schedule of a linearly falling rate for Stable-Baselines3: a function of the part left, 1 to 0."""
    return lambda left: last + (first - last) * left


def make_control_model(config: TrainingConfig, agent: AdaptationConfig, env: SchedulerVecEnv) -> BaseAlgorithm:
    """Make the untrained algorithm, with environments before their first episode. Its first agent is STS-X."""
    settings, network = dict(agent.settings), config.network
    critic = [settings.pop("critic_hidden")] * 2
    layers = {"pi": [network.hidden] * network.layers, "qf" if agent.squashes else "vf": critic}
    named: dict[str, Any] = {"net_arch": layers}
    if network.job_codes:
        named |= job_set_policy(network.job_features, network.job_codes)
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
    set_last_layer(model.policy, 0.0, 0.0)
    env.seed_each(first_workloads(config, agent))
    return model


def first_workloads(config: TrainingConfig, agent: AdaptationConfig) -> list[int]:
    """Return the seeds of the first episodes, one for each environment; all are used before one repeats."""
    order = np.random.default_rng([config.seed, 1]).permutation(agent.workloads)
    return (FIRST_WORKLOAD + np.resize(order, config.envs)).tolist()


def set_last_layer(policy: Any, weight: NDArray[np.float32] | float, bias: NDArray[np.float32] | float) -> None:
    """Set weights and biases of the last layer of the actor; with 0 its mean action is 0, so that it is STS-X."""
    outputs = policy.action_net if hasattr(policy, "action_net") else policy.actor.mu
    outputs = outputs if isinstance(outputs, torch.nn.Linear) else outputs[-2]  # before tanh
    for parameter, value in ((outputs.weight, weight), (outputs.bias, bias)):
        parameter.data.copy_(torch.as_tensor(value, dtype=parameter.dtype).expand_as(parameter))
    if hasattr(policy, "actor_target"):
        policy.actor_target.load_state_dict(policy.actor.state_dict())


class ControlTraining(Sb3Training):
    """A training run of an agent that sets the controls of STS-X: see `Sb3Training`.

    The agent begins as STS-X. The run keeps the agent of the evaluation with the least cost on the validation workloads
    over that of STS-X: `relative` in the curve, a geometric mean over scenarios. The scenarios must have the same
    number of GPU types, and there must be at least as many environments as scenarios.
    """

    def _prepare(self) -> None:
        if not isinstance(self.config.agent, AdaptationConfig):
            raise InputError("agent", self.config.agent.algorithm, "an AdaptationConfig; make_training also takes es")
        torch.set_num_threads(self.config.threads)
        self._take(make_control_model(self.config, self.config.agent, make_control_env(self.config, self.config.agent)))

    def _begin(self, log: Logger) -> None:
        """Begin the episodes, as STS-X or as an imitator of constants, and evaluate the first agent."""
        agent: Any = self.config.agent
        network = self.config.network
        if agent.begin:
            with ProcessPool() as pool:
                found = constants_of(self.config, pool, self.folder, self._report)
                self._report("imitating the constants")
                imitator = imitate(found, actor_of_model(self.model), network.rounds, pool, network.controls)
            set_last_layer(self.model.policy, *imitator.last)
        self._begin_episodes()
        self._evaluate(log)
        self.progress.phase = "learning"
        self._write_checkpoint()

    def _relative(self, totals: NDArray[np.float64]) -> float:
        _ = self.references  # measures the costs of STS-X
        return relative_cost(self.config, totals, np.array(self._run.record["base_eur_each"]))

    def _weights(self) -> dict[str, NDArray[np.float32]]:
        return actor_of_model(self.model).arrays()

    def _policy(self, weights: Mapping[str, NDArray[np.float32]]) -> ControlPolicy:
        return control_policy(self.name, self._spec(), self.config.network, weights, self.config.agent.algorithm)

    def _spec(self) -> AgentSpec:
        return spec_of(self.config)
