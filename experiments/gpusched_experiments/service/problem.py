"""The instance of a request: its jobs as columns, with epochs needed that nothing depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.interference_fields import interference_of
from gpusched_env.formats.synchronisation_field import synchronisation_of
from gpusched_env.model import EpochDistribution, Instance, JobTable
from gpusched_experiments.service.epochs import distribution_of
from gpusched_experiments.service.limits import MOST_CELLS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.workload import Application
    from gpusched_experiments.service.cluster import ClusterNames
    from gpusched_experiments.service.fields import ApplicationFields, DecideRequest, JobFields

NO_APPLICATION = ""
CERTAIN = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]), "certain")


@dataclass
class Problem:
    """What the jobs of a request name, looked up; made for one request.

    Args:
        request: The request.
        names: Its cluster.
        order: Places in the request of the jobs, sorted by submission; equal ones as they come.
        over: Jobs that are over and stand before the others, all as the first of these.
    """

    request: DecideRequest
    names: ClusterNames
    order: list[int]
    over: int
    _times: dict[Any, NDArray[np.float64]] = field(init=False, default_factory=dict)
    _distributions: dict[Any, int] = field(init=False, default_factory=dict)
    _made: list[EpochDistribution] = field(init=False, default_factory=list)
    _applications: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        jobs = self.request.jobs
        if len(jobs) * len(self.names.configurations) > MOST_CELLS:
            allowed = f"at most {MOST_CELLS:,} / {len(self.names.configurations)} configurations"
            raise InputError("jobs", len(jobs), allowed)
        self._applications = {name: i for i, name in enumerate(self.request.applications)}

    def instance(self) -> Instance:
        """Make the instance.

        Raises:
            InputError: A job names what is not there, or a value is out of its range.
        """
        try:
            table = self._table()
            return Instance(
                self.names.gpu_types,
                self.names.nodes,
                self.names.configurations,
                table,
                energy_price_eur_per_kwh=self.request.prices.energy_eur_per_kwh,
                pue=self.request.prices.pue,
                interference=interference_of(self.request.interference),
                synchronisation=self._synchronisation(),
                tenants=self.names.tenants,
                tenancy=self.request.cluster.tenancy,
            )
        except InputError as error:
            raise self._in_the_request(error) from None

    def _synchronisation(self) -> Any:
        given = self.request.synchronisation
        return None if given is None else synchronisation_of({"synchronisation": given})

    def _in_the_request(self, error: InputError) -> InputError:
        """Give an error the place that its field has in the request."""
        name = error.field
        if name.startswith("jobs["):
            row, rest = name[5:].split("]", 1)
            return InputError(f"jobs[{self.order[max(int(row) - self.over, 0)]}]{rest}", error.value, error.allowed)
        if name.split("[")[0].split(".")[0] in {"gpu_types", "nodes", "tenants"}:
            return InputError(f"cluster.{name}", error.value, error.allowed)
        return error

    def _table(self) -> JobTable:
        jobs, request = [self.request.jobs[i] for i in self.order], self.request
        rows = [self._row(i, job) for i, job in zip(self.order, jobs, strict=True)]
        largest, restart, memory, application, distribution, seconds = (
            list(column) for column in zip(*rows, strict=True)
        )
        rows_of = [0] * self.over + list(range(len(jobs)))
        told = any(job.resume_s is not None for job in jobs)
        restart = [request.restart_s if own is None else own for own in restart]
        resume = [own if job.resume_s is None else job.resume_s for job, own in zip(jobs, restart, strict=True)]
        most = np.array(largest)[rows_of]
        return JobTable(
            submission_s=np.array([job.submission_s for job in jobs])[rows_of],
            due_s=np.array([job.due_s for job in jobs])[rows_of],
            tardiness_weight_eur_per_s=np.array([job.tardiness_weight_eur_per_s for job in jobs])[rows_of],
            max_epochs=most,
            epochs_needed=most,
            memory_gib=np.array(memory)[rows_of],
            seconds_per_epoch=np.array(seconds)[rows_of],
            application=np.array(application)[rows_of],
            applications=tuple(self._applications),
            distribution=np.array(distribution)[rows_of],
            distributions=tuple(self._made),
            restart_s=np.array(restart)[rows_of],
            start_s=np.array([job.start_s for job in jobs])[rows_of],
            resume_s=np.array(resume)[rows_of] if told else None,
            opportunistic=np.array([job.opportunistic for job in jobs])[rows_of],
            tenant=np.array([self._tenant(i, job) for i, job in zip(self.order, jobs, strict=True)])[rows_of],
        )

    def _row(self, index: int, job: JobFields) -> tuple[Any, ...]:
        """Give what a job takes from its application where it does not say it itself."""
        where, name = f"jobs[{index}]", job.application
        own, built_in = self._application(where, name)
        largest, memory, restart_s = job.max_epochs, job.memory_gib, job.restart_s
        for source in (own, built_in):
            if source is not None:
                largest = source.max_epochs if largest is None else largest
                memory = source.memory_gib if memory is None else memory
        if own is not None and restart_s is None:
            restart_s = own.restart_s
        if largest is None:
            raise InputError(f"{where}.max_epochs", None, "a value: neither the job nor its application has it")
        return (
            largest,
            restart_s,
            0.0 if memory is None else memory,
            self._applications.setdefault(NO_APPLICATION if name is None else name, len(self._applications)),
            self._distribution(index, job, own, largest),
            self._seconds(index, job, own, built_in),
        )

    def _application(self, where: str, name: str | None) -> tuple[ApplicationFields | None, Application | None]:
        """Give the entry of the request and the built-in application that a name stands for."""
        if name is None:
            return None, None
        own, known = self.request.applications.get(name), self.names.catalogue.applications
        if own is None and name not in known:
            there = ", ".join([*self.request.applications, *known])
            allowed = f"an entry of applications or a built-in one; there are {there}"
            raise InputError(f"{where}.application", name, allowed)
        if own is not None and own.like is not None and own.like not in known:
            raise InputError(f"applications.{name}.like", own.like, f"one of {', '.join(known)}")
        return own, known.get(name if own is None or own.like is None else own.like)

    def _tenant(self, index: int, job: JobFields) -> int:
        names = [tenant.name for tenant in self.names.tenants]
        if job.tenant is None:
            return 0
        if job.tenant not in names:
            raise InputError(f"jobs[{index}].tenant", job.tenant, f"one of the tenants {', '.join(names)}")
        return names.index(job.tenant)

    def _distribution(self, index: int, job: JobFields, own: ApplicationFields | None, largest: float) -> int:
        """Give the index of a job's distribution; without any it is sure to need its maximum epochs."""
        given, where = job.distribution, f"jobs[{index}].distribution"
        if given is None and own is not None and own.distribution is not None:
            given, where = own.distribution, f"applications.{job.application}.distribution"
        key: Any = given if isinstance(given, str) else id(given)
        entry = given
        if isinstance(given, str):
            if given not in self.request.distributions:
                there = ", ".join(self.request.distributions) or "none"
                raise InputError(where, given, f"an entry of distributions; there are {there}")
            entry, where = self.request.distributions[given], f"distributions.{given}"
        if entry is not None and not isinstance(entry, str) and entry.history_epochs is not None:
            key = key, largest
        if key not in self._distributions:
            self._distributions[key] = len(self._made)
            unknown = entry is None or isinstance(entry, str)
            self._made.append(CERTAIN if unknown else distribution_of(where, entry, largest))  # type: ignore[arg-type]
        return self._distributions[key]

    def _seconds(
        self, index: int, job: JobFields, own: ApplicationFields | None, built_in: Application | None
    ) -> NDArray[np.float64]:
        """Give a job's seconds per epoch on every configuration, (C,); inf where it may not use one."""
        given, where = job.seconds_per_epoch, f"jobs[{index}].seconds_per_epoch"
        if given is None and own is not None:
            given, where = own.seconds_per_epoch, f"applications.{job.application}.seconds_per_epoch"
        key: Any = (
            ("builtin", built_in and built_in.name) if given is None else given if isinstance(given, str) else id(given)
        )
        if key in self._times:
            return self._times[key]
        if given is None:
            if built_in is None:
                raise InputError(where, None, "a value: neither the job nor its application has it")
            row = np.array([built_in.time_s(c) for c in self.names.configurations])
        else:
            if isinstance(given, str):
                if given not in self.request.times:
                    raise InputError(
                        where, given, f"an entry of times; there are {', '.join(self.request.times) or 'none'}"
                    )
                given, where = self.request.times[given], f"times.{given}"
            row = self._row_of_times(where, given)
        self._times[key] = row
        return row

    def _row_of_times(self, where: str, given: list[float | None] | dict[str, float]) -> NDArray[np.float64]:
        known = self.names.configuration
        if isinstance(given, list):
            if len(given) != len(known):
                raise InputError(where, f"{len(given)} numbers", f"{len(known)}, one for each configuration")
            return np.array([math.inf if seconds is None else seconds for seconds in given])
        row = np.full(len(known), np.inf)
        for name, seconds in given.items():
            if name not in known:
                raise InputError(f"{where}.{name}", seconds, f"one of the configurations {', '.join(known)}")
            row[known[name]] = seconds
        return row
