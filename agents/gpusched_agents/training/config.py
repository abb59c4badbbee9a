"""The settings of a training run: algorithm, network, scenarios and evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import numpy as np

from gpusched_agents.spec import Count, NetworkConfig, check_settings
from gpusched_agents.training.algorithm_config import AdaptationConfig, AgentConfig, EsConfig
from gpusched_env import FIRST_SAMPLED_SEED
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import Scenario, load_scenario

TRACK_VALIDATION = range(20_000, 20_020)  # validation seeds of tracks
UNSET: Any = object()  # stands for a default that depends on the algorithm


def _check_seed(field: str, value: Any) -> None:
    checks.seed(value, field)


def _check_held_out(field: str, seeds: tuple[int, ...]) -> None:
    for index, seed in enumerate(seeds):
        name = f"{field}[{index}]"
        if checks.seed(seed, name) >= FIRST_SAMPLED_SEED and seed not in TRACK_VALIDATION:
            others = f"{TRACK_VALIDATION.start} to {TRACK_VALIDATION.stop - 1} of tracks"
            allowed = f"a seed below {FIRST_SAMPLED_SEED:,}, or {others}: training draws its workloads from the others"
            raise InputError(name, seed, allowed)


def _check_names(field: str, scenarios: tuple[str, ...]) -> None:
    for index, scenario in enumerate(scenarios):
        if not isinstance(scenario, str):
            raise InputError(f"{field}[{index}]", scenario, "a name or a file's path, as text")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A whole training run.

    Args:
        agent: The algorithm and its settings.
        scenarios: Names or files of the scenarios that the environments run, equally many each; a network
            `control-set` may learn on several kinds of clusters at once.
        scenario_settings: New values of settings, by dotted name, that go to every scenario: `{"cluster.nodes": 20}`;
            numbers, texts, and lists and mappings of them.
        validation_settings: Further ones that only validation workloads have, such as
            `{"prices.first_month": "2023-01"}`: then an agent is chosen on other months than those of its training.
        steps: Decisions of learning, ≥ 1: by default 500,000 rounds of `es`, and 20,000 steps of the adaptation
            environment.
        seed: Seed of everything, ≥ 0.
        envs: Environments that run at once, ≥ 1; by default 8. `es` has none.
        network: The network; by default one that fits the algorithm.
        validation_seeds: Seeds of the workloads that decide which agent is kept, below
            `gpusched_env.FIRST_SAMPLED_SEED` or those of tracks: no training episode runs on those.
        evaluate_every: Decisions between two evaluations, ≥ 1; a checkpoint is written with each. By default 50,000
            of `es`, and 2,048 steps of the adaptation environment.
        patience: Evaluations without a better one after which training stops, ≥ 1.
        threads: Threads of PyTorch, ≥ 1: one is fastest on a busy machine. With another number of threads the same run
            may round differently.
    """

    agent: AgentConfig = field(default_factory=EsConfig)
    scenarios: Annotated[tuple[str, ...], _check_names] = ("default",)
    scenario_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    validation_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    steps: Count = UNSET
    seed: Annotated[int, _check_seed] = 0
    envs: Count = UNSET
    network: NetworkConfig = UNSET
    validation_seeds: Annotated[tuple[int, ...], _check_held_out] = tuple(range(500, 505))
    evaluate_every: Count = UNSET
    patience: Count = 8
    threads: Count = 1

    def __post_init__(self) -> None:
        if not isinstance(self.agent, AgentConfig):
            raise InputError("agent", self.agent, "settings, such as those by default")
        for name, own in DEFAULTS[type(self.agent)].items():
            object.__setattr__(self, name, own if getattr(self, name) is UNSET else getattr(self, name))
        if not isinstance(self.network, NetworkConfig):
            raise InputError("network", self.network, "settings, such as those by default")
        for name in ("scenarios", "validation_seeds"):
            if not isinstance(getattr(self, name), list | tuple) or not getattr(self, name):
                raise InputError(name, getattr(self, name), "a list, one or more")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("scenario_settings", "validation_settings"):
            object.__setattr__(self, name, _plain_settings(name, getattr(self, name)))
        check_settings(self)
        kinds = network_kinds(self.agent)
        if self.network.kind not in kinds:
            raise InputError("network.kind", self.network.kind, f"{' or '.join(kinds)}, for {self.agent.algorithm}")

    def loaded_scenarios(self) -> tuple[Scenario, ...]:
        """Load the scenarios, one for each name, with `scenario_settings` in them.

        Raises:
            InputError: There is no such scenario or setting, or a value is not allowed.
        """
        return tuple(self.loaded_scenario(index) for index in range(len(self.scenarios)))

    def loaded_scenario(self, index: int) -> Scenario:
        """Load one of the scenarios, with `scenario_settings` in it."""
        return load_scenario(self.scenarios[index]).replace(self.scenario_settings)

    def validation_scenario(self, index: int) -> Scenario:
        """Load one of the scenarios for validation, with `validation_settings` in it, too."""
        return self.loaded_scenario(index).replace(self.validation_settings)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in types of JSON, with the algorithm's name among those of the agent."""
        document = asdict(self)
        if not self.validation_settings:
            del document["validation_settings"]
        document["agent"] = {"algorithm": self.agent.algorithm, **document["agent"]}
        plain: dict[str, Any] = _plain(document)
        return plain


def _plain_settings(field: str, settings: Any) -> dict[str, Any]:
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        allowed = 'a mapping of dotted names to values, such as {"cluster.nodes": 20}'
        raise InputError(field, settings, allowed)
    plain: dict[str, Any] = _plain(dict(settings))
    for name, value in plain.items():
        try:
            json.dumps(value)
        except TypeError:
            raise InputError(f"{field}[{name!r}]", value, "numbers, texts, lists and mappings") from None
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def network_kinds(agent: AgentConfig) -> tuple[str, ...]:
    return ("control-set", "controls") if isinstance(agent, EsConfig) else ("controls",)


LINEAR = NetworkConfig("control-set", layers=0)
"""The network that `es` trains by default: a linear one has few weights."""
ENVS = 8
DEFAULTS: dict[type, dict[str, Any]] = {
    EsConfig: {"network": LINEAR, "steps": 500_000, "envs": ENVS, "evaluate_every": 50_000},
    AdaptationConfig: {
        "network": NetworkConfig("controls", hidden=32), "steps": 20_000, "envs": ENVS, "evaluate_every": 2_048,
    },
}  # fmt: skip
"""The defaults that depend on the algorithm, by the class of its settings."""
