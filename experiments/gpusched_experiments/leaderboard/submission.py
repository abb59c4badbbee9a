"""A submitted policy on the leaderboard: run where it can decide, and ranked against recorded runs."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from gpusched_agents.any_policy import is_agent, known_policies
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance
from gpusched_env.simulator import StalledError
from gpusched_env.workload import SUITE_VERSION, Track
from gpusched_experiments.leaderboard.plan import (
    BOUND_POLICY,
    QUICK_POLICIES,
    default_policies,
    leaderboard,
    misfits,
    seeds_of,
)
from gpusched_experiments.leaderboard.standings import BOUND_ROW, RUN_ROW
from gpusched_experiments.leaderboard.submission_runs import Checked, SubmissionRuns, origin_of
from gpusched_experiments.report.cell import BOUND, Cell, origin, run_cells
from gpusched_experiments.report.experiment_run import Watcher, write_tables
from gpusched_experiments.report.record import where_made
from gpusched_experiments.report.run import Row, Runs, Values
from gpusched_experiments.report.store import Store, document_json, stored_values
from gpusched_experiments.report.table import Outcome
from gpusched_experiments.sandbox.submitted import SandboxLimits, Submission, SubmissionError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from gpusched_env.workload.scenario.scenario_file import Purpose
    from gpusched_experiments.leaderboard.against import Place, Recorded
    from gpusched_experiments.report.chart import Drawing
    from gpusched_experiments.report.experiment import Experiment

CELLS, OTHERS, RECORD = "cells.csv", "others.csv", "record.json"
OUTCOME = (
    *(CELLS, RECORD, "report.html", "figure.svg", "table.md"),
    *("table.csv", "summary.csv", "tracks.csv", "knowing.csv"),
)
LABELS = ("track", "row")


@dataclass(frozen=True, slots=True)
class SubmissionPlan:
    """What to run of an entry, and what it is compared with.

    Attributes:
        tracks: The tracks on which the entry can decide.
        seeds: Which of their seeds to run, or the seeds.
        quick: Whether to run two seeds of a track, if the seeds are not given.
        policies: Names of the policies that it meets; None for those that were recorded.
        reference: Policy that savings are measured against.
    """

    tracks: Sequence[Track]
    seeds: Purpose | tuple[int, ...] = "test"
    quick: bool = False
    policies: tuple[str, ...] | None = None
    reference: str = "edf"

    def seeds_of(self, track: Track) -> tuple[int, ...]:
        """List the seeds of a track."""
        return seeds_of(track, self.seeds, quick=self.quick)

    @property
    def usual(self) -> tuple[str, ...]:
        """List the policies that run where none were recorded."""
        return QUICK_POLICIES if self.quick else default_policies()

    def meets(self, track: Track, recorded: Recorded) -> tuple[str, ...]:
        """List the policies that an entry meets on a track: those named, or recorded on some of its seeds, or usual."""
        return self.policies or recorded.policies(track.name, self.seeds_of(track)) or self.usual


def submit(
    submission: Submission,
    checked: Checked,
    plan: SubmissionPlan,
    recorded: Recorded,
    limits: SandboxLimits,
    folder: Path,
    *,
    workers: int,
    watcher: Watcher,
    drawing: Drawing | None,
) -> Outcome:
    """Run what is not finished yet of an entry and of those that it meets, and write tables, figure and record.

    Args:
        submission: The entry.
        checked: What is known of it.
        plan: What to run.
        recorded: Runs that need not be run again; those that are not there are run here.
        limits: What the entry's processes may take.
        folder: Where the files go.
        workers: Number of processes, ≥ 1.
        watcher: What is told of the progress.
        drawing: What draws; without it there is no figure.

    Raises:
        SubmissionError: The entry broke a limit, or decided what cannot be; nothing of it is left in the folder.
        StalledError: It leaves all jobs waiting; likewise.
    """
    begin = time.monotonic()
    experiment = _experiment(submission, plan)
    cells = {cell.key(origin_of(submission)): cell for cell in _submission_cells(submission, plan)}
    known = {key: values for key, values in stored_values(folder / CELLS).items() if key in cells}
    rows = dict(_met(plan, recorded, folder, workers, watcher))
    watcher.begin(experiment, len(cells), len(known))
    store = Store(folder / CELLS, LABELS)
    store.write((key, cells[key], values) for key, values in known.items())
    try:
        left = {key: cell for key, cell in cells.items() if key not in known}
        values = known | SubmissionRuns(submission, limits, store, watcher.finished).run(left, workers)
    except (SubmissionError, StalledError):
        _remove(folder)
        raise
    store.write((key, cell, values[key]) for key, cell in cells.items())
    rows |= {(*_labels(cell), cell.policy, cell.seed): values[key] for key, cell in cells.items()}
    summary, files = write_tables(experiment, folder, Runs.of(_in_order(rows, plan)), drawing)
    facts = _facts(submission, checked, plan, recorded, limits)
    facts |= {"runs": len(cells), "duration_s": time.monotonic() - begin, "finished": True}
    text = document_json("gpusched reproduction", provenance(None, **facts))
    write_atomically(folder / RECORD, text)
    return Outcome(folder, summary, (*files, CELLS, RECORD))


def _remove(folder: Path) -> None:
    """Remove what was written of an entry; runs of others stay, since they are none of its results."""
    for name in OUTCOME:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _experiment(submission: Submission, plan: SubmissionPlan) -> Experiment:
    made = leaderboard(plan.tracks, plan.seeds, plan.reference)
    said = f"`{submission.name}` was submitted, and decided in a process of its own. {made.question}"
    return replace(made, title=f"Leaderboard with {submission.name}", question=said)


def _submission_cells(submission: Submission, plan: SubmissionPlan) -> Iterator[Cell]:
    for track in plan.tracks:
        for seed in plan.seeds_of(track):
            yield Cell((("track", track.name), ("row", RUN_ROW)), track.scenario, submission.name, seed)


def _met(
    plan: SubmissionPlan, recorded: Recorded, folder: Path, workers: int, watcher: Watcher
) -> Iterator[tuple[Place, Values]]:
    """Yield the runs that the entry meets: recorded ones, and those that are not there but must be, run now."""
    left_out = _left_out(plan, recorded)
    for (track, policy), why in sorted(left_out.items()):
        watcher.note(f"{policy} is left out of {track}: {why}")
    wanted = {(*_labels(cell), cell.policy, cell.seed): cell for cell in _others(plan, recorded, left_out)}
    missing = {place: cell for place, cell in wanted.items() if place not in recorded.values}
    yield from ((place, recorded.values[place]) for place in wanted if place in recorded.values)
    if not missing:
        return
    watcher.note(f"{len(missing)} runs of other policies and bounds are not recorded, and are run first")
    keys = {cell.key(origin(cell.policy, cell.measure)): place for place, cell in missing.items()}
    known = {key: values for key, values in stored_values(folder / OTHERS).items() if key in keys}
    cells = {key: missing[place] for key, place in keys.items()}
    ran = run_cells(cells, known, Store(folder / OTHERS, LABELS), workers, lambda: None)
    yield from ((keys[key], values) for key, values in ran.items())


def _others(plan: SubmissionPlan, recorded: Recorded, left_out: Collection[tuple[str, str]]) -> Iterator[Cell]:
    """List the cells of bounds and policies that must be there, recorded or run: all on the same seeds of a track."""
    for track in plan.tracks:
        seeds = plan.seeds_of(track)
        for seed in seeds:
            labels = (("track", track.name), ("row", BOUND_ROW))
            yield Cell(labels, track.scenario, BOUND_POLICY, seed, measure=BOUND)
        for policy, seed in product(plan.meets(track, recorded), seeds):
            if (track.name, policy) not in left_out:
                yield Cell((("track", track.name), ("row", RUN_ROW)), track.scenario, policy, seed)


def _left_out(plan: SubmissionPlan, recorded: Recorded) -> dict[tuple[str, str], str]:
    """Return which policies, by name, are left out on which tracks, and why: agents, and submissions without seeds."""
    here, left_out, first = known_policies(), {}, []
    for track in plan.tracks:
        seeds = plan.seeds_of(track)
        if plan.policies or not recorded.policies(track.name, seeds):
            first.append(track)
        for policy in plan.meets(track, recorded):
            places = ((track.name, RUN_ROW, policy, seed) for seed in seeds)
            if policy not in here and not is_agent(policy) and not all(place in recorded.values for place in places):
                left_out[track.name, policy] = "not all of these seeds are recorded, and it cannot be run here"
    unfit = misfits(first, plan.policies or plan.usual) if first else ()
    return left_out | dict.fromkeys(unfit, "it was not made for such workloads")


def _labels(cell: Cell) -> tuple[str, str]:
    labels = dict(cell.labels)
    return str(labels["track"]), str(labels["row"])


def _in_order(rows: dict[Place, Values], plan: SubmissionPlan) -> Iterator[Row]:
    """Yield all runs, track by track."""
    for track in plan.tracks:
        for (name, row, policy, seed), values in rows.items():
            if name == track.name:
                yield {"track": name, "row": row}, policy, seed, values


def _facts(
    submission: Submission, checked: Checked, plan: SubmissionPlan, recorded: Recorded, limits: SandboxLimits
) -> dict[str, Any]:
    """Return how the ranks came about."""
    of_submission = {
        "name": submission.name,
        "kind": submission.kind,
        "made_by": submission.made_by,
        "sha256": submission.sha256,
    }
    return {
        "experiment": "leaderboard",
        "suite": SUITE_VERSION,
        "entry": of_submission | {"files": sorted(submission.files)},
        "quick": plan.quick,
        "seeds": plan.seeds if isinstance(plan.seeds, str) else list(plan.seeds),
        "tracks": [track.name for track in plan.tracks],
        "left_out": checked.misfits,
        "limits": asdict(limits),
        "not_protected": list(checked.lacking),
        "against": {"folder": None if recorded.folder is None else recorded.folder.name, "code": recorded.code},
        **where_made(),
    }


def check_names(submission: Submission, plan: SubmissionPlan, recorded: Recorded, reference: str | None = None) -> None:
    """Check that no policy that an entry meets has its name, and that the reference, if one was named, is among them.

    Raises:
        InputError: One has, or it is not.
    """
    names = {name for track in plan.tracks for name in plan.meets(track, recorded)}
    if submission.name in names:
        raise InputError(
            "--name", submission.name, f"a name that none of the recorded policies has: {', '.join(sorted(names))}"
        )
    if reference is not None and reference not in names | {submission.name}:
        raise InputError(
            "--reference", reference, f"one of the policies: {', '.join(sorted(names | {submission.name}))}"
        )
