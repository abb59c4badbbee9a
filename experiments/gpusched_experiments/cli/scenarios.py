"""`gpusched scenarios` and `gpusched tracks`."""

from collections.abc import Iterable
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
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import PLAIN, RATIO, Column, Table

HOUR_S = 3600.0
SEEDS = range(5)
LOAD = "Load: the time that the cluster would need for the jobs, each GPU alone, over the time in which they come, "


def load_of(scenario: Scenario, seeds: Iterable[int] = SEEDS) -> float | None:
    """Return the mean load that a scenario offers on these seeds; None if its jobs come all at once."""
    make = InstanceMaker(scenario).make
    load = fmean(offered_load(make(seed)) for seed in seeds)
    return load if isfinite(load) else None


def _weights(scenario: Scenario) -> str:
    ends = scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s
    return " to ".join(f"{HOUR_S * end:.3g}" for end in ends)


def _restart(scenario: Scenario) -> str:
    return scenario.restart_s if isinstance(scenario.restart_s, str) else f"{scenario.restart_s or 0:g} s"


SCENARIO_COLUMNS: tuple[Column[tuple[str, Scenario]], ...] = (
    Column("scenario", "scenario", lambda item: item[0]),
    Column("nodes", "nodes", lambda item: item[1].cluster.nodes, PLAIN),
    Column("jobs", "jobs", lambda item: item[1].jobs.count, PLAIN),
    Column("gpu_types", "GPU types", lambda item: ", ".join(item[1].cluster.gpu_types)),
    Column("load", "load", lambda item: load_of(item[1]), RATIO),
    Column("description", "what it is for", lambda item: item[1].description),
)


TRACK_COLUMNS: tuple[Column[Track], ...] = (
    Column("track", "track", lambda track: track.name),
    Column("nodes", "nodes", lambda track: track.scenario.cluster.nodes, PLAIN),
    Column("gpu_types", "GPU types", lambda track: ", ".join(track.scenario.cluster.gpu_types)),
    Column("jobs", "jobs", lambda track: track.scenario.jobs.count, PLAIN),
    Column("load", "load", lambda track: load_of(track.scenario, track.seeds("test")), RATIO),
    Column("due", "due", lambda track: track.scenario.due_dates.slack, "{:g}".format),
    Column("weights_eur_per_h", "weight €/h", lambda track: _weights(track.scenario)),
    Column("restart", "restart", lambda track: _restart(track.scenario)),
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
