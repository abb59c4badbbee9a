"""`gpusched worlds`."""

from collections.abc import Iterator
from itertools import count as count_up
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import checks
from gpusched_env.workload import Scenario, draw_scenario
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli import world_costs as costs
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.cli.world_costs import ComparedScenario
from gpusched_experiments.cli.world_runs import WorldRuns, names_of
from gpusched_experiments.report.table import Table, csv_text, markdown


@options.with_options
def worlds_command(
    *,
    count: Annotated[int, typer.Option("--count", "-n", help="Number of scenarios that are compared.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 1,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the workloads of each.")] = "91000-91004",
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", help="Other seeds, on which the best other runs again where it was cheaper."),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(
            "--without", help="Compare with the same policy without each GPU type (types) or without shares (shares)."
        ),
    ] = None,
    policies: options.PoliciesOption = None,
    reference: Annotated[
        str, typer.Option("--reference", "-r", help="Policy that the others are held against.")
    ] = "sts-x",
    limits: costs.Limits,
    workers: options.WorkersOption = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")] = "results/worlds",
) -> None:
    """Draw random clusters and jobs, and list where another policy is cheaper than the reference.

    Nobody tuned a policy on them. Loads, due dates, weights, restarts, GPU types and applications are drawn over wide
    ranges; the same seed draws the same scenarios. By default all policies that are not slow run, without variants of
    the reference. With --without the reference alone runs, on those that have several GPU types, or shares: scenarios
    are drawn until there are enough. Each comparison has a folder of its own, whose page **gpusched report** writes.
    Finished runs are kept: stop it at any moment, the same command in the same folder goes on.

    For example:
    - **gpusched worlds --count 50 --seed 1**

    - **gpusched worlds --confirm 98005-98024 --max-ratio 1.05 --max-cheaper 0**

    - **gpusched worlds --without types --confirm 98005-98024 --max-cheaper 0**
    """
    checks.whole("--count", count, 1)
    study = _study(without, policies)
    names = [reference] if study.variants else names_of(policies, reference)
    run = WorldRuns.of(names, seeds, confirm, workers, Path(out))
    rows: list[ComparedScenario] = []
    for number, (scenario, variants) in enumerate(islice(_drawn(seed, study), count), start=1):
        typer.echo(f"note: {scenario.name}, {number} of {count}", err=True)
        rows += run.beside_variants(scenario, variants) if variants else run.beside_policies(scenario)
    rows.sort(key=lambda each: -each.ratio.value)
    summary = costs.Summary.of(rows, study.margin)
    note, what = summary.text(study, run.reference), f"{run.reference} beside {study.other}"
    table = Table.of(f"Drawn scenarios, seed {seed}: {what}", costs.COLUMNS, rows, (note,))
    files = {f"{study.file}.md": markdown(table), f"{study.file}.csv": csv_text(table)}
    for name, content in files.items():
        write_atomically(Path(out) / name, content)
    lost, title = [each for each in rows if each.ratio.value > 1.0], f"Where {study.other} is cheaper"
    if lost:
        print_table(output(), Table.of(title, costs.COLUMNS, lost, table.notes), title=title)
    else:
        typer.echo(note)
    for name in files:
        typer.echo(f"wrote {Path(out) / name}")
    missed = limits.missed(summary)
    for line in missed:
        typer.echo(line, err=True)
    if missed:
        raise typer.Exit(1)


def _drawn(seed: int, study: costs.Study) -> Iterator[tuple[Scenario, dict[str, Scenario]]]:
    """Draw scenarios on which the study compares something, each with its variants."""
    for index in count_up():
        scenario = draw_scenario(seed, index)
        variants = {} if study.variants is None else study.variants(scenario)
        if variants or study.variants is None:
            yield scenario, variants


def _study(without: str | None, policies: str | None) -> costs.Study:
    if without is None:
        return costs.POLICIES
    if without not in costs.LEFT_OUT:
        raise InputError("--without", without, f"one of {', '.join(costs.LEFT_OUT)}")
    if policies is not None:
        raise InputError("--policies", policies, "nothing with --without: the reference alone runs")
    return costs.LEFT_OUT[without]
