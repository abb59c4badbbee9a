"""`gpusched trace`."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.files import one_error, write_atomically
from gpusched_env.workload import Scenario, Trace, modelled, replayed_trace
from gpusched_env.workload.site import Site
from gpusched_env.workload.traces.replay import gpu_types_named, ways_out
from gpusched_env.workload.traces.summary import TraceSummary, TypeLoad
from gpusched_env.workload.traces.swf_writing import swf_text
from gpusched_env.workload.traces.trace import read_trace
from gpusched_experiments.cli import scenario_options as options

QUICK_JOBS = 2_000
"""Jobs that a first comparison takes of a longer trace."""
LABEL = 13


@options.with_options
def trace_command(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The trace.")],
    given: Annotated[options.ScenarioOptions, options.OF_A_FILE],
    scenario: options.ScenarioOption = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    swf: Annotated[
        str | None,
        typer.Option(
            "--swf",
            metavar="FILE",
            help="Write its jobs in the Standard Workload Format too.",
        ),
    ] = None,
) -> None:
    """Show what is understood of a trace, and what it means for a cluster, before anything is run on it.

    For example:
    - **gpusched trace cluster_log.csv**

    - **gpusched trace cluster_log.csv --where 'state = COMPLETED' --nodes 40**

    - **gpusched trace jobs.txt --scenario mine.toml**, with jobs.txt from **sacct -P**

    - **gpusched trace jobs.txt --swf jobs.swf**, for other simulators
    """
    asked = replace(given, scenario=scenario, trace=file)
    chosen = asked.make()
    replay = chosen.trace
    assert replay is not None  # noqa: S101 - there is a FILE
    trace = read_trace(replay.path, replay.format, replay.columns, jobs=chosen.jobs.count, **replay.selection)
    site = Site.of(chosen)
    summary = TraceSummary.of(trace, site, chosen)
    command = _command(asked, trace)
    said = modelled(chosen, replayed_trace(chosen))
    if swf is not None:
        with one_error(swf):
            write_atomically(Path(swf), swf_text(trace))
        typer.echo(f"wrote {swf}", err=True)
    if as_json:
        typer.echo(json.dumps(_document(file, trace, summary, chosen, command, said), indent=2, ensure_ascii=False))
        return
    for label, text in _lines(trace, summary, scenario, site):
        typer.echo(f"{label:{LABEL}}{text}".rstrip())
    types = gpu_types_named(chosen, trace)
    if None in types.values():
        typer.echo(f"\nThe cluster does not have all of these GPU types: {ways_out(chosen, types)}")
    typer.echo("\nWhat the trace does not say:")
    for sentence in said:
        typer.echo(f"- {sentence}")
    typer.echo(f"\nGo on with:\n{command}")


def _command(asked: options.ScenarioOptions, trace: Trace) -> str:
    """Write the comparison to go on with: against what really ran, where that is known."""
    given = asked.given()
    count = given.pop("--jobs", [QUICK_JOBS] if len(trace) > QUICK_JOBS else [])
    words = ["gpusched", "compare"]
    for option, values in [*given.items(), ("--jobs", count)]:
        for value in values:
            words += [option] if value is True else [option, str(value)]
    policies = ["--policies", "fifo,edf,sts,sts-x"]
    if trace.start_s is not None:
        policies = ["--policies", "as-traced,edf,sts,sts-x", "--reference", "as-traced"]
    return shlex.join([*words, *policies])


def _lines(trace: Trace, summary: TraceSummary, scenario: str, site: Site) -> Iterator[tuple[str, str]]:
    """Yield what stands on the screen: a label and a text for each line."""
    yield "trace", f"{trace.name}, format {trace.format}"
    yield "columns", ", ".join(f"{field} = {column}" for field, column in trace.columns)
    yield "jobs", f"{summary.jobs:,}"
    yield "left out", ", ".join(f"{count:,} {reason}" for reason, count in trace.skipped) or "no row"
    yield "span", f"{_time(summary.span_s)} from first to last submission"
    busy = "" if summary.mean_gpus is None else f", {summary.mean_gpus:,.1f} GPUs on average"
    yield "work", f"{summary.gpu_hours:,.1f} GPU-hours{busy}"
    median, high, longest = summary.duration_s
    yield "durations", f"median {_time(median)}, 95 % {_time(high)}, longest {_time(longest)}"
    for index, asked in enumerate(summary.demand):
        text = f"{asked.gpus:>6}  {asked.jobs:6.1%} of jobs {asked.gpu_hours:6.1%} of GPU-hours"
        yield "" if index else "GPUs", text
    for index, own in enumerate(summary.gpu_types):
        yield "" if index else "GPU types", _of_type(own)
    load = "all jobs come at once" if summary.load is None else f"{summary.load:.2f}"
    yield "load", f"{load} on the {site.gpus:,} GPUs of {len(site.nodes):,} nodes of scenario {scenario}"
    most = site.most_gpus_of_a_job
    yield "too large", f"{summary.clipped:,} jobs ask for more than {most} GPUs, the most that one is offered there"
    yield "start times", _starts(summary)
    told = (("tenant", summary.tenants), ("user", summary.users))
    known = [f"{count:,} {what}{'s' if count > 1 else ''}" for what, count in told if count]
    yield "of", ", ".join(known) or "nobody: the trace names no tenants or users"


def _of_type(own: TypeLoad) -> str:
    text = f"{own.name or 'none':>6}  {own.jobs:,} jobs, {own.gpu_hours:,.1f} GPU-hours"
    if own.gpu_type is None or not own.gpus:
        return f"{text}; the cluster has none"
    load = "" if own.load is None else f"load {own.load:.2f} on "
    return f"{text}; {load}the {own.gpus:,} GPUs of {own.gpu_type}"


def _starts(summary: TraceSummary) -> str:
    if summary.wait_s is None:
        return "none: the schedule that really ran is not known"
    median, high = summary.wait_s
    if high == 0.0:
        return "yes: as-traced replays what really ran; next to no job waited, or the trace has one time for both"
    return f"yes: as-traced replays what really ran; jobs waited {_time(median)} (median), {_time(high)} (95 %)"


def _time(seconds: float) -> str:
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count:,} {unit}")
        if len(parts) == 2:
            break
    return " ".join(parts)


def _document(
    file: str, trace: Trace, summary: TraceSummary, scenario: Scenario, command: str, said: tuple[str, ...]
) -> dict[str, object]:
    return {
        "file": file,
        "format": trace.format,
        "columns": dict(trace.columns),
        "skipped": dict(trace.skipped),
        **asdict(summary),
        "scenario": scenario.name,
        "modelled": said,
        "command": command,
    }
