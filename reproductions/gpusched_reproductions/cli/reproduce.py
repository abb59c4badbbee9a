"""`gpusched reproduce`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import typer

from gpusched_env.errors import InputError
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli import backend_options as backends
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.progress import ExperimentWatcher
from gpusched_experiments.cli.scenario_options import with_options
from gpusched_experiments.cli.terminal import drawing_or_note, print_outcome, write_report
from gpusched_experiments.report.chart import Drawing
from gpusched_experiments.report.experiment import Selection
from gpusched_experiments.report.experiment_run import reproduce
from gpusched_experiments.report.processes import PROCESSES, Backend
from gpusched_reproductions.cli import DRAWS
from gpusched_reproductions.cli.release import make_release
from gpusched_reproductions.data_sources import DATA, MISSING, NEEDED_BY, OTHER, SOURCES, WHOLE, data_files, where_from
from gpusched_reproductions.published import EXPERIMENTS
from gpusched_reproductions.published.conformance import CONFORMANCE, FOLDER
from gpusched_reproductions.published.reference_instances import reference_names
from gpusched_reproductions.systems.validation import ALL as ALL_SYSTEMS
from gpusched_reproductions.systems.validation import SYSTEMS, parts_of, validate_systems

ALL, PUBLIC_DATA = "all", "data"
NAMES = (*EXPERIMENTS, ALL, *SYSTEMS, ALL_SYSTEMS, PUBLIC_DATA)
OUT, QUICK_OUT, RELEASE_OUT = "results/reproduce", "results/reproduce-quick", "docs/results"


@with_options
def reproduce_command(
    *,
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help=f"One of {', '.join(NAMES)}.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds, clusters, tracks; five minutes for all: to try it, not to cite.")
    ] = False,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies", "-p",
            help="Policies, agents (agent:NAME, agent:DIR) and your own (FILE.py:Class, whose code runs), separated by "
            "commas; default: the experiment's.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Seeds of every policy and size: 0-19, or 0,3,5; default: by size.")
    ] = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", "-n", help="Numbers of nodes: 10,20,50; default: those of the experiment.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core. Timings run alone.")
    ] = None,
    backend: backends.BackendOptions,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="DIR",
            help=f"Folder; every experiment has a subfolder in it; default: {OUT}, with --quick {QUICK_OUT}, with "
            f"--release {RELEASE_OUT}.",
        ),
    ] = None,
    release: Annotated[
        bool,
        typer.Option("--release", help="With all: also leaderboard and systems, in turn, by one commit (hours)."),
    ] = False,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="With data: download missing files that their authors publish unchanged.")
    ] = False,
) -> None:  # fmt: skip
    """Run the published experiments again: tables with 95 % intervals, figures, and what the sources reported.

    **cost**: STS against Random Greedy and EDF. **mean-times**: planning on mean instead of worst-case times.
    **sharing**: GPU sharing on and off. **why**: what makes the saving, one change at a time. **load**: the saving as
    the cluster fills. **sts-x**: our own policy and its parts. **value-of-information**: when it pays to know, to plan,
    to preempt, track by track. **agents**: a trained agent against all of them. **forecasts**: how often intervals of
    forecasts hold what happens. **scaling**: time of one round. **conformance**: the published program's answers, if at
    hand, beside ours. **all**: all of these.

    **pipeswitch**, **antman**, **fikit**, **gavel**, **byteps**, **hived**: systems that share clusters, each beside
    its own published numbers. **systems**: all of them.

    **data**: which public files these need, where they come from and which are in ../shared/data, by their SHA-256;
    exit code 1 if one is not.

    A command that was stopped goes on where it was when it is given again: finished runs are kept, unless the code or
    the settings have changed. The full set of all takes most of an hour on two cores.

    For example:
    - **gpusched reproduce all --quick**

    - **gpusched reproduce cost --policies edf,sts --nodes 10,20 --seeds 0-9**

    - **gpusched reproduce all --release**
    """
    if release:
        given = {"--policies": policies, "--seeds": seeds, "--nodes": nodes, "--workers": workers}
        given |= {"--quick": quick or None, "--fetch": fetch or None}
        given["--backend"] = None if backend.chosen() is PROCESSES else "ray"
        _check_nothing(given, f"{ALL} --release, whose commands are fixed")
        if experiment != ALL:
            raise InputError("--release", experiment, f"with {ALL} alone")
        raise typer.Exit(make_release(Path(RELEASE_OUT if out is None else out), typer.echo))
    if experiment == PUBLIC_DATA:
        raise typer.Exit(_list_data(fetch=fetch))
    if fetch:
        raise InputError("--fetch", experiment, f"with {PUBLIC_DATA} alone")
    where = backend.chosen()
    root = Path(out if out is not None else (QUICK_OUT if quick else OUT))
    processes = backends.chosen_workers(workers, where)
    if experiment in (*SYSTEMS, ALL_SYSTEMS):
        given = {"--policies": policies, "--seeds": seeds, "--nodes": nodes}
        _check_nothing(given, f"{experiment}, whose runs are those of its publication")
        _run_systems(experiment, root / ALL_SYSTEMS, quick, processes, where)
        return
    if experiment not in (*EXPERIMENTS, ALL):
        raise InputError("experiment", experiment, f"one of {', '.join(NAMES)}")
    choice = Selection(
        quick=quick,
        seeds=None if seeds is None else parse_seeds(seeds, "--seeds"),
        nodes=None if nodes is None else _node_counts(nodes),
        policies=None if policies is None else tuple(parse_policies(policies)),
    )
    _run_experiments(experiment, choice, root, processes, where)


def _check_nothing(given: Mapping[str, object], where: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(name, value, f"nothing with {where}")


def _run_systems(name: str, folder: Path, quick: bool, workers: int, backend: Backend) -> None:
    parts, drawing = parts_of(name), cast("Drawing | None", drawing_or_note(DRAWS))
    with ExperimentWatcher.shown() as watcher:
        outcome = validate_systems(
            parts, folder, quick=quick, workers=workers, watcher=watcher, drawing=drawing, backend=backend
        )
    print_outcome(outcome.table.title, outcome)


def _run_experiments(name: str, choice: Selection, root: Path, workers: int, backend: Backend) -> None:
    """Run an experiment, or all of them but those whose public data are missing."""
    drawing = cast("Drawing | None", drawing_or_note(DRAWS))
    for each in EXPERIMENTS.values():
        if name not in (each.name, ALL):
            continue
        if name == ALL and each is CONFORMANCE and not reference_names(FOLDER):
            typer.echo(
                f"note: without conformance, since the reference instances are not in {FOLDER}{where_from(FOLDER)}"
            )
            continue
        with ExperimentWatcher.shown() as watcher:
            outcome = reproduce(each, choice, root, workers=workers, watcher=watcher, drawing=drawing, backend=backend)
        print_outcome(f"{each.title}: {outcome.table.title}", outcome)
        typer.echo(f"wrote {write_report(outcome.folder)}")


def _list_data(*, fetch: bool) -> int:
    """Print what is there of each folder of public data, and what is not; return 0 if all is, else 1."""
    if fetch:
        for file in data_files():
            if file.address and file.state() == MISSING:
                typer.echo(f"fetching {file.address}")
                try:
                    file.fetch()
                except InputError as error:
                    typer.echo(f"  {error}", err=True)
    states = {file: file.state() for file in data_files()}
    for folder, source in SOURCES.items():
        own = {file: state for file, state in states.items() if file.folder == folder}
        whole = sum(state == WHOLE for state in own.values())
        typer.echo(f"{folder}: {whole} of {len(own)} files, for {NEEDED_BY[folder]}; {source}")
        for file, state in own.items():
            if state == OTHER:
                typer.echo(f"  {file.path()}: {state}; remove it")
            elif state == MISSING and whole:
                typer.echo(f"  {file.file}: {state}")
    left = [file for file, state in states.items() if state != WHOLE]
    open_ = sum(bool(file.address) and states[file] == MISSING for file in left)
    typer.echo(f"{len(states) - len(left)} of {len(states)} files are in {DATA}")
    if open_:
        typer.echo(f"{open_} of the others can be fetched: gpusched reproduce data --fetch")
    return int(bool(left))


def _node_counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1 or len(set(counts)) != len(counts):
        raise InputError("--nodes", text, "whole numbers >= 1 separated by commas, each once: 10,20,50")
    return counts
