"""The course of each job: its holdings in order, their progress with co-runners and with help, its completion."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from gpusched_env.audit.instance_record import JobRecord, SynchronisationRecord
from gpusched_env.audit.reading import Difference, same_epochs, same_time
from gpusched_env.audit.record import Holding, IntervalRecord, Record


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
            free *= _usable(record, holding, highest)
        else:
            speed[level] = max(speed[level], least)
    return [speed[interval.configuration.priority] for interval in holding]


def _usable(record: Record, holding: list[IntervalRecord], highest: int) -> float:
    """Return the usable part of what the jobs of the highest level leave: the least of theirs, by the jobs below."""
    filled = record.utilisation_model.filled
    if not isinstance(filled, list):
        return filled
    first = [line.job for line in holding if line.configuration.priority == highest]
    rows = [filled[record.jobs[job].application] for job in first]
    return min(row[: len(holding) - len(first)][-1] if len(holding) > len(first) else 1.0 for row in rows)


def stretches(intervals: Iterable[IntervalRecord]) -> Iterator[tuple[float, float, list[IntervalRecord]]]:
    """Yield start and end of each stretch of time in which the same `intervals` last, at least one, and those."""
    lasting = [interval for interval in intervals if interval.start_s < interval.end_s]
    boundaries = sorted({time for interval in lasting for time in (interval.start_s, interval.end_s)})
    waiting = sorted(lasting, key=lambda interval: interval.start_s, reverse=True)
    holding: list[IntervalRecord] = []
    for start, end in pairwise(boundaries):
        holding = [interval for interval in holding if interval.end_s > start]
        while waiting and waiting[-1].start_s <= start:
            holding.append(waiting.pop())
        if holding:
            yield start, end, list(holding)


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
    return worth | _on_several_nodes(record)


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


def _on_several_nodes(record: Record) -> dict[int, float]:
    """Return the working seconds of each interval on several nodes, by line, in seconds of a job without help.

    A job counts as present as long as it holds its node, restarts included.
    """
    own = record.synchronisation
    spread = [line for line in record.intervals if line.configuration.nodes > 1]
    if own is None or not spread:
        return {}
    pieces: dict[int, list[float]] = defaultdict(list)
    for start, end, holding in stretches(record.intervals):
        several = [line for line in holding if line.configuration.nodes > 1]
        beside = {line.node for line in holding if line.configuration.nodes == 1}
        for line in several:
            working = end - max(start, line.ready_s)
            if working > 0.0:
                helped = min(1.0, (own.cpu_machines + len(beside)) / len(several))
                pieces[line.line].append(working / _part(record, own, line, helped))
    return {line.line: math.fsum(pieces[line.line]) for line in spread}


def _part(record: Record, own: SynchronisationRecord, line: IntervalRecord, helped: float) -> float:
    """Return the time of an iteration with so many spare machines per node, as a part of its time without help."""
    configuration, application = line.configuration, record.jobs[line.job].application
    n = configuration.nodes
    k = n * helped
    compute = own.compute_s[configuration.gpu_type][application] / n
    sync = own.sync_s[configuration.gpu_type][application]
    return (compute + sync * 2 * n * (n - 1) / (n * n + k * n - 2 * k)) / (compute + sync * 2 * (n - 1) / n)


def check_progress(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Compare start, completion and switches of each job in the files with what its intervals imply."""
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
        yield from _check_ready(record.jobs[job], life)
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


def _check_ready(facts: JobRecord, life: list[Holding]) -> Iterator[Difference]:
    """Check that progress begins after the cost of the switch, which depends on where the job was last ready."""
    before, ready, preferred = None, 0.0, None
    for holding in life:
        if before is not None and (holding.continues(before) or _changes_share(facts, before, holding)):
            ready = max(holding.start_s, ready)
        elif preferred is None:
            ready = holding.start_s + facts.start_s
        else:
            stays = facts.resume_s is not None and holding.place[1] == preferred
            ready = holding.start_s + (facts.resume_s or 0.0 if stays else facts.restart_s)
        for line in holding.lines:
            expected = min(line.end_s, ready)
            if not same_time(line.ready_s, expected):
                yield Difference(line.where, line.ready_s, expected, "ready_s, from when on it makes progress [s]")
        if ready <= holding.end_s:
            preferred = holding.place[1]
        before = holding


def _changes_share(facts: JobRecord, before: Holding, holding: Holding) -> bool:
    """Whether it is another share of the same GPU, without a pause, where that costs nothing."""
    shared = before.configuration.is_shared and holding.configuration.is_shared
    together = before.place == holding.place and before.end_s == holding.start_s
    return facts.resume_s is not None and shared and together


def _check_epochs(facts: JobRecord, job: int, life: list[Holding], worth: dict[int, float]) -> Iterator[Difference]:
    """Compare the epochs of each line, and their sum, each holding once, with the progress of the working seconds."""
    needed = facts.epochs_needed
    done: list[float] = []
    for holding in life:
        seconds = facts.seconds_per_epoch[holding.configuration.column]
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
