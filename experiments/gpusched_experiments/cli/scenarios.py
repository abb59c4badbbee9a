"""`gpusched scenarios`."""

from math import isfinite
from statistics import fmean
from typing import Annotated

import typer

from gpusched_env.workload import InstanceMaker, Scenario, builtin_scenarios, load_scenario, offered_load, scenario_toml
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.table import PLAIN, RATIO, Column, Table

SEEDS = range(5)
NOTE = (
    "Load: the time that the cluster would need for the jobs, each GPU alone, over the time in which they come; mean "
    f"over seeds {SEEDS[0]} to {SEEDS[-1]}, none where all come at once."
)


def load_of(scenario: Scenario) -> float | None:
    """Give the mean load that a scenario offers; None if its jobs come all at once."""
    make = InstanceMaker(scenario).make
    load = fmean(offered_load(make(seed)) for seed in SEEDS)
    return load if isfinite(load) else None


COLUMNS: tuple[Column[tuple[str, Scenario]], ...] = (
    Column("scenario", "scenario", lambda item: item[0]),
    Column("nodes", "nodes", lambda item: item[1].cluster.nodes, PLAIN),
    Column("jobs", "jobs", lambda item: item[1].jobs.count, PLAIN),
    Column("gpu_types", "GPU types", lambda item: ", ".join(item[1].cluster.gpu_types)),
    Column("load", "load", lambda item: load_of(item[1]), RATIO),
    Column("description", "what it is for", lambda item: item[1].description),
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
    print_table(output(), Table.of("Scenarios", COLUMNS, builtin_scenarios().items(), (NOTE,)), named=True)
