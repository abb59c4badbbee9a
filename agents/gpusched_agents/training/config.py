"""The settings of a training run: what is trained, on what, how, and how it is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gpusched_baselines.registry import teacher_names
from gpusched_env import FIRST_DRAWN_SEED
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import Scenario, load_scenario

MAY_BE_NONE = ("target_kl",)
TRACK_VALIDATION = range(20_000, 20_020)  # seeds on which what is done on a track may be chosen
NETWORKS = ("set", "mlp", "steering")


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The network.

    Args:
        kind: `set` scores every configuration with the same weights, and fits any cluster; `mlp` is a plain perceptron;
            `steering` tells STS-X what is dear and urgent, is what `es` trains, and fits any cluster.
        hidden: Width of its layers, 1 to 1,024.
        distribution: Whether it sees what comes from the distribution of epochs.
        guard: Whether it is kept from choices that must be late where another is not and costs less, where it decides
            (`gpusched_agents.network.guard`); not while it learns. One that steers has none: STS-X weighs that.
    """

    kind: str = "set"
    hidden: int = 64
    distribution: bool = True
    guard: bool = False

    def __post_init__(self) -> None:
        if self.kind not in NETWORKS:
            raise InputError("network.kind", self.kind, " or ".join(NETWORKS))
        if checks.whole("network.hidden", self.hidden) > 1024:
            raise InputError("network.hidden", self.hidden, "a whole number from 1 to 1024")
        _check_flag("network.distribution", self.distribution)
        _check_flag("network.guard", self.guard)
        if self.guard and self.kind == "steering":
            raise InputError("network.guard", self.guard, "False, for a network that steers")


@dataclass(frozen=True, slots=True)
class ImitationConfig:
    """The warm start: the agent acts, the teacher says what it would have done, and the agent learns that.

    This is DAgger (Ross, Gordon and Bagnell, 2011) without an ever-growing data set: every update learns from the
    newest decisions. The critic learns the returns meanwhile.

    Args:
        teacher: A policy that decides job by job, one of `gpusched_baselines.registry.teacher_names()`.
        steps: Decisions, ≥ 0 (0: no warm start).
        led: Part of them in which the teacher acts itself, 0 to 1.
        rollout: Decisions of each environment between two updates, ≥ 1.
        epochs: How often an update goes over them, ≥ 1.
        batch_size: Decisions in a mini-batch, ≥ 1.
        learning_rate: At the beginning; it falls to a tenth, > 0.
        value_weight: Weight of the critic's loss, ≥ 0.
        averaging: What the moving average of the weights keeps at each update, 0 to 1; the average is what is kept.
        sharpness: Factor on the scores when reinforcement learning begins, > 0: where the teacher's choice depends on
            what the agent does not see, imitation leaves it undecided, and drawing from that is worse than the best.
    """

    teacher: str = "sts-x"
    steps: int = 500_000
    led: float = 0.1
    rollout: int = 32
    epochs: int = 4
    batch_size: int = 128
    learning_rate: float = 2e-3
    value_weight: float = 0.1
    averaging: float = 0.99
    sharpness: float = 3.0

    def __post_init__(self) -> None:
        if self.teacher not in teacher_names():
            raise InputError("imitation.teacher", self.teacher, f"one of {', '.join(teacher_names())}")
        checks.whole("imitation.steps", self.steps, 0)
        for name in ("rollout", "epochs", "batch_size"):
            checks.whole(f"imitation.{name}", getattr(self, name))
        checks.positive("imitation.learning_rate", self.learning_rate)
        checks.positive("imitation.sharpness", self.sharpness)
        for name in ("led", "averaging", "value_weight"):
            checks.not_negative(f"imitation.{name}", getattr(self, name))
        for name in ("led", "averaging"):
            if getattr(self, name) > 1.0:
                raise InputError(f"imitation.{name}", getattr(self, name), "a number from 0 to 1")


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
        workloads: Workloads on which each is tried, ≥ 1; the scenarios take turns.
        sigma: Standard deviation of a change, > 0.
        learning_rate: At the beginning, > 0.
        final_learning_rate: At the end, > 0; it falls in line with the decisions.
        averaging: What the moving average of the weights keeps at each update, 0 to 1; the average is the agent.
        most_jobs: Jobs of a workload at most, ≥ 1.
        drawn: Part of the workloads whose cluster, applications and load are drawn at random, 0 to 1.
        standardise: Whether a difference counts over what differences usually are on its workload, so that workloads
            on which all weights cost nearly the same count as much as those on which chance does much.
        begin: `agent:NAME`, or the folder, of a steering agent to go on from; by default none.
    """

    algorithm: ClassVar[str] = "es"
    pairs: int = 8
    workloads: int = 3
    sigma: float = 0.1
    learning_rate: float = 0.02
    final_learning_rate: float = 0.002
    averaging: float = 0.9
    most_jobs: int = 300
    drawn: float = 0.0
    standardise: bool = True
    begin: str = ""

    def __post_init__(self) -> None:
        for name in ("pairs", "workloads", "most_jobs"):
            checks.whole(f"agent.{name}", getattr(self, name))
        for name in ("sigma", "learning_rate", "final_learning_rate"):
            checks.positive(f"agent.{name}", getattr(self, name))
        _check_flag("agent.standardise", self.standardise)
        if not isinstance(self.begin, str):
            raise InputError("agent.begin", self.begin, "agent:NAME, or a folder, as text")
        for name in ("averaging", "drawn"):
            if checks.not_negative(f"agent.{name}", getattr(self, name)) > 1.0:
                raise InputError(f"agent.{name}", getattr(self, name), "a number from 0 to 1")


AgentConfig: TypeAlias = PpoConfig | A2cConfig | DqnConfig | EsConfig
ALGORITHMS: dict[str, type[AgentConfig]] = {
    config.algorithm: config for config in (MaskablePpoConfig, PpoConfig, A2cConfig, DqnConfig, EsConfig)
}


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A whole training run.

    Args:
        agent: The algorithm and its settings.
        scenarios: Names or files of the scenarios that the environments run, equally many each; a set network may
            learn on several kinds of clusters at once.
        scenario_settings: New values of settings, by dotted name, that go to every scenario: `{"cluster.nodes": 20}`;
            numbers, texts, and lists and mappings of them.
        steps: Decisions of reinforcement learning, ≥ 0.
        seed: Seed of everything, ≥ 0.
        envs: Environments that run at once, ≥ 1.
        network: The network.
        imitation: The warm start.
        tardiness_factor: What a euro of tardiness counts in training, > 0. Tardiness is so dear that single misses
            drown what is to be learnt of energy; a tenth of it still is.
        above_least: Whether rewards leave out what the work done would have cost at least (`training.work`):
            over an episode the same for every policy, so only the noise is less.
        validation_seeds: Seeds of the workloads that decide which agent is kept, below `gpusched_env.FIRST_DRAWN_SEED`
            or those of tracks: no training episode runs on those.
        evaluate_every: Decisions between two evaluations, ≥ 1; a checkpoint is written with each.
        patience: Evaluations without a better one after which training stops, ≥ 1.
        threads: Threads of PyTorch, ≥ 1: one is fastest on a busy machine. With other threads the same run may round
            otherwise.
    """

    agent: AgentConfig = field(default_factory=MaskablePpoConfig)
    scenarios: tuple[str, ...] = ("default",)
    scenario_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    steps: int = 500_000
    seed: int = 0
    envs: int = 32
    network: NetworkConfig = field(default_factory=NetworkConfig)
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    tardiness_factor: float = 0.1
    above_least: bool = True
    validation_seeds: tuple[int, ...] = tuple(range(500, 505))
    evaluate_every: int = 50_000
    patience: int = 8
    threads: int = 1

    def __post_init__(self) -> None:
        for name, kind in (("agent", AgentConfig), ("network", NetworkConfig), ("imitation", ImitationConfig)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(name, getattr(self, name), "settings, such as those by default")
        if isinstance(self.agent, EsConfig):  # what suits the other algorithms by default does not suit it
            usual = ("network", NetworkConfig(), STEERING_NETWORK), ("imitation", ImitationConfig(), NO_WARM_START)
            for name, default, fitting in usual:
                object.__setattr__(self, name, fitting if getattr(self, name) == default else getattr(self, name))
        for name in ("scenarios", "validation_seeds"):
            if not isinstance(getattr(self, name), list | tuple) or not getattr(self, name):
                raise InputError(name, getattr(self, name), "a list, one or more")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _check_names(self.scenarios)
        object.__setattr__(self, "scenario_settings", _plain_settings(self.scenario_settings))
        _check_held_out(self.validation_seeds)
        _check_flag("above_least", self.above_least)
        checks.whole("steps", self.steps, 0)
        checks.seed(self.seed)
        for name in ("envs", "evaluate_every", "patience", "threads"):
            checks.whole(name, getattr(self, name))
        checks.positive("tardiness_factor", self.tardiness_factor)
        _check_together(self.agent, self.network, self.imitation)
        if self.steps + self.imitation.steps == 0:
            raise InputError("steps", self.steps, "more than 0, where there is no imitation either")

    def loaded_scenarios(self) -> tuple[Scenario, ...]:
        """Load the scenarios, one for each name, with `scenario_settings` in them.

        Raises:
            InputError: There is no such scenario or setting, or a value is not allowed.
        """
        return tuple(self.loaded_scenario(index) for index in range(len(self.scenarios)))

    def loaded_scenario(self, index: int) -> Scenario:
        """Load one of the scenarios likewise."""
        return load_scenario(self.scenarios[index]).replace(self.scenario_settings)

    def as_dict(self) -> dict[str, Any]:
        """Give the settings as JSON can hold them, the algorithm's name among those of the agent."""
        document = asdict(self)
        document["agent"] = {"algorithm": self.agent.algorithm, **document["agent"]}
        plain: dict[str, Any] = _plain(document)
        return plain


def _plain_settings(settings: Any) -> dict[str, Any]:
    """Copy settings of scenarios, without tuples.

    Raises:
        InputError: They are no mapping, or a value is none that JSON holds.
    """
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        allowed = 'a mapping of dotted names to values, such as {"cluster.nodes": 20}'
        raise InputError("scenario_settings", settings, allowed)
    plain: dict[str, Any] = _plain(dict(settings))
    for name, value in plain.items():
        try:
            json.dumps(value)
        except TypeError:
            raise InputError(f"scenario_settings[{name!r}]", value, "numbers, texts, lists and mappings") from None
    return plain


def _plain(value: Any) -> Any:
    """Give a value without tuples and NumPy's numbers."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _check_held_out(seeds: tuple[int, ...]) -> None:
    for index, seed in enumerate(seeds):
        name = f"validation_seeds[{index}]"
        if checks.seed(seed, name) >= FIRST_DRAWN_SEED and seed not in TRACK_VALIDATION:
            others = f"{TRACK_VALIDATION.start} to {TRACK_VALIDATION.stop - 1} of tracks"
            allowed = f"a seed below {FIRST_DRAWN_SEED:,}, or {others}: training draws its workloads from the others"
            raise InputError(name, seed, allowed)


def _check_together(agent: AgentConfig, network: NetworkConfig, imitation: ImitationConfig) -> None:
    """Check that the network and the warm start are those of the algorithm."""
    steers = isinstance(agent, EsConfig)
    if (network.kind == "steering") != steers:
        allowed = f"{'steering' if steers else 'set or mlp'}, for {agent.algorithm}"
        raise InputError("network.kind", network.kind, allowed)
    if steers and imitation.steps > 0:
        raise InputError("imitation.steps", imitation.steps, "0, for es: it begins as STS-X")


def _check_names(scenarios: tuple[str, ...]) -> None:
    for index, scenario in enumerate(scenarios):
        if not isinstance(scenario, str):
            raise InputError(f"scenarios[{index}]", scenario, "a name or a file's path, as text")


def _check_flag(field: str, value: bool) -> None:
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


STEERING_NETWORK, NO_WARM_START = NetworkConfig("steering", hidden=8), ImitationConfig(steps=0)
