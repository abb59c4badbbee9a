"""How much working time each interval was worth, beside others on its GPU or with the help of other nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from gpusched_env.audit.duties import paces
from gpusched_env.audit.stretches import stretches
from gpusched_env.audit.synchronisation import seconds_on_several_nodes

if TYPE_CHECKING:
    from gpusched_env.audit.record import IntervalRecord, Record


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
