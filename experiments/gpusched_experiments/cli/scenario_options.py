"""The options that several commands have, and the scenario that they make."""

import tomllib
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.workload import Scenario, load_scenario, scenario_for_trace

ScenarioOption = Annotated[
    str, typer.Option("--scenario", "-s", help="A built-in scenario (see `gpusched scenarios`) or a .toml file.")
]
TraceOption = Annotated[
    str | None,
    typer.Option("--trace", help="Replay the jobs of this CSV file; what it lacks comes from the scenario."),
]
TraceFormatOption = Annotated[
    str | None,
    typer.Option("--trace-format", help="philly or generic; told by the file's columns if not given."),
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


def chosen_scenario(
    scenario: str,
    trace: str | None,
    trace_format: str | None,
    jobs: int | None,
    nodes: int | None,
    settings: list[str] | None,
) -> Scenario:
    """Make the scenario that the options describe; `--set` wins over all others.

    Raises:
        InputError: There is no such scenario, file or setting, or a value is not allowed.
    """
    base = load_scenario(scenario)
    values = dict(parse_setting(text) for text in settings or [])
    if trace is None:
        if trace_format is not None:
            raise InputError("--trace-format", trace_format, "nothing without --trace FILE")
        counts = {"jobs.count": jobs, "cluster.nodes": nodes}
        return base.replace({name: count for name, count in counts.items() if count is not None} | values)
    # Settings of the replay decide how the file is read, so they must be there when it is first looked at.
    replay = {"trace.path": trace} | {name: value for name, value in values.items() if name.startswith("trace.")}
    made = scenario_for_trace(trace, jobs, nodes, base=base.replace(replay))
    if trace_format is not None:
        values = {"trace.format": trace_format} | values
    return made.replace(values)


def parse_setting(text: str, example: str = "cluster.nodes=20") -> tuple[str, object]:
    """Read `name=value`: the value as TOML, or else as a plain text.

    Raises:
        InputError: It is not of that form; the error shows `example`.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name or not all(name.split(".")):
        raise InputError("--set", text, f"section.name=value, such as {example}")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return name, value.strip()
    return name, parsed["value"] if len(parsed) == 1 else value.strip()
