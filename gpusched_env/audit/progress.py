"""The life of each job: its holdings in order, its progress, its completion."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference, same_epochs, same_time
from gpusched_env.audit.paces import seconds_worth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.instance_record import JobRecord
    from gpusched_env.audit.record import Record


def check_progress(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Compare what jobs.csv and intervals.csv say of each job's life with what its intervals imply."""
    worth = seconds_worth(record)
    for job, life in enumerate(by_job):
        yield from _check_facts(record, job)
        if not life:
            yield Difference(f"intervals.csv (job {job})", 0, "at least one", "intervals of the job")
            continue
        yield from _check_order(record, job, life)
        yield from _check_ready(record, job, life)
        yield from _check_epochs(record, job, life, worth)
        yield from _check_claims(record, job, life)


def _check_facts(record: Record, job: int) -> Iterator[Difference]:
    """What jobs.csv repeats from the instance must be the same number."""
    claim, facts = record.claims[job], record.jobs[job]
    for name, value in (
        ("submission_s", facts.submission_s),
        ("due_s", facts.due_s),
        ("epochs_needed", facts.epochs_needed),
    ):
        if claim[name] != value:
            yield Difference(_row(job), claim[name], value, f"{name} of the instance")


def _check_order(record: Record, job: int, life: list[Holding]) -> Iterator[Difference]:
    submission = record.jobs[job].submission_s
    if life[0].start_s < submission:
        yield Difference(life[0].where, life[0].start_s, submission, "start, not before the submission [s]")
    for holding in life:
        for line in holding.lines:
            if not line.start_s < line.end_s:
                yield Difference(line.where, line.end_s, line.start_s, "end, after the start [s]")
    for before, after in pairwise(life):
        if after.start_s < before.end_s:
            what = f"start, not before the job's interval on line {before.lines[0].line} ends [s]"
            yield Difference(after.where, after.start_s, before.end_s, what)


def _check_ready(record: Record, job: int, life: list[Holding]) -> Iterator[Difference]:
    """Progress begins as many seconds after the start as the switch costs, by where the job was last ready."""
    before, ready, home = None, 0.0, None
    for holding in life:
        if before is not None and (holding.continues(before) or _changes_share(record, job, before, holding)):
            ready = max(holding.start_s, ready)
        else:
            ready = holding.start_s + _cost_s(record.jobs[job], holding, home)
        for line in holding.lines:
            expected = min(line.end_s, ready)
            if not same_time(line.ready_s, expected):
                yield Difference(line.where, line.ready_s, expected, "ready_s, from when on it makes progress [s]")
        if ready <= holding.end_s:
            home = holding.place[1]
        before = holding


def _cost_s(facts: JobRecord, holding: Holding, home: list[int] | None) -> float:
    """Give the seconds that beginning a holding costs; `home` are the nodes where the job was last ready, if any."""
    if home is None:
        return facts.start_s
    return facts.restart_s if facts.resume_s is None or holding.place[1] != home else facts.resume_s


def _changes_share(record: Record, job: int, before: Holding, holding: Holding) -> bool:
    """Say whether it is another share of the same GPU, without a pause, where that costs nothing."""
    shared = all(record.configurations[each.configuration].is_shared for each in (before, holding))
    together = before.place == holding.place and before.end_s == holding.start_s
    return record.jobs[job].resume_s is not None and shared and together


def _check_epochs(record: Record, job: int, life: list[Holding], worth: dict[int, float]) -> Iterator[Difference]:
    """Compare the epochs of each line, and their sum, each holding once, with what the working seconds are worth."""
    needed = record.jobs[job].epochs_needed
    done: list[float] = []
    for holding in life:
        seconds = record.jobs[job].seconds_per_epoch[record.configurations[holding.configuration].column]
        if seconds is None:
            return  # The configuration is not allowed, and reported: nothing says how fast it is.
        scale = {"needed": needed, "end_s": abs(holding.end_s), "seconds_per_epoch": seconds}
        completed = holding is life[-1]
        for line in holding.lines:
            epochs = worth[line.line] / seconds
            if not same_epochs(line.epochs, epochs, completed=completed, **scale):
                yield Difference(line.where, line.epochs, epochs, "epochs done in the interval")
        done.append(worth[holding.lines[0].line] / seconds)
        total = math.fsum(done)
        enough = same_epochs(needed, total, completed=completed, **scale)
        if completed:
            if not enough:
                yield Difference(_row(job), needed, total, "epochs needed, and done at completion")
        elif total > needed and not enough:
            yield Difference(holding.where, needed, total, "epochs needed, and done before completion")


def _check_claims(record: Record, job: int, life: list[Holding]) -> Iterator[Difference]:
    claim = record.claims[job]
    last = max(holding.end_s for holding in life)
    for name, value in (("start_s", life[0].start_s), ("completion_s", last)):
        if not same_time(claim[name], value):
            yield Difference(_row(job), claim[name], value, name)
    switches = 0
    for before, after in pairwise(life):
        # A pause is a change from something to nothing and another one back.
        switches += 2 if after.start_s > before.end_s else not after.continues(before)
    if claim["switches"] != switches:
        yield Difference(_row(job), int(claim["switches"]), switches, "switches")


def _row(job: int) -> str:
    return f"jobs.csv line {job + 2} (job {job})"
