"""`gpusched train`."""

import json
import shlex
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpusched_agents
from gpusched_agents.files.description import NAME
from gpusched_agents.files.own_code import load_object
from gpusched_agents.training.checkpoint import best_point, cost_of
from gpusched_agents.training.references import first_agent
from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli import scenario_options as workload_options
from gpusched_experiments.cli.progress import decisions_bar
from gpusched_experiments.cli.training_options import EXAMPLE, scenario_names, training_config, with_training_options
from gpusched_experiments.report.chart import RELATIVE, training_chart

CHECKPOINT = "checkpoint.npz"
TRACK = "track:"
CALLBACK = """FILE.py:Class, module:Class or 'module:Class={"argument": 1}'"""
FIGURE, DRAWS = "curve", "gpusched_experiments.report.figures"

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_agents.training.run import ResumableTraining


@with_training_options
@workload_options.with_options
def train_command(
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder of the run; the same command there resumes it.")
    ],
    options: dict[str, Any],
    name: Annotated[str, typer.Option("--name", help="Name that the agent carries in its description.")] = "agent",
    callbacks: Annotated[
        list[str] | None,
        typer.Option(
            "--callback", metavar="MODULE:CLASS", help=f"A callback of Stable-Baselines3: {CALLBACK}; repeatable."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help=f"Any setting of the training, such as {EXAMPLE}; repeatable."
        ),
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(
            "--validation-set",
            metavar="NAME=VALUE",
            help="A setting of the scenarios that only validation workloads have; repeatable.",
        ),
    ] = None,
    of_scenario: workload_options.TrainingScenarioOptions,
) -> None:
    """Train an agent that adapts STS-X: it begins as STS-X, or with constants, and learns by itself.

    The best agent of all evaluations is in DIR/agent, the curve in DIR/curve.csv, drawn in DIR/curve.svg,
    TensorBoard's logs in DIR/logs. Stop it at any moment: the same command goes on from its last checkpoint, and ends
    where it would have ended.

    For example:
    - **gpusched train --track slack --agent ppo --out runs/slack**

    - **gpusched train --track slack --agent es --steps 500000 --out runs/es**

    - **gpusched train --scenario default,high --steps 200000 --set agent.learning_rate=0.02 --out runs/two**

    - **gpusched train --nodes 20 --jobs 200 --scenario-set prices.pue=1.2 --agent ppo --steps 10000 --out runs/larger**

    Every line has the cost of STS-X, STS and EDF on the same workloads, and the agent's. An agent that ends
    costlier than EDF, or untrained, gets a warning. An agent that decides job by job is trained with
    Stable-Baselines3 itself, as in examples/train_maskable_ppo.py.
    """
    changes = of_scenario.changes(scenario_names(options))
    of_validation = dict(workload_options.parse_setting(text, option="--validation-set") for text in validation or ())
    config = training_config(options, settings or (), changes, of_validation)
    if not NAME.fullmatch(name):
        raise InputError("--name", name, "letters, digits, dots, dashes and underscores, at most 64")
    screen, training = _Screen(), None
    try:
        watching = [_callback(text) for text in callbacks or ()]
        training = gpusched_agents.make_training(
            config, out, name=name, on_progress=screen.on_progress, callbacks=watching
        )
        with screen.shown(training):
            training.run()
    except KeyboardInterrupt:
        interruption.say(f"the same command {_going_on(training, Path(out))}")
        sys.exit(interruption.exit_code())
    _draw_curve(training)
    _print_end(training)
    for warning in training.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _callback(text: str) -> Any:
    """Make the callback of `MODULE:CLASS` or `FILE.py:CLASS`, after `=` the named arguments as a JSON object."""
    path, _, arguments = text.partition("=")
    module, _, name = path.partition(":")
    try:
        given = parse_json(arguments or "{}") if module and name else None
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InputError("--callback", text, f"{CALLBACK}, with a JSON object")
    found = load_object("--callback", path)
    try:
        callback = found(**given)
    except TypeError as error:
        raise InputError("--callback", text, f"arguments that {name} takes ({error})") from error
    if not isinstance(callback, import_module("stable_baselines3.common.callbacks").BaseCallback):
        raise InputError("--callback", text, "a class of callbacks of Stable-Baselines3 (BaseCallback)")
    return callback


def _going_on(training: "ResumableTraining | None", folder: Path) -> str:
    if training is not None and training.resumes_at is not None:
        return f"goes on at {training.resumes_at:,} steps"
    if training is None and (folder / CHECKPOINT).exists():
        return "goes on from the last checkpoint"
    return "begins again: nothing is kept yet"


class _Screen:
    """Shows a bar that counts decisions, and a line for every evaluation above it."""

    def __init__(self) -> None:
        self._bar = decisions_bar(" steps")
        self._curve: list[dict[str, Any]] = []
        self._references, self._first = "", ""
        self._printed = 0

    @contextmanager
    def shown(self, training: "ResumableTraining") -> "Iterator[None]":
        """Show the progress of the training until the end of the body."""
        progress, config = training.progress, training.config
        self._curve, self._printed = progress.curve, len(progress.curve)
        self._first = first_agent(config)
        total = config.steps
        if progress.phase == "done":
            self._bar.note(f"already trained to the end, at {progress.steps:,} steps")
            total = progress.steps
        elif progress.steps:
            self._bar.note(f"resuming at {progress.steps:,} steps")
        with self._bar.progress:
            self._bar.show(progress.steps, total)
            costs = training.references
            self._references = ", ".join(f"{name} {cost:,.2f}" for name, cost in costs.items())
            self._bar.note(
                "on the validation workloads " + ", ".join(f"{n} costs {c:,.2f} €" for n, c in costs.items())
            )
            yield
            self._bar.show(progress.steps)
            self._print_evaluations()

    def on_progress(self, done: int, total: int, text: str) -> None:
        self._bar.show(done, total, text)
        self._print_evaluations()

    def _print_evaluations(self) -> None:
        for index in range(self._printed, len(self._curve)):
            point, former = self._curve[index], [cost_of(each) for each in self._curve[:index]]
            best = "   best so far" if all(cost_of(point) < cost for cost in former) else ""
            costs = f"total {point['total_eur']:12,.2f} €   tardiness {point['tardiness_eur']:12,.2f} €"
            costs += f"   {point[RELATIVE]:.3f} of sts-x's"
            untrained = f"   {self._first}" if point["steps"] == 0 else ""
            self._bar.note(f"{point['steps']:12,} steps   {costs}   ({self._references}){untrained}{best}")
        self._printed = len(self._curve)


def _draw_curve(training: "ResumableTraining") -> None:
    try:
        drawing: Any = import_module(DRAWS)
    except MissingExtraError:
        return
    chart = training_chart(training.config, training.progress.curve, training.references)
    for name, content in drawing.chart_files(chart, FIGURE).items():
        write_atomically(Path(training.folder) / name, content)


def _print_end(training: "ResumableTraining") -> None:
    """Print how long it took, where the agent is, what it cost, and how to compare it."""
    config, progress = training.config, training.progress
    best = best_point(progress.curve)
    if progress.worse >= config.patience:
        typer.echo(f"stopped early: {config.patience} evaluations without a better agent")
    typer.echo(f"trained {progress.steps:,} steps in {duration_text(progress.seconds)}")
    folder = Path(training.folder) / "agent"
    typer.echo(f"wrote {folder}")
    seeds = f"{len(config.validation_seeds)} validation seed{'s' if len(config.validation_seeds) > 1 else ''}"
    cost = f"{best['total_eur']:,.2f} €, of which tardiness {best['tardiness_eur']:,.2f} €"
    typer.echo(f"its mean cost on {seeds}, at {best['steps']:,} steps: {cost}")
    command = ["gpusched", "compare", "--policies", f"edf,sts,sts-x,agent:{folder}"]
    if config.scenarios[0].startswith(TRACK):
        command += ["--track", config.scenarios[0].removeprefix(TRACK)]
    elif config.scenarios[0] != "default":
        command += ["--scenario", config.scenarios[0]]
    command += [word for name, value in config.scenario_settings.items() for word in _as_options(name, value)]
    typer.echo(f"compare it: {shlex.join(command)}")


def _as_options(name: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [word for key, each in value.items() for word in _as_options(f"{name}.{key}", each)]
    return ["--set", f"{name}={json.dumps(value, ensure_ascii=False)}"]
