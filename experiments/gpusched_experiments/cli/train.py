"""`gpusched train`."""

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import gpusched_agents
from gpusched_agents.files.description import NAME
from gpusched_agents.training.config import ALGORITHMS, TrainingConfig
from gpusched_baselines.registry import teacher_names
from gpusched_env.errors import InputError
from gpusched_env.rendering.duration import duration_text
from gpusched_experiments.cli.one_line_errors import INTERRUPTED
from gpusched_experiments.cli.terminal import progress_output
from gpusched_experiments.cli.training_options import EXAMPLE, NONE, TrainingOptions, training_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_agents.training.training import Training

USUAL = TrainingConfig()
TEACHERS = ", ".join(teacher_names())


def train_command(
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder of the run; the same command there resumes it.")
    ],
    agent: Annotated[
        str, typer.Option("--agent", "-a", help=f"The algorithm: {', '.join(ALGORITHMS)}.")
    ] = USUAL.agent.algorithm,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", "-s",
            help=f"Built-in scenarios or .toml files, separated by commas; default: {','.join(USUAL.scenarios)}.",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help=f"Decisions of reinforcement learning; default: {USUAL.steps:,}.")
    ] = None,
    imitate: Annotated[
        str | None,
        typer.Option(
            "--imitate",
            help=f"Teacher of the warm start: {TEACHERS}, or {NONE}; default: {USUAL.imitation.teacher}.",
        ),
    ] = None,
    imitation_steps: Annotated[
        int | None, typer.Option("--imitation-steps", help=f"Its decisions; default: {USUAL.imitation.steps:,}.")
    ] = None,
    network: Annotated[
        str | None, typer.Option("--network", help=f"set or mlp; default: {USUAL.network.kind}.")
    ] = None,
    hidden: Annotated[
        int | None, typer.Option("--hidden", help=f"Width of its layers; default: {USUAL.network.hidden}.")
    ] = None,
    distribution: Annotated[
        bool | None,
        typer.Option(
            "--distribution/--no-distribution", help="Whether it sees what comes from the distribution of epochs."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help=f"Seed of everything; default: {USUAL.seed}.")] = None,
    envs: Annotated[
        int | None, typer.Option("--envs", help=f"Environments that run at once; default: {USUAL.envs}.")
    ] = None,
    validation_seeds: Annotated[
        str | None,
        typer.Option(
            "--validation-seeds",
            help="Seeds of the workloads that decide which agent is kept: 500-504, or 0,3,5; default: "
            f"{USUAL.validation_seeds[0]}-{USUAL.validation_seeds[-1]}.",
        ),
    ] = None,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            "--evaluate-every",
            help=f"Decisions between two evaluations, each with a checkpoint; default: {USUAL.evaluate_every:,}.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience", help=f"Evaluations without a better one after which it stops; default: {USUAL.patience}."
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name that the agent carries in its description.")] = "agent",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help=f"Any setting of the training, such as {EXAMPLE}; repeatable."
        ),
    ] = None,
) -> None:  # fmt: skip
    """Train an agent: first it imitates a reference policy, then it learns by itself.

    The best agent of all evaluations is in DIR/agent, the curve in DIR/curve.csv, TensorBoard's logs in DIR/logs. Stop
    it at any moment: the same command goes on from its last checkpoint, and ends where it would have ended.

    For example:
    - **gpusched train --scenario tiny --steps 20000 --imitation-steps 40000 --out runs/tiny**

    - **gpusched train --agent dqn --imitate none --network mlp --out runs/dqn**

    - **gpusched train --scenario default,high --set agent.learning_rate=3e-4 --set tardiness_factor=1 --out runs/two**
    """
    config = training_config(
        TrainingOptions(
            agent=agent,
            imitate=imitate,
            settings=tuple(settings or ()),
            scenario=scenario,
            steps=steps,
            seed=seed,
            envs=envs,
            network=network,
            hidden=hidden,
            distribution=distribution,
            imitation_steps=imitation_steps,
            validation_seeds=validation_seeds,
            evaluate_every=evaluate_every,
            patience=patience,
        )
    )
    if not NAME.fullmatch(name):
        raise InputError("--name", name, "letters, digits, dots, dashes and underscores, at most 64")
    screen = _Screen()
    try:
        training = gpusched_agents.Training(config, out, name=name, on_progress=screen.on_progress)
        with screen.shown(training):
            training.run()
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from the last checkpoint", err=True)
        sys.exit(INTERRUPTED)
    _print_end(training)


class _Screen:
    """Shows a bar that counts decisions, and a line for every evaluation above it."""

    def __init__(self) -> None:
        steps = TextColumn("{task.completed:,.0f} steps")
        columns = (BarColumn(), steps, TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=progress_output())
        self._task = self._progress.add_task("starting", total=None)
        self._curve: list[dict[str, Any]] = []
        self._printed = 0

    @contextmanager
    def shown(self, training: "Training") -> "Iterator[None]":
        """Say where the training goes on, and show it until the end of the body."""
        progress, config = training.progress, training.config
        self._curve, self._printed = progress.curve, len(progress.curve)
        total = config.imitation.steps + config.steps
        if progress.phase == "done":
            self._print(f"already trained to the end, at {progress.steps:,} steps")
            total = progress.steps
        elif progress.steps:
            self._print(f"resuming at {progress.steps:,} steps")
        with self._progress:
            self._progress.update(self._task, completed=progress.steps, total=total)
            yield
            self._progress.update(self._task, completed=progress.steps)
            self._print_evaluations()

    def on_progress(self, done: int, total: int, text: str) -> None:
        """Show how far the training has come."""
        self._progress.update(self._task, completed=done, total=total, description=text)
        self._print_evaluations()

    def _print_evaluations(self) -> None:
        """Print the evaluations that are new."""
        for index in range(self._printed, len(self._curve)):
            point, former = self._curve[index], [each["total_eur"] for each in self._curve[:index]]
            best = "   best so far" if all(point["total_eur"] < cost for cost in former) else ""
            costs = f"total {point['total_eur']:12,.2f} €   tardiness {point['tardiness_eur']:12,.2f} €"
            self._print(f"{point['steps']:12,} steps   {costs}{best}")
        self._printed = len(self._curve)

    def _print(self, text: str) -> None:
        self._progress.console.print(escape(text), soft_wrap=True)


def _print_end(training: "Training") -> None:
    """Say how long it took, where the agent is, what it cost, and how to compare it."""
    config, progress = training.config, training.progress
    best = min(progress.curve, key=lambda point: point["total_eur"])
    if progress.worse >= config.patience:
        typer.echo(f"stopped early: {config.patience} evaluations without a better agent")
    typer.echo(f"trained {progress.steps:,} steps in {duration_text(progress.seconds)}")
    folder = Path(training.folder) / "agent"
    typer.echo(f"wrote {folder}")
    seeds = f"{len(config.validation_seeds)} validation seed{'s' if len(config.validation_seeds) > 1 else ''}"
    cost = f"{best['total_eur']:,.2f} €, of which tardiness {best['tardiness_eur']:,.2f} €"
    typer.echo(f"its mean cost on {seeds}, at {best['steps']:,} steps: {cost}")
    command = ["gpusched", "compare", "--policies", f"edf,sts,agent:{folder}"]
    if config.scenarios[0] != "default":
        command += ["--scenario", config.scenarios[0]]
    typer.echo(f"compare it: {shlex.join(command)}")
