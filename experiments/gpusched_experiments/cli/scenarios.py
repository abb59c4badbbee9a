"""`gpusched scenarios` and `gpusched tracks`."""

from collections.abc import Callable, Iterable
from math import isfinite
from statistics import fmean
from typing import Annotated

import typer

from gpusched_env.workload import (
    SUITE_VERSION,
    InstanceMaker,
    Scenario,
    Track,
    builtin_scenarios,
    list_tracks,
    load_scenario,
    load_track,
    offered_load,
    scenario_toml,
    track_toml,
)
from gpusched_env.workload.mixture import parts_of, variants_of
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import PLAIN, RATIO, Column, Table

HOUR_S = 3600.0
SEEDS = range(5)
LOAD = "Load: the time that the cluster would need for the jobs, each GPU alone, over the time in which they come, "


def load_of(scenario: Scenario, seeds: Iterable[int] = SEEDS) -> float | None:
    make = InstanceMaker(scenario).make
    load = fmean(offered_load(make(seed)) for seed in seeds)
    return load if isfinite(load) else None


def _range(scenario: Scenario, value: Callable[[Scenario], float], form: str = "g") -> str:
    values = [value(each) for each in parts_of(scenario)]
    return " to ".join(dict.fromkeys(f"{each:{form}}" for each in (min(values), max(values))))


def _nodes(scenario: Scenario) -> str:
    return _range(scenario, lambda each: each.cluster.nodes)


def _jobs(scenario: Scenario) -> str:
    counts = [each.jobs.count for each in variants_of(scenario)]
    return " to ".join(dict.fromkeys(str(count) for count in (min(counts), max(counts))))


def _gpu_types(scenario: Scenario) -> str:
    return ", ".join(dict.fromkeys(v for each in variants_of(scenario) for v in each.cluster.gpu_types))


def _weights(scenario: Scenario) -> str:
    ends = [(each.weights.min_eur_per_s, each.weights.max_eur_per_s) for each in parts_of(scenario)]
    return f"{HOUR_S * min(low for low, _ in ends):.3g} to {HOUR_S * max(high for _, high in ends):.3g}"


def _restart(scenario: Scenario) -> str:
    restarts = [each.restart_s for each in variants_of(scenario)]
    seconds = [each or 0 for each in restarts if not isinstance(each, str)]
    numbers = [f"{' to '.join(dict.fromkeys(f'{s:g}' for s in (min(seconds), max(seconds))))} s"] if seconds else []
    return ", ".join(dict.fromkeys([*numbers, *(each for each in restarts if isinstance(each, str))]))


SCENARIO_COLUMNS: tuple[Column[tuple[str, Scenario]], ...] = (
    Column("scenario", "scenario", lambda item: item[0]),
    Column("nodes", "nodes", lambda item: _nodes(item[1]), PLAIN),
    Column("jobs", "jobs", lambda item: _jobs(item[1]), PLAIN),
    Column("gpu_types", "GPU types", lambda item: _gpu_types(item[1]), main=False),
    Column("load", "load", lambda item: load_of(item[1]), RATIO, main=False),
    Column("description", "what it is for", lambda item: item[1].description),
)


TRACK_COLUMNS: tuple[Column[Track], ...] = (
    Column("track", "track", lambda track: track.name),
    Column("nodes", "nodes", lambda track: _nodes(track.scenario), PLAIN, main=False),
    Column("gpu_types", "GPU types", lambda track: _gpu_types(track.scenario), main=False),
    Column("jobs", "jobs", lambda track: _jobs(track.scenario), PLAIN, main=False),
    Column("load", "load", lambda track: load_of(track.scenario, track.seeds("test")), RATIO, main=False),
    Column("due", "due", lambda track: _range(track.scenario, lambda each: each.due_dates.slack, ".2g"), main=False),
    Column("weights_eur_per_h", "weight €/h", lambda track: _weights(track.scenario), main=False),
    Column("restart", "restart", lambda track: _restart(track.scenario), main=False),
    Column("hard", "what is hard", lambda track: track.hard),
)


def scenarios_command(
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="NAME|FILE",
            help="Print this scenario (or .toml file) in full, to start from.",
            autocompletion=completion.a_scenario,
        ),
    ] = None,
) -> None:
    """List the built-in scenarios, or print one in full.

    Example: **gpusched scenarios --show default > mine.toml**, edit it, **gpusched compare --scenario mine.toml**
    """
    if show is not None:
        scenario = load_scenario(show)
        InstanceMaker(scenario)  # what it names beside it must be there, and be whole
        typer.echo(scenario_toml(scenario), nl=False)
        return
    note = f"{LOAD}mean over seeds {SEEDS[0]} to {SEEDS[-1]}, none where all come at once."
    print_table(output(), Table.of("Scenarios", SCENARIO_COLUMNS, builtin_scenarios().items(), (note,)), named=True)


def tracks_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Print this track (or .toml file) in full.",
            autocompletion=completion.a_track,
        ),
    ] = None,
) -> None:
    """List the tracks, the suite of workloads on which policies are ranked, or print one in full.

    Example: **gpusched tracks**, **gpusched tracks busy**, then **gpusched compare --track busy**
    """
    if name is not None:
        typer.echo(track_toml(load_track(name)), nl=False)
        return
    note = (
        f"{LOAD}mean over the test seeds. Due: factor on the published time to the due date. Weight: what an hour's "
        "delay of a job costs. `gpusched tracks NAME` says why, and all else."
    )
    table = Table.of(f"Tracks, suite {SUITE_VERSION}", TRACK_COLUMNS, map(load_track, list_tracks()), (note,))
    print_table(output(), table, title=table.title, named=True)
