"""`gpusched scenarios`."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gpusched_env.workload import builtin_scenarios, load_scenario, scenario_toml
from gpusched_experiments.cli.terminal import output


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
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("scenario", style="bold", no_wrap=True)
    table.add_column("nodes", justify="right")
    table.add_column("jobs", justify="right")
    table.add_column("GPU types")
    table.add_column("what it is for")
    for name, scenario in builtin_scenarios().items():
        cluster = scenario.cluster
        nodes, jobs = str(cluster.nodes), str(scenario.jobs.count)
        table.add_row(name, nodes, jobs, ", ".join(cluster.gpu_types), scenario.description)
    output().print(table)
