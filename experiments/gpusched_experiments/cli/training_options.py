"""The options of `gpusched train`, and the settings that they make."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gpusched_agents.training.config import ALGORITHMS, AgentConfig, ImitationConfig, NetworkConfig, TrainingConfig
from gpusched_env.errors import InputError
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli.scenario_options import parse_setting

NONE = "none"
EXAMPLE = "agent.learning_rate=1e-4"
OPTIONS = {
    "scenario": "scenarios",
    "steps": "steps",
    "seed": "seed",
    "envs": "envs",
    "network": "network.kind",
    "hidden": "network.hidden",
    "distribution": "network.distribution",
    "imitation_steps": "imitation.steps",
    "validation_seeds": "validation_seeds",
    "evaluate_every": "evaluate_every",
    "patience": "patience",
}
"""The setting that each option stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What was given on the command line; None for what was not.

    Args:
        agent: Name of the algorithm.
        imitate: Name of the teacher, or `none`.
        settings: `NAME=VALUE` with any setting by its dotted name; they win over all other options.
        scenario: This and the rest are single settings, see `OPTIONS`.
        steps: See there.
        seed: See there.
        envs: See there.
        network: See there.
        hidden: See there.
        distribution: See there.
        imitation_steps: See there.
        validation_seeds: See there.
        evaluate_every: See there.
        patience: See there.
    """

    agent: str = next(iter(ALGORITHMS))
    imitate: str | None = None
    settings: tuple[str, ...] = ()
    scenario: str | None = None
    steps: int | None = None
    seed: int | None = None
    envs: int | None = None
    network: str | None = None
    hidden: int | None = None
    distribution: bool | None = None
    imitation_steps: int | None = None
    validation_seeds: str | None = None
    evaluate_every: int | None = None
    patience: int | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    """A value, and where it was given."""

    option: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a setting is by default, and whether it may be none."""

    default: Any
    optional: bool


def training_config(options: TrainingOptions) -> TrainingConfig:
    """Give the settings of the training run that the options describe; what they leave out has its default.

    Raises:
        InputError: There is no such algorithm, teacher or setting, or a value is not allowed; names the option.
    """
    if options.agent not in ALGORITHMS:
        raise InputError("--agent", options.agent, f"one of {', '.join(ALGORITHMS)}")
    algorithm = ALGORITHMS[options.agent]
    given = _given(options, _known(algorithm))
    values = {name: one.value for name, one in given.items()}
    try:
        return TrainingConfig(
            agent=algorithm(**_section("agent", values)),
            network=NetworkConfig(**_section("network", values)),
            imitation=ImitationConfig(**_section("imitation", values)),
            **{name: value for name, value in values.items() if "." not in name},
        )
    except InputError as error:
        option = given[error.field].option if error.field in given else error.field
        raise InputError(option, error.value, error.allowed) from error


def _given(options: TrainingOptions, known: Mapping[str, _Setting]) -> dict[str, _Given]:
    """Collect what was given, by the name of the setting."""
    given = {
        setting: _Given(f"--{name.replace('_', '-')}", getattr(options, name))
        for name, setting in OPTIONS.items()
        if getattr(options, name) is not None
    }
    if options.imitate == NONE:
        if options.imitation_steps:
            raise InputError("--imitation-steps", options.imitation_steps, f"0, beside --imitate {NONE}")
        given["imitation.steps"] = _Given("--imitate", 0)
    elif options.imitate is not None:
        given["imitation.teacher"] = _Given("--imitate", options.imitate)
    for text in options.settings:
        name, value = parse_setting(text, EXAMPLE)
        if name not in known:
            raise InputError("--set", text, f"{EXAMPLE}, or another value of one of {', '.join(known)}")
        given[name] = _Given(f"--set {name}", value)
    return {name: _Given(one.option, _read(one, known[name])) for name, one in given.items()}


def _known(algorithm: type[AgentConfig]) -> dict[str, _Setting]:
    """Give every setting by its dotted name."""
    whole = TrainingConfig(agent=algorithm())
    sections = {"agent.": whole.agent, "network.": whole.network, "imitation.": whole.imitation}
    return {
        prefix + each.name: _Setting(getattr(section, each.name), "None" in str(each.type))
        for prefix, section in {"": whole, **sections}.items()
        for each in fields(section)
        if f"{each.name}." not in sections
    }


def _section(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _read(given: _Given, setting: _Setting) -> Any:
    """Read a value as what its default is; the ranges of numbers are checked by the settings themselves."""
    option, value, default = given.option, given.value, setting.default
    if value == NONE and setting.optional:
        return None
    if isinstance(default, tuple):
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if isinstance(default[0], int):
            return parse_seeds(text, option)
        return tuple(part.strip() for part in text.split(","))
    if isinstance(default, bool) and not isinstance(value, bool):
        raise InputError(option, value, "true or false")
    if isinstance(default, str) and not isinstance(value, str):
        raise InputError(option, value, "a text")
    return value
