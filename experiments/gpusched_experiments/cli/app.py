"""The commands, put together."""

from typing import Annotated

import typer

from gpusched_env.version import VERSION
from gpusched_experiments.cli.audit import audit_command
from gpusched_experiments.cli.certify import certify_command
from gpusched_experiments.cli.compare import compare_command
from gpusched_experiments.cli.evaluate import evaluate_command
from gpusched_experiments.cli.leaderboard import leaderboard_command
from gpusched_experiments.cli.one_line_errors import OneLineErrors
from gpusched_experiments.cli.policies import policies_command
from gpusched_experiments.cli.record import record_command
from gpusched_experiments.cli.report import report_command
from gpusched_experiments.cli.reproduce import reproduce_command
from gpusched_experiments.cli.scenarios import scenarios_command
from gpusched_experiments.cli.serve import serve_command
from gpusched_experiments.cli.simulate import simulate_command
from gpusched_experiments.cli.study import study_command
from gpusched_experiments.cli.trace import trace_command
from gpusched_experiments.cli.tracks import tracks_command
from gpusched_experiments.cli.train import train_command
from gpusched_experiments.cli.warm_up import warm_up_command

app = typer.Typer(
    name="gpusched",
    cls=OneLineErrors,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compare")(compare_command)
app.command("simulate")(simulate_command)
app.command("report")(report_command)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("record")(record_command)
app.command("audit")(audit_command)
app.command("certify")(certify_command)
app.command("reproduce")(reproduce_command)
app.command("leaderboard")(leaderboard_command)
app.command("study")(study_command)
app.command("trace")(trace_command)
app.command("serve")(serve_command)
app.command("scenarios")(scenarios_command)
app.command("tracks")(tracks_command)
app.command("policies")(policies_command)
app.command("warm-up")(warm_up_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpusched {VERSION}")
        raise typer.Exit


@app.callback()
def gpusched(
    context: typer.Context,
    show_version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which GPUs should each AI training job get, and when should that change?

    Compare scheduling policies on a simulated GPU cluster by what they cost: energy, and jobs that end late.

    Start with **gpusched compare**, then look at **gpusched scenarios** and **gpusched policies**.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
