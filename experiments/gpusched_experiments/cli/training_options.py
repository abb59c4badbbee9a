"""The options of `gpusched train`, each declared once, and the settings that they make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from operator import attrgetter
from typing import Any, NamedTuple

import typer

from gpusched_agents.spec import NETWORKS
from gpusched_agents.training.algorithm_config import (
    ALGORITHMS,
    AdaptationConfig,
    agent_config,
    known_settings,
    one_of,
)
from gpusched_agents.training.config import DEFAULTS, TRACK_VALIDATION, TrainingConfig
from gpusched_agents.training.workloads import TRAINING_SEEDS
from gpusched_env.errors import InputError
from gpusched_env.workload import list_environments, load_track, parse_seeds
from gpusched_env.workload.scenario.places import TRACK, track_place
from gpusched_experiments.cli.scenario_options import parse_setting

NONE, ALL = "none", "all"
TRACK_SEEDS = "20000-20004"
EXAMPLE = "agent.learning_rate=1e-4"
USUAL = TrainingConfig()
SCENARIO_SETTINGS = ("scenario_settings", "validation_settings")  # which have options of their own
OWN_OF_CONTROLS = ("reward", "workloads", "begin")  # settings of `AdaptationConfig` beside those of its algorithm


OF_SB3 = DEFAULTS[AdaptationConfig]
_SEEDS = f"{USUAL.validation_seeds[0]}-{USUAL.validation_seeds[-1]}"
HELP = {
    "agent": f"The algorithm: {', '.join(ALGORITHMS)}; all but es are those of Stable-Baselines3.",
    "scenario": f"Built-in scenarios or .toml files, separated by commas; default: {','.join(USUAL.scenarios)}.",
    "track": f"Tracks in place of scenarios, separated by commas, or {ALL}; validation seeds are {TRACK_SEEDS} then.",
    "steps": f"Rounds of es, default: {USUAL.steps:,}; steps of the others, of several rounds: {OF_SB3['steps']:,}.",
    "network": f"{' or '.join(NETWORKS)}; default: {USUAL.network.kind}. All but es: controls.",
    "hidden": f"Width of its hidden layers, of which es has none by default; others: {OF_SB3['network'].hidden}.",
    "seed": f"Seed of everything; default: {USUAL.seed}.",
    "envs": f"Environments that run at once, not with es; default: {USUAL.envs}.",
    "validation_seeds": "Seeds of the workloads that decide which agent is kept: 500-504, or 0,3,5; "
    f"default: {_SEEDS}.",
    "evaluate_every": "Steps between two evaluations, each with a checkpoint; "
    f"default: {USUAL.evaluate_every:,}, with Stable-Baselines3 {OF_SB3['evaluate_every']:,}.",
    "patience": f"Evaluations without a better one after which it stops; default: {USUAL.patience}.",
}
"""The options of a training, by the name of their parameter."""
SETTINGS = {name: name for name in HELP if name not in {"agent", "track"}} | {
    "scenario": "scenarios",
    "network": "network.kind",
    "hidden": "network.hidden",
}
"""The settings that options stand for, by dotted names; the others choose the algorithm and the tracks."""
WRITTEN = {"agent": ("--agent", "-a"), "scenario": ("--scenario", "-s")}
"""How options are written that are not written as their name."""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parameter(name: str) -> Parameter:
    usual = attrgetter(SETTINGS[name])(USUAL) if name in SETTINGS else ""
    kind = type(usual) if isinstance(usual, int) else str
    default = USUAL.agent.algorithm if name == "agent" else None
    option = typer.Option(default, *WRITTEN.get(name, (_flag(name),)), help=HELP[name])
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)


def with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with every training option in place of its parameter `options`, which gets the given ones."""

    @wraps(command)
    def called(**given: Any) -> None:
        values = {name: given.pop(name) for name in HELP}
        command(options={name: value for name, value in values.items() if value is not None}, **given)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        own = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        parameters += map(_parameter, HELP) if parameter.name == "options" else [own]
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    return called


class _Given(NamedTuple):
    """A value, and where it was given."""

    option: str
    value: Any


class _Setting(NamedTuple):
    """What a setting is by default, and whether it may be none."""

    default: Any
    optional: bool = False


def training_config(
    options: Mapping[str, Any],
    settings: Sequence[str] = (),
    scenario_settings: Mapping[str, object] | None = None,
    validation_settings: Mapping[str, object] | None = None,
) -> TrainingConfig:
    """Return the settings of the training run that the options describe; what they leave out has its default.

    Args:
        options: The values of options (`HELP`) that were given, by name.
        settings: `NAME=VALUE` with any setting by its dotted name; they win over all other options.
    """
    agent = options.get("agent", USUAL.agent.algorithm)
    if agent not in ALGORITHMS:
        raise InputError("--agent", agent, one_of(ALGORITHMS, agent))
    algorithm = agent_config(agent)
    if "track" in options:
        for name in scenario_names(options):
            _check_track(name)
        held_out = {"validation_seeds": TRACK_SEEDS} | dict(options)
        options = {**held_out, "scenario": ",".join(scenario_names(options))}
    usual = TrainingConfig(agent=algorithm())
    given = _given(options, settings, _known(usual))
    values: dict[str, dict[str, Any]] = {"": {}, "agent": {}, "network": {}}
    for name, one in given.items():
        section, _, field = name.rpartition(".")
        values[section][field] = one.value
    own = values["agent"]
    if isinstance(usual.agent, AdaptationConfig):
        controls = {name: own.pop(name) for name in OWN_OF_CONTROLS if name in own}
        own = {**controls, "settings": own}
    try:
        return TrainingConfig(
            agent=algorithm(**own),
            network=replace(usual.network, **values["network"]),
            scenario_settings=scenario_settings or {},
            validation_settings=validation_settings or {},
            **values[""],
        )
    except InputError as error:
        option = given[error.field].option if error.field in given else error.field
        raise InputError(option, error.value, error.allowed) from error


def _check_track(place: str) -> None:
    test = load_track(place.removeprefix(TRACK)).seeds("test")
    taken = [seed for seed in test if seed in range(*TRAINING_SEEDS) or seed in TRACK_VALIDATION]
    if taken:
        used = f"{TRAINING_SEEDS[0]} to {TRAINING_SEEDS[1] - 1} (training) and {TRACK_SEEDS} (choosing)"
        raise InputError("--track", place, f"a track whose test seeds are none of {used}; {taken[0]} is one")


def scenario_names(options: Mapping[str, Any]) -> tuple[str, ...]:
    if "track" in options:
        if "scenario" in options:
            raise InputError("--track", options["track"], "nothing beside --scenario")
        names = (
            list_environments() if options["track"] == ALL else [name.strip() for name in options["track"].split(",")]
        )
        return tuple(track_place(name) for name in names)
    text = options.get("scenario")
    return USUAL.scenarios if text is None else tuple(name.strip() for name in text.split(","))


def _given(options: Mapping[str, Any], settings: Sequence[str], known: Mapping[str, _Setting]) -> dict[str, _Given]:
    given = {setting: _Given(_flag(name), options[name]) for name, setting in SETTINGS.items() if name in options}
    for text in settings:
        name, value = parse_setting(text, EXAMPLE)
        if name not in known:
            raise InputError("--set", text, f"{EXAMPLE}, or another value of one of {', '.join(known)}")
        given[name] = _Given(f"--set {name}", value)
    return {name: _Given(one.option, _read(one, known[name])) for name, one in given.items()}


def _known(whole: TrainingConfig) -> dict[str, _Setting]:
    """Return every setting of an algorithm's by its dotted name, with its default."""
    sections = {"agent.": whole.agent, "network.": whole.network}
    keywords: dict[str, _Setting] = {}
    if isinstance(whole.agent, AdaptationConfig):  # which checks its settings itself
        keywords = {f"agent.{name}": _Setting(getattr(whole.agent, name)) for name in OWN_OF_CONTROLS}
        keywords |= {f"agent.{name}": _Setting(None, optional=True) for name in known_settings(whole.agent.algorithm)}
        del sections["agent."]
    return keywords | {
        prefix + each.name: _Setting(getattr(section, each.name), "None" in str(each.type))
        for prefix, section in {"": whole, **sections}.items()
        for each in fields(section)
        if f"{each.name}." not in {"agent.", *sections} and each.name not in SCENARIO_SETTINGS
    }


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
