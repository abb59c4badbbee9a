"""The algorithms of training, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Annotated, Any, ClassVar, TypeAlias

from gpusched_agents.network.control_policy import SQUASHED
from gpusched_agents.spec import (
    BY_JOB,
    Count,
    Part,
    Positive,
    check_at_most,
    check_flag,
    check_settings,
    choice,
)
from gpusched_baselines.adaptation_env.env import REWARDS, WORKLOADS
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.model import checks


def _check_text(field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InputError(
            field, value, "agent:NAME, or a folder, as text" if field.endswith("begin") else "names, as text"
        )


@dataclass(frozen=True, slots=True)
class EsConfig:
    """Evolution strategies (Salimans et al., 2017) for agents that adapt STS-X; the first agent is STS-X itself.

    An update tries random changes of the weights and their opposites on whole workloads, and takes a step of Adam
    (Kingma and Ba, 2015) by the differences of log cost. A decision is a round.

    Args:
        pairs: Changes of the weights in an update, each tried with its opposite, ≥ 1.
        workloads: Workloads for each change, ≥ 1, different for every change; the scenarios take turns.
        sigma: Standard deviation of a change, > 0.
        learning_rate: At the beginning, > 0.
        final_learning_rate: At the end, > 0; it falls linearly in the decisions.
        averaging: Decay of the moving average of the weights at each update, 0 to 1; the average is the agent.
        most_jobs: Jobs of a workload at most, ≥ 1.
        randomised: Part of the workloads whose cluster, applications and load are drawn at random, 0 to 1.
        clip: Largest absolute difference of log costs that counts, > 0: larger ones, from chance or very costly runs,
            count only with their sign.
        begin: `agent:NAME`, or the folder, of the agent to begin with; by default none. Or `constants`: it begins as
            an imitator of the best constants of each scenario, which are searched first
            (`gpusched_agents.training.constants`); with `common-constants` of the best ones for all scenarios.
        only: Arrays of the network that change, by the beginnings of their names, separated by commas, such as
            `price.1,common.1`; by default all.
    """

    algorithm: ClassVar[str] = "es"
    pairs: Count = 8
    workloads: Count = 1
    sigma: Positive = 0.1
    learning_rate: Positive = 0.04
    final_learning_rate: Positive = 0.002
    averaging: Part = 0.9
    most_jobs: Count = 300
    randomised: Part = 0.0
    clip: Positive = 0.03
    begin: Annotated[str, _check_text] = ""
    only: Annotated[str, _check_text] = ""

    def __post_init__(self) -> None:
        check_settings(self, "agent.")


CONSTANTS, COMMON = "constants", "common-constants"
STARTS = (CONSTANTS, COMMON)
"""How a network may begin: with the best constants of each scenario, or of all in common."""


MOST_WORKLOADS = 10_000  # number of training seeds of a track
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
ELSEWHERE = {
    **dict.fromkeys(("maskable-ppo", "dqn"), BY_JOB),
    "recurrent-ppo": "; no folder holds an LSTM: train it with sb3-contrib on gpusched_env/GpuAdaptation-v0, and use "
    "sb3:FILE",
}
"""For errors: what trains algorithms of Stable-Baselines3 that are not among these."""
# Arguments of the constructors that are not settings: a training sets them, or checkpoints do not contain them.
OWN = {
    "policy", "env", "policy_kwargs", "seed", "device", "verbose", "tensorboard_log", "stats_window_size",
    "use_sde", "sde_sample_freq", "use_sde_at_warmup", "rollout_buffer_class", "rollout_buffer_kwargs",
    "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "_init_setup_model",
}  # fmt: skip
LEAST = {"learning_starts": 0, "gradient_steps": -1, "top_quantiles_to_drop_per_net": 0}
SHARES, FROM_ZERO = {"gamma", "gae_lambda", "tau"}, {"action_noise", "target_policy_noise", "target_noise_clip"}
ANY_SIGN = {"log_std_init", "target_entropy"}


@dataclass(frozen=True, slots=True)
class AdaptationConfig:
    """An algorithm of Stable-Baselines3 or sb3-contrib that sets the controls of STS-X (`GpuAdaptationEnv`).

    Args:
        algorithm: `ppo`, `a2c`, `sac`, `td3` or `tqc`.
        settings: Arguments of its constructor by name (`known_settings`); the others have defaults for this
            environment. In addition: `final_learning_rate`, to which the rate falls linearly in the steps (None: it
            does not fall); `critic_hidden`, the width of the critic's two layers; `log_std_init` of `ppo` and `a2c`,
            the logarithm of the standard deviation of actions at the beginning; and `action_noise` of the others, the
            standard deviation of the noise on an action (None: none).
        reward: `saving`, `waste` or `cost`, as in `GpuAdaptationEnv`.
        workloads: Number of workloads of each scenario from which episodes are sampled, 1 to 10,000.
        begin: `constants` or `common-constants`, as for `EsConfig`; by default it begins as STS-X.

    Raises:
        InputError: A value is not allowed.
        MissingExtraError: Stable-Baselines3, which knows the arguments, is not installed.
    """

    algorithm: str = "ppo"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reward: Annotated[str, choice(REWARDS, f"one of {', '.join(REWARDS)}")] = "saving"
    workloads: Annotated[int, partial(check_at_most, MOST_WORKLOADS)] = WORKLOADS
    begin: Annotated[str, choice(("", *STARTS), f"{' or '.join(STARTS)}, or nothing")] = ""

    def __post_init__(self) -> None:
        if self.algorithm not in CLASSES:
            raise InputError("agent.algorithm", self.algorithm, one_of(CLASSES, self.algorithm))
        check_settings(self, "agent.")
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
        """Return whether actions go through tanh."""
        return self.algorithm in SQUASHED


AgentConfig: TypeAlias = EsConfig | AdaptationConfig
ALGORITHMS = (EsConfig.algorithm, *CLASSES)


def one_of(algorithms: Iterable[str], given: str) -> str:
    return f"one of {', '.join(algorithms)}{ELSEWHERE.get(given, '')}"


def agent_config(algorithm: str) -> Callable[..., AgentConfig]:
    return EsConfig if algorithm == EsConfig.algorithm else partial(AdaptationConfig, algorithm)


def algorithm_class(algorithm: str) -> Any:
    package, name = CLASSES[algorithm]
    try:
        return getattr(import_module(package), name)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        raise MissingExtraError(missing, "agents", "algorithms of Stable-Baselines3") from error


@cache
def known_settings(algorithm: str) -> dict[str, Any]:
    parameters = signature(algorithm_class(algorithm)).parameters.values()
    return {each.name: each.default for each in parameters if each.name not in OWN} | DEFAULTS[algorithm]


def _check(name: str, value: Any, default: Any) -> None:
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
