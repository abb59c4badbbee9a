"""The program's queue: a binary heap by arrival that it empties and fills again at every tick.

So jobs that arrived in the same tick change their order all the time, and which of them gets the last reserved machine
depends on it. As long as no job comes or goes, every tick changes the order in the same way.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class TickQueue:
    """Waiting jobs, in the order in which the program looks at them.

    It is filled in the order in which it was emptied, so between ticks the heap is sorted by arrival.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []

    def add(self, job: int, arrival_s: float) -> None:
        entry = _Entry(arrival_s)
        entry.job = job
        heapq.heappush(self._heap, entry)

    def pass_ticks(self, ticks: int) -> None:
        if ticks > 0 and len(set(self._heap)) < len(self._heap):
            place = {entry.job: k for k, entry in enumerate(self._heap)}
            step = [place[entry.job] for entry in _emptied(self._heap)]
            self._heap = [self._heap[k] for k in _power(step, ticks)]

    def emptied(self) -> list[int]:
        jobs = [entry.job for entry in _emptied(self._heap)]
        self._heap = []
        return jobs


class _Entry(float):
    """An arrival that knows its job; entries compare by arrival alone."""

    __slots__ = ("job",)
    job: int


def _emptied(heap: Sequence[_Entry]) -> list[_Entry]:
    rest = list(heap)
    return [heapq.heappop(rest) for _ in range(len(rest))]


def _power(step: Sequence[int], times: int) -> list[int]:
    """Return the places after `times` steps, of which each puts what was in place `step[k]` into place k."""
    result, square = list(range(len(step))), list(step)
    while times:
        if times & 1:
            result = [result[k] for k in square]
        square = [square[k] for k in square]
        times >>= 1
    return result
