"""`gpusched compare`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from gpusched_env.files import new_folder, write_atomically
from gpusched_env.formats import save_instance
from gpusched_env.model import Instance
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Result
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload import scenario_toml
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.tables import print_comparison
from gpusched_experiments.cli.terminal import drawing_or_note, output
from gpusched_experiments.report import (
    PolicyStatistics,
    RunSummary,
    compare,
    markdown_table,
    results_json,
    runs_csv,
    summarise,
)

FILES = ("results.json", "runs.csv", "table.md", "scenario.toml", "instance.json", "costs.png", "gantt.png")
DRAWS = "gpusched_experiments.report.figures"


def compare_command(
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            "-p",
            help="Policies and agents (agent:NAME, agent:DIR), separated by commas, or all policies; default: those "
            "that `gpusched policies` marks.",
        ),
    ] = None,
    scenario: options.ScenarioOption = "default",
    track: options.TrackOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            help="Seeds of the workloads: 0-19, or 0,3,5; default: 0-39, with a trace or instance 0-4, with a track "
            "its test seeds.",
        ),
    ] = None,
    workers: options.WorkersOption = None,
    reference: Annotated[
        str | None, typer.Option("--reference", "-r", help="Policy that savings are measured against; default: edf.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results; replaces a former comparison.")
    ] = "results/compare",
    trace: options.TraceOption = None,
    trace_format: options.TraceFormatOption = None,
    where: options.WhereOption = None,
    skip_invalid: options.SkipInvalidOption = False,
    jobs: options.JobsOption = None,
    nodes: options.NodesOption = None,
    settings: options.SetOption = None,
    instance: options.InstanceOption = None,
) -> None:
    """Compare policies: every policy on the same workloads, one for each seed.

    Ends in a table (mean cost, savings with 95 % intervals, gaps to the bounds), a figure of the costs, and the Gantt
    chart of one run; the folder also holds every run (results.json, runs.csv) and the scenario. Policies, seeds,
    reference and workers may also stand in the scenario file, in the section compare; options win. With --instance
    all run that instance, and seeds decide only the policies' own randomness.

    For example:
    - **gpusched compare**

    - **gpusched compare --policies edf,sts --scenario high --seeds 0-49 --workers 2**

    - **gpusched compare --nodes 20 --jobs 200 --set prices.pue=1.2 --set arrivals.kind=low**

    - **gpusched compare --track busy** runs its test seeds

    - **gpusched compare --trace philly.csv --jobs 2000 --nodes 60**

    - **gpusched compare --instance mine.json**
    """
    scenario = options.scenario_or_track(scenario, track)
    workload = options.chosen_workload(
        instance, scenario, trace, trace_format, jobs, nodes, settings, where, skip_invalid
    )
    plan = ComparisonPlan.of(workload, policies, seeds, reference, workers)
    charts = drawing_or_note(DRAWS)
    # A bad workload, and a policy that does not fit it, show before anything begins.
    make = cache(plan.workload.maker())
    check_fit(plan.policies, make(plan.seeds[0]))
    with new_folder(out, ours=FILES) as folder:
        rows = _compare(plan, make, folder, charts)
    print_comparison(output(), rows, plan.reference, _what(plan))
    for name in FILES:
        if (Path(out) / name).exists():
            typer.echo(f"wrote {Path(out) / name}")


def _compare(
    plan: ComparisonPlan, make: Callable[[int], Instance], folder: Path, charts: ModuleType | None
) -> tuple[PolicyStatistics, ...]:
    """Run the comparison and write its files; the Gantt chart shows one of its own runs."""
    firsts: list[Result] = []  # of the first seed
    with counting(plan.title, plan.count) as bar:
        runs = compare(
            make,
            plan.policies,
            plan.seeds,
            workers=plan.workers,
            on_run=lambda _: bar.advance(),
            on_result=None if charts is None else firsts.append,
        )
        rows = summarise(runs, plan.reference)
        _write(plan, folder, runs, rows)
        if charts is not None:
            bar.say("drawing the charts")
            _draw(charts, plan, folder, runs, rows, firsts)
    return rows


def _what(plan: ComparisonPlan) -> str | None:
    """Name the instance that all seeds run, if it is one."""
    return plan.workload.title if plan.workload.scenario is None else None


def _write(
    plan: ComparisonPlan, folder: Path, runs: tuple[RunSummary, ...], rows: tuple[PolicyStatistics, ...]
) -> None:
    facts = {
        **plan.workload.facts(),
        "policies": [policy.name for policy in plan.policies],
        "seeds": plan.seeds,
        "reference": plan.reference,
        "workers": plan.workers,
    }
    write_atomically(folder / "results.json", results_json(runs, rows, plan.reference, provenance(None, **facts)))
    write_atomically(folder / "runs.csv", runs_csv(runs))
    write_atomically(folder / "table.md", markdown_table(rows, plan.reference, _what(plan)))
    if plan.workload.scenario is not None:
        write_atomically(folder / "scenario.toml", scenario_toml(plan.workload.scenario))
    elif plan.workload.instance is not None:
        save_instance(plan.workload.instance, folder / "instance.json")


def _draw(
    charts: ModuleType,
    plan: ComparisonPlan,
    folder: Path,
    runs: tuple[RunSummary, ...],
    rows: tuple[PolicyStatistics, ...],
    firsts: list[Result],
) -> None:
    """Draw the costs, and the first seed's run of the policy that costs least."""
    best = min(rows, key=lambda row: row.total_eur).policy
    result = next(result for result in firsts if result.policy == best)
    count = len(plan.seeds)
    seeds = f"{count} seed{'s' if count > 1 else ''}{' of the policies' if plan.workload.scenario is None else ''}"
    title = f"{plan.workload.title}: {len(result.instance.nodes)} nodes, {runs[0].jobs} jobs, {seeds}"
    write_atomically(folder / "costs.png", charts.png_bytes(charts.cost_figure(rows, runs, title)))
    write_atomically(folder / "gantt.png", charts.gantt_png(result))
