"""The options of `gpusched train`, each declared once, and the settings that they make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from gpusched_agents.training.config import (
    ALGORITHMS,
    TEACHERS,
    AgentConfig,
    ImitationConfig,
    NetworkConfig,
    TrainingConfig,
)
from gpusched_env.errors import InputError
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli.scenario_options import parse_setting

NONE = "none"
EXAMPLE = "agent.learning_rate=1e-4"
USUAL = TrainingConfig()


@dataclass(frozen=True, slots=True)
class Sets:
    """The setting of the training that an option stands for, by its dotted name."""

    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What was given on the command line; None for what was not. Every option says its help and its setting."""

    agent: Annotated[str, typer.Option("--agent", "-a", help=f"The algorithm: {', '.join(ALGORITHMS)}.")] = (
        USUAL.agent.algorithm
    )
    scenario: Annotated[
        str | None,
        Sets("scenarios"),
        typer.Option(
            "--scenario",
            "-s",
            help=f"Built-in scenarios or .toml files, separated by commas; default: {','.join(USUAL.scenarios)}.",
        ),
    ] = None
    steps: Annotated[
        int | None,
        Sets("steps"),
        typer.Option("--steps", help=f"Decisions of reinforcement learning; default: {USUAL.steps:,}."),
    ] = None
    imitate: Annotated[
        str | None,
        typer.Option(
            "--imitate",
            help=f"Teacher of the warm start: {', '.join(TEACHERS)}, or {NONE}; default: {USUAL.imitation.teacher}.",
        ),
    ] = None
    imitation_steps: Annotated[
        int | None,
        Sets("imitation.steps"),
        typer.Option("--imitation-steps", help=f"Its decisions; default: {USUAL.imitation.steps:,}."),
    ] = None
    network: Annotated[
        str | None, Sets("network.kind"), typer.Option("--network", help=f"set or mlp; default: {USUAL.network.kind}.")
    ] = None
    hidden: Annotated[
        int | None,
        Sets("network.hidden"),
        typer.Option("--hidden", help=f"Width of its layers; default: {USUAL.network.hidden}."),
    ] = None
    distribution: Annotated[
        bool | None,
        Sets("network.distribution"),
        typer.Option(
            "--distribution/--no-distribution", help="Whether it sees what comes from the distribution of epochs."
        ),
    ] = None
    seed: Annotated[
        int | None, Sets("seed"), typer.Option("--seed", help=f"Seed of everything; default: {USUAL.seed}.")
    ] = None
    envs: Annotated[
        int | None,
        Sets("envs"),
        typer.Option("--envs", help=f"Environments that run at once; default: {USUAL.envs}."),
    ] = None
    validation_seeds: Annotated[
        str | None,
        Sets("validation_seeds"),
        typer.Option(
            "--validation-seeds",
            help="Seeds of the workloads that decide which agent is kept: 500-504, or 0,3,5; default: "
            f"{USUAL.validation_seeds[0]}-{USUAL.validation_seeds[-1]}.",
        ),
    ] = None
    evaluate_every: Annotated[
        int | None,
        Sets("evaluate_every"),
        typer.Option(
            "--evaluate-every",
            help=f"Decisions between two evaluations, each with a checkpoint; default: {USUAL.evaluate_every:,}.",
        ),
    ] = None
    patience: Annotated[
        int | None,
        Sets("patience"),
        typer.Option(
            "--patience", help=f"Evaluations without a better one after which it stops; default: {USUAL.patience}."
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Give the values of the options that stand for a setting and were given, by the option's name."""
        return {name: getattr(self, name) for name in SETTINGS if getattr(self, name) is not None}


_HINTS = get_type_hints(TrainingOptions, include_extras=True)
SETTINGS = {name: each.setting for name, hint in _HINTS.items() for each in hint.__metadata__ if isinstance(each, Sets)}
"""The setting that each option stands for."""


def with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every training option in the place of its parameter `options`, which gets them put together."""

    @wraps(command)
    def called(**given: Any) -> None:
        command(options=TrainingOptions(**{name: given.pop(name) for name in _HINTS}), **given)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name == "options":
            parameters += [
                Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=_HINTS[each.name])
                for each in fields(TrainingOptions)
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    return called


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


def training_config(options: TrainingOptions, settings: Sequence[str] = ()) -> TrainingConfig:
    """Give the settings of the training run that the options describe; what they leave out has its default.

    Args:
        options: The options.
        settings: `NAME=VALUE` with any setting by its dotted name; they win over all other options.

    Raises:
        InputError: There is no such algorithm, teacher or setting, or a value is not allowed; names the option.
    """
    if options.agent not in ALGORITHMS:
        raise InputError("--agent", options.agent, f"one of {', '.join(ALGORITHMS)}")
    algorithm = ALGORITHMS[options.agent]
    given = _given(options, settings, _known(algorithm))
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


def _given(options: TrainingOptions, settings: Sequence[str], known: Mapping[str, _Setting]) -> dict[str, _Given]:
    """Collect what was given, by the name of the setting."""
    given = {SETTINGS[name]: _Given(f"--{name.replace('_', '-')}", value) for name, value in options.given().items()}
    if options.imitate == NONE:
        if options.imitation_steps:
            raise InputError("--imitation-steps", options.imitation_steps, f"0, beside --imitate {NONE}")
        given["imitation.steps"] = _Given("--imitate", 0)
    elif options.imitate is not None:
        given["imitation.teacher"] = _Given("--imitate", options.imitate)
    for text in settings:
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
