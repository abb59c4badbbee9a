"""All jobs of an instance as read-only columns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Configuration
    from gpusched_env.model.distribution import EpochDistribution
    from gpusched_env.model.job import Job


@dataclass(frozen=True, slots=True, eq=False)
class JobTable:
    """The jobs of an instance, one column per property, sorted by submission.

    Args:
        submission_s: Submission times [s], shape (J,), from 0 to `checks.LONGEST_S`, never falling.
        due_s: Due dates [s], shape (J,), at or after the submission, `LONGEST_S` at most.
        tardiness_weight_eur_per_s: Tardiness weights [€/s], shape (J,), ≥ 0.
        max_epochs: Maximum epochs, shape (J,), > 0.
        epochs_needed: Epochs really needed, shape (J,), in (0, max_epochs]; hidden from policies.
        memory_gib: Memory needed on each GPU [GiB], shape (J,), ≥ 0.
        seconds_per_epoch: τ [s/epoch], shape (J, C), > 0; inf where a configuration is not allowed. On a shared GPU:
            the time alone on it if the instance has an interference model, else with the inflation included. On several
            nodes, without help of spare machines. The maximum epochs take `LONGEST_S` at most.
        application: Index into `applications`, shape (J,).
        applications: Names of the applications.
        distribution: Index into `distributions`, shape (J,).
        distributions: The distributions of epochs needed that jobs refer to.
        restart_s: Seconds without progress after a change of configuration or node, shape (J,), from 0 to
            `LONGEST_S`; 0 by default.
        start_s: Seconds without progress until a job has been ready once, shape (J,), likewise.
        resume_s: Seconds without progress after a change on the nodes where a job was last ready, shape (J,), likewise.
            With it costs depend on the distance: `restart_s` is that of a change to other nodes, and a change of share
            on one GPU costs nothing. None, the default: every change costs `restart_s`.
        opportunistic: Whether jobs are in the class that gets the GPUs that guaranteed ones leave, shape (J,), a label
            that policies and reports read; False by default.
        tenant: Index of the job's tenant, shape (J,), ≥ 0; 0 by default.
        traced_start_s: When jobs really started [s], shape (J,), at or after the submission, `LONGEST_S` at most: of a
            trace that has such times, for a policy that replays it. None, the default: not known.
        traced_config: Configuration that jobs really ran on, or the closest to it, shape (J,): an index that the job
            is allowed. None without `traced_start_s`.
        traced_type_known: Whether the trace states the GPU type of `traced_config`, shape (J,); False by default: the
            type is a guess.
        state_gib: State that moves when a job is switched [GiB], shape (J,), ≥ 0; only `HostMemory` asks.

    A column with `metadata["label"]`, its description, is a field of the service's requests too.

    Raises:
        InputError: A column has the wrong length, or a value is out of its range; names the first such job.
    """

    submission_s: NDArray[np.float64]
    due_s: NDArray[np.float64]
    tardiness_weight_eur_per_s: NDArray[np.float64]
    max_epochs: NDArray[np.float64]
    epochs_needed: NDArray[np.float64]
    memory_gib: NDArray[np.float64]
    seconds_per_epoch: NDArray[np.float64]
    application: NDArray[np.int64]
    applications: tuple[str, ...]
    distribution: NDArray[np.int64]
    distributions: tuple[EpochDistribution, ...]
    restart_s: NDArray[np.float64] = None  # type: ignore[assignment]
    start_s: NDArray[np.float64] = None  # type: ignore[assignment]
    resume_s: NDArray[np.float64] | None = None
    opportunistic: NDArray[np.bool_] = field(
        default=None,  # type: ignore[arg-type]
        metadata={"label": "Whether it gets what guaranteed jobs leave."},
    )
    tenant: NDArray[np.int64] = None  # type: ignore[assignment]
    traced_start_s: NDArray[np.float64] | None = None
    traced_config: NDArray[np.int64] | None = None
    traced_type_known: NDArray[np.bool_] = None  # type: ignore[assignment]
    state_gib: NDArray[np.float64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for column in ("restart_s", "start_s", "state_gib"):
            if getattr(self, column) is None:
                object.__setattr__(self, column, np.zeros(len(self.submission_s)))
        for column in _FLAG_COLUMNS:
            object.__setattr__(self, column, self._flags(column))
        if self.tenant is None:
            object.__setattr__(self, "tenant", np.zeros(len(self.submission_s), dtype=np.int64))
        floats = (*_FLOAT_COLUMNS, *self._given("resume_s", "traced_start_s"))
        indices = (*_INDEX_COLUMNS, *self._given("traced_config"))
        for column in floats:
            object.__setattr__(self, column, checks.frozen_array(getattr(self, column)))
        for column in indices:
            object.__setattr__(self, column, checks.frozen_array(getattr(self, column), np.int64))
        for column in (*floats, *indices, *_FLAG_COLUMNS):
            if len(getattr(self, column)) != len(self.submission_s):
                raise InputError(f"jobs.{column}", len(getattr(self, column)), f"{len(self.submission_s)} values")
        if not len(self.submission_s):
            raise InputError("jobs", 0, "at least one job")
        self._check_ranges()

    def _flags(self, column: str) -> NDArray[Any]:
        told = getattr(self, column)
        given = np.zeros(len(self.submission_s), dtype=np.bool_) if told is None else told
        if np.asarray(given).dtype != np.bool_:
            raise InputError(f"jobs.{column}", np.asarray(given).tolist(), "True or False for each job")
        return checks.frozen_array(given, np.bool_)

    def _given(self, *columns: str) -> tuple[str, ...]:
        return tuple(column for column in columns if getattr(self, column) is not None)

    def _check_traced(self) -> None:
        if self.traced_start_s is None or self.traced_config is None:
            if told := self._given("traced_start_s", "traced_config"):
                raise InputError(f"jobs.{told[0]}", "...", "both traced_start_s and traced_config, or none of them")
            return
        began = (self.traced_start_s >= self.submission_s) & (self.traced_start_s <= checks.LONGEST_S)
        self._each("traced_start_s", began, f"a number not before submission_s, and <= {checks.LONGEST}")
        index, count = self.traced_config, self.seconds_per_epoch.shape[1]
        self._each("traced_config", (index >= 0) & (index < count), f"an index below {count}")
        allowed = np.isfinite(self.seconds_per_epoch[np.arange(len(index)), index])
        self._each("traced_config", allowed, "a configuration that the job may use")

    def _check_ranges(self) -> None:
        start, end, needed = self.submission_s, self.max_epochs, self.epochs_needed
        a_time, longest = f"a number >= 0 and <= {checks.LONGEST}", checks.LONGEST_S
        self._each("submission_s", (start >= 0) & (start <= longest), a_time)
        self._each("submission_s", np.diff(start, prepend=0.0) >= 0, "not before the job above it (sort the jobs)")
        due_s = (self.due_s >= start) & (self.due_s <= longest)
        self._each("due_s", due_s, f"a number not before submission_s, and <= {checks.LONGEST}")
        weight = self.tardiness_weight_eur_per_s
        self._each("tardiness_weight_eur_per_s", np.isfinite(weight) & (weight >= 0), "a finite number >= 0")
        self._each("max_epochs", np.isfinite(end) & (end > 0), "a finite number > 0")
        self._each("epochs_needed", (needed > 0) & (needed <= end), "a number in (0, max_epochs]")
        for column in ("memory_gib", "state_gib"):
            gib = getattr(self, column)
            self._each(column, np.isfinite(gib) & (gib >= 0), "a finite number >= 0")
        for column in ("restart_s", "start_s", "resume_s"):
            seconds = getattr(self, column)
            if seconds is not None:
                self._each(column, (seconds >= 0) & (seconds <= longest), a_time)
        self._each("tenant", self.tenant >= 0, "an index >= 0")
        self._check_seconds_per_epoch()
        self._check_traced()
        for column, names in (("application", self.applications), ("distribution", self.distributions)):
            index = getattr(self, column)
            self._each(column, (index >= 0) & (index < len(names)), f"an index below {len(names)}")

    def _check_seconds_per_epoch(self) -> None:
        seconds = self.seconds_per_epoch
        self._each("seconds_per_epoch", np.all(seconds > 0, axis=1), "numbers > 0, or inf")
        with np.errstate(over="ignore"):
            full_s = np.where(np.isfinite(seconds), seconds, 0.0) * self.max_epochs[:, None]
        allowed = f"numbers that max_epochs times make {checks.LONGEST} at most, or inf"
        self._each("seconds_per_epoch", np.all(full_s <= checks.LONGEST_S, axis=1), allowed)
        fits = np.any(np.isfinite(self.seconds_per_epoch), axis=1)
        if not np.all(fits):
            allowed = "finite for at least one configuration that the cluster has"
            raise InputError(f"jobs[{int(np.argmin(fits))}].seconds_per_epoch", "inf for all", allowed)

    def _each(self, column: str, good: NDArray[np.bool_], allowed: str) -> None:
        if not np.all(good):
            first = int(np.argmin(good))
            value = getattr(self, column)[first]
            raise InputError(f"jobs[{first}].{column}", value.tolist(), allowed)

    def __repr__(self) -> str:
        applications, distributions = len(self.applications), len(self.distributions)
        return (
            f"JobTable({len(self):,} jobs on {self.seconds_per_epoch.shape[1]} configurations, {applications} "
            f"applications, {distributions} distributions, {self.submission_s[0]:.6g} to {self.submission_s[-1]:.6g} s)"
        )

    def __len__(self) -> int:
        return len(self.submission_s)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobTable):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def from_jobs(
        cls, jobs: Sequence[Job], configurations: Sequence[Configuration], restart_s: float = 0.0
    ) -> JobTable:
        """Make the table of `jobs`, which must be sorted by submission, for the columns `configurations`.

        Args:
            jobs: The jobs.
            configurations: The configurations.
            restart_s: Restart overhead of jobs without one of their own [s].

        Raises:
            InputError: A job names a configuration that is not among `configurations`, or the table is not valid.
        """
        column_of = {c: i for i, c in enumerate(configurations)}
        seconds = np.full((len(jobs), len(configurations)), np.inf)
        for row, job in enumerate(jobs):
            if not job.seconds_per_epoch:
                names = ", ".join(c.name for c in configurations)
                raise InputError(f"jobs[{row}].seconds_per_epoch", {}, f"values for one or more of {names}")
            for configuration, value in job.seconds_per_epoch.items():
                if configuration not in column_of:
                    names = ", ".join(c.name for c in configurations)
                    raise InputError(f"jobs[{row}].seconds_per_epoch", configuration.name, f"one of {names}")
                seconds[row, column_of[configuration]] = value
        applications = tuple(dict.fromkeys(job.application for job in jobs))
        distributions = tuple(dict.fromkeys(job.distribution for job in jobs))
        application_of = {name: i for i, name in enumerate(applications)}
        distribution_of = {value: i for i, value in enumerate(distributions)}
        columns = {name: np.array([getattr(job, name) for job in jobs]) for name in _JOB_FIELDS}
        restart = np.array([restart_s if job.restart_s is None else job.restart_s for job in jobs])
        resume = [job.resume_s for job in jobs]
        told = any(seconds is not None for seconds in resume)
        return cls(
            **columns,
            seconds_per_epoch=seconds,
            application=np.array([application_of[job.application] for job in jobs], dtype=np.int64),
            applications=applications,
            distribution=np.array([distribution_of[job.distribution] for job in jobs], dtype=np.int64),
            distributions=distributions,
            restart_s=restart,
            start_s=np.array([job.start_s for job in jobs]),
            resume_s=np.array([r if s is None else s for s, r in zip(resume, restart, strict=True)]) if told else None,
            opportunistic=np.array([job.opportunistic for job in jobs], dtype=np.bool_),
            tenant=np.array([job.tenant for job in jobs], dtype=np.int64),
            state_gib=np.array([job.state_gib for job in jobs]),
        )


_JOB_FIELDS = ("submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "epochs_needed", "memory_gib")
_FLOAT_COLUMNS = (*_JOB_FIELDS, "restart_s", "start_s", "state_gib", "seconds_per_epoch")
_FLAG_COLUMNS = ("opportunistic", "traced_type_known")
_INDEX_COLUMNS = ("application", "distribution", "tenant")
