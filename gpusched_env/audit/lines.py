"""The lines of intervals.csv: one for each interval, in the order that the format fixes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.record import Record


def check_lines(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that lines are sorted by start, job and node, and that no line goes on with what another one ends."""
    keys = [(line.start_s, line.job, line.node) for line in record.intervals]
    for line, (before, after) in zip(record.intervals[1:], pairwise(keys), strict=True):
        if after < before:
            yield Difference(line.where, after, before, "order: start, job, node, not before those of the line above")
    for life in by_job:
        for earlier, later in pairwise(life):
            if later.continues(earlier):
                what = f"start: it goes on with what line {earlier.lines[0].line} holds, with which it is one interval"
                yield Difference(later.where, later.start_s, earlier.start_s, what)
