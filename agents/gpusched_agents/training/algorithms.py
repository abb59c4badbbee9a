"""The algorithms of Stable-Baselines3 and sb3-contrib, made from settings (extra `agents`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from gpusched_agents.network.policies import MaskableScoringPolicy, ScoringDqnPolicy, ScoringExtractor, ScoringPolicy
from gpusched_agents.sb3 import make_sb3_vec_env
from gpusched_agents.training.algorithm_config import A2cConfig, DqnConfig, PpoConfig
from gpusched_agents.training.discounting import Discounting, MaskableTimedRolloutBuffer, TimedRolloutBuffer
from gpusched_agents.training.saving import SavingMeter
from gpusched_env import FIRST_SAMPLED_SEED, make_instance
from gpusched_env.envs.source import shape_of
from gpusched_env.errors import InputError
from gpusched_env.observation import CLUSTER_FEATURES, OPTION_FEATURES, observation_space
from gpusched_env.simulator import Asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.training.config import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import gymnasium
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

    from gpusched_agents.sb3 import SchedulerVecEnv
    from gpusched_env import View
    from gpusched_env.simulator import State

    Observations = dict[str, NDArray[np.float32]]


class SlottedVecEnv(VecEnv):
    """Several `SchedulerVecEnv` as one, with any GPU types and configurations; rewards are savings (`SavingMeter`).

    Args:
        groups: The environments of each kind of cluster, one or more.
        types: Index of the GPU type of every configuration, for each group.

    Attributes:
        type_of_slot: Index of the GPU type of every slot.

    Raises:
        InputError: There is no group.
    """

    def __init__(self, groups: Sequence[SchedulerVecEnv], types: Sequence[Sequence[int]]) -> None:
        if not groups:
            raise InputError("groups", groups, "one or more")
        self.groups = tuple(groups)
        self._meter: SavingMeter
        self.ends = np.cumsum([group.num_envs for group in groups])
        self.type_of_slot, self._slots = lay_out(types)
        self._type_count = 1 + max(self.type_of_slot)
        width = 1 + len(self.type_of_slot)
        self._actions = [np.full(width, 0, dtype=np.int64) for _ in groups]  # own action of every slot's
        for actions, slots in zip(self._actions, self._slots, strict=True):
            actions[1 + slots] = 1 + np.arange(len(slots))
        space = observation_space(len(self.type_of_slot), self._type_count)
        self.render_mode: str | None = None
        super().__init__(int(self.ends[-1]), space, spaces.Discrete(width))

    @property
    def views(self) -> tuple[View, ...]:
        """Return the present state of every environment."""
        return tuple(view for group in self.groups for view in group.vector.views)  # type: ignore[attr-defined]

    @property
    def states(self) -> tuple[State, ...]:
        """Return the whole states of the present episodes."""
        return tuple(one for group in self.groups for one in group.vector.states)  # type: ignore[attr-defined]

    @property
    def passed_s(self) -> NDArray[np.float64]:
        """Return how far the last step moved the time of every environment [s], (N,)."""
        return self._meter.passed_s

    @property
    def jobs(self) -> NDArray[np.int64]:
        """Return the current job in every environment, (N,)."""
        return np.concatenate([group.vector.jobs for group in self.groups])  # type: ignore[attr-defined]

    def to_slots(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slotted actions, (N,), for actions of the environments' own."""
        return np.concatenate(
            [
                np.concatenate([[0], 1 + slots])[own]
                for slots, own in zip(self._slots, self._parts(actions), strict=True)
            ]
        )

    def seed_each(self, seeds: Sequence[int]) -> None:
        """Set the seeds of the next `reset`, (N,)."""
        for group, own in zip(self.groups, self._parts(np.asarray(seeds)), strict=True):
            group.seed_each(own.tolist())

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next `reset` to seed + i in environment i."""
        if seed is not None:
            self.seed_each([seed + i for i in range(self.num_envs)])
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> Observations:
        """Begin an episode in every environment."""
        observations: list[Any] = [group.reset() for group in self.groups]
        self.reset_infos = [info for group in self.groups for info in group.reset_infos]
        self._meter = SavingMeter(self.states)
        return self._slotted(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the slotted actions, (N,), for `step_wait`."""
        for group, own, part in zip(self.groups, self._actions, self._parts(actions), strict=True):
            group.step_async(own[part])

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step; see `SchedulerVecEnv`."""
        steps: list[Any] = [group.step_wait() for group in self.groups]
        infos = [info for step in steps for info in step[3]]
        for k, step in enumerate(steps):
            for info in step[3]:
                if "terminal_observation" in info:
                    last = {name: array[None] for name, array in info["terminal_observation"].items()}
                    info["terminal_observation"] = {name: array[0] for name, array in self._slot(k, last).items()}
        ended = np.concatenate([step[2] for step in steps])
        rewards = self._meter.rewards(self.states, ended, infos)
        return self._slotted([step[0] for step in steps]), rewards, ended, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return what can be placed now, (N, 1 + slots)."""
        masks = np.zeros((self.num_envs, 1 + len(self.type_of_slot)), dtype=np.bool_)
        masks[:, 0] = True
        for rows, slots, group in zip(self._parts(masks), self._slots, self.groups, strict=True):
            rows[:, 1 + slots] = group.action_masks()[:, 1:]
        return masks

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the states of all groups as plain arrays."""
        return {
            f"{k}/{name}": array for k, group in enumerate(self.groups) for name, array in group.get_state().items()
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly from a state of `get_state`."""
        for k, group in enumerate(self.groups):
            head = f"{k}/"
            group.set_state({name[len(head) :]: array for name, array in state.items() if name.startswith(head)})
        self._meter = SavingMeter(self.states)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Return the action masks; nothing else can be called."""
        if method_name != "action_masks" or method_args or method_kwargs:
            raise InputError("method_name", method_name, "action_masks")
        masks = self.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute that all environments share."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:  # noqa: ARG002
        """Refuse: the environments share their attributes."""
        raise InputError("attr_name", attr_name, "nothing: the environments share their attributes")

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return whether they are wrapped; see `SchedulerVecEnv.env_is_wrapped`."""
        return [self.groups[0].env_is_wrapped(wrapper_class, [0])[0] for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Close all environments."""
        for group in self.groups:
            group.close()

    def _parts(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(rows, self.ends[:-1])

    def _slotted(self, observations: Sequence[Observations]) -> Observations:
        each = [self._slot(k, observation) for k, observation in enumerate(observations)]
        return {name: np.concatenate([one[name] for one in each]) for name in each[0]}

    def _slot(self, k: int, observation: Observations) -> Observations:
        """Return the observations of group k, (N, ...), in slots."""
        size = len(observation["job"])
        options = np.zeros((size, len(self.type_of_slot), len(OPTION_FEATURES)), np.float32)
        options[:, self._slots[k]] = observation["options"].reshape(size, len(self._slots[k]), -1)
        cluster = np.zeros((size, self._type_count * len(CLUSTER_FEATURES)), np.float32)
        cluster[:, : observation["cluster"].shape[1]] = observation["cluster"]
        return {**observation, "options": options.reshape(size, -1), "cluster": cluster}


def lay_out(types: Sequence[Sequence[int]]) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Assign slots to the configurations of several clusters.

    Args:
        types: Index of the GPU type of every configuration, for each cluster.

    Returns:
        The GPU type of every slot; and for each cluster the slot of every configuration. A single cluster keeps its
        order.
    """
    if len(types) == 1:
        return list(types[0]), [np.arange(len(types[0]))]
    most = 1 + max(max(one) for one in types)
    widths = [max(list(one).count(v) for one in types) for v in range(most)]
    begins = np.concatenate([[0], np.cumsum(widths)])
    slots = []
    for one in types:
        rank = [list(one[:c]).count(v) for c, v in enumerate(one)]
        slots.append(np.array([begins[v] + rank[c] for c, v in enumerate(one)], dtype=np.int64))
    return [v for v in range(most) for _ in range(widths[v])], slots


CLASSES: dict[str, tuple[type[BaseAlgorithm], type[Any]]] = {
    "maskable-ppo": (MaskablePPO, MaskableScoringPolicy),
    "ppo": (PPO, ScoringPolicy),
    "a2c": (A2C, ScoringPolicy),
    "dqn": (DQN, ScoringDqnPolicy),
}
NOT_OF_SB3 = {"horizon_s", "gae_horizon_s", "kl_coef", "averaging"}
"""Settings of PPO and A2C that are no arguments of Stable-Baselines3."""
TRAINED_UNDER = Asking(milestones=0, due_date_timers=True, consolidation=True)
"""How rounds ask, in training and in decisions of agents."""


def make_env(config: TrainingConfig) -> SlottedVecEnv:
    """Make the environments of a training run: scenarios with the same configurations share a vector environment.

    Raises:
        InputError: There are fewer environments than scenarios, or a perceptron has different clusters.
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
        groups.append(make_sb3_vec_env(size, [scenarios[i] for i in chosen], **asdict(TRAINED_UNDER)))
        types.append(firsts[chosen[0]].type_of_configuration.tolist())
    return SlottedVecEnv(groups, types)


def first_seeds(config: TrainingConfig) -> list[int]:
    """Return the seeds of the first episodes, one for each environment: none that is held out."""
    generator = np.random.default_rng([config.seed, 1])
    return generator.integers(FIRST_SAMPLED_SEED, 2**31, size=config.envs).tolist()


def falling(first: float, last: float) -> Callable[[float], float]:
    """Return the schedule of a linearly falling rate for Stable-Baselines3: a function of the part left, 1 to 0."""
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
        "masks": not off_policy,  # DQN may take a random action that cannot be placed: its value must be finite
    }
    named: dict[str, Any] = {
        "features_extractor_class": ScoringExtractor,
        "features_extractor_kwargs": extractor,
        "net_arch": [],
    }
    settings = {name: value for name, value in asdict(config.agent).items() if value is not None}
    if not off_policy:
        named["share_features_extractor"] = False
        settings = _on_policy(config, settings)
    if "final_learning_rate" in settings:
        settings["learning_rate"] = falling(settings["learning_rate"], settings.pop("final_learning_rate"))
    model = algorithm(policy, env, policy_kwargs=named, seed=config.seed, device="cpu", **settings)
    if isinstance(model, OnPolicyAlgorithm):
        buffer: Any = model.rollout_buffer
        buffer.last_passed_s = lambda: env.passed_s
    env.seed_each(first_seeds(config))
    return model


def discounting_of(agent: PpoConfig | A2cConfig) -> Discounting:
    """Return the discounts of an algorithm with a critic."""
    return Discounting(agent.horizon_s, agent.gae_horizon_s)


def _on_policy(config: TrainingConfig, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of PPO, MaskablePPO or A2C, with a rollout buffer that discounts by simulated time.

    γ is 1: Stable-Baselines3 itself uses it only for the rest of truncated episodes.
    """
    others = {name: value for name, value in settings.items() if name not in NOT_OF_SB3}
    if config.imitation.steps > 0:  # the policy then returns minus the KL divergence in place of the entropy
        others["ent_coef"] = settings["kl_coef"]
    agent: Any = config.agent
    maskable = config.agent.algorithm == "maskable-ppo"
    return others | {
        "gamma": 1.0,
        "rollout_buffer_class": MaskableTimedRolloutBuffer if maskable else TimedRolloutBuffer,
        "rollout_buffer_kwargs": {"discounting": discounting_of(agent)},
    }
