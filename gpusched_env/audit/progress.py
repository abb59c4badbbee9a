"""The course of each job: its holdings in order, their progress with co-runners and with help, its completion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from gpusched_env.audit.instance_record import JobRecord
from gpusched_env.audit.mechanisms import changed_worth, stopped
from gpusched_env.audit.network import seconds_on_several_nodes
from gpusched_env.audit.readiness import check_ready
from gpusched_env.audit.reading import Difference, same_epochs, same_time
from gpusched_env.audit.record import Holding, Record
from gpusched_env.audit.shares import done_s, speed_pieces


def seconds_worth(record: Record) -> dict[int, float]:
    """Return the working seconds of each interval, by line, in seconds of a job alone on its GPU, or without help.

    With co-runners on one GPU, a job takes 1 + Σ (slow-down - 1) times as long, or runs at the speed that their
    utilisations leave. They slow it down as long as they hold the GPU, their restarts included.
    """
    worth = {line.line: max(0.0, line.end_s - line.ready_s) for line in record.intervals}
    pieces = speed_pieces(record)
    for line in record.intervals:
        if line.line in pieces and worth[line.line] > 0.0:
            worth[line.line] = done_s(pieces[line.line], line.ready_s, record.adapt_s)
    return changed_worth(record, worth | seconds_on_several_nodes(record))


def check_progress(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Compare start, completion and switches of each job in the files with what its intervals imply."""
    readiness = check_ready(record, by_job)
    worth = seconds_worth(record)
    for job, life in enumerate(by_job):
        for name in ("submission_s", "due_s", "epochs_needed"):
            claimed, value = record.claims[job][name], getattr(record.jobs[job], name)
            if claimed != value:
                yield Difference(row_of(job), claimed, value, f"{name} of the instance")
        if not life:
            yield Difference(f"intervals.csv (job {job})", 0, "at least one", "intervals of the job")
            continue
        yield from _check_order(record.jobs[job], life)
        yield from readiness[job]
        yield from _check_epochs(record.jobs[job], job, life, worth)
        yield from _check_claims(record.claims[job], job, life)


def _check_order(facts: JobRecord, life: list[Holding]) -> Iterator[Difference]:
    if life[0].start_s < facts.submission_s:
        yield Difference(life[0].where, life[0].start_s, facts.submission_s, "start, not before the submission [s]")
    for line in (line for holding in life for line in holding.lines):
        if not line.start_s < line.end_s:
            yield Difference(line.where, line.end_s, line.start_s, "end, after the start [s]")
    for before, after in pairwise(life):
        if after.start_s < before.end_s:
            what = f"start, not before the job's interval on line {before.lines[0].line} ends [s]"
            yield Difference(after.where, after.start_s, before.end_s, what)


def _check_epochs(facts: JobRecord, job: int, life: list[Holding], worth: dict[int, float]) -> Iterator[Difference]:
    """Compare the epochs of each line, and their sum, each holding once, with the progress of the working seconds."""
    needed = facts.epochs_needed
    done: list[float] = []
    for holding in life:
        seconds = _seconds_per_epoch(facts, holding)
        if seconds is None:
            return  # The configuration is not allowed, and reported: its speed is not known.
        scale = {"needed": needed, "end_s": abs(holding.end_s), "seconds_per_epoch": seconds}
        completed = holding is life[-1]
        for line in holding.lines:
            epochs = worth[line.line] / seconds
            if not same_epochs(line.epochs, epochs, completed=completed, **scale):
                yield Difference(line.where, line.epochs, epochs, "epochs done in the interval")
        done.append(worth[holding.lines[0].line] / seconds)
        total = math.fsum(done)
        if (completed or total > needed) and not same_epochs(needed, total, completed=completed, **scale):
            where, when = (row_of(job), "at completion") if completed else (holding.where, "before completion")
            yield Difference(where, needed, total, f"epochs needed, and done {when}")


def _seconds_per_epoch(facts: JobRecord, holding: Holding) -> float | None:
    """Return the seconds per epoch of a holding: spread GPUs on few enough nodes are as fast as those together."""
    own, like = facts.seconds_per_epoch[holding.configuration.column], holding.configuration.like
    if own is None or like is None or len(set(holding.place[1])) > like[1]:
        return own
    together = facts.seconds_per_epoch[like[0]]
    return own if together is None else together


def _check_claims(claim: dict[str, float], job: int, life: list[Holding]) -> Iterator[Difference]:
    last = max(holding.end_s for holding in life)
    for name, value in (("start_s", life[0].start_s), ("completion_s", last)):
        if not same_time(claim[name], value):
            yield Difference(row_of(job), claim[name], value, name)
    # A pause is a change from something to nothing and another one back; a change of the power limit alone is none.
    switches = sum(
        2 if after.start_s > before.end_s else not after.same_gpus(before) for before, after in pairwise(life)
    )
    if claim["switches"] != switches:
        yield Difference(row_of(job), int(claim["switches"]), switches, "switches")


def check_profiles(record: Record) -> Iterator[Difference]:
    """Check that every share begins after a job of its application has run on whole GPUs for as long as asked."""
    needed = record.utilisation_model.profile_s
    known: dict[int, float] = {}
    for line in record.intervals if needed else ():
        application, end = record.jobs[line.job].application, line.ready_s + needed
        if not line.configuration.is_shared and (end <= line.end_s or same_time(end, line.end_s)):
            known[application] = min(known.get(application, math.inf), end)
    for line in record.intervals if needed else ():
        end = known.get(record.jobs[line.job].application, math.inf)
        early = line.start_s < end and not (math.isfinite(end) and same_time(line.start_s, end))
        if line.configuration.is_shared and early:
            what = "start of a share, not before a job of the application has run on whole GPUs for profile_s [s]"
            yield Difference(line.where, line.start_s, end, what)


def check_lines(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    keys = [(line.start_s, line.job, line.node) for line in record.intervals]
    for line, (before, after) in zip(record.intervals[1:], pairwise(keys), strict=True):
        if after < before:
            yield Difference(line.where, after, before, "order: start, job, node, not before those of the line above")
    for life in by_job:
        for earlier, later in pairwise(life):
            if later.continues(earlier):
                what = f"start: it continues what line {earlier.lines[0].line} holds, with which it is one interval"
                yield Difference(later.where, later.start_s, earlier.start_s, what)


def check_rounds(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Count the rounds that are implied: one at each time at which a holding begins, or ends before the job.

    What a mechanism stops ends without a round.
    """
    times = {line.start_s for line in record.intervals}
    ends = {(job, holding.end_s) for job, life in enumerate(by_job) for holding in life[:-1]}
    times |= {end_s for _, end_s in ends - stopped(record)}
    rounds: int = record.run.get("rounds")
    if rounds < len(times):
        what = "rounds, and different times at which an interval begins, or ends before its job does"
        yield Difference("run.json", rounds, len(times), what)


def row_of(job: int) -> str:
    return f"jobs.csv line {job + 2} (job {job})"
