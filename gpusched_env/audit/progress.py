"""The life of each job: its intervals in order, its progress, its completion."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference, same_epochs, same_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import IntervalRecord, Record


def lives(record: Record) -> list[list[IntervalRecord]]:
    """Give the intervals of each job, sorted by start."""
    by_job: list[list[IntervalRecord]] = [[] for _ in record.jobs]
    for interval in sorted(record.intervals, key=lambda interval: (interval.start_s, interval.end_s)):
        by_job[interval.job].append(interval)
    return by_job


def check_progress(record: Record, by_job: list[list[IntervalRecord]]) -> Iterator[Difference]:
    """Compare what jobs.csv and intervals.csv say of each job's life with what its intervals imply."""
    for job, life in enumerate(by_job):
        yield from _check_facts(record, job)
        if not life:
            yield Difference(f"intervals.csv (job {job})", 0, "at least one", "intervals of the job")
            continue
        yield from _check_order(record, job, life)
        yield from _check_ready(record, life)
        yield from _check_epochs(record, job, life)
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


def _check_order(record: Record, job: int, life: list[IntervalRecord]) -> Iterator[Difference]:
    submission = record.jobs[job].submission_s
    if life[0].start_s < submission:
        yield Difference(life[0].where, life[0].start_s, submission, "start, not before the submission [s]")
    for interval in life:
        if not interval.start_s < interval.end_s:
            yield Difference(interval.where, interval.end_s, interval.start_s, "end, after the start [s]")
    for before, after in pairwise(life):
        if after.start_s < before.end_s:
            what = f"start, not before the job's interval on line {before.line} ends [s]"
            yield Difference(after.where, after.start_s, before.end_s, what)


def _check_ready(record: Record, life: list[IntervalRecord]) -> Iterator[Difference]:
    """Progress begins at the first start at once, and restart_s after each change or pause."""
    before = None
    for interval in life:
        wait = 0.0 if before is None or _is_same_holding(before, interval) else record.restart_s
        ready = min(interval.end_s, interval.start_s + wait)
        if not same_time(interval.ready_s, ready):
            yield Difference(interval.where, interval.ready_s, ready, "ready_s, from when on it makes progress [s]")
        before = interval


def _check_epochs(record: Record, job: int, life: list[IntervalRecord]) -> Iterator[Difference]:
    needed = record.jobs[job].epochs_needed
    done: list[float] = []
    for interval in life:
        seconds = record.jobs[job].seconds_per_epoch[record.configurations[interval.configuration].column]
        if seconds is None:
            return  # The configuration is not allowed, and reported: nothing says how fast it is.
        epochs = max(0.0, interval.end_s - interval.ready_s) / seconds
        done.append(epochs)
        total, end_s = math.fsum(done), abs(interval.end_s)
        if not same_epochs(interval.epochs, epochs, needed=needed, end_s=end_s, seconds_per_epoch=seconds):
            yield Difference(interval.where, interval.epochs, epochs, "epochs done in the interval")
        enough = same_epochs(total, needed, needed=needed, end_s=end_s, seconds_per_epoch=seconds)
        if interval is life[-1]:
            if not enough:
                yield Difference(_row(job), needed, total, "epochs needed, and done at completion")
        elif total > needed and not enough:
            yield Difference(interval.where, needed, total, "epochs needed, and done before completion")


def _check_claims(record: Record, job: int, life: list[IntervalRecord]) -> Iterator[Difference]:
    claim = record.claims[job]
    last = max(interval.end_s for interval in life)
    for name, value in (("start_s", life[0].start_s), ("completion_s", last)):
        if not same_time(claim[name], value):
            yield Difference(_row(job), claim[name], value, name)
    switches = 0
    for before, after in pairwise(life):
        # A pause is a change from something to nothing and another one back.
        switches += 2 if after.start_s > before.end_s else not _is_same_holding(before, after)
    if claim["switches"] != switches:
        yield Difference(_row(job), int(claim["switches"]), switches, "switches")


def _is_same_holding(before: IntervalRecord, after: IntervalRecord) -> bool:
    held = (before.node, before.configuration) == (after.node, after.configuration)
    return held and after.start_s == before.end_s


def _row(job: int) -> str:
    return f"jobs.csv line {job + 2} (job {job})"
