"""`gpusched scenarios`."""

from typing import Annotated

import typer

from gpusched_env.workload import Scenario, builtin_scenarios, load_scenario, scenario_toml
from gpusched_experiments.cli.tables import print_table
from gpusched_experiments.cli.terminal import output
from gpusched_experiments.report.table import PLAIN, Column, Table

COLUMNS: tuple[Column[tuple[str, Scenario]], ...] = (
    Column("scenario", "scenario", lambda item: item[0]),
    Column("nodes", "nodes", lambda item: item[1].cluster.nodes, PLAIN),
    Column("jobs", "jobs", lambda item: item[1].jobs.count, PLAIN),
    Column("gpu_types", "GPU types", lambda item: ", ".join(item[1].cluster.gpu_types)),
    Column("description", "what it is for", lambda item: item[1].description),
)


def scenarios_command(
    show: Annotated[
        str | None,
        typer.Option("--show", metavar="NAME", help="Print this scenario (or .toml file) in full, to start from."),
    ] = None,
) -> None:
    """List the built-in scenarios, or print one in full.

    Example: **gpusched scenarios --show default > mine.toml**, edit it, **gpusched compare --scenario mine.toml**
    """
    if show is not None:
        typer.echo(scenario_toml(load_scenario(show)), nl=False)
        return
    print_table(output(), Table.of("Scenarios", COLUMNS, builtin_scenarios().items()), named=True)
