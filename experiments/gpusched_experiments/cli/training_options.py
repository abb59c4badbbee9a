"""The options of `gpusched train`, each declared once, and the settings that they make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from gpusched_agents.training.algorithm_config import ALGORITHMS
from gpusched_agents.training.config import STEERING_COUNTS, TRACK_VALIDATION, TrainingConfig
from gpusched_agents.training.steering_config import (
    ALL_ALGORITHMS,
    SteeringConfig,
    agent_config,
    known_settings,
    one_of,
)
from gpusched_agents.training.worlds import TRAINING_SEEDS
from gpusched_baselines.registry import teacher_names
from gpusched_env.errors import InputError
from gpusched_env.workload import list_tracks, load_track, parse_seeds
from gpusched_env.workload.scenario.scenario_file import TRACK, track_place
from gpusched_experiments.cli.scenario_options import parse_setting

NONE, ALL = "none", "all"
TRACK_SEEDS = "20000-20004"
EXAMPLE = "agent.learning_rate=1e-4"
USUAL = TrainingConfig()
SCENARIO_SETTINGS = "scenario_settings"  # which has options of its own
OWN_OF_KNOBS = ("reward", "workloads")  # settings of `SteeringConfig` beside those of its algorithm


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line.

    Attributes:
        name: Name of its parameter.
        kind: Type of its value.
        help: What it is, with its default.
        setting: The setting of the training that it stands for, by its dotted name, if it stands for one.
        flags: How it is written; by default as its name.
        default: Its value where it was not given, if it has one.
    """

    name: str
    kind: type
    help: str
    setting: str | None = None
    flags: tuple[str, ...] = ()
    default: Any = None

    @property
    def flag(self) -> str:
        """How it is written in full."""
        return f"--{self.name.replace('_', '-')}"

    def parameter(self) -> Parameter:
        """Give it as Typer reads it from a command."""
        option = typer.Option(self.default, *(self.flags or (self.flag,)), help=self.help)
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=option, annotation=self.kind | None)


BY_JOB = (
    "maskable-ppo and dqn decide job by job; es steers STS-X; the others set its knobs, but ppo and a2c with --network "
    "set or mlp decide job by job."
)
OFTEN = f"{STEERING_COUNTS['evaluate_every']:,} of knobs"
_SEEDS = f"{USUAL.validation_seeds[0]}-{USUAL.validation_seeds[-1]}"
OPTIONS = tuple(
    Option(*each)
    for each in (
        (
            "agent", str,
            f"The algorithm: {', '.join(ALL_ALGORITHMS)}. {BY_JOB}",
            None, ("--agent", "-a"), USUAL.agent.algorithm,
        ),
        (
            "scenario", str,
            f"Built-in scenarios or .toml files, separated by commas; default: {','.join(USUAL.scenarios)}.",
            "scenarios", ("--scenario", "-s"),
        ),
        (
            "track", str,
            f"Tracks in place of scenarios, separated by commas, or {ALL}; validation seeds are {TRACK_SEEDS} then.",
        ),
        (
            "steps", int,
            f"Decisions of reinforcement learning; default: {USUAL.steps:,}, {STEERING_COUNTS['steps']:,} of knobs.",
            "steps",
        ),
        (
            "imitate", str,
            f"Teacher of the warm start: {', '.join(teacher_names())}, or {NONE}; default: {USUAL.imitation.teacher}.",
        ),
        ("imitation_steps", int, f"Its decisions; default: {USUAL.imitation.steps:,}.", "imitation.steps"),
        (
            "network", str,
            f"set or mlp, where it decides job by job; default: {USUAL.network.kind}. Others: steering (es), knobs.",
            "network.kind",
        ),
        (
            "hidden", int, f"Width of its layers; default: {USUAL.network.hidden}, 32 of knobs, 8 of es.",
            "network.hidden",
        ),
        (
            "distribution", bool, "Whether it sees what comes from the distribution of epochs.", "network.distribution",
            ("--distribution/--no-distribution",),
        ),
        ("seed", int, f"Seed of everything; default: {USUAL.seed}.", "seed"),
        (
            "envs", int,
            f"Environments that run at once; default: {USUAL.envs}, {STEERING_COUNTS['envs']} of knobs.", "envs",
        ),
        (
            "validation_seeds", str,
            f"Seeds of the workloads that decide which agent is kept: 500-504, or 0,3,5; default: {_SEEDS}.",
            "validation_seeds",
        ),
        (
            "evaluate_every", int,
            f"Decisions between two evaluations, each with a checkpoint; default: {USUAL.evaluate_every:,}, {OFTEN}.",
            "evaluate_every",
        ),
        (
            "patience", int, f"Evaluations without a better one after which it stops; default: {USUAL.patience}.",
            "patience",
        ),
    )
)  # fmt: skip
"""The options of a training; those that stand for no setting choose the algorithm, the teacher and the tracks."""


def with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every training option in the place of its parameter `options`, which gets those given by name."""

    @wraps(command)
    def called(**given: Any) -> None:
        values = {option.name: given.pop(option.name) for option in OPTIONS}
        command(options={name: value for name, value in values.items() if value is not None}, **given)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        own = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        parameters += [option.parameter() for option in OPTIONS] if parameter.name == "options" else [own]
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


def training_config(
    options: Mapping[str, Any], settings: Sequence[str] = (), scenario_settings: Mapping[str, object] | None = None
) -> TrainingConfig:
    """Give the settings of the training run that the options describe; what they leave out has its default.

    Args:
        options: The values of `OPTIONS` that were given, by name.
        settings: `NAME=VALUE` with any setting by its dotted name; they win over all other options.
        scenario_settings: Settings of all scenarios, by dotted name.

    Raises:
        InputError: There is no such algorithm, teacher or setting, or a value is not allowed; names the option.
    """
    agent = options.get("agent", USUAL.agent.algorithm)
    if agent not in ALL_ALGORITHMS:
        raise InputError("--agent", agent, one_of(ALL_ALGORITHMS, agent))
    algorithm = agent_config(agent, _network(options, settings))
    if "track" in options:
        for name in scenario_names(options):
            _check_track(name)
        held_out = {"validation_seeds": TRACK_SEEDS} | dict(options)
        options = {**held_out, "scenario": ",".join(scenario_names(options))}
    usual = TrainingConfig(agent=algorithm())
    given = _given(options, settings, _known(usual))
    if usual.steers:
        _check_steering(given, usual)
    values = {name: one.value for name, one in given.items()}
    try:
        return TrainingConfig(
            agent=algorithm(**_agent_section(usual, values)),
            network=replace(usual.network, **_section("network", values)),
            imitation=replace(usual.imitation, **_section("imitation", values)),
            scenario_settings=scenario_settings or {},
            **{name: value for name, value in values.items() if "." not in name},
        )
    except InputError as error:
        option = given[error.field].option if error.field in given else error.field
        raise InputError(option, error.value, error.allowed) from error


def _check_track(place: str) -> None:
    """Check that what a track is judged by is nothing that a training draws or chooses by."""
    test = load_track(place.removeprefix(TRACK)).seeds("test")
    taken = [seed for seed in test if seed in range(*TRAINING_SEEDS) or seed in TRACK_VALIDATION]
    if taken:
        used = f"{TRAINING_SEEDS[0]} to {TRAINING_SEEDS[1] - 1} (training) and {TRACK_SEEDS} (choosing)"
        raise InputError("--track", place, f"a track whose test seeds are none of {used}; {taken[0]} is one")


def scenario_names(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the names of the scenarios that `training_config` takes from the options."""
    if "track" in options:
        if "scenario" in options:
            raise InputError("--track", options["track"], "nothing beside --scenario")
        names = list_tracks() if options["track"] == ALL else [name.strip() for name in options["track"].split(",")]
        return tuple(track_place(name) for name in names)
    text = options.get("scenario")
    return USUAL.scenarios if text is None else tuple(name.strip() for name in text.split(","))


def _given(options: Mapping[str, Any], settings: Sequence[str], known: Mapping[str, _Setting]) -> dict[str, _Given]:
    """Collect what was given, by the name of the setting."""
    given = {
        option.setting: _Given(option.flag, options[option.name])
        for option in OPTIONS
        if option.setting is not None and option.name in options
    }
    if options.get("imitate") == NONE:
        if options.get("imitation_steps"):
            raise InputError("--imitation-steps", options["imitation_steps"], f"0, beside --imitate {NONE}")
        given["imitation.steps"] = _Given("--imitate", 0)
    elif "imitate" in options:
        given["imitation.teacher"] = _Given("--imitate", options["imitate"])
    for text in settings:
        name, value = parse_setting(text, EXAMPLE)
        if name not in known:
            raise InputError("--set", text, f"{EXAMPLE}, or another value of one of {', '.join(known)}")
        given[name] = _Given(f"--set {name}", value)
    return {name: _Given(one.option, _read(one, known[name])) for name, one in given.items()}


def _network(options: Mapping[str, Any], settings: Sequence[str]) -> str | None:
    """Return the kind of the network that was asked for, if one was."""
    told = [parse_setting(text, EXAMPLE) for text in settings if text.partition("=")[0].strip() == "network.kind"]
    return str(told[-1][1]) if told else options.get("network")


def _check_steering(given: Mapping[str, _Given], usual: TrainingConfig) -> None:
    """Check that nothing was given that an agent that steers has no use for.

    By themselves the settings of a network and of a warm start that are those of other algorithms by default would pass
    for settings that nobody gave.
    """
    name_of, kind = usual.agent.algorithm, usual.network.kind
    both = isinstance(usual.agent, SteeringConfig) and name_of in ALGORITHMS
    other = "; with --network set or mlp it decides job by job, and may imitate" if both else ""
    for name, one in given.items():
        if name == "network.kind" and one.value != kind:
            raise InputError(one.option, one.value, f"{kind}, for {name_of}")
        if name.startswith("imitation.") and (name, one.value) != ("imitation.steps", 0):
            raise InputError(one.option, one.value, f"none, or 0 steps, for {name_of}: it begins as STS-X{other}")


def _agent_section(usual: TrainingConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the settings of the algorithm."""
    given = _section("agent", values)
    if not isinstance(usual.agent, SteeringConfig):
        return given
    own = {name: given.pop(name) for name in OWN_OF_KNOBS if name in given}
    return {**own, "settings": given}


def _known(whole: TrainingConfig) -> dict[str, _Setting]:
    """Give every setting of an algorithm's by its dotted name, with its default."""
    sections = {"agent.": whole.agent, "network.": whole.network, "imitation.": whole.imitation}
    keywords: dict[str, _Setting] = {}
    if isinstance(whole.agent, SteeringConfig):  # which checks its settings itself
        own = {name: getattr(whole.agent, name) for name in OWN_OF_KNOBS}
        keywords = {f"agent.{name}": _Setting(value, optional=False) for name, value in own.items()}
        keywords |= {f"agent.{name}": _Setting(None, optional=True) for name in known_settings(whole.agent.algorithm)}
        del sections["agent."]
    return keywords | {
        prefix + each.name: _Setting(getattr(section, each.name), "None" in str(each.type))
        for prefix, section in {"": whole, **sections}.items()
        for each in fields(section)
        if f"{each.name}." not in {"agent.", *sections} and each.name != SCENARIO_SETTINGS
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
