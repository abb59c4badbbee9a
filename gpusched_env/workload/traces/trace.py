"""A trace of real jobs: when they came, how long they ran, and on how many GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload.traces.columns import PHILLY_COLUMNS, TraceColumns, column_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

TraceFormat = Literal["philly", "generic"]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Jobs of a trace, sorted by submission.

    Attributes:
        name: Name of the file.
        submission_s: Submission times [s], shape (J,), from 0.
        duration_s: How long each job ran on its GPUs [s], shape (J,), > 0.
        gpus: GPUs that each job ran on, shape (J,): whole numbers ≥ 1, or a share of one GPU in (0, 1).
        due_s: Due dates [s] on the clock of `submission_s`, shape (J,), if the trace has them.
        tardiness_weight_eur_per_s: Tardiness weights [€/s], shape (J,), ≥ 0, if the trace has them.
        application: Names of the applications, one per job, if the trace has them.
        asked_gpus: GPUs that each job asked for in the file, shape (J,); by default `gpus`, which `clip` lowers.
    """

    name: str
    submission_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    gpus: NDArray[np.float64]
    due_s: NDArray[np.float64] | None = None
    tardiness_weight_eur_per_s: NDArray[np.float64] | None = None
    application: tuple[str, ...] | None = None
    asked_gpus: NDArray[np.float64] | None = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Give what rebuilds the value, arrays read-only again."""
        return checks.rebuilt(self)

    def __post_init__(self) -> None:
        for column in ("submission_s", "duration_s", "gpus", "due_s", "tardiness_weight_eur_per_s"):
            values = getattr(self, column)
            if values is not None:
                object.__setattr__(self, column, checks.frozen_array(values))
        asked = self.gpus if self.asked_gpus is None else checks.frozen_array(self.asked_gpus)
        object.__setattr__(self, "asked_gpus", asked)

    def __len__(self) -> int:
        return len(self.submission_s)

    @property
    def clipped(self) -> int:
        """Count the jobs that asked for more GPUs than they have here, because none are offered so many."""
        return 0 if self.asked_gpus is None else int(np.sum(self.gpus < self.asked_gpus))

    @property
    def gpu_seconds(self) -> float:
        """Give the work of all jobs: Σ duration · GPUs [GPU·s]."""
        return float(np.dot(self.duration_s, self.gpus))

    def clip(self, most_gpus: int) -> Trace:
        """Let no job have more than `most_gpus` GPUs.

        A job that asked for more runs longer on fewer: its GPU-seconds stay the same. `clipped` counts such jobs.

        Raises:
            InputError: `most_gpus` is not a whole number ≥ 1.
        """
        gpus = np.minimum(self.gpus, checks.whole("most_gpus", most_gpus))
        return replace(self, gpus=gpus, duration_s=self.duration_s * (self.gpus / gpus))

    def stretch(self, factor: float) -> Trace:
        """Multiply the time between submissions by `factor` (> 0); durations and times to due dates stay.

        Raises:
            InputError: The factor is not positive, or moves the last submission beyond `checks.LONGEST_S`.
        """
        if checks.positive("factor", factor) * float(self.submission_s[-1]) > checks.LONGEST_S:
            raise InputError("factor", factor, f"a factor with which the last job comes within {checks.LONGEST}")
        submission_s = self.submission_s * factor
        due_s = None if self.due_s is None else self.due_s + (submission_s - self.submission_s)
        return replace(self, submission_s=submission_s, due_s=due_s)

    def load_on(self, gpus: int) -> float:
        """Give the load on a cluster of `gpus` GPUs: GPU-seconds / (GPUs · time from first to last submission).

        Infinite if all jobs are submitted at once.
        """
        span = float(self.submission_s[-1])
        return self.gpu_seconds / (checks.whole("gpus", gpus) * span) if span > 0.0 else float("inf")


def read_trace(
    path: str | Path,
    format: TraceFormat = "generic",  # noqa: A002 - the word that users look for
    columns: Mapping[str, str] | None = None,
    *,
    sort: bool | None = None,
    first: int = 0,
    jobs: int | None = None,
) -> Trace:
    """Read a trace from a CSV file; `docs/traces.md` documents both formats.

    Args:
        path: The file, with a header.
        format: `philly` (Microsoft's trace, flattened: timestamp, duration, num_gpus) or `generic`.
        columns: Column of a field where it is not the format's: `{"gpus": "n_gpu"}`.
        sort: Whether to sort by submission (stable); by default only Philly's file, which is not in time order.
        first: Jobs to skip, in order of submission, ≥ 0.
        jobs: Most jobs to take after those, ≥ 1; by default all.

    Returns:
        The trace; its times start at 0 with its first job.

    Raises:
        InputError: The file cannot be read, lacks a column, is not in time order, or has a cell that is not
            allowed; names field, row (1 is the first below the header), value and what is allowed.
    """
    if format not in {"philly", "generic"}:
        raise InputError("trace.format", format, "one of philly, generic")
    philly, named = format == "philly", dict(columns or {})
    if philly:
        # A column that the user names for submissions replaces the format's.
        named = {k: v for k, v in PHILLY_COLUMNS.items() if k != "timestamp" or "submission_s" not in named} | named
    table = TraceColumns.read(path, named, all_named=not philly)
    trace, start = _parse(table)
    order = np.argsort(start, kind="stable")
    if not (philly if sort is None else sort):
        field = "submission_s" if table.has("submission_s") else "timestamp"
        in_order = np.diff(start, prepend=start[0]) >= 0
        table.check(field, in_order, "a time not before that of the row above (sort = true sorts the trace)")
    chosen = order[checks.whole("trace.first", first, 0) :]
    if not len(chosen):
        raise InputError("trace.first", first, f"a whole number below {len(order)}, the jobs of {table.file}")
    if jobs is not None:
        chosen = chosen[: checks.whole("jobs", jobs)]
    return _take(trace, start, chosen)


def detect_format(path: str | Path) -> TraceFormat:
    """Tell a trace's format by its columns: Philly's if it has them all, else generic.

    Raises:
        InputError: The file cannot be read.
    """
    return "philly" if set(PHILLY_COLUMNS.values()) <= set(column_names(path)) else "generic"


def _parse(table: TraceColumns) -> tuple[Trace, NDArray[np.float64]]:
    """Check every row; return the jobs in the order of the file, and their submissions on the file's own clock."""
    dates = table.has("timestamp")
    start = table.times_s("timestamp" if dates else "submission_s", as_dates=dates)
    due = None
    if table.has("due_s"):
        due = table.times_s("due_s", as_dates=dates)
        table.check("due_s", due >= start, "a time not before the submission")
    weight = None
    if table.has("tardiness_weight_eur_per_s"):
        weight = table.numbers("tardiness_weight_eur_per_s", "a finite number >= 0", lambda x: x >= 0)
    trace = Trace(
        name=table.file,
        submission_s=start,
        duration_s=table.numbers("duration_s", _A_DURATION, _is_duration),
        gpus=table.numbers("gpus", "a whole number >= 1, or a share of one GPU > 0 and < 1", _whole_or_share),
        due_s=due,
        tardiness_weight_eur_per_s=weight,
        application=table.texts("application") if table.has("application") else None,
    )
    return trace, start


_A_DURATION = f"a finite number of seconds > 0, {checks.LONGEST} at most"


def _is_duration(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = (seconds > 0) & (seconds <= checks.LONGEST_S)
    return good


def _whole_or_share(gpus: NDArray[np.float64]) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = (gpus > 0) & ((gpus < 1) | (gpus == np.floor(gpus)))
    return good


def _take(trace: Trace, start: NDArray[np.float64], rows: NDArray[np.int64]) -> Trace:
    origin = start[rows[0]]
    weight, names = trace.tardiness_weight_eur_per_s, trace.application
    return replace(
        trace,
        submission_s=start[rows] - origin,
        duration_s=trace.duration_s[rows],
        gpus=trace.gpus[rows],
        asked_gpus=None,
        due_s=None if trace.due_s is None else trace.due_s[rows] - origin,
        tardiness_weight_eur_per_s=None if weight is None else weight[rows],
        application=None if names is None else tuple(names[i] for i in rows),
    )
