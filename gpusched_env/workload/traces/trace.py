"""A trace of real jobs (submissions, durations, GPUs), and its reading from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload.traces import UTF_8, TraceFormat
from gpusched_env.workload.traces.columns import (
    Condition,
    TraceColumns,
    find_columns,
    with_made_columns,
)
from gpusched_env.workload.traces.presets import DLRM, GENERIC, SACCT, SWF, Preset, check_format
from gpusched_env.workload.traces.rows import layout_of, read_rows
from gpusched_env.workload.traces.sacct import asked_for_others, earlier_attempts

_ARRAYS = ("submission_s", "duration_s", "gpus", "due_s", "tardiness_weight_eur_per_s", "start_s")
_TEXTS = ("application", "tenant", "user", "gpu_type")


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
        start_s: When each job really started [s] on the clock of `submission_s`, shape (J,), not before it, if the
            trace has start times.
        tenant: Name of each job's tenant, if the trace has them.
        user: Name of each job's user, likewise.
        gpu_type: GPU type that each job ran on, as the file spells it; empty where it names none.
        format: Name of the file's format.
        columns: Column of each field in the file.
        skipped: Reasons for which rows of the file were left out, and how many were.
    """

    name: str
    submission_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    gpus: NDArray[np.float64]
    due_s: NDArray[np.float64] | None = None
    tardiness_weight_eur_per_s: NDArray[np.float64] | None = None
    application: tuple[str, ...] | None = None
    asked_gpus: NDArray[np.float64] | None = None
    start_s: NDArray[np.float64] | None = None
    tenant: tuple[str, ...] | None = None
    user: tuple[str, ...] | None = None
    gpu_type: tuple[str, ...] | None = None
    format: str = "generic"
    columns: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __post_init__(self) -> None:
        for column in _ARRAYS:
            values = getattr(self, column)
            if values is not None:
                object.__setattr__(self, column, checks.frozen_array(values))
        asked = self.gpus if self.asked_gpus is None else checks.frozen_array(self.asked_gpus)
        object.__setattr__(self, "asked_gpus", asked)

    def __repr__(self) -> str:
        days, hours = float(self.submission_s[-1]) / 86_400.0, self.gpu_seconds / 3600.0
        return f"Trace({self.name!r}: {len(self):,} jobs in {days:,.3g} days, {hours:,.4g} GPU-hours)"

    def __len__(self) -> int:
        return len(self.submission_s)

    @property
    def clipped(self) -> int:
        """Count the jobs that asked for more GPUs than they have here, because none are offered so many."""
        return 0 if self.asked_gpus is None else int(np.sum(self.gpus < self.asked_gpus))

    @property
    def gpu_seconds(self) -> float:
        """Return the work of all jobs: Σ duration · GPUs [GPU·s]."""
        return float(np.dot(self.duration_s, self.gpus))

    def clip(self, most_gpus: int) -> Trace:
        """Limit the GPUs of every job to `most_gpus`.

        A job that asked for more runs longer on fewer: its GPU-seconds stay the same. `clipped` counts such jobs.

        Raises:
            InputError: `most_gpus` is not a whole number ≥ 1.
        """
        gpus = np.minimum(self.gpus, checks.whole("most_gpus", most_gpus))
        return replace(self, gpus=gpus, duration_s=self.duration_s * (self.gpus / gpus))

    def stretch(self, factor: float) -> Trace:
        """Multiply the time between submissions by `factor` (> 0); durations, waits and times to due dates stay.

        Raises:
            InputError: The factor is not positive, or moves the last submission beyond `checks.LONGEST_S`.
        """
        if checks.positive("factor", factor) * float(self.submission_s[-1]) > checks.LONGEST_S:
            raise InputError("factor", factor, f"a factor with which the last job comes within {checks.LONGEST}")
        submission_s = self.submission_s * factor
        later = submission_s - self.submission_s
        due_s = None if self.due_s is None else self.due_s + later
        # Rounding must not make a job start before its submission.
        start_s = None if self.start_s is None else np.maximum(self.start_s + later, submission_s)
        return replace(self, submission_s=submission_s, due_s=due_s, start_s=start_s)

    def of_rows(self, rows: NDArray[np.int64]) -> Trace:
        """Take these jobs, shape (≥ 1,), in this order, before any is clipped; the clock starts at 0 with the first."""
        origin = self.submission_s[rows[0]]
        taken: dict[str, object] = {}
        for name in _ARRAYS:
            values = getattr(self, name)
            if values is not None:
                taken[name] = values[rows] - origin if name in {"submission_s", "due_s", "start_s"} else values[rows]
        for name in _TEXTS:
            texts = getattr(self, name)
            if texts is not None:
                taken[name] = tuple(texts[i] for i in rows)
        return replace(self, asked_gpus=None, **taken)  # type: ignore[arg-type]

    def load_on(self, gpus: int) -> float:
        """Return the load on a cluster of `gpus` GPUs: GPU-seconds / (GPUs · time from first to last submission).

        Infinite if all jobs are submitted at once.
        """
        span = float(self.submission_s[-1])
        return self.gpu_seconds / (checks.whole("gpus", gpus) * span) if span > 0.0 else float("inf")


def read_trace(
    path: str | Path,
    format: TraceFormat = "generic",  # noqa: A002 - the word that users look for
    columns: Mapping[str, str] | None = None,
    *,
    jobs: int | None = None,
    sort: bool | None = None,
    first: int = 0,
    where: Sequence[str] = (),
    skip_invalid: bool | None = None,
    encoding: str = UTF_8,
    processors_per_gpu: float = 1.0,
) -> Trace:
    """Read a trace; `docs/traces.md` documents the formats.

    Args:
        path: The file.
        format: How it was published, one of `traces.FORMATS`; `detect_format` tells.
        columns: Column of a field where it is not the format's: `{"gpus": "n_gpu"}`.
        jobs: Most jobs to take after `first`, ≥ 1; by default all.
        sort: Whether to sort by submission (stable); by default all formats but generic.
        first: Jobs to skip, in order of submission, ≥ 0.
        where: Conditions such as `"gpus > 0"` or `"state = COMPLETED"`, on columns of the file or on fields; rows that
            do not meet them all are left out and counted.
        skip_invalid: Whether rows that are not valid are left out and counted; by default only jobs without a GPU and
            jobs that never ran, in all formats but generic.
        encoding: The file's encoding, as Python names it, such as cp1252.
        processors_per_gpu: Processors of a trace in the format swf that count as one GPU, > 0.

    Returns:
        The trace; its times start at 0 with its first job.

    Raises:
        InputError: The file cannot be read, lacks a column, is not in time order, or has a cell that is not
            allowed; names field, row (1 is the first below the header), value and what is allowed.
    """
    check_format(format)
    layout, file = layout_of(path, format, encoding), Path(path).name
    preset = layout.preset
    if preset is SWF:
        preset = replace(preset, unit=1.0 / checks.positive("trace.processors_per_gpu", processors_per_gpu))
    table, odd = read_rows(path, layout, skips=skip_invalid is True)
    column_of = find_columns(file, table, preset, columns or {})
    table = with_made_columns(table, preset, column_of)
    fields = TraceColumns(file, table, column_of, skips=skip_invalid is True)
    fields.skipped.update(odd)
    if preset is SACCT:
        fields.leave_out(earlier_attempts(table), "an earlier attempt of a job that was queued again")
    for condition in map(Condition.parse, where):
        fields.leave_out(~condition.holds(table, column_of).to_numpy(), f"not {condition.text}")
    without = fields.missing("gpus") | fields.zero("gpus")
    for field in ("start_s", "end_s"):
        if fields.has(field):
            fields.check_times(field, without)
    if preset.skips if skip_invalid is None else skip_invalid:
        never = fields.missing("duration_s")
        if fields.has("start_s"):
            never |= fields.missing("start_s")
        if preset is SACCT:
            others = without & asked_for_others(table)
            fields.leave_out(others & ~never, "asked for shares of GPUs or other resources, which are not read")
        fields.leave_out(without & ~never, "asked for no GPU")
        fields.leave_out(never, "never ran, or had not ended")
        fields.leave_out(fields.zero("duration_s"), "ran for 0 s")
        if preset is DLRM:
            fields.leave_out(fields.missing("submission_s"), "created before the trace begins")
    trace = _parse(fields, preset)
    return _selected(trace, fields, preset.sorts if sort is None else sort, first, jobs)


def detect_format(path: str | Path, encoding: str = UTF_8) -> TraceFormat:
    """Return a trace's format by its columns, or by how it begins where it is no CSV file; generic if it is no other.

    Raises:
        InputError: The file cannot be read.
    """
    return layout_of(path, encoding=encoding).preset.format


def _parse(fields: TraceColumns, preset: Preset) -> Trace:
    """Check every row; return the jobs that are taken, in the order of the file, on the file's own clock."""
    submitted = "timestamp" if fields.has("timestamp") else "submission_s"
    start = fields.times_s(submitted)
    values: dict[str, NDArray[np.float64]] = {"submission_s": start}
    if fields.has("start_s"):
        began = fields.times_s("start_s")
        if preset is GENERIC:
            with np.errstate(invalid="ignore"):
                fields.check("start_s", began >= start, "a time not before the submission")
        values["start_s"] = np.maximum(began, start)
    if fields.has("due_s"):
        values["due_s"] = fields.times_s("due_s")
        with np.errstate(invalid="ignore"):
            fields.check("due_s", values["due_s"] >= start, "a time not before the submission")
    if fields.has("tardiness_weight_eur_per_s"):
        weight = fields.numbers("tardiness_weight_eur_per_s", "a finite number >= 0", lambda x: x >= 0)
        values["tardiness_weight_eur_per_s"] = weight
    values["duration_s"] = fields.numbers(
        "duration_s",
        f"a finite number of seconds > 0, {checks.LONGEST} at most",
        lambda x: (x > 0) & (x <= checks.LONGEST_S),
    )
    values["gpus"] = fields.numbers(
        "gpus",
        "a whole number >= 1, or a share of one GPU > 0 and < 1",
        lambda x: (x > 0) & ((x < 1) | (x == np.floor(x))),
    )
    names = {field: fields.names(field) for field in _TEXTS if fields.has(field)}
    rows = np.flatnonzero(fields.taken)
    if not len(rows):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in fields.skipped.items())
        raise InputError(f"{fields.file}: rows left out", reasons, "at least one row that is taken")
    return Trace(
        name=fields.file,
        format=preset.format,
        columns=tuple(fields.column_of.items()),
        skipped=tuple(fields.skipped.items()),
        **{name: column[rows] for name, column in values.items()},  # type: ignore[arg-type]
        **{name: tuple(texts[i] for i in rows) for name, texts in names.items()},  # type: ignore[arg-type]
    )


def _selected(trace: Trace, fields: TraceColumns, sort: bool, first: int, jobs: int | None) -> Trace:
    """Take the jobs that are asked for, in order of submission; the clock starts at 0 with the first."""
    order = np.argsort(trace.submission_s, kind="stable")
    if not sort and not np.array_equal(order, np.arange(len(order))):
        taken = np.flatnonzero(fields.taken)
        in_order = np.ones(len(fields.taken), dtype=np.bool_)
        in_order[taken] = np.diff(trace.submission_s, prepend=trace.submission_s[0]) >= 0
        submitted = "timestamp" if fields.has("timestamp") else "submission_s"
        allowed = "a time not before that of the row above (trace.sort = true sorts the trace)"
        fields.check(submitted, in_order, allowed, skips=False)
    chosen = order[checks.whole("trace.first", first, 0) :]
    if not len(chosen):
        allowed = f"a whole number below {len(order)}, the jobs of {trace.name}"
        raise InputError("trace.first", first, allowed)
    return trace.of_rows(chosen if jobs is None else chosen[: checks.whole("jobs", jobs)])
