"""The course of each job: its holdings in order, their progress with co-runners and with help, its completion."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from gpusched_env.audit.instance_record import JobRecord
from gpusched_env.audit.network import seconds_on_several_nodes
from gpusched_env.audit.readiness import check_ready
from gpusched_env.audit.reading import Difference, same_epochs, same_time
from gpusched_env.audit.record import Holding, IntervalRecord, Record, stretches


def utilisation_of(record: Record, interval: IntervalRecord) -> float | None:
    """Return the part of the time for which the job alone would keep each of its GPUs busy; None without a model."""
    utilisations = record.gpu_types[interval.configuration.gpu_type].utilisation
    return None if utilisations is None else utilisations[record.jobs[interval.job].application]


def speeds_on_gpu(record: Record, holding: list[IntervalRecord]) -> list[float]:
    """Return the speed of each of the jobs that hold shares of one GPU, 1 as alone.

    The GPU's time is given from the highest priority down. A level gets its demand or what is left; if there are
    levels below it, it runs slower by the overhead. What the highest leaves is only partly usable. The levels below
    it never run slower than their minimum.
    """
    levels: dict[int, list[float]] = {}
    for interval in holding:
        levels.setdefault(interval.configuration.priority, []).append(utilisation_of(record, interval) or 0.0)
    asked = {level: math.fsum(utilisations) for level, utilisations in levels.items()}
    highest, lowest = max(asked), min(asked)
    below = math.fsum(demand for level, demand in asked.items() if level < highest)
    least = record.utilisation_model.least_speed / max(1.0, below)
    speed: dict[int, float] = {}
    free = 1.0
    for level in sorted(asked, reverse=True):
        granted = min(asked[level], free)
        speed[level] = granted / asked[level] / (1.0 + record.utilisation_model.overhead if level > lowest else 1.0)
        free -= granted
        if level == highest:
            free *= record.utilisation_model.filled
        else:
            speed[level] = max(speed[level], least)
    return [speed[interval.configuration.priority] for interval in holding]


def seconds_worth(record: Record) -> dict[int, float]:
    """Return the working seconds of each interval, by line, in seconds of a job alone on its GPU, or without help.

    With co-runners on one GPU, a job takes 1 + Σ (slow-down - 1) times as long, or runs at the speed that their
    utilisations leave. They slow it down as long as they hold the GPU, their restarts included.
    """
    worth: dict[int, float] = {}
    sharing: dict[tuple[int, int], list[IntervalRecord]] = defaultdict(list)
    for interval in record.intervals:
        worth[interval.line] = max(0.0, interval.end_s - interval.ready_s)
        if interval.configuration.is_shared:
            sharing[interval.node, interval.gpu].append(interval)
    for (node, _), intervals in sharing.items():
        gpu_type = record.gpu_types[record.nodes[node].gpu_type]
        if gpu_type.slowdown is not None or gpu_type.utilisation is not None:
            worth |= _beside_others(record, gpu_type.slowdown, intervals)
    return worth | seconds_on_several_nodes(record)


def _beside_others(
    record: Record, slowdown: list[list[float]] | None, intervals: list[IntervalRecord]
) -> dict[int, float]:
    """Return the working seconds of each of the intervals on one shared GPU, by line."""
    pieces: dict[int, list[float]] = {interval.line: [] for interval in intervals}
    for start, end, holding in stretches(intervals):
        if slowdown is None:
            speeds = speeds_on_gpu(record, holding)
        else:
            application = [record.jobs[interval.job].application for interval in holding]
            factors = [
                [slowdown[own][other] - 1.0 for j, other in enumerate(application) if j != i]
                for i, own in enumerate(application)
            ]
            speeds = [1.0 / (1.0 + math.fsum(others)) for others in factors]
        for interval, speed in zip(holding, speeds, strict=True):
            working = end - max(start, interval.ready_s)
            if working > 0.0:
                pieces[interval.line].append(working * speed)
    return {line: math.fsum(parts) for line, parts in pieces.items()}


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
    # A pause is a change from something to nothing and another one back.
    switches = sum(
        2 if after.start_s > before.end_s else not after.continues(before) for before, after in pairwise(life)
    )
    if claim["switches"] != switches:
        yield Difference(row_of(job), int(claim["switches"]), switches, "switches")


def check_lines(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that lines are sorted by start, job and node, and that no line continues the holding of an earlier one."""
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
    """Count the rounds that are implied: one at each time at which a holding begins, or ends before the job."""
    times = {line.start_s for line in record.intervals}
    times |= {holding.end_s for life in by_job for holding in life[:-1]}
    rounds: int = record.run.get("rounds")
    if rounds < len(times):
        what = "rounds, and different times at which an interval begins, or ends before its job does"
        yield Difference("run.json", rounds, len(times), what)


def row_of(job: int) -> str:
    """Name the line of a job in jobs.csv."""
    return f"jobs.csv line {job + 2} (job {job})"
