"""`gpusched simulate`."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.table import Table

from gpusched_agents.any_policy import make_any_policy
from gpusched_env.errors import InputError
from gpusched_env.files import check_new_folder, one_error
from gpusched_env.formats.run_folder import MAY_HOLD, write_run
from gpusched_env.rendering.power import hours_of
from gpusched_env.rendering.text import duration_text
from gpusched_env.simulator import Result, simulate
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import check_fit
from gpusched_experiments.cli import pictures
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.terminal import output
from gpusched_experiments.report.comparison_writing import Workload
from gpusched_experiments.report.metrics import Billing, RunMetrics
from gpusched_experiments.report.record import check_same


@options.with_options
def simulate_command(
    *,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="The policy (see `gpusched policies`), an agent, or your own: FILE.py:Class, whose code runs.",
            autocompletion=completion.a_policy,
        ),
    ] = "sts",
    scenario: options.ScenarioOption = "default",
    track: options.TrackOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the workload and of the policy's randomness.")] = 0,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for the run's files; `gpusched audit` checks them."),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option("--hours", metavar="FILE", help="CSV file for energy, its cost and emissions of every hour."),
    ] = None,
    given: options.WorkloadOptions,
    chart: pictures.ChartOptions,
    animation: pictures.AnimationOptions,
) -> None:
    """Run one policy once, and print what it cost.

    For example:
    - **gpusched simulate --policy edf --seed 3 --gantt edf.png**

    - **gpusched simulate --policy agent:default --gif agent.gif --frames 100**

    - **gpusched simulate --policy edf --scenario burst --gantt edf.svg --from 0 --to 3 --show-nodes 0-9**

    - **gpusched simulate --policy sts --jobs 400 --nodes 100 --out run** and then **gpusched audit run**

    - **gpusched simulate --policy sts --instance mine.json**

    - **gpusched simulate --policy sts-x --scenario de-lu --gantt de-lu.svg --hours de-lu.csv**
    """
    chart.check()
    animation.check()
    if out is not None:
        check_new_folder(out, ours=MAY_HOLD)
    workload = given.workload(options.scenario_or_track(scenario, track))
    made, chosen_policy = workload.maker()(seed), make_any_policy(policy)
    check_fit([chosen_policy], made)
    notes, facts = workload.notes(), workload.facts()
    if out is not None:
        check_same(out, Path(out) / "run.json", facts | {"policy": chosen_policy.name, "seed": seed})
    with counting(chosen_policy.name, len(made.jobs), passing=True) as bar:
        result = simulate(made, chosen_policy, seed=seed, on_round=lambda state: bar.show(state.board.count[at.DONE]))
        bar.show(len(made.jobs))
    gantt, gif = chart.gantt, animation.gif
    with ExitStack() as drafts:
        if gantt is not None:
            drafts.enter_context(_draft(gantt)).write_bytes(chart.draw(result))
        if gif is not None:
            animation.write(str(drafts.enter_context(_draft(gif))), made, chosen_policy, result)
        if hours is not None:
            drafts.enter_context(_draft(hours)).write_text(_hours(result), encoding="utf-8")
        if out is not None:
            write_run(result, out, facts=facts | ({"modelled": notes} if notes else {}))
    _print(result, workload)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    for path in (out, gantt, gif, hours):
        if path is not None:
            typer.echo(f"wrote {path}")


def _hours(result: Result) -> str:
    columns = hours_of(result)
    if columns is None:
        allowed = "a run whose nodes draw power by their busy GPUs: no cells, shares by utilisation, or CPU machines"
        raise InputError("--hours", result.instance.name, allowed)
    return pl.DataFrame(columns).write_csv(float_precision=6)


@contextmanager
def _draft(target: str) -> Iterator[Path]:
    """Yield another name beside the file to write under; it gets its own when all else is written, or goes."""
    path = Path(target)
    draft = path.with_name(f".part.{path.name}")
    with one_error(target):
        try:
            yield draft
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def _print(result: Result, workload: Workload) -> None:
    jobs = result.instance.jobs
    milliseconds = 1000.0 * result.decision_s / max(1, result.rounds)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("policy", result.policy)
    table.add_row("workload", f"{workload.title}, seed {result.seed}")
    table.add_row("cluster", f"{len(result.instance.machines)} nodes, {len(jobs)} jobs")
    table.add_row("energy", f"{result.energy_eur:,.2f} €")
    table.add_row("tardiness", f"{result.tardiness_eur:,.2f} €")
    table.add_row("total", f"{result.total_eur:,.2f} €")
    table.add_row("late jobs", f"{result.late_jobs} of {len(jobs)}")
    table.add_row("mean completion", duration_text(result.mean_completion_s))
    billing = Billing.of(workload.scenario)
    metrics = RunMetrics.of(result, billing)
    table.add_row("median, 95 %, 99 %", ", ".join(map(duration_text, metrics.percentiles_s)))
    table.add_row("waiting, mean", duration_text(metrics.waiting_s))
    table.add_row("slowdown, mean", f"{metrics.slowdown:.3g}")
    table.add_row("busy", f"{metrics.busy_gpus:.1%} of the GPUs, {metrics.busy_nodes:.1%} of the nodes")
    if metrics.energy_kwh == metrics.energy_kwh:
        table.add_row("energy drawn", f"{metrics.energy_kwh:,.2f} kWh")
    if (emitted := billing.co2_kg(result)) is not None:
        table.add_row("emissions", f"{emitted:,.2f} kg CO₂")
    if result.demand_eur > 0.0:
        table.add_row("demand charges, in energy", f"{result.demand_eur:,.2f} €")
    table.add_row("switches", str(result.switches.sum()))
    table.add_row("rounds", f"{result.rounds}, {milliseconds:.3g} ms each (compilation included)")
    output().print(table)
