"""`gpusched tracks`."""

from statistics import fmean
from typing import Annotated

import typer

from gpusched_env.workload import (
    SUITE_VERSION,
    InstanceMaker,
    Scenario,
    Track,
    list_tracks,
    load_track,
    offered_load,
    track_toml,
)
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import PLAIN, RATIO, Column, Table

HOUR_S = 3600.0
NOTE = (
    "Load: the time that the cluster would need for the jobs, each GPU alone, over the time in which they come; mean "
    "over the test seeds. Due: factor on the published time to the due date. Weight: what an hour's delay of a job "
    "costs. `gpusched tracks NAME` says why, and all else."
)


def load_of(track: Track) -> float:
    """Give the mean load that a track offers on its test seeds."""
    make = InstanceMaker(track.scenario).make
    return fmean(offered_load(make(seed)) for seed in track.seeds("test"))


def _weights(scenario: Scenario) -> str:
    ends = scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s
    return " to ".join(f"{HOUR_S * end:.3g}" for end in ends)


def _restart(scenario: Scenario) -> str:
    return scenario.restart_s if isinstance(scenario.restart_s, str) else f"{scenario.restart_s or 0:g} s"


COLUMNS: tuple[Column[Track], ...] = (
    Column("track", "track", lambda track: track.name),
    Column("nodes", "nodes", lambda track: track.scenario.cluster.nodes, PLAIN),
    Column("gpu_types", "GPU types", lambda track: ", ".join(track.scenario.cluster.gpu_types)),
    Column("jobs", "jobs", lambda track: track.scenario.jobs.count, PLAIN),
    Column("load", "load", load_of, RATIO),
    Column("due", "due", lambda track: track.scenario.due_dates.slack, "{:g}".format),
    Column("weights_eur_per_h", "weight €/h", lambda track: _weights(track.scenario)),
    Column("restart", "restart", lambda track: _restart(track.scenario)),
    Column("hard", "what is hard", lambda track: track.hard),
)


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
    table = Table.of(f"Tracks, suite {SUITE_VERSION}", COLUMNS, map(load_track, list_tracks()), (NOTE,))
    print_table(output(), table, title=table.title, named=True)
