"""A trace of real jobs: when they came, how long they ran, and on how many GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        tenant: Names of whom each job was for, one per job, if the trace has them.
        user: Names of who submitted each job, likewise.
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
        """Give what rebuilds the value, arrays read-only again."""
        return checks.rebuilt(self)

    def __post_init__(self) -> None:
        for column in _ARRAYS:
            values = getattr(self, column)
            if values is not None:
                object.__setattr__(self, column, checks.frozen_array(values))
        asked = self.gpus if self.asked_gpus is None else checks.frozen_array(self.asked_gpus)
        object.__setattr__(self, "asked_gpus", asked)

    def __repr__(self) -> str:
        """Say in a line what it is called and how large it is."""
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
        """Multiply the time between submissions by `factor` (> 0); durations, waits and times to due dates stay.

        Raises:
            InputError: The factor is not positive, or moves the last submission beyond `checks.LONGEST_S`.
        """
        if checks.positive("factor", factor) * float(self.submission_s[-1]) > checks.LONGEST_S:
            raise InputError("factor", factor, f"a factor with which the last job comes within {checks.LONGEST}")
        submission_s = self.submission_s * factor
        later = submission_s - self.submission_s
        due_s = None if self.due_s is None else self.due_s + later
        # Rounding must not let a job start before it comes.
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
        """Give the load on a cluster of `gpus` GPUs: GPU-seconds / (GPUs · time from first to last submission).

        Infinite if all jobs are submitted at once.
        """
        span = float(self.submission_s[-1])
        return self.gpu_seconds / (checks.whole("gpus", gpus) * span) if span > 0.0 else float("inf")
