"""Sharing by duty: at which pace the jobs on one GPU run, and how busy they keep it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
