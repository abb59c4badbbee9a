"""Outages and checkpoints, followed again from the lines of a run folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.audit.reading import NOT_NEGATIVE, Difference, FieldReader, number, same_time, text, whole
from gpusched_env.audit.record import Holding, Record, lives

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAY_S = 86400.0
_EXACT_S, _EXACT = 1e-9, 1e-15  # by which a checkpoint may end after an event [s], and relative to the time


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the file has of outages, as (node, noticed, down, up) [s], and of checkpoints."""

    outages: list[tuple[int, float, float, float]]
    per_day: dict[str, float]
    writing_s: float
    given_s: float | None
    is_daly: bool

    @classmethod
    def of(cls, record: Record, fields: FieldReader) -> _Rules:
        nodes = fields.column("node", whole, None, NOT_NEGATIVE)
        noticed, down, up = (fields.column(name, number, len(nodes)) for name in ("noticed_s", "down_s", "up_s"))
        ends = (math.inf if value < 0.0 else value for value in up)
        rates = fields.column("per_node_day", number, len(record.gpu_types), NOT_NEGATIVE)
        given = fields.get("interval_s", number, NOT_NEGATIVE) if fields.has("interval_s") else None
        writing, is_daly = fields.get("checkpoint_s", number, NOT_NEGATIVE), fields.get("rule", text) == "daly"
        rows = list(zip(nodes, noticed, down, ends, strict=True))
        return cls(rows, dict(zip(record.gpu_types, rates, strict=True)), writing, given, is_daly)

    def interval_s(self, record: Record, holding: Holding) -> float:
        """Return the seconds of work between checkpoints; inf: none are written."""
        if self.given_s is not None:
            return self.given_s
        per_day = self.per_day[record.nodes[holding.lines[0].node].gpu_type] * holding.configuration.nodes
        if per_day == 0.0:
            return math.inf
        mean, ratio = _DAY_S / per_day, self.writing_s * per_day / (2.0 * _DAY_S)
        young = math.sqrt(2.0 * self.writing_s * mean)
        if not self.is_daly:
            return young
        return mean if ratio >= 1.0 else young * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - self.writing_s

    def stops(self, holding: Holding, *, announced: bool) -> bool:
        """Whether an outage ends a holding; unless `announced`, only one announced too late for a checkpoint."""
        nodes = {line.node for line in holding.lines}
        return any(
            node in nodes
            and down < up
            and same_time(down, holding.end_s)
            and (announced or self._is_short(down - noticed))
            for node, noticed, down, up in self.outages
        )

    def _is_short(self, notice_s: float) -> bool:
        return notice_s == 0.0 or notice_s < self.writing_s


def worth(record: Record, fields: FieldReader, seconds: dict[int, float]) -> dict[int, float]:
    """Return the working seconds of each line, less the checkpoints and what outages made the job lose.

    Args:
        record: The run folder.
        fields: The fields of the mechanism.
        seconds: The working seconds of each line, those of checkpoints included.
    """
    rules, changed = _Rules.of(record, fields), dict(seconds)
    for job, life in enumerate(lives(record)):
        done, saved, since, before = 0.0, 0.0, 0.0, None
        for holding in life:
            per_epoch = record.jobs[job].seconds_per_epoch[holding.configuration.column]
            if per_epoch is None:
                break  # it is reported that the job may not use the configuration
            first = holding.lines[0]
            interval, works = rules.interval_s(record, holding), 1.0
            if 0.0 < interval < math.inf:
                works = interval / (interval + rules.writing_s)
            if before is None or not holding.same_gpus(before):
                saved, since = done, first.ready_s
            elif before.lines[0].ready_s == before.end_s:
                since = first.ready_s  # the restart lasted longer than that holding
            cycle = interval + rules.writing_s
            last = holding.end_s if interval == 0.0 else since
            if 0.0 < interval < math.inf:
                passed = math.floor((holding.end_s - since) / cycle * (1.0 + _EXACT) + _EXACT_S / cycle)
                last = since + max(0, passed) * cycle
            if last > since:
                saved, since = done + max(0.0, min(last, holding.end_s) - first.ready_s) * works / per_epoch, last
            stopped = holding is not life[-1] and rules.stops(holding, announced=False)
            kept = saved - done if stopped else seconds[first.line] * works / per_epoch
            for line in holding.lines:
                changed[line.line] = kept * per_epoch
            done, before = done + kept, holding
    return changed


def stopped(record: Record, fields: FieldReader) -> set[tuple[int, float]]:
    """Return the jobs that outages stop, each with the time [s]: no round ends what they hold."""
    rules = _Rules.of(record, fields)
    ends = ((job, holding) for job, life in enumerate(lives(record)) for holding in life[:-1])
    return {(job, holding.end_s) for job, holding in ends if rules.stops(holding, announced=True)}


def check(record: Record, fields: FieldReader) -> Iterator[Difference]:
    """Yield each line of a job on a node that is down."""
    for node, _, down, up in _Rules.of(record, fields).outages:
        for line in record.intervals:
            if line.node == node and line.start_s < up and down < line.end_s and not same_time(down, line.end_s):
                yield Difference(line.where, line.end_s, down, f"end, not after node {node} goes down [s]")
