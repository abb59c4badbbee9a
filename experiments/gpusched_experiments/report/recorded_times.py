"""The schedule that ran, as a trace records it, beside its replay: whether they are the same schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusched_env.rendering.text import duration_text
from gpusched_env.workload import Trace
from gpusched_experiments.report.statistics import PolicyStatistics
from gpusched_experiments.report.table import Column, Table

AS_TRACED = "as-traced"
"""The policy that replays what really ran."""
LEAST_S = 60.0
SHARE = 0.05
"""A replayed time may differ from the recorded one by `LEAST_S`, or by this share of the recorded completion."""
TOLERANCE = f"{duration_text(LEAST_S)} or {100 * SHARE:g} % of the recorded completion, whichever is more"


@dataclass(frozen=True, slots=True)
class Times:
    """How long jobs waited and took.

    Attributes:
        waiting_s: Mean time from submission to the first start [s].
        p95_waiting_s: Its 95th percentile over the jobs [s].
        completion_s: Mean time from submission to completion [s].
        p95_completion_s: Its 95th percentile over the jobs [s].
    """

    waiting_s: float
    p95_waiting_s: float
    completion_s: float
    p95_completion_s: float

    @classmethod
    def of_trace(cls, trace: Trace) -> Times | None:
        if trace.start_s is None:
            return None
        waits = trace.start_s - trace.submission_s
        asked = trace.gpus if trace.asked_gpus is None else trace.asked_gpus
        took = waits + trace.duration_s * (trace.gpus / asked)  # as long as in the file, on the GPUs that it had there
        ends = (*np.quantile(waits, (0.95,)), float(took.mean()), *np.quantile(took, (0.95,)))
        return cls(float(waits.mean()), *map(float, ends))

    @classmethod
    def of_policy(cls, row: PolicyStatistics) -> Times:
        metrics = row.metrics
        return cls(metrics.waiting_s, metrics.p95_waiting_s, row.mean_completion_s, metrics.p95_completion_s)

    def is_like(self, recorded: Times) -> bool:
        """Whether no time differs from the recorded one by more than `TOLERANCE`; times that are not known differ."""
        pairs = (
            (self.waiting_s, recorded.waiting_s, recorded.completion_s),
            (self.p95_waiting_s, recorded.p95_waiting_s, recorded.p95_completion_s),
            (self.completion_s, recorded.completion_s, recorded.completion_s),
            (self.p95_completion_s, recorded.p95_completion_s, recorded.p95_completion_s),
        )
        return all(abs(own - other) <= max(LEAST_S, SHARE * whole) for own, other, whole in pairs)


@dataclass(frozen=True, slots=True)
class Traced:
    """What a trace knows of the schedule that ran.

    Attributes:
        due_dates: Whether it has due dates; else they are modelled, and so is the cost of tardiness.
        recorded: The times that it records; None without recorded starts.
    """

    due_dates: bool
    recorded: Times | None

    @classmethod
    def of(cls, trace: Trace) -> Traced:
        return cls(trace.due_s is not None, Times.of_trace(trace))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Traced:
        recorded = values["recorded"]
        return cls(bool(values["due_dates"]), None if recorded is None else Times(**recorded))


@dataclass(frozen=True, slots=True)
class ReplayTimes:
    """The times of a trace beside those of its replay.

    Attributes:
        recorded: The recorded times.
        replayed: Those of `as-traced`.
    """

    recorded: Times
    replayed: Times

    @classmethod
    def of(cls, traced: Traced | None, rows: Sequence[PolicyStatistics]) -> ReplayTimes | None:
        replayed = next((row for row in rows if row.policy == AS_TRACED), None)
        if traced is None or traced.recorded is None or replayed is None:
            return None
        return cls(traced.recorded, Times.of_policy(replayed))

    @property
    def is_what_ran(self) -> bool:
        return self.replayed.is_like(self.recorded)

    @property
    def sentence(self) -> str:
        if self.is_what_ran:
            return f"{AS_TRACED} is the schedule that ran: no time differs by more than {TOLERANCE}."
        wait, took = (
            f"{duration_text(getattr(self.replayed, name))}, recorded {duration_text(getattr(self.recorded, name))}"
            for name in ("waiting_s", "completion_s")
        )
        return (
            f"The replay is not the schedule that ran: replayed wait {wait}; replayed completion {took} (means). Times "
            f"differ by more than {TOLERANCE}: no saving against {AS_TRACED} is claimed."
        )

    def table(self) -> Table:
        rows = (("recorded", self.recorded), (f"{AS_TRACED}, replayed", self.replayed))
        columns: tuple[Column[tuple[str, Times]], ...] = (
            Column("schedule", "schedule", lambda row: row[0]),
            Column("waiting_s", "waiting", lambda row: row[1].waiting_s, duration_text),
            Column("p95_waiting_s", "waiting, 95 %", lambda row: row[1].p95_waiting_s, duration_text),
            Column("completion_s", "mean completion", lambda row: row[1].completion_s, duration_text),
            Column("p95_completion_s", "completion, 95 %", lambda row: row[1].p95_completion_s, duration_text),
        )
        return Table.of("Recorded and replayed", columns, rows, (self.sentence,))
