"""Algorithms of Stable-Baselines3 and sb3-contrib on the steering environment, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias

from gpusched_agents.steering.actor import SQUASHED
from gpusched_agents.training.algorithm_config import ALGORITHMS, AgentConfig, check_flag
from gpusched_baselines.steering_env.env import REWARDS, WORKLOADS
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.model import checks

MOST_WORKLOADS = 10_000  # so many training seeds a track has
CLASSES = {
    "ppo": ("stable_baselines3", "PPO"),
    "a2c": ("stable_baselines3", "A2C"),
    "sac": ("stable_baselines3", "SAC"),
    "td3": ("stable_baselines3", "TD3"),
    "tqc": ("sb3_contrib", "TQC"),
}
"""Package and class of every algorithm, by its name."""
ON_POLICY = {"final_learning_rate": 1e-4, "gamma": 0.9, "log_std_init": -1.0, "critic_hidden": 64}
OFF_POLICY = {
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-4,
    "gamma": 0.9,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 512,
    "gradient_steps": 2,
    "critic_hidden": 64,
    "action_noise": None,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {**ON_POLICY, "learning_rate": 2e-3, "n_steps": 64, "batch_size": 128, "target_kl": 0.03},
    "a2c": {**ON_POLICY, "learning_rate": 2e-3, "n_steps": 16, "gae_lambda": 0.95},
    "sac": OFF_POLICY,
    "td3": {**OFF_POLICY, "action_noise": 0.2},
    "tqc": OFF_POLICY,
}
RECURRENT = "; no folder holds an LSTM: train it with sb3-contrib on gpusched_env/GpuSteering-v0, sb3:FILE takes it"
# Arguments of the constructors that are no settings: what a training gives itself, and what no checkpoint holds.
OWN = {
    "policy", "env", "policy_kwargs", "seed", "device", "verbose", "tensorboard_log", "stats_window_size",
    "use_sde", "sde_sample_freq", "use_sde_at_warmup", "rollout_buffer_class", "rollout_buffer_kwargs",
    "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "_init_setup_model",
}  # fmt: skip
LEAST = {"learning_starts": 0, "gradient_steps": -1, "top_quantiles_to_drop_per_net": 0}
SHARES, FROM_ZERO = {"gamma", "gae_lambda", "tau"}, {"action_noise", "target_policy_noise", "target_noise_clip"}
ANY_SIGN = {"log_std_init", "target_entropy"}


@dataclass(frozen=True, slots=True)
class SteeringConfig:
    """An algorithm of Stable-Baselines3 or sb3-contrib that sets the knobs of STS-X (`GpuSteeringEnv`).

    Args:
        algorithm: `ppo`, `a2c`, `sac`, `td3` or `tqc`.
        settings: Arguments of its constructor by name (`known_settings`); those left out have defaults for this
            environment. Besides: `final_learning_rate`, to which the rate falls in line with the steps (None: it does
            not fall); `critic_hidden`, the width of the critic's two layers; `log_std_init` of `ppo` and `a2c`, the
            logarithm of the standard deviation of actions at the beginning; and `action_noise` of the others, the
            standard deviation of what is added to an action (None: nothing).
        reward: `saving`, `waste` or `cost`, as `GpuSteeringEnv` has it.
        workloads: Workloads of each scenario that episodes are drawn from, 1 to 10,000.

    Raises:
        InputError: A value is not allowed.
        MissingExtraError: Stable-Baselines3, which knows the arguments, is not installed.
    """

    algorithm: str = "ppo"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reward: str = "saving"
    workloads: int = WORKLOADS

    def __post_init__(self) -> None:
        if self.algorithm not in CLASSES:
            raise InputError("agent.algorithm", self.algorithm, one_of(CLASSES, self.algorithm))
        if self.reward not in REWARDS:
            raise InputError("agent.reward", self.reward, f"one of {', '.join(REWARDS)}")
        if checks.whole("agent.workloads", self.workloads) > MOST_WORKLOADS:
            raise InputError("agent.workloads", self.workloads, f"a whole number from 1 to {MOST_WORKLOADS}")
        if not isinstance(self.settings, Mapping):
            raise InputError("agent.settings", self.settings, 'a mapping, such as {"learning_rate": 1e-3}')
        known = known_settings(self.algorithm)
        for name, value in self.settings.items():
            if name not in known:
                raise InputError(f"agent.{name}", value, f"one of {', '.join(known)}")
            _check(name, value, known[name])
        object.__setattr__(self, "settings", DEFAULTS[self.algorithm] | dict(self.settings))

    @property
    def squashes(self) -> bool:
        """Whether actions go through tanh."""
        return self.algorithm in SQUASHED


AnyAgentConfig: TypeAlias = AgentConfig | SteeringConfig
ALL_ALGORITHMS = tuple(dict.fromkeys((*ALGORITHMS, *CLASSES)))


def one_of(algorithms: Iterable[str], given: str) -> str:
    """Return which algorithms there are, where another one was given, and why RecurrentPPO is not among them."""
    there = f"one of {', '.join(algorithms)}"
    return there + RECURRENT if given == "recurrent-ppo" else there


def agent_config(algorithm: str, network: str | None = None) -> Callable[..., AnyAgentConfig]:
    """Return what makes the settings of the algorithm of a name.

    `ppo` and `a2c` are the names of two trainings each. They learn on the steering environment, unless the kind of the
    network that was asked for is one that decides job by job.

    Args:
        algorithm: One of `ALL_ALGORITHMS`.
        network: The kind of the network, if one was asked for.
    """
    by_job = algorithm in ALGORITHMS and (algorithm not in CLASSES or network in {"set", "mlp"})
    return ALGORITHMS[algorithm] if by_job else partial(SteeringConfig, algorithm)


def algorithm_class(algorithm: str) -> Any:
    """Return the class of an algorithm.

    Raises:
        MissingExtraError: torch or Stable-Baselines3 is not installed.
    """
    package, name = CLASSES[algorithm]
    try:
        return getattr(import_module(package), name)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        raise MissingExtraError(missing, "agents", "algorithms of Stable-Baselines3") from error


@cache
def known_settings(algorithm: str) -> dict[str, Any]:
    """Return the names of the settings of an algorithm, with their defaults.

    Raises:
        MissingExtraError: torch or Stable-Baselines3 is not installed.
    """
    parameters = signature(algorithm_class(algorithm)).parameters.values()
    return {each.name: each.default for each in parameters if each.name not in OWN} | DEFAULTS[algorithm]


def _check(name: str, value: Any, default: Any) -> None:
    """Check a value that takes the place of a default."""
    field = f"agent.{name}"
    if isinstance(default, bool):
        check_flag(field, value)
    elif isinstance(default, int):
        checks.whole(field, value, LEAST.get(name, 1))
    elif (value is None and (default is None or name in {"final_learning_rate", "target_kl", "action_noise"})) or (
        isinstance(default, str) and isinstance(value, str) and value.startswith("auto")
    ):
        return
    elif name in ANY_SIGN:
        checks.finite(field, value)
    elif name in SHARES | FROM_ZERO or name.endswith("_coef"):
        if checks.not_negative(field, value) > 1.0 and name in SHARES:
            raise InputError(field, value, "a number from 0 to 1")
    else:
        checks.positive(field, value)
