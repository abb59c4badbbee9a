"""`gpusched compare`."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_experiments.cli import backend_options as backends
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.comparison_plan import ComparisonPlan, print_comparisons
from gpusched_experiments.cli.comparison_run import instance_title, run_comparison
from gpusched_experiments.cli.pictures import PicturesOption, picture_forms
from gpusched_experiments.cli.terminal import note_if_one_seed, output
from gpusched_experiments.report.comparison_text import comparisons_text
from gpusched_experiments.report.comparison_writing import written
from gpusched_experiments.report.table import TABLE_FORMATS

LONGEST = 80
"""Characters of the name of a folder that is made of options."""


@options.with_options
def compare_command(
    *,
    policies: options.PoliciesOption = None,
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
        str | None,
        typer.Option(
            "--out", "-o", metavar="DIR",
            help="Folder for the results; default: results/compare, after it what is not the default.",
        ),
    ] = None,
    given: options.WorkloadOptions,
    gpu_demand: Annotated[
        str | None,
        typer.Option(
            "--gpu-demand",
            help="With a trace, the GPUs that jobs are offered: elastic, at-most, exact, or several, separated by "
            "commas, each a comparison; default: trace.gpu_demand and exact.",
        ),
    ] = None,
    pictures: PicturesOption = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="Print the tables, and nothing else, as md, csv, json, html or tex."),
    ] = None,
    backend: backends.BackendOptions,
) -> None:  # fmt: skip
    """Compare policies: every policy on the same workloads, one for each seed.

    Ends in tables (costs, savings with 95 % intervals, gaps to the bounds; metrics of jobs and machines) and an
    HTML report to send on, report.html; the folder also holds every run (results.json, runs.csv) and the scenario.
    Runs of another workload in the folder are never replaced: that is an error.
    Policies, seeds, reference and workers may also stand in the scenario file, in the section compare; options win.
    With --instance all run that instance, and seeds decide only the policies' own randomness. Finished runs are kept:
    stop it at any moment, the same command in the same folder goes on.

    For example:
    - **gpusched compare**

    - **gpusched compare --policies edf,sts --scenario high --seeds 0-49 --workers 2**

    - **gpusched compare --nodes 20 --jobs 200 --set prices.pue=1.2 --set arrivals.kind=low**

    - **gpusched compare --track busy** runs its test seeds

    - **gpusched compare --trace philly.csv --jobs 2000 --nodes 60**

    - **gpusched compare --instance mine.json**
    """
    if form is not None and form not in TABLE_FORMATS:
        raise InputError("--format", form, f"one of {', '.join(TABLE_FORMATS)}")
    forms = picture_forms(pictures)
    workload = given.workload(options.scenario_or_track(scenario, track))
    out = _folder(given, track or scenario) if out is None else out
    machines = backend.chosen()
    note_if_one_seed(seeds)
    plan = ComparisonPlan.of(workload, policies, seeds, reference, workers, gpu_demand, machines)
    compared = run_comparison(plan, out, forms)
    if form is not None:
        typer.echo(comparisons_text(compared, plan.reference, instance_title(plan), form), nl=False)
        return
    print_comparisons(output(), compared, plan.reference, instance_title(plan), str(Path(out) / "table.md"))
    for path in written(out):
        typer.echo(f"wrote {path}")


def _folder(given: options.WorkloadOptions, scenario: str) -> str:
    """Return the folder of a workload: of the default one `results/compare`, of others with what is chosen after it."""
    chosen = given.given()
    files = [Path(path).stem for option in ("--instance", "--trace") for path in chosen.pop(option, ())]
    named = [] if scenario == options.USUAL else [Path(scenario).stem]
    values = [f"{option[2:]}-{value}" if option != "--set" else value for option, v in chosen.items() for value in v]
    parts = [re.sub(r"[^A-Za-z0-9.]+", "-", str(part)).strip("-.") for part in (*files, *named, *values)]
    whole = "-".join(("compare", *parts))
    short = whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}-{sha256(whole.encode()).hexdigest()[:6]}"
    return str(Path("results") / short)
