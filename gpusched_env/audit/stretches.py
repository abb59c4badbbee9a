"""Stretches of time in which the same intervals lie side by side."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpusched_env.audit.record import IntervalRecord


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
