"""`gpusched simulate`."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gpusched_agents.any_policy import make_any_policy
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.formats.run_folder import write_run
from gpusched_env.rendering.duration import duration_text
from gpusched_env.simulator import Result, simulate
from gpusched_env.simulator.policy import check_fit
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.terminal import output
from gpusched_experiments.cli.workload import Workload


def simulate_command(
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="The policy (see `gpusched policies`), or agent:NAME or agent:DIR.")
    ] = "sts",
    scenario: options.ScenarioOption = "default",
    track: options.TrackOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the workload and of the policy's randomness.")] = 0,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for the run's files; `gpusched audit` checks them."),
    ] = None,
    gantt: Annotated[
        str | None, typer.Option("--gantt", metavar="FILE", help="Draw the run as a Gantt chart: a .png file.")
    ] = None,
    trace: options.TraceOption = None,
    trace_format: options.TraceFormatOption = None,
    where: options.WhereOption = None,
    skip_invalid: options.SkipInvalidOption = False,
    jobs: options.JobsOption = None,
    nodes: options.NodesOption = None,
    settings: options.SetOption = None,
    instance: options.InstanceOption = None,
) -> None:
    """Run one policy once, and print what it cost.

    For example:
    - **gpusched simulate --policy edf --seed 3 --gantt edf.png**

    - **gpusched simulate --policy sts --jobs 400 --nodes 100 --out run** and then **gpusched audit run**

    - **gpusched simulate --policy sts --instance mine.json**
    """
    if gantt is not None and not gantt.lower().endswith(".png"):
        raise InputError("--gantt", gantt, "the name of a .png file")
    charts = None if gantt is None else import_module("gpusched_experiments.report.figures")
    scenario = options.scenario_or_track(scenario, track)
    workload = options.chosen_workload(
        instance, scenario, trace, trace_format, jobs, nodes, settings, where, skip_invalid
    )
    made, chosen_policy = workload.maker()(seed), make_any_policy(policy)
    check_fit([chosen_policy], made)
    result = simulate(made, chosen_policy, seed=seed)
    # The chart waits under another name until the run is written: if either cannot be, neither is.
    waiting = None if gantt is None else Path(gantt).with_name(f".{Path(gantt).name}.part")
    if charts is not None and waiting is not None:
        write_atomically(waiting, charts.gantt_png(result))
    try:
        if out is not None:
            write_run(result, out, facts=workload.facts())
        if gantt is not None and waiting is not None:
            waiting.replace(gantt)
    finally:
        if waiting is not None:
            waiting.unlink(missing_ok=True)
    _print(result, workload)
    for path in (out, gantt):
        if path is not None:
            typer.echo(f"wrote {path}")


def _print(result: Result, workload: Workload) -> None:
    jobs = result.instance.jobs
    milliseconds = 1000.0 * result.decision_s / max(1, result.rounds)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("policy", result.policy)
    table.add_row("workload", f"{workload.title}, seed {result.seed}")
    table.add_row("cluster", f"{len(result.instance.nodes)} nodes, {len(jobs)} jobs")
    table.add_row("energy", f"{result.energy_eur:,.2f} €")
    table.add_row("tardiness", f"{result.tardiness_eur:,.2f} €")
    table.add_row("total", f"{result.total_eur:,.2f} €")
    table.add_row("late jobs", f"{result.late_jobs} of {len(jobs)}")
    table.add_row("mean completion", duration_text(result.mean_completion_s))
    table.add_row("switches", str(result.switches.sum()))
    table.add_row("rounds", f"{result.rounds}, {milliseconds:.3g} ms each (compilation included)")
    output().print(table)
