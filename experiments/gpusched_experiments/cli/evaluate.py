"""`gpusched evaluate`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gpusched_agents.any_policy import SB3, full_name, is_agent, shown_name
from gpusched_agents.files.storage import PREFIX
from gpusched_env.errors import InputError
from gpusched_experiments.cli import backend_options as backends
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.comparison_plan import USUAL_REFERENCE, USUAL_SEEDS_OF_THE_SAME_JOBS, ComparisonPlan
from gpusched_experiments.cli.comparison_run import run_comparison
from gpusched_experiments.cli.pictures import PicturesOption, picture_forms
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.terminal import note_if_one_seed, output, print_table
from gpusched_experiments.report import PolicyStatistics, RunSummary, compare, summarise
from gpusched_experiments.report.comparison_table import COUNTS, SHORT, means_over, metrics_table
from gpusched_experiments.report.comparison_writing import written
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.table import MONEY, PERCENT, Column, ColumnNote, Table

USUAL_SEEDS = "0-9"


@options.with_options
def evaluate_command(
    *,
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="agent:NAME of one that is shipped, its folder, or a model's .zip.")
    ],
    scenario: options.ScenarioOption = "default",
    track: options.TrackOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            help="Seeds of the workloads: 0-9, or 0,3,5; default: 0-9, with an instance 0-4, with a track its test "
            "seeds.",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            "--against", help="Policies, other agents or FILE.py:Class to measure it against, separated by commas."
        ),
    ] = "edf,sts",
    workers: options.WorkersOption = None,
    given: options.WorkloadOptions,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the runs and a report.html, as compare writes them."
        ),
    ] = None,
    pictures: PicturesOption = None,
    backend: backends.BackendOptions,
) -> None:
    """Evaluate an agent: its costs, and what it saves against other policies on the same workloads.

    Without --out it writes nothing; with it what **gpusched compare** writes, and a stopped evaluation goes on.

    For example:
    - **gpusched evaluate runs/mine/agent --scenario high --seeds 0-49 --against edf,sts,sts-x**

    - **gpusched evaluate runs/mine/agent --nodes 30 --jobs 300 --workers 1**

    - **gpusched evaluate agent:default --out results/agent** writes a report to send on
    """
    forms = picture_forms(pictures)
    if forms and out is None:
        raise InputError("--pictures", pictures, "nothing without --out DIR")
    workload = given.workload(options.scenario_or_track(scenario, track))
    usual = USUAL_SEEDS if given.instance is None else USUAL_SEEDS_OF_THE_SAME_JOBS
    if track is not None and workload.scenario is not None:
        usual = workload.scenario.compare.seeds or usual
    name = full_name(agent) if is_agent(agent) else (SB3 if agent.endswith(".zip") else PREFIX) + agent
    others = [full_name(other.strip()) for other in against.split(",")]
    if len({name, *others}) < 1 + len(others):
        raise InputError("--against", against, "names of policies separated by commas, each once, without the agent")
    machines = backend.chosen()
    replay = None if workload.scenario is None else workload.scenario.trace
    rule = None if replay is None else replay.gpu_demand
    note_if_one_seed(seeds)
    names, text = ",".join([name, *others]), usual if seeds is None else seeds
    reference = USUAL_REFERENCE if USUAL_REFERENCE in others else shown_name(others[0])
    plan = ComparisonPlan.of(workload, names, text, reference, workers, rule, machines)
    runs = _unkept(plan) if out is None else run_comparison(plan, out, forms)[0].runs
    _print(runs, plan.policies[0].name, None if given.instance is None else workload.title)
    for note in workload.notes():
        typer.echo(f"note: {note}", err=True)
    for path in [] if out is None else written(out):
        typer.echo(f"wrote {path}")


def _unkept(plan: ComparisonPlan) -> tuple[RunSummary, ...]:
    with counting(plan.title, plan.count) as bar:
        return compare(
            plan.policies, plan.workload.maker(), plan.seeds, workers=plan.workers,
            on_run=lambda _: bar.advance(), backend=plan.backend, billing=Billing.of(plan.workload.scenario),
        )  # fmt: skip


def _print(runs: Sequence[RunSummary], agent: str, instance: str | None) -> None:
    """Print a row for every policy, and what the agent saves against it."""

    def saving(row: PolicyStatistics) -> Estimate | None:
        if row.policy == agent:
            return None
        own = next(each for each in summarise(runs, row.policy) if each.policy == agent)
        return Estimate(own.saving, own.saving_interval, own.runs)

    rows = summarise(runs, agent)
    columns: tuple[Column[PolicyStatistics], ...] = (
        Column("policy", "policy", lambda row: row.policy),
        Column("energy_eur", "energy €", lambda row: row.energy_eur, MONEY),
        Column("tardiness_eur", "tardiness €", lambda row: row.tardiness_eur, MONEY),
        Column("total_eur", "total €", lambda row: row.total_eur, MONEY),
        Column("late_jobs", "late jobs", lambda row: row.late_jobs, COUNTS),
        Column("ms_per_job", "ms per job", lambda row: ms_per_job(runs, row.policy), SHORT, main=False),
        Column("saving", f"saving of {agent}", saving, PERCENT, interval=True),
    )
    print_table(
        output(), Table.of("Agent", columns, rows, _notes(rows[0].runs, instance)), named=True, best=agent, stacked=None
    )
    print_table(output(), metrics_table(rows), named=True, best=agent, stacked=None)


def ms_per_job(runs: Sequence[RunSummary], policy: str) -> float:
    own = [run for run in runs if run.policy == policy]
    return 1000.0 * sum(run.decision_s for run in own) / sum(run.jobs for run in own)


def _notes(seeds: int, instance: str | None) -> tuple[str, ...]:
    interval = (
        "In brackets the 95 % bootstrap interval over seeds."
        if seeds >= LEAST_SEEDS
        else f"No intervals: they need {LEAST_SEEDS} seeds or more."
    )
    return (
        means_over(seeds, instance),
        f"Saving: 1 - (sum of the agent's total costs) / (sum of those of the policy), paired by seed. {interval}",
        ColumnNote("ms per job: all the time that the policy took to decide / jobs.", "ms_per_job"),
    )
