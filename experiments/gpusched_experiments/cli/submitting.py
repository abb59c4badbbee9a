"""`gpusched leaderboard --submit`."""

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, cast

import typer

from gpusched_env.errors import InputError
from gpusched_experiments.cli.progress import ExperimentWatcher
from gpusched_experiments.cli.report import write_report
from gpusched_experiments.cli.terminal import drawing_or_note, print_outcome
from gpusched_experiments.leaderboard.against import check_same_world, read_recorded
from gpusched_experiments.leaderboard.submission import SubmissionPlan, check_names, submit
from gpusched_experiments.leaderboard.submission_runs import check_submission
from gpusched_experiments.report.chart import Drawing
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.table import Value
from gpusched_experiments.sandbox.submitted import USUAL, SandboxLimits, read_submission

DRAWS = "gpusched_experiments.report.figures"
OUT, QUICK_OUT = "results/entries", "results/entries-quick"
PANEL = "A policy that nobody trusts"

SubmitOption = Annotated[
    str | None,
    typer.Option(
        "--submit", metavar="PATH", rich_help_panel=PANEL,
        help="An agent's folder, a Python file with POLICY, or FILE.py:NAME: check it, run it and rank it.",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """The options of a submission, as they were given."""

    name: Annotated[str | None, "Its name in tables; default: the file's or folder's."] = None
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="DIR", rich_help_panel=PANEL,
            help="Folder of a leaderboard to rank it against; none: run the others. Default: the published one, if "
            "there.",
        ),
    ] = None  # fmt: skip
    out: str | None = None
    reference: str | None = None


def refuse_without_submission(given: Given, limits: SandboxLimits) -> None:
    """Refuse options that only a submission has, where nothing is submitted.

    Raises:
        InputError: One is given; a limit, if it is not the usual one.
    """
    options = {"--name": (given.name, None), "--against": (given.against, None)}
    options |= {f"--{name.replace('_', '-')}": (value, asdict(USUAL)[name]) for name, value in asdict(limits).items()}
    for option, (value, usual) in options.items():
        if value != usual:
            raise InputError(option, value, "nothing without --submit")


def submit_policy(path: str, given: Given, plan: SubmissionPlan, limits: SandboxLimits, workers: int) -> None:
    """Check what is submitted, run it, rank it, and say where it stands."""
    if sys.platform == "win32":
        raise InputError("--submit", path, "a system with limits for processes, such as Linux or macOS")
    submission = read_submission(path, given.name)
    recorded = read_recorded(given.against)
    check_names(submission, plan, recorded, given.reference)
    folder = Path(given.out if given.out is not None else f"{QUICK_OUT if plan.quick else OUT}/{submission.name}")
    drawing = cast("Drawing | None", drawing_or_note(DRAWS))
    with ExperimentWatcher.shown() as watcher:
        checked = check_submission(submission, limits, plan.tracks)
        watcher.note(f"{submission.name} passed the check: audited, and the same when it is run again")
        for sentence in checked.lacking:
            watcher.note(f"{sentence}; run it in a container")
        for track, why in checked.misfits.items():
            watcher.note(f"{submission.name} is left out of {track}: {why}")
        fitting = replace(plan, tracks=[track for track in plan.tracks if track.name not in checked.misfits])
        said = check_same_world(recorded, fitting.tracks)
        if said:
            watcher.note(said)
        outcome = submit(
            submission, checked, fitting, recorded, limits, folder, workers=workers, watcher=watcher, drawing=drawing
        )
    print_outcome(outcome.table.title, outcome)
    typer.echo(f"wrote {write_report(outcome.folder)}")
    typer.echo(_place(submission.name, outcome.table.as_dicts()))


def _place(name: str, rows: "list[dict[str, Value]]") -> str:
    """Return where the entry stands."""
    places = {str(row["policy"]): (number, row) for number, row in enumerate(rows, 1)}
    number, row = places[name]
    ratio, tracks = cast("Estimate", row["mean_ratio"]).value, f"{row['tracks']} track{'s' * (row['tracks'] != 1)}"
    return f"{name}: place {number} of {len(rows)}, {ratio:.3f} times the best on {tracks}, first on {row['first']}"
