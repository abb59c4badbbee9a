"""How much working time each interval was worth: stretches, neighbours by pairs or by duty, help of other nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.reading import NOT_NEGATIVE, POSITIVE, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
