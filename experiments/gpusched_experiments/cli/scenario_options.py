"""The options that several commands have, and the workload that they describe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from gpusched_env.errors import InputError
from gpusched_env.formats import load_instance
from gpusched_env.parsing import parse_toml
from gpusched_env.workload import Scenario, load_scenario, load_track, scenario_for_trace
from gpusched_env.workload.scenario.places import track_place
from gpusched_env.workload.scenario.prices import is_price_file
from gpusched_env.workload.traces import FORMATS
from gpusched_env.workload.traces.presets import check_format
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.report.comparison_writing import Workload

USUAL = "default"

SET = "NAME=VALUE"
ScenarioOption = Annotated[
    str,
    typer.Option(
        "--scenario", "-s", autocompletion=completion.a_scenario,
        help="A built-in scenario (see `gpusched scenarios`), a track (see `gpusched tracks`) or a .toml file.",
    ),
]  # fmt: skip
TrackOption = Annotated[
    str | None,
    typer.Option(
        "--track", "-t", autocompletion=completion.a_track,
        help="In place of a scenario a track (see `gpusched tracks`) or a .toml file of one.",
    ),
]  # fmt: skip
PoliciesOption = Annotated[
    str | None,
    typer.Option(
        "--policies", "-p", autocompletion=completion.policies,
        help="Policies, agents (agent:NAME, agent:DIR) and your own (FILE.py:Class, whose code runs), separated by "
        "commas, or all policies; default: those that "
        "`gpusched policies` marks, with `worlds` all that are not slow.",
    ),
]  # fmt: skip
WorkersOption = Annotated[
    int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core, at most 4.")
]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of jobs; of a trace, the first ones.")]
WHERE = "Only jobs of the trace that meet this, such as 'gpus > 0' or 'state = COMPLETED'; repeatable."
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar=SET, help="Any setting of the scenario, such as prices.pue=1.2; repeatable."),
]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command the options of the settings classes that its parameters are annotated with.

    A field that is annotated with an option, or with the text of its help, is an option of its type and default. Beside
    the class may stand a tuple: the only fields that are options. The command gets an object of the class.
    """
    fields_of: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        kind, only = parameter.annotation, None
        if get_origin(kind) is Annotated and is_dataclass(get_args(kind)[0]):
            kind, only = get_args(kind)
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(kind, include_extras=True)
        made = [each for each in fields(kind) if get_origin(hints[each.name]) is Annotated]
        if only is not None:
            made = [each for each in made if each.name in only]
        fields_of[parameter.name] = kind, [each.name for each in made]
        for each in made:
            of, option = get_args(hints[each.name])
            if isinstance(option, str):
                option = typer.Option(_flag(each.name), help=option)
            name = f"{parameter.name}_{each.name}"
            parameters.append(
                Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=Annotated[of, option])
            )

    @wraps(command)
    def called(**given: Any) -> None:
        for name, (kind, names) in fields_of.items():
            given[name] = kind(**{each: given.pop(f"{name}_{each}") for each in names})
        command(**given)

    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    return called


OF_A_FILE = ("trace_format", "where", "skip_invalid", "encoding", "jobs", "nodes", "settings")


def scenario_or_track(scenario: str, track: str | None) -> str:
    if track is None:
        return scenario
    if scenario != USUAL:
        raise InputError("--track", track, "nothing beside --scenario: a track has its own")
    place = track_place(track)
    load_track(track)  # a file that is no track is named as such
    return place


@dataclass(frozen=True, kw_only=True)
class ScenarioOptions:
    """What the options of a scenario and its trace were given; None, empty or false where they were not."""

    trace: Annotated[str | None, "Replay the jobs of this file; what it lacks comes from the scenario."] = None
    scenario: str = USUAL
    trace_format: Annotated[
        str | None, f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; recognised by the file's columns if not given."
    ] = None
    where: Annotated[list[str] | None, typer.Option("--where", metavar="CONDITION", help=WHERE)] = None
    skip_invalid: Annotated[bool, "Leave rows of the trace that are not valid out, and count them."] = False
    encoding: Annotated[str | None, "Encoding of the trace, such as cp1252; default: utf-8."] = None
    jobs: JobsOption = None
    nodes: Annotated[int | None, typer.Option("--nodes", "-n", help="Number of nodes.")] = None
    prices: Annotated[
        str | None, "Prices of energy by period: de-lu, caiso or ercot, one year of them (de-lu-2024), or a file."
    ] = None
    settings: SetOption = None

    def given(self) -> dict[str, list[Any]]:
        values = {each: getattr(self, each.name) for each in fields(ScenarioOptions)}
        return {
            "--set" if each.name == "settings" else _flag(each.name): value if isinstance(value, list) else [value]
            for each, value in values.items()
            if value not in (each.default, [])
        }

    @property
    def written(self) -> list[str]:
        series = str(Path(self.prices).resolve()) if self.prices and is_price_file(self.prices) else self.prices
        own = [] if series is None else [f"prices.series={series}"]
        return [*own, *([] if self.encoding is None else [f"trace.encoding={self.encoding}"]), *(self.settings or ())]

    def counts(self) -> dict[str, object]:
        counts = {"jobs.count": self.jobs, "cluster.nodes": self.nodes}
        return {name: count for name, count in counts.items() if count is not None}

    def make(self) -> Scenario:
        """Make the scenario; `--set` wins over all other options."""
        if self.trace_format is not None:
            try:
                check_format(self.trace_format)
            except InputError as error:
                raise InputError("--trace-format", self.trace_format, error.allowed) from None
        base = load_scenario(self.scenario)
        values: dict[str, object] = {"trace.where": list(self.where)} if self.where else {}
        values |= {"trace.skip_invalid": True} if self.skip_invalid else {}
        values |= dict(parse_setting(text) for text in self.written)
        if self.trace is None:
            of_traces = ("--trace-format", *(("--where", "--skip-invalid") if base.trace is None else ()))
            for option, values_given in self.given().items():
                if option in of_traces:
                    raise InputError(option, values_given[0], "nothing without --trace FILE")
            return base.replace(self.counts() | values)
        # Settings of the replay decide how the file is read, so they must be there when it is first looked at.
        replay = {"trace.path": self.trace} | {n: value for n, value in values.items() if n.startswith("trace.")}
        told = values.get("trace.format", self.trace_format)
        form = None if told is None else str(told)
        made = scenario_for_trace(self.trace, self.jobs, self.nodes, base=base.replace(replay), trace_format=form)
        return made.replace(values)

    def changes(self, scenarios: Sequence[str], option: str = "--scenario-set") -> dict[str, object]:
        """Return the settings that the options of a training describe, by dotted name; those of `option` win."""
        values = dict(parse_setting(text, option=option) for text in self.written)
        made, given = replace(self, scenario=scenarios[0]).make(), self.counts()
        if self.trace is not None and made.trace is not None:
            replay = made.trace.model_dump(exclude_defaults=True) | {"format": made.trace.format}
            given |= {f"trace.{name}": value for name, value in replay.items()} | {"jobs.count": made.jobs.count}
        return given | values


@dataclass(frozen=True, kw_only=True)
class TrainingScenarioOptions(ScenarioOptions):
    """The same for a training, where `--set` is taken."""

    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario-set", metavar=SET, help="Any setting of the scenarios, such as prices.pue=1.2; repeatable."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions(ScenarioOptions):
    """What the options of a workload were given: a scenario's, or the file of an instance."""

    instance: Annotated[
        str | None,
        typer.Option(
            "--instance", metavar="FILE", help="Run this instance (a file of save_instance) in place of a scenario."
        ),
    ] = None

    def workload(self, scenario: str) -> Workload:
        """Return what the options describe: the scenario, or the instance of a file, which allows no other option."""
        chosen = replace(self, scenario=scenario)
        if self.instance is None:
            return Workload(chosen.make())
        for option, values in chosen.given().items():
            raise InputError(option, values[0], "nothing beside --instance FILE, which says it all")
        return Workload(None, load_instance(self.instance), self.instance)


def parse_setting(text: str, example: str = "cluster.nodes=20", option: str = "--set") -> tuple[str, object]:
    """Read `name=value`: the value as TOML, or else as a plain text; errors name `option` and show `example`."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name or not all(name.split(".")):
        raise InputError(option, text, f"section.name=value, such as {example}")
    try:
        parsed = parse_toml(f"value = {value}")
    except ValueError:
        return name, value.strip()
    return name, parsed["value"] if len(parsed) == 1 else value.strip()
