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
    """A scenario, or one instance.

    Attributes:
        scenario: The scenario; None where one instance is run.
        instance: That instance; seeds decide the policies' own randomness alone.
        file: The file it comes from.
    """

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

ScenarioOption = Annotated[
    str,
    typer.Option(
        "--scenario",
        "-s",
        help="A built-in scenario (see `gpusched scenarios`), a track (see `gpusched tracks`) or a .toml file.",
        autocompletion=completion.a_scenario,
    ),
]
TrackOption = Annotated[
    str | None,
    typer.Option(
        "--track",
        "-t",
        help="In place of a scenario a track (see `gpusched tracks`) or a .toml file of one.",
        autocompletion=completion.a_track,
    ),
]
TraceOption = Annotated[
    str | None,
    typer.Option("--trace", help="Replay the jobs of this file; what it lacks comes from the scenario."),
]
TraceFormatOption = Annotated[
    str | None,
    typer.Option(
        "--trace-format", help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; told by the file's columns if not given."
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only jobs of the trace that meet this, such as 'gpus > 0' or 'state = COMPLETED'; repeatable.",
    ),
]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave rows of the trace that are not valid out, and count them.")
]
EncodingOption = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of the trace, such as cp1252; default: utf-8.")
]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of jobs; of a trace, the first so many.")]
NodesOption = Annotated[int | None, typer.Option("--nodes", "-n", help="Number of nodes.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core, at most 4.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any setting of the scenario, such as prices.pue=1.2; repeatable."
    ),
]
ScenarioSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario-set",
        metavar="NAME=VALUE",
        help="Any setting of the scenarios, such as prices.pue=1.2; repeatable.",
    ),
]
InstanceOption = Annotated[
    str | None,
    typer.Option(
        "--instance", metavar="FILE", help="Run this instance (a file of save_instance) in place of a scenario."
    ),
]


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


def chosen_workload(
    instance: str | None,
    scenario: str,
    trace: str | None,
    trace_format: str | None,
    jobs: int | None,
    nodes: int | None,
    settings: list[str] | None,
    where: list[str] | None = None,
    skip_invalid: bool = False,
) -> Workload:
    """Give what the options describe: the scenario, or the instance of a file, beside which no other may stand.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    if instance is None:
        return Workload(
            chosen_scenario(
                scenario, trace, trace_format, jobs, nodes, settings, where=where, skip_invalid=skip_invalid
            )
        )
    others = {
        "--scenario": None if scenario == USUAL else scenario,
        "--trace": trace,
        "--trace-format": trace_format,
        "--jobs": jobs,
        "--nodes": nodes,
        "--set": settings or None,
        "--where": where or None,
        "--skip-invalid": skip_invalid or None,
    }
    for option, value in others.items():
        if value is not None:
            shown = value[0] if isinstance(value, list) else value
            raise InputError(option, shown, "nothing beside --instance FILE, which says it all")
    return Workload(None, load_instance(instance), instance)


def scenario_settings(
    scenarios: Sequence[str],
    trace: str | None,
    trace_format: str | None,
    jobs: int | None,
    nodes: int | None,
    settings: list[str] | None,
    where: list[str] | None = None,
    skip_invalid: bool = False,
    option: str = "--scenario-set",
) -> dict[str, object]:
    """Return the settings that the options of a training describe, by dotted name; those of `option` win.

    A trace is looked at with the settings of the first scenario.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    values = dict(parse_setting(text, option=option) for text in settings or [])
    made = chosen_scenario(
        scenarios[0], trace, trace_format, jobs, nodes, settings, where=where, skip_invalid=skip_invalid
    )
    given = _counts(jobs, nodes)
    if trace is not None and made.trace is not None:
        replay = made.trace.model_dump(exclude_defaults=True) | {"format": made.trace.format}
        given |= {f"trace.{name}": value for name, value in replay.items()} | {"jobs.count": made.jobs.count}
    return given | values


def with_encoding(settings: list[str] | None, encoding: str | None) -> list[str] | None:
    """Return the settings of `--set` with that of `--encoding`."""
    return settings if encoding is None else [*(settings or []), f"trace.encoding={encoding}"]


def _counts(jobs: int | None, nodes: int | None) -> dict[str, object]:
    counts = {"jobs.count": jobs, "cluster.nodes": nodes}
    return {name: count for name, count in counts.items() if count is not None}


def chosen_scenario(
    scenario: str,
    trace: str | None,
    trace_format: str | None,
    jobs: int | None,
    nodes: int | None,
    settings: list[str] | None,
    *,
    where: list[str] | None = None,
    skip_invalid: bool = False,
) -> Scenario:
    """Make the scenario that the options describe; `--set` wins over all others.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    if trace_format is not None:
        _named("--trace-format", trace_format, check_format)
    base = load_scenario(scenario)
    values = _selection(where, skip_invalid) | dict(parse_setting(text) for text in settings or [])
    if trace is None:
        without: dict[str, object] = {"--trace-format": trace_format}
        if base.trace is None:
            without |= {"--where": where[0] if where else None, "--skip-invalid": skip_invalid or None}
        for option, value in without.items():
            if value is not None:
                raise InputError(option, value, "nothing without --trace FILE")
        return base.replace(_counts(jobs, nodes) | values)
    # Settings of the replay decide how the file is read, so they must be there when it is first looked at.
    replay = {"trace.path": trace} | {name: value for name, value in values.items() if name.startswith("trace.")}
    told = values.get("trace.format", trace_format)
    based = base.replace(replay)
    made = scenario_for_trace(trace, jobs, nodes, base=based, trace_format=None if told is None else str(told))
    return made.replace(values)


def _selection(where: list[str] | None, skip_invalid: bool) -> dict[str, object]:
    """Give the settings that `--where` and `--skip-invalid` stand for."""
    given: dict[str, object] = {}
    if where:
        given["trace.where"] = list(where)
    if skip_invalid:
        given["trace.skip_invalid"] = True
    return given


def _named(option: str, value: str, check: Callable[[str], None]) -> None:
    """Check a value; an error names the option."""
    try:
        check(value)
    except InputError as error:
        raise InputError(option, value, error.allowed) from None


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
