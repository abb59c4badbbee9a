"""`gpusched compare`."""

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gpusched_env.cli.comparison_table import print_table
from gpusched_env.cli.policies import parse_policies
from gpusched_env.cli.scenario_options import (
    JobsOption,
    NodesOption,
    ScenarioOption,
    SetOption,
    TraceFormatOption,
    TraceOption,
    chosen_scenario,
)
from gpusched_env.cli.seeds import parse_seeds
from gpusched_env.cli.terminal import output, progress_output
from gpusched_env.errors import InputError
from gpusched_env.files import new_folder, write_atomically
from gpusched_env.model import checks
from gpusched_env.provenance import provenance
from gpusched_env.rendering import MissingExtraError
from gpusched_env.report import PolicyStatistics, RunSummary, compare, markdown_table, results_json, runs_csv, summarise
from gpusched_env.simulator import Policy, simulate
from gpusched_env.workload import Scenario, make_instance, scenario_toml

FILES = ("results.json", "runs.csv", "table.md", "scenario.toml", "costs.png", "gantt.png")
USUAL_REFERENCE = "edf"
MOST_WORKERS = 4  # by default


def compare_command(
    policies: Annotated[
        str, typer.Option("--policies", "-p", help="Policies, separated by commas (see `gpusched policies`).")
    ] = "all",
    scenario: ScenarioOption = "default",
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the workloads: 0-19, or 0,3,5.")] = "0-39",
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; by default one for each core, at most 4.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", "-r", help="Policy that savings are measured against; by default edf.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results; replaces a former comparison.")
    ] = "results/compare",
    trace: TraceOption = None,
    trace_format: TraceFormatOption = None,
    jobs: JobsOption = None,
    nodes: NodesOption = None,
    settings: SetOption = None,
) -> None:
    """Compare policies: every policy on the same workloads, one for each seed.

    Ends in a table (mean cost, savings with 95 % intervals, gaps to the bounds), a figure of the costs, and the Gantt
    chart of one run; the folder also holds every run (results.json, runs.csv) and the scenario.

    For example:
    - **gpusched compare**

    - **gpusched compare --policies edf,sts --scenario high --seeds 0-49 --workers 2**

    - **gpusched compare --nodes 20 --jobs 200 --set prices.pue=1.2 --set arrivals.kind=low**

    - **gpusched compare --trace philly.csv --jobs 2000 --nodes 60 --seeds 0-4**
    """
    chosen_policies, chosen_seeds = parse_policies(policies), parse_seeds(seeds)
    chosen_reference = _reference(reference, [policy.name for policy in chosen_policies])
    chosen = chosen_scenario(scenario, trace, trace_format, jobs, nodes, settings)
    processes = min(MOST_WORKERS, os.cpu_count() or 1) if workers is None else checks.whole("--workers", workers)
    charts = _charts()
    make_instance(chosen, chosen_seeds[0])  # a bad workload shows before anything begins
    with new_folder(out, ours=FILES) as folder:
        runs = _run(chosen, chosen_policies, chosen_seeds, processes)
        rows = summarise(runs, chosen_reference)
        facts = {"scenario": chosen.model_dump(mode="json"), "seeds": chosen_seeds, "workers": processes}
        write_atomically(folder / "results.json", results_json(runs, rows, chosen_reference, provenance(None, **facts)))
        write_atomically(folder / "runs.csv", runs_csv(runs))
        write_atomically(folder / "table.md", markdown_table(rows, chosen_reference))
        write_atomically(folder / "scenario.toml", scenario_toml(chosen))
        if charts is not None:
            _draw(charts, folder, chosen, chosen_policies, rows, runs)
    print_table(output(), rows, chosen_reference)
    for name in FILES:
        if (Path(out) / name).exists():
            typer.echo(f"wrote {Path(out) / name}")


def _reference(wanted: str | None, names: list[str]) -> str:
    if wanted is None:
        return USUAL_REFERENCE if USUAL_REFERENCE in names else names[0]
    if wanted not in names:
        raise InputError("--reference", wanted, f"one of the policies compared: {', '.join(names)}")
    return wanted


def _charts() -> ModuleType | None:
    """Import what draws, before anything is run; without matplotlib there are no figures, which is said."""
    try:
        return import_module("gpusched_env.cli.charts")
    except MissingExtraError as missing:
        typer.echo(f"note: no figures, since {missing}", err=True)
        return None


def _run(
    scenario: Scenario, policies: tuple[Policy, ...], seeds: tuple[int, ...], workers: int
) -> tuple[RunSummary, ...]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_output()) as progress:
        task = progress.add_task(f"{len(policies)} policies, {len(seeds)} seeds", total=len(policies) * len(seeds))
        return compare(
            partial(make_instance, scenario),
            policies,
            seeds,
            workers=workers,
            on_run=lambda _: progress.advance(task),
        )


def _draw(
    charts: ModuleType,
    folder: Path,
    scenario: Scenario,
    policies: tuple[Policy, ...],
    rows: tuple[PolicyStatistics, ...],
    runs: tuple[RunSummary, ...],
) -> None:
    """Draw the costs, and the first seed's run of the policy that costs least."""
    seed, count = runs[0].seed, len({run.seed for run in runs})
    seeds = f"{count} seed{'s' if count > 1 else ''}"
    title = f"{scenario.name}: {scenario.cluster.nodes} nodes, {runs[0].jobs} jobs, {seeds}"
    write_atomically(folder / "costs.png", charts.cost_png(rows, runs, title))
    best = min(rows, key=lambda row: row.total_eur).policy
    policy = next(policy for policy in policies if policy.name == best)
    result = simulate(make_instance(scenario, seed), policy, seed=seed)
    write_atomically(folder / "gantt.png", charts.gantt_png(result))
