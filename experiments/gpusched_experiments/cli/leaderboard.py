"""`gpusched leaderboard`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gpusched_agents.any_policy import shown_name
from gpusched_env.errors import InputError
from gpusched_env.model.checks import whole
from gpusched_env.workload import Track, list_tracks, load_track, parse_seeds
from gpusched_experiments.cli import backend_options as backends
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.progress import ExperimentWatcher
from gpusched_experiments.cli.scenario_options import with_options
from gpusched_experiments.cli.terminal import drawing_or_note, print_outcome, write_report
from gpusched_experiments.leaderboard import QUICK_POLICIES, default_policies, leaderboard, misfits
from gpusched_experiments.report.cell import each_once
from gpusched_experiments.report.experiment import Selection
from gpusched_experiments.report.experiment_run import run_experiment

if TYPE_CHECKING:
    from gpusched_env.workload.scenario.scenario_file import Purpose
    from gpusched_experiments.report.chart import Drawing

DRAWS = "gpusched_experiments.report.figures"
OUT, QUICK_OUT = "results/leaderboard", "results/leaderboard-quick"
PURPOSES = ("test", "validation")


@with_options
def leaderboard_command(
    *,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies", "-p",
            help="Policies, agents (agent:NAME, agent:DIR) and your own (FILE.py:Class, whose code runs), separated by "
            "commas; default: all but slow ones.",
        ),
    ] = None,
    slow: Annotated[
        str | None,
        typer.Option(
            "--slow",
            help="Slow policies beside them, such as rollout: one seed of each track, without ranks; default: none.",
        ),
    ] = None,
    tracks: Annotated[
        str | None,
        typer.Option("--tracks", "-t", help="Tracks, or .toml files of tracks, separated by commas; default: all."),
    ] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", help="test or validation: those of each track; or 0-19, or 0,3,5.")
    ] = "test",
    reference: Annotated[
        str | None, typer.Option("--reference", "-r", help="Policy that savings are measured against; default: edf.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds and few policies, in minutes: to try it, not to cite.")
    ] = False,
    hindsight: Annotated[
        int,
        typer.Option(
            "--hindsight",
            help="Runs of a search for a schedule that knows every need, for the first seeds of every track; 0: none.",
        ),
    ] = 0,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core.")
    ] = None,
    backend: backends.BackendOptions,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help=f"Folder; default: {OUT}, with --quick {QUICK_OUT}."),
    ] = None,
) -> None:  # fmt: skip
    """Rank policies on the tracks: cost over the best, the gap to a bound, what knowing the distribution is worth.

    A command that was stopped goes on where it was when it is given again: what is asked for and finished is not run
    again, unless the code or the settings have changed. Runs that are not asked for any more leave the folder: name all
    policies that the table shall have. An agent is left out of the tracks that it cannot decide on.

    For example:
    - **gpusched leaderboard --quick**

    - **gpusched leaderboard --tracks busy,full --policies edf,sts-x --seeds validation**

    - **gpusched leaderboard --hindsight 100 --slow rollout --out results/all**
    """
    entered = _policies(policies, quick=quick)
    if slow is not None:
        entered += tuple(name for name in parse_policies(slow) if name not in entered)
    shown = tuple(map(shown_name, entered))
    each_once("--policies", shown)
    if reference is not None and reference not in shown:
        raise InputError("--reference", reference, f"one of the policies: {', '.join(shown)}")
    chosen = _tracks(tracks)
    wanted = _seeds(seeds)
    where = backend.chosen()
    left_out = misfits(chosen, entered)
    evaluations = whole("--hindsight", hindsight, 0)
    experiment = leaderboard(chosen, wanted, reference or "edf", left_out, evaluations)
    choice = Selection(quick=quick, policies=entered)
    processes = backends.chosen_workers(workers, where)
    folder = Path(out if out is not None else (QUICK_OUT if quick else OUT))
    drawing = cast("Drawing | None", drawing_or_note(DRAWS))
    with ExperimentWatcher.shown() as watcher:
        for track, agent in sorted(left_out):
            watcher.note(f"{agent} is left out of {track}: it was not made for such workloads")
        outcome = run_experiment(
            experiment, choice, folder, workers=processes, watcher=watcher, drawing=drawing, backend=where
        )
    print_outcome(f"{experiment.title}: {outcome.table.title}", outcome)
    typer.echo(f"wrote {write_report(outcome.folder)}")


def _policies(text: str | None, *, quick: bool) -> tuple[str, ...]:
    if text is None:
        return QUICK_POLICIES if quick else default_policies()
    return tuple(parse_policies(text))


def _tracks(text: str | None) -> tuple[Track, ...]:
    names = list_tracks() if text is None else tuple(name.strip() for name in text.split(","))
    tracks = tuple(map(load_track, names))
    each_once("--tracks", [track.name for track in tracks])
    return tracks


def _seeds(text: str) -> "Purpose | tuple[int, ...]":
    if text in PURPOSES:
        return cast("Purpose", text)
    try:
        return parse_seeds(text, "--seeds")
    except InputError as error:
        raise InputError("--seeds", text, f"{', '.join(PURPOSES)}, or {error.allowed}") from None
