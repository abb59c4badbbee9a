"""The options that several commands have, and the workload that they describe."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gpusched_env.envs.source import Replay
from gpusched_env.errors import InputError
from gpusched_env.formats import load_instance
from gpusched_env.model import Instance
from gpusched_env.workload import InstanceMaker, Scenario, load_scenario, load_track, scenario_for_trace
from gpusched_env.workload.scenario.scenario_file import track_place
from gpusched_env.workload.traces.presets import FORMATS, check_format
from gpusched_experiments.cli import terminal as completion


@dataclass(frozen=True, slots=True)
class Workload:
    """A scenario, or one instance and its file, where seeds decide the policies' own randomness alone."""

    scenario: Scenario | None
    instance: Instance | None = None
    file: str = ""

    @property
    def title(self) -> str:
        """Say what it is."""
        return Path(self.file).name if self.scenario is None else self.scenario.name

    def maker(self) -> Callable[[int], Instance]:
        """Give what makes the instance of a seed.

        Raises:
            InputError: The scenario makes none (`InstanceMaker`).
        """
        if self.instance is not None:
            return Replay(self.instance).make
        return InstanceMaker(self.scenario or Scenario()).make

    def facts(self) -> dict[str, Any]:
        """Say where the instances come from, for the provenance of files."""
        if self.scenario is not None:
            return {"scenario": self.scenario.model_dump(mode="json")}
        return {"instance_file": self.file}


USUAL = "default"

HELP = {
    "scenario": "A built-in scenario (see `gpusched scenarios`), a track (see `gpusched tracks`) or a .toml file.",
    "track": "In place of a scenario a track (see `gpusched tracks`) or a .toml file of one.",
    "trace": "Replay the jobs of this file; what it lacks comes from the scenario.",
    "format": f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; told by the file's columns if not given.",
    "where": "Only jobs of the trace that meet this, such as 'gpus > 0' or 'state = COMPLETED'; repeatable.",
    "skip": "Leave rows of the trace that are not valid out, and count them.",
    "encoding": "Encoding of the trace, such as cp1252; default: utf-8.",
    "jobs": "Number of jobs; of a trace, the first so many.",
    "nodes": "Number of nodes.",
    "workers": "Processes; default: one for each core, at most 4.",
    "set": "Any setting of the scenario, such as prices.pue=1.2; repeatable.",
    "scenario_set": "Any setting of the scenarios, such as prices.pue=1.2; repeatable.",
    "instance": "Run this instance (a file of save_instance) in place of a scenario.",
}
_SET = "NAME=VALUE"
_scenario = typer.Option("--scenario", "-s", help=HELP["scenario"], autocompletion=completion.a_scenario)
_track = typer.Option("--track", "-t", help=HELP["track"], autocompletion=completion.a_track)

ScenarioOption = Annotated[str, _scenario]
TrackOption = Annotated[str | None, _track]
TraceOption = Annotated[str | None, typer.Option("--trace", help=HELP["trace"])]
TraceFormatOption = Annotated[str | None, typer.Option("--trace-format", help=HELP["format"])]
WhereOption = Annotated[list[str] | None, typer.Option("--where", metavar="CONDITION", help=HELP["where"])]
SkipInvalidOption = Annotated[bool, typer.Option("--skip-invalid", help=HELP["skip"])]
EncodingOption = Annotated[str | None, typer.Option("--encoding", help=HELP["encoding"])]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help=HELP["jobs"])]
NodesOption = Annotated[int | None, typer.Option("--nodes", "-n", help=HELP["nodes"])]
WorkersOption = Annotated[int | None, typer.Option("--workers", "-w", help=HELP["workers"])]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar=_SET, help=HELP["set"])]
ScenarioSetOption = Annotated[list[str] | None, typer.Option("--scenario-set", metavar=_SET, help=HELP["scenario_set"])]
InstanceOption = Annotated[str | None, typer.Option("--instance", metavar="FILE", help=HELP["instance"])]


def scenario_or_track(scenario: str, track: str | None) -> str:
    """Give the scenario of the track, if one is given; else the scenario.

    Raises:
        InputError: Both are given.
    """
    if track is None:
        return scenario
    if scenario != USUAL:
        raise InputError("--track", track, "nothing beside --scenario: a track has its own")
    place = track_place(track)
    load_track(track)  # a file that is no track is named as such
    return place


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """What the options of a scenario and its trace were given; None, empty or false where they were not."""

    scenario: str
    trace: str | None = None
    trace_format: str | None = None
    jobs: int | None = None
    nodes: int | None = None
    settings: Sequence[str] | None = None
    where: Sequence[str] | None = None
    skip_invalid: bool = False

    def given(self) -> dict[str, list[Any]]:
        """Return what was given, by option: every value of those that may be repeated."""
        values: dict[str, list[Any]] = {
            "--trace": [self.trace],
            "--scenario": [self.scenario] if self.scenario != USUAL else [],
            "--trace-format": [self.trace_format],
            "--where": list(self.where or ()),
            "--skip-invalid": [True] if self.skip_invalid else [],
            "--jobs": [self.jobs],
            "--nodes": [self.nodes],
            "--set": list(self.settings or ()),
        }
        return {option: value for option, value in values.items() if value not in ([], [None])}

    def counts(self) -> dict[str, object]:
        """Return the settings that `--jobs` and `--nodes` stand for."""
        counts = {"jobs.count": self.jobs, "cluster.nodes": self.nodes}
        return {name: count for name, count in counts.items() if count is not None}

    def make(self) -> Scenario:
        """Make the scenario; see `chosen_scenario`."""
        if self.trace_format is not None:
            try:
                check_format(self.trace_format)
            except InputError as error:
                raise InputError("--trace-format", self.trace_format, error.allowed) from None
        base = load_scenario(self.scenario)
        values: dict[str, object] = {"trace.where": list(self.where)} if self.where else {}
        values |= {"trace.skip_invalid": True} if self.skip_invalid else {}
        values |= dict(parse_setting(text) for text in self.settings or ())
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


def chosen_scenario(*options: Any, **more: Any) -> Scenario:
    """Make the scenario that the options describe, fields of `ScenarioOptions`; `--set` wins over all others.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    return ScenarioOptions(*options, **more).make()


def chosen_workload(instance: str | None, *options: Any) -> Workload:
    """Give what the options describe: the scenario, or the instance of a file, beside which no other may stand.

    Args:
        instance: The file of an instance, if one is given.
        options: Fields of `ScenarioOptions`.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    chosen = ScenarioOptions(*options)
    if instance is None:
        return Workload(chosen.make())
    for option, values in chosen.given().items():
        raise InputError(option, values[0], "nothing beside --instance FILE, which says it all")
    return Workload(None, load_instance(instance), instance)


def scenario_settings(scenarios: Sequence[str], *options: Any, option: str = "--scenario-set") -> dict[str, object]:
    """Return the settings that the options of a training describe, by dotted name; those of `option` win.

    A trace is looked at with the settings of the first scenario.

    Args:
        scenarios: Names of the scenarios, or files.
        options: The other fields of `ScenarioOptions`.
        option: What the settings are given by.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    chosen = ScenarioOptions(scenarios[0], *options)
    values = dict(parse_setting(text, option=option) for text in chosen.settings or ())
    made, given = chosen.make(), chosen.counts()
    if chosen.trace is not None and made.trace is not None:
        replay = made.trace.model_dump(exclude_defaults=True) | {"format": made.trace.format}
        given |= {f"trace.{name}": value for name, value in replay.items()} | {"jobs.count": made.jobs.count}
    return given | values


def with_encoding(settings: list[str] | None, encoding: str | None) -> list[str] | None:
    """Return the settings of `--set` with that of `--encoding`."""
    return settings if encoding is None else [*(settings or []), f"trace.encoding={encoding}"]


def parse_setting(text: str, example: str = "cluster.nodes=20", option: str = "--set") -> tuple[str, object]:
    """Read `name=value`: the value as TOML, or else as a plain text.

    Raises:
        InputError: It is not of that form; the error names `option` and shows `example`.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name or not all(name.split(".")):
        raise InputError(option, text, f"section.name=value, such as {example}")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return name, value.strip()
    return name, parsed["value"] if len(parsed) == 1 else value.strip()
