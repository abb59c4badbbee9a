"""The algorithms that an agent may learn by, and their settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

from gpusched_env.errors import InputError
from gpusched_env.model import checks

MAY_BE_NONE = ("target_kl",)


@dataclass(frozen=True, slots=True)
class PpoConfig:
    """PPO (Schulman et al., 2017); the names are those of Stable-Baselines3. What cannot be placed is never chosen.

    The learning rate falls, in line with the decisions of reinforcement learning, to `final_learning_rate` at their
    end.
    """

    algorithm: ClassVar[str] = "ppo"
    learning_rate: float = 3e-4
    final_learning_rate: float = 3e-5
    n_steps: int = 128
    batch_size: int = 1024
    n_epochs: int = 3
    gamma: float = 0.9995
    gae_lambda: float = 0.98
    clip_range: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float | None = 0.03

    def __post_init__(self) -> None:
        _check_rates(self)


@dataclass(frozen=True, slots=True)
class MaskablePpoConfig(PpoConfig):
    """PPO with the action masks of the environment (sb3-contrib)."""

    algorithm: ClassVar[str] = "maskable-ppo"


@dataclass(frozen=True, slots=True)
class A2cConfig:
    """A2C (Mnih et al., 2016); the names are those of Stable-Baselines3."""

    algorithm: ClassVar[str] = "a2c"
    learning_rate: float = 1e-4
    n_steps: int = 16
    gamma: float = 0.999
    gae_lambda: float = 0.95
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5

    def __post_init__(self) -> None:
        _check_rates(self)


@dataclass(frozen=True, slots=True)
class DqnConfig:
    """DQN (Mnih et al., 2015); the names are those of Stable-Baselines3.

    A warm start fills the replay buffer with the teacher's decisions.
    """

    algorithm: ClassVar[str] = "dqn"
    learning_rate: float = 3e-4
    buffer_size: int = 50_000
    learning_starts: int = 10_000
    batch_size: int = 256
    gamma: float = 0.999
    train_freq: int = 4
    gradient_steps: int = 4
    target_update_interval: int = 10_000
    exploration_fraction: float = 0.3
    exploration_initial_eps: float = 0.2
    exploration_final_eps: float = 0.01
    max_grad_norm: float = 10.0

    def __post_init__(self) -> None:
        _check_rates(self)


@dataclass(frozen=True, slots=True)
class EsConfig:
    """Evolution strategies (Salimans et al., 2017) for agents that steer STS-X: where it begins, it is STS-X itself.

    An update changes the weights at random, once each way, runs whole workloads with both, and follows the differences
    of log cost with Adam (Kingma and Ba, 2015). A decision is a round.

    Args:
        pairs: Changes of the weights in an update, each tried both ways, ≥ 1.
        workloads: Workloads on which each is tried, ≥ 1, others than the other changes'; the scenarios take turns.
        sigma: Standard deviation of a change, > 0.
        learning_rate: At the beginning, > 0.
        final_learning_rate: At the end, > 0; it falls in line with the decisions.
        averaging: What the moving average of the weights keeps at each update, 0 to 1; the average is the agent.
        most_jobs: Jobs of a workload at most, ≥ 1.
        drawn: Part of the workloads whose cluster, applications and load are drawn at random, 0 to 1.
        clip: What a difference of log costs counts at most, > 0: on a workload where chance does much, or that was a
            disaster, it says no more than its sign.
        begin: `agent:NAME`, or the folder, of a steering agent to go on from; by default none.
        only: Arrays of the network that change, by the beginning of their names, such as `gate`; by default all.
    """

    algorithm: ClassVar[str] = "es"
    pairs: int = 8
    workloads: int = 1
    sigma: float = 0.1
    learning_rate: float = 0.04
    final_learning_rate: float = 0.002
    averaging: float = 0.9
    most_jobs: int = 300
    drawn: float = 0.0
    clip: float = 0.03
    begin: str = ""
    only: str = ""

    def __post_init__(self) -> None:
        for name in ("pairs", "workloads", "most_jobs"):
            checks.whole(f"agent.{name}", getattr(self, name))
        for name in ("sigma", "learning_rate", "final_learning_rate", "clip"):
            checks.positive(f"agent.{name}", getattr(self, name))
        for name, allowed in (("begin", "agent:NAME, or a folder, as text"), ("only", "names, as text")):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"agent.{name}", getattr(self, name), allowed)
        for name in ("averaging", "drawn"):
            if checks.not_negative(f"agent.{name}", getattr(self, name)) > 1.0:
                raise InputError(f"agent.{name}", getattr(self, name), "a number from 0 to 1")


AgentConfig: TypeAlias = PpoConfig | A2cConfig | DqnConfig | EsConfig
ALGORITHMS: dict[str, type[AgentConfig]] = {
    config.algorithm: config for config in (MaskablePpoConfig, PpoConfig, A2cConfig, DqnConfig, EsConfig)
}


def check_flag(field: str, value: bool) -> None:
    """Check that a setting is True or False."""
    if not isinstance(value, bool):
        raise InputError(field, value, "True or False")


def _check_rates(config: AgentConfig) -> None:
    """Check every number of an algorithm's settings: those named in 0 to 1, all others positive."""
    for each in fields(config):
        name, value = f"agent.{each.name}", getattr(config, each.name)
        if isinstance(each.default, int):
            checks.whole(name, value)
        elif value is not None or each.name not in MAY_BE_NONE:
            share = each.name in {"gamma", "gae_lambda", "exploration_fraction"} or each.name.endswith("_eps")
            checks.not_negative(name, value) if share or each.name.endswith("_coef") else checks.positive(name, value)
            if share and value > 1.0:
                raise InputError(name, value, "a number from 0 to 1")
