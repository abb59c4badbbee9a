"""`gpusched study`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpusched_agents.study import VARIANTS, make_training
from gpusched_agents.training.checkpoint import best_point
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli import scenario_options as workload_options
from gpusched_experiments.cli.progress import decisions_bar
from gpusched_experiments.cli.training_options import scenario_names, training_config
from gpusched_reproductions.cli import chosen_names

EVALUATIONS = 20
OWN = ("steps", "seed", "network.kind")
"""Settings that the study varies, or has an option for."""


@workload_options.with_options
def study_command(
    *,
    variants: Annotated[
        str, typer.Option("--variants", help=f"Separated by commas, of {', '.join(VARIANTS)}.")
    ] = "best-constants,controls-es,controls-ppo",
    steps: Annotated[int, typer.Option("--steps", help="Rounds of a training.")] = 1_000_000,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the trainings of every variant.")] = "0-2",
    scenario: Annotated[
        str, typer.Option("--scenario", "-s", help="Scenarios, separated by commas.")
    ] = "high,low,mixed,default",
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder of the trainings.")] = "results/study",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any other setting of all trainings, such as patience=5; repeatable."
        ),
    ] = None,
    of_scenario: workload_options.TrainingScenarioOptions,
) -> None:
    """Train agents that adapt STS-X in several variants, each with several seeds, one training after the other.

    A training is in DIR/VARIANT-SEED, as that of `gpusched train`; a line shows the cost of its agent on the validation
    workloads over that of STS-X. Stop it at any moment: the same command goes on where it was.

    For example:
    - **gpusched study --variants controls-es,controls-ppo -s track:slack --steps 160000 --seeds 0-4**
    """
    decisions = checks.whole("--steps", steps)
    given = {text.partition("=")[0].strip(): text for text in settings or ()}
    for name in OWN:
        if name in given:
            raise InputError("--set", given[name], "a setting that the study neither varies nor has an option for")
    chosen = chosen_names("--variants", variants, tuple(VARIANTS))
    of_seed = parse_seeds(seeds, "--seeds")
    changes = of_scenario.changes(scenario_names({"scenario": scenario}))
    base = training_config({"scenario": scenario}, settings or (), changes)
    if "evaluate_every" not in given:
        base = replace(base, evaluate_every=max(1, decisions // EVALUATIONS))
    configs = {f"{name}-{seed}": VARIANTS[name].config(base, decisions, seed) for seed in of_seed for name in chosen}
    bar = decisions_bar(" steps")
    try:
        with bar.progress:
            for name, config in configs.items():
                bar.show(0, config.steps, name)
                training = make_training(config, Path(out) / name, name=name, on_progress=bar.show)
                best = best_point(training.run().curve)
                bar.note(f"{name:20} {best['relative']:.3f} of sts-x's cost, at {best['steps']:,} steps")
    except KeyboardInterrupt:
        interruption.say("the same command goes on from the last checkpoints")
        sys.exit(interruption.exit_code())
    typer.echo(f"wrote {out}")
