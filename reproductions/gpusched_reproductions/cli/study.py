"""`gpusched study`."""

import sys
from collections.abc import Mapping
from typing import Annotated, cast

import typer

from gpusched_agents.study import USUAL_VARIANTS, VARIANTS
from gpusched_agents.training.config import TrainingConfig
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli import backend_options as backends
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli import scenario_options as workload_options
from gpusched_experiments.cli.progress import decisions_bar
from gpusched_experiments.cli.terminal import drawing_or_note, print_outcome
from gpusched_experiments.cli.training_options import scenario_names, training_config
from gpusched_experiments.report.chart import Drawing
from gpusched_reproductions.cli import DRAWS, chosen_names
from gpusched_reproductions.learning import StudyPlan, evaluated_often, study

OUT, QUICK_OUT = "results/study", "results/study-quick"
SCENARIOS = "high,low,mixed,default"
STEPS, QUICK_STEPS = 1_000_000, 8_192
QUICK = ("envs=16", "validation_seeds=500-501", "imitation.batch_size=128", "imitation.averaging=0.9")
EVALUATIONS, QUICK_EVALUATIONS = 20, 4
OWN = ("steps", "seed", "imitation.steps", "network.kind", "network.distribution")
"""Settings that the study varies, or has an option for."""
EXAMPLE = "agent.learning_rate=3e-4"


@workload_options.with_options
def study_command(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed and few decisions, in minutes: to try it, not to cite.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", help=f"Decisions of a training, imitation included; default: {STEPS:,}, quick {QUICK_STEPS:,}."
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Seeds of the trainings of every variant; default: 0-2, quick 0.")
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option("--variants", help=f"Separated by commas, of {', '.join(VARIANTS)}; default: the first five."),
    ] = None,
    scenario: Annotated[
        str,
        typer.Option("--scenario", "-s", help="Scenarios with the same configurations, separated by commas."),
    ] = SCENARIOS,
    test_seeds: Annotated[
        str | None,
        typer.Option("--test-seeds", help="Seeds of the held-out workloads; default: 0-19, quick 0-1."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Trainings at once; default: one for each core.")
    ] = None,
    backend: backends.BackendOptions,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help=f"Folder; default: {OUT}, with --quick {QUICK_OUT}."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help=f"Any other setting of all trainings, such as {EXAMPLE}; repeatable."
        ),
    ] = None,
    of_scenario: workload_options.TrainingScenarioOptions,
) -> None:  # fmt: skip
    """Does an agent learn, and from what? Train it whole and without one of its parts, several times each.

    Then every agent is run on workloads that no training saw, beside edf, sts and sts-x. Ends in a table, learning
    curves (table.md, table.csv, scenarios.csv, curves.csv, curves.svg) and a record (summary.json). The
    trainings are in DIR/runs, which may be large. Stop it at any moment: the same command goes on where it was.

    For example:
    - **gpusched study --quick**

    - **gpusched study --variants full,no-imitation --steps 300000 --seeds 0-4 --out results/imitation**
    """
    folder = out if out is not None else (QUICK_OUT if quick else OUT)
    machines = backend.chosen()
    decisions = checks.whole("--steps", (QUICK_STEPS if quick else STEPS) if steps is None else steps)
    changes = of_scenario.changes(scenario_names({"scenario": scenario}))
    plan = StudyPlan(
        base=_base(scenario, changes, settings or [], decisions, quick=quick),
        steps=decisions,
        variants=USUAL_VARIANTS if variants is None else chosen_names("--variants", variants, tuple(VARIANTS)),
        training_seeds=parse_seeds(seeds or ("0" if quick else "0-2"), "--seeds"),
        test_seeds=parse_seeds(test_seeds or ("0-1" if quick else "0-19"), "--test-seeds"),
    )
    processes = backends.chosen_workers(workers, machines)
    drawing = cast("Drawing | None", drawing_or_note(DRAWS))
    bar = decisions_bar()

    def training(done: int, total: int, finished: int, runs: int) -> None:
        bar.show(done, total, f"decisions: {finished} of {runs} trainings have ended")

    def evaluating(done: int, total: int) -> None:
        bar.show(done, total, f"of {total} runs on held-out workloads")

    try:
        with bar.progress:
            outcome = study(
                plan, folder, workers=processes, on_training=training, on_evaluating=evaluating, drawing=drawing,
                backend=machines,
            )  # fmt: skip
    except KeyboardInterrupt:
        interruption.say("the same command goes on from the last checkpoints")
        sys.exit(interruption.exit_code())
    print_outcome("Learning, part by part", outcome)


def _base(
    scenario: str, changes: "Mapping[str, object]", settings: list[str], steps: int, *, quick: bool
) -> TrainingConfig:
    """Return the settings that all trainings share: the usual ones, those of --quick, and those of --set."""
    given = {text.partition("=")[0].strip(): text for text in settings}
    for name in OWN:
        if name in given:
            raise InputError("--set", given[name], "a setting that the study neither varies nor has an option for")
    usual = QUICK if quick else ()
    config = training_config({"scenario": scenario}, (*usual, *settings), changes)
    times = QUICK_EVALUATIONS if quick else EVALUATIONS
    return config if "evaluate_every" in given else evaluated_often(config, steps, times)
