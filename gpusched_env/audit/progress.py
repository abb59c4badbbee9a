"""The life of each job: its holdings in order, its progress, its completion."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.reading import NOT_NEGATIVE, POSITIVE, Difference, numbers_of, same_epochs, same_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.instance_record import JobRecord
    from gpusched_env.audit.reading import Fields, Range
    from gpusched_env.audit.record import IntervalRecord, Record


def duty_of(record: Record, interval: IntervalRecord) -> float | None:
    """Give the part of the time for which the job would keep each of its GPUs busy alone; None if nothing says it."""
    duties = record.gpu_types[record.configurations[interval.configuration].gpu_type].duty
    return None if duties is None else duties[record.jobs[interval.job].application]


def paces(record: Record, holding: list[IntervalRecord]) -> list[float]:
    """Give the pace of each of the jobs that hold shares of one GPU, 1 as alone.

    The GPU's time is handed out from the highest priority down. A level gets what it asks for or what is left; if
    others stand below it, it runs slower by the overhead. What the highest leaves is only partly usable. Those below
    it never fall under their minimum.
    """
    levels: dict[int, list[float]] = {}
    for interval in holding:
        level = record.configurations[interval.configuration].priority
        levels.setdefault(level, []).append(duty_of(record, interval) or 0.0)
    asked = {level: math.fsum(duties) for level, duties in levels.items()}
    highest, lowest = max(asked), min(asked)
    below = math.fsum(demand for level, demand in asked.items() if level < highest)
    least = record.guests.least_pace / max(1.0, below)
    pace: dict[int, float] = {}
    free = 1.0
    for level in sorted(asked, reverse=True):
        granted = min(asked[level], free)
        pace[level] = granted / asked[level] / (1.0 + record.guests.overhead if level > lowest else 1.0)
        free -= granted
        if level == highest:
            free *= record.guests.filled
        else:
            pace[level] = max(pace[level], least)
    return [pace[record.configurations[interval.configuration].priority] for interval in holding]


def stretches(intervals: Iterable[IntervalRecord]) -> Iterator[tuple[float, float, list[IntervalRecord]]]:
    """Give start and end of each stretch of time in which the same `intervals` last, at least one, and those."""
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


_FIELD = "synchronisation"


@dataclass(frozen=True, slots=True)
class SynchronisationRecord:
    """Seconds of computing and of synchronising, by GPU type and application, and the CPU machines that help."""

    compute_s: dict[str, list[float]]
    sync_s: dict[str, list[float]]
    cpu_machines: int


def read_synchronisation(instance: Fields, names: Sequence[str], applications: int) -> SynchronisationRecord | None:
    """Read what the instance says of synchronising; None if it says nothing.

    Args:
        instance: The instance.
        names: Names of the GPU types.
        applications: Number of applications.
    """
    if instance.optional(_FIELD, None) is None:
        return None
    own = instance.fields(_FIELD).only("compute_s", "sync_s", "cpu_machines")

    def table(key: str, within: Range) -> dict[str, list[float]]:
        rows = zip(names, own.items(key, len(names)), strict=True)
        return {name: numbers_of(f"{own.name(key)}[{name}]", row, applications, within) for name, row in rows}

    return SynchronisationRecord(
        table("compute_s", POSITIVE), table("sync_s", NOT_NEGATIVE), own.whole("cpu_machines", NOT_NEGATIVE)
    )


def seconds_on_several_nodes(record: Record) -> dict[int, float]:
    """Give the working seconds of each interval on several nodes, by line, in seconds of a job that nobody helps.

    Who is there helps as long as it holds its node, restarts included.
    """
    own = record.synchronisation
    spread = [line for line in record.intervals if record.configurations[line.configuration].nodes > 1]
    if own is None or not spread:
        return {}
    pieces: dict[int, list[float]] = defaultdict(list)
    for start, end, holding in stretches(record.intervals):
        several = [line for line in holding if record.configurations[line.configuration].nodes > 1]
        beside = {line.node for line in holding if record.configurations[line.configuration].nodes == 1}
        for line in several:
            working = end - max(start, line.ready_s)
            if working > 0.0:
                helped = min(1.0, (own.cpu_machines + len(beside)) / len(several))
                pieces[line.line].append(working / _part(record, own, line, helped))
    return {line.line: math.fsum(pieces[line.line]) for line in spread}


def _part(record: Record, own: SynchronisationRecord, line: IntervalRecord, helped: float) -> float:
    """Say which part of its time without help an iteration takes with so many spare machines for each of its nodes."""
    configuration, application = record.configurations[line.configuration], record.jobs[line.job].application
    n = configuration.nodes
    k = n * helped
    compute = own.compute_s[configuration.gpu_type][application] / n
    sync = own.sync_s[configuration.gpu_type][application]
    return (compute + sync * 2 * n * (n - 1) / (n * n + k * n - 2 * k)) / (compute + sync * 2 * (n - 1) / n)


def seconds_worth(record: Record) -> dict[int, float]:
    """Give the working seconds of each interval, by line, in seconds of a job alone on its GPU, or without help.

    Beside others on one GPU, a job takes 1 + Σ (slow-down - 1) times as long, or runs at the pace that their duties
    leave it. They slow it down as long as they hold the GPU, their restarts included.
    """
    worth: dict[int, float] = {}
    sharing: dict[tuple[int, int], list[IntervalRecord]] = defaultdict(list)
    for interval in record.intervals:
        worth[interval.line] = max(0.0, interval.end_s - interval.ready_s)
        if record.configurations[interval.configuration].is_shared:
            sharing[interval.node, interval.gpu].append(interval)
    for (node, _), intervals in sharing.items():
        gpu_type = record.gpu_types[record.nodes[node].gpu_type]
        if gpu_type.slowdown is not None or gpu_type.duty is not None:
            worth.update(_beside_others(record, gpu_type.slowdown, intervals))
    return worth | seconds_on_several_nodes(record)


def _beside_others(
    record: Record, slowdown: list[list[float]] | None, intervals: list[IntervalRecord]
) -> dict[int, float]:
    """Give the working seconds of each of the intervals on one shared GPU, by line."""
    pieces: dict[int, list[float]] = {interval.line: [] for interval in intervals}
    for start, end, holding in stretches(intervals):
        if slowdown is None:
            speeds = paces(record, holding)
        else:
            speeds = [1.0 / _factor(record, slowdown, interval, holding) for interval in holding]
        for interval, speed in zip(holding, speeds, strict=True):
            working = end - max(start, interval.ready_s)
            if working > 0.0:
                pieces[interval.line].append(working * speed)
    return {line: math.fsum(parts) for line, parts in pieces.items()}


def _factor(
    record: Record, slowdown: list[list[float]], interval: IntervalRecord, holding: list[IntervalRecord]
) -> float:
    own = slowdown[record.jobs[interval.job].application]
    others = [own[record.jobs[other.job].application] for other in holding if other is not interval]
    return 1.0 + math.fsum(factor - 1.0 for factor in others)


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
