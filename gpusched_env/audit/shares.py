"""Shares of GPUs: which GPUs an interval has a share of, and how fast jobs run beside each other on them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from gpusched_env.audit.record import IntervalRecord, Record, stretches


@dataclass(frozen=True, slots=True)
class SpeedPeriod:
    """A period in which the jobs on the GPUs of a job stay the same.

    `speed` is the job's, 1 as alone; `equal` what it would be if all priorities were equal, infinite if that is no
    matter; `beside` are the other jobs, by GPU.
    """

    start_s: float
    end_s: float
    speed: float
    equal: float = math.inf
    beside: frozenset[tuple[int, int, int]] = frozenset()


def gpus_of(interval: IntervalRecord) -> list[tuple[int, int]]:
    """List the shared GPUs of a line, as node and number; empty for whole GPUs."""
    count = interval.configuration.gpus if interval.configuration.is_shared else 0
    return [(interval.node, gpu) for gpu in range(interval.gpu, interval.gpu + count)]


def utilisation_of(record: Record, interval: IntervalRecord) -> float | None:
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
    return [_with_memory(record, holding, interval, speed[interval.configuration.priority]) for interval in holding]


def _usable(record: Record, holding: list[IntervalRecord], highest: int) -> float:
    """Return the usable part of what the jobs of the highest level leave: the least of theirs, by the jobs below."""
    filled = record.utilisation_model.filled
    if not isinstance(filled, list):
        return filled
    first = [line.job for line in holding if line.configuration.priority == highest]
    rows = [filled[record.jobs[job].application] for job in first]
    return min(row[: len(holding) - len(first)][-1] if len(holding) > len(first) else 1.0 for row in rows)


def _with_memory(record: Record, holding: list[IntervalRecord], interval: IntervalRecord, speed: float) -> float:
    """Return the speed of a job with the memory that it has, if memory moves between the jobs on a GPU."""
    own = record.shared_memory
    if own is None:
        return speed
    level, gpu_type = interval.configuration.priority, interval.configuration.gpu_type
    needs: dict[int, list[float]] = defaultdict(list)
    for each in holding:
        needs[each.configuration.priority].append(own.need_gib[record.jobs[each.job].application])
    application = record.jobs[interval.job].application
    taken = math.fsum(need for other, all_needs in needs.items() if other > level for need in all_needs)
    free, wanted = max(0.0, record.gpu_types[gpu_type].memory_gib - taken), math.fsum(needs[level])
    need = own.need_gib[application]
    limit = need if wanted <= free else need * free / wanted
    if limit < own.least_gib[application] * (1.0 - 1e-12):
        return min(speed, record.utilisation_model.least_speed)
    moved_s = 2.0 * (need - limit) * 2**30 / (own.host_gb_per_s * 1e9)
    return 1.0 / (1.0 / speed + moved_s / own.iteration_s[gpu_type][application])


def _if_equal(record: Record, holding: list[IntervalRecord]) -> list[float]:
    """Return the speeds of jobs of the highest priority, with others below, if all were equal; else infinite."""
    levels = {interval.configuration.priority for interval in holding}
    total = math.fsum(utilisation_of(record, interval) or 0.0 for interval in holding)
    together = min(1.0, 1.0 / total) if len(levels) > 1 else math.inf
    return [together if interval.configuration.priority == max(levels) else math.inf for interval in holding]


def _speeds_by_pairs(record: Record, factor: list[list[float]], holding: list[IntervalRecord]) -> list[float]:
    """Return the speeds of jobs on one GPU that each slow the others: a job takes 1 + Σ (factor - 1) times as long."""
    application = [record.jobs[interval.job].application for interval in holding]
    return [
        1.0 / (1.0 + math.fsum(factor[own][other] - 1.0 for j, other in enumerate(application) if j != i))
        for i, own in enumerate(application)
    ]


def speed_pieces(record: Record) -> dict[int, list[SpeedPeriod]]:
    """Return the speeds of each line with shares, by line: a job on several GPUs is as fast as on the slowest.

    Lines without a model of sharing are left out.
    """
    on_gpu: dict[tuple[int, int], list[IntervalRecord]] = defaultdict(list)
    lines: dict[tuple[int, float], list[int]] = defaultdict(list)
    for interval in record.intervals:
        gpu_type = record.gpu_types[record.nodes[interval.node].gpu_type]
        if gpu_type.slowdown is not None or gpu_type.utilisation is not None:
            for place in gpus_of(interval):
                on_gpu[place].append(interval)
            if interval.configuration.is_shared:
                lines[interval.job, interval.start_s].append(interval.line)
    each: dict[tuple[int, float], list[list[SpeedPeriod]]] = defaultdict(list)
    for (node, gpu), intervals in on_gpu.items():
        slowdown = record.gpu_types[record.nodes[node].gpu_type].slowdown
        pieces: dict[tuple[int, float], list[SpeedPeriod]] = defaultdict(list)
        for start, end, holding in stretches(intervals):
            speeds = speeds_on_gpu(record, holding) if slowdown is None else _speeds_by_pairs(record, slowdown, holding)
            equals = _if_equal(record, holding) if record.adapt_s > 0.0 else [math.inf] * len(holding)
            for interval, speed, equal in zip(holding, speeds, equals, strict=True):
                beside = frozenset((node, gpu, other.job) for other in holding if other is not interval)
                piece = SpeedPeriod(start, end, speed, equal, beside)
                pieces[interval.job, interval.start_s].append(piece)
        for key, of_gpu in pieces.items():
            each[key].append(of_gpu)
    slowest = {key: _slowest(pieces) for key, pieces in each.items()}
    return {line: slowest[key] for key, numbers in lines.items() for line in numbers if key in slowest}


def _slowest(on_gpus: list[list[SpeedPeriod]]) -> list[SpeedPeriod]:
    """Return the least of several speeds over time."""
    if len(on_gpus) == 1:
        return on_gpus[0]
    times = sorted({time for pieces in on_gpus for piece in pieces for time in (piece.start_s, piece.end_s)})
    starts = [[piece.start_s for piece in pieces] for pieces in on_gpus]
    found: list[SpeedPeriod] = []
    for start, end in pairwise(times):
        now = [pieces[bisect_right(begins, start) - 1] for pieces, begins in zip(on_gpus, starts, strict=True)]
        beside = frozenset[tuple[int, int, int]]().union(*(piece.beside for piece in now))
        speed, equal = min(piece.speed for piece in now), min(piece.equal for piece in now)
        found.append(SpeedPeriod(start, end, speed, equal, beside))
    return found


def worked_s(pieces: list[SpeedPeriod], start_s: float, end_s: float) -> float:
    """Return the seconds of work, as alone, that are done from one time to another."""
    first = max(0, bisect_right(pieces, start_s, key=lambda piece: piece.start_s) - 1)
    parts: list[float] = []
    for piece in pieces[first:]:
        if piece.start_s >= end_s:
            break
        parts.append(max(0.0, min(piece.end_s, end_s) - max(piece.start_s, start_s)) * piece.speed)
    return math.fsum(parts)


def done_s(pieces: list[SpeedPeriod], ready_s: float, adapt_s: float) -> float:
    """Return the seconds of progress, as alone, of an interval that is ready at a time.

    Limits follow the jobs on a GPU with a delay: when they change, the job stands as long as it would lose in `adapt_s`
    seconds at the lower of its former speed and that of equal priorities.
    """
    parts: list[float] = []
    standing, former = ready_s, math.inf
    before: frozenset[tuple[int, int, int]] = frozenset()
    for piece in pieces:
        if piece.beside != before:
            lost = adapt_s * max(0.0, 1.0 - min(former, piece.equal) / piece.speed)
            standing = max(standing, piece.start_s) + lost
        parts.append(max(0.0, piece.end_s - max(piece.start_s, standing)) * piece.speed)
        before, former = piece.beside, piece.speed
    return math.fsum(parts)
