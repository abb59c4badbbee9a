"""`gpusched evaluate`."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from gpusched_agents.any_policy import is_agent
from gpusched_agents.files.find_agent import PREFIX
from gpusched_env.errors import InputError
from gpusched_env.workload import make_instance
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.compare import runs_progress
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.terminal import output
from gpusched_experiments.report import RunSummary, compare, summarise
from gpusched_experiments.report.statistics import LEAST_SEEDS
from gpusched_experiments.report.table import columns


def evaluate_command(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="agent:NAME of one that is shipped, or its folder.")],
    scenario: options.ScenarioOption = "default",
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the workloads: 0-9, or 0,3,5.")] = "0-9",
    against: Annotated[
        str, typer.Option("--against", help="Policies or other agents to measure it against, separated by commas.")
    ] = "edf,sts",
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core, at most 4.")
    ] = None,
    trace: options.TraceOption = None,
    trace_format: options.TraceFormatOption = None,
    jobs: options.JobsOption = None,
    nodes: options.NodesOption = None,
    settings: options.SetOption = None,
) -> None:
    """Evaluate an agent: its costs, and what it saves against other policies on the same workloads.

    Writes nothing; **gpusched compare** runs the same and keeps every run.

    For example:
    - **gpusched evaluate runs/mine/agent --scenario high --seeds 0-49 --against edf,sts,sts-x**

    - **gpusched evaluate runs/mine/agent --nodes 30 --jobs 300 --workers 1**
    """
    chosen = options.chosen_scenario(scenario, trace, trace_format, jobs, nodes, settings)
    name = agent if is_agent(agent) else PREFIX + agent
    others = [other.strip() for other in against.split(",")]
    if len({name, *others}) < 1 + len(others):
        raise InputError("--against", against, "names of policies separated by commas, each once, without the agent")
    plan = ComparisonPlan.of(chosen, ",".join([name, *others]), seeds, None, workers)
    with runs_progress(plan) as (progress, task):
        runs = compare(
            partial(make_instance, plan.scenario),
            plan.policies,
            plan.seeds,
            workers=plan.workers,
            on_run=lambda _: progress.advance(task),
        )
    _print(runs, name)


def _print(runs: Sequence[RunSummary], agent: str) -> None:
    """Print a row for every policy, and what the agent saves against it."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", style="bold", no_wrap=True)
    for title in ("energy €", "tardiness €", "total €", "late jobs", "ms per job", f"saving of {agent}"):
        table.add_column(title, justify="right")
    rows = summarise(runs, agent)
    for row in rows:
        costs = [f"{cost:,.2f}" for cost in (row.energy_eur, row.tardiness_eur, row.total_eur)]
        cells = [row.policy, *costs, f"{row.late_jobs:.1f}", f"{ms_per_job(runs, row.policy):.3g}"]
        cells.append("" if row.policy == agent else _saving(runs, agent, row.policy))
        table.add_row(*map(escape, cells), style="green" if row.policy == agent else None)
    output().print(table)
    for note in _notes(rows[0].runs):
        output().print(note, style="dim", markup=False)


def ms_per_job(runs: Sequence[RunSummary], policy: str) -> float:
    """Give the time that `policy` took to decide in all its runs, for each of their jobs [ms]."""
    own = [run for run in runs if run.policy == policy]
    return 1000.0 * sum(run.decision_s for run in own) / sum(run.jobs for run in own)


def _saving(runs: Sequence[RunSummary], agent: str, reference: str) -> str:
    """Write the share of the reference's cost that the agent saves, with its interval, as the comparison table does."""
    row = next(row for row in summarise(runs, reference) if row.policy == agent)
    return next(column for column in columns(reference) if column.title == f"saving vs {reference}").text(row)


def _notes(seeds: int) -> tuple[str, ...]:
    interval = (
        "In brackets the 95 % bootstrap interval over seeds."
        if seeds >= LEAST_SEEDS
        else f"No intervals: they need {LEAST_SEEDS} seeds or more."
    )
    return (
        f"Means over {seeds} seed{'s' if seeds > 1 else ''}; every policy ran on the same instances.",
        f"Saving: 1 - (sum of the agent's total costs) / (sum of those of the policy), paired by seed. {interval}",
        "ms per job: all the time that the policy took to decide / jobs.",
    )
