"""The instance of a request: its jobs as columns, with epochs needed that nothing depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.instance_file import interference_of, synchronisation_of
from gpusched_env.model import EpochDistribution, Instance, JobTable
from gpusched_experiments.service.cluster import distribution_of, held, memory_gib, no_node_now, usable, within_quota
from gpusched_experiments.service.fields import MOST_CELLS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.workload import Application
    from gpusched_experiments.service.cluster import ClusterNames
    from gpusched_experiments.service.fields import ApplicationFields, DecideRequest, JobFields

NO_APPLICATION = ""
MEMORY, SECONDS, TENANT = 2, 5, 6  # places in a job's row
_LEAST_EPOCHS = 1e-6
CERTAIN = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]), "certain")


@dataclass
class Problem:
    """What the jobs of a request name, looked up; made for one request. Jobs that fit nothing now are not in `order`.

    Args:
        request: The request.
        names: Its cluster.
        order: Places in the request of the jobs, sorted by submission; equal ones as they come.
    """

    request: DecideRequest
    names: ClusterNames
    order: list[int]
    _times: dict[Any, NDArray[np.float64]] = field(init=False, default_factory=dict)
    _distributions: dict[Any, int] = field(init=False, default_factory=dict)
    _made: list[EpochDistribution] = field(init=False, default_factory=list)
    _applications: dict[str, int] = field(init=False)
    _rows: list[tuple[Any, ...]] = field(init=False)
    _gone: dict[str, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        jobs = self.request.jobs
        if len(jobs) * len(self.names.configurations) > MOST_CELLS:
            allowed = f"at most {MOST_CELLS:,} / {len(self.names.configurations)} configurations"
            raise InputError("jobs", len(jobs), allowed)
        for name, own in self.request.applications.items():
            if own.like is not None and own.like not in self.names.catalogue.applications:
                allowed = f"one of {', '.join(self.names.catalogue.applications)}"
                raise InputError(f"applications.{name}.like", own.like, allowed)
        self._applications = {name: i for i, name in enumerate(self.request.applications)}
        self._rows = [(*self._row(i, jobs[i]), self._tenant(i, jobs[i])) for i in self.order]
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave out the jobs that fit nothing that is there now: they wait, and the others go on."""
        if not self._rows:
            return
        needs_gib, seconds, tenant = (np.array([row[at] for row in self._rows]) for at in (MEMORY, SECONDS, TENANT))
        fits: list[bool] = usable(self.request, self.names, seconds, needs_gib, tenant).any(axis=1).tolist()  # type: ignore[assignment]
        for index, able in zip(self.order, fits, strict=True):
            running = self.request.jobs[index].running
            if running is not None and not able:
                allowed = "one that the job may use, on nodes that are there"
                raise InputError(f"jobs[{index}].running.configuration", running.configuration, allowed)
        self.order = [index for index, able in zip(self.order, fits, strict=True) if able]
        self._rows = [row for row, able in zip(self._rows, fits, strict=True) if able]

    def instance(self, like: NDArray[np.int64]) -> Instance:
        """Make the instance of the jobs in `order`, and of jobs that are over.

        Args:
            like: Of each its place in `order`, never falling; of one that is over, that of a job that it may be like.

        Raises:
            InputError: A value is out of its range.
        """
        yet, synchronisation = self._neighbours(), self._synchronisation()
        try:
            return Instance(
                self.names.gpu_types,
                self.names.nodes,
                self.names.configurations,
                self._table(yet, like),
                energy_price_eur_per_kwh=self.request.prices.energy_eur_per_kwh,
                pue=self.request.prices.pue,
                interference=interference_of(self.request.interference),
                synchronisation=synchronisation,
                tenants=self.names.tenants,
                tenancy=self.request.cluster.tenancy,
            )
        except InputError as error:
            raise self._in_the_request(error, like) from None

    def _synchronisation(self) -> Any:
        given = self.request.synchronisation
        return None if given is None else synchronisation_of({"synchronisation": given})

    def _in_the_request(self, error: InputError, like: NDArray[np.int64]) -> InputError:
        """Give an error the place that its field has in the request."""
        name = error.field
        if name.startswith("jobs["):
            row, rest = name[5:].split("]", 1)
            if int(row) >= len(like):
                return InputError("applications", error.value, error.allowed)
            return InputError(f"jobs[{self.order[like[int(row)]]}]{rest}", error.value, error.allowed)
        if name.split("[")[0].split(".")[0] in {"gpu_types", "nodes", "tenants"}:
            return InputError(f"cluster.{name}", error.value, error.allowed)
        return error

    def _table(self, yet: dict[int, NDArray[np.float64]], like: NDArray[np.int64]) -> JobTable:
        """Make the columns: jobs that are over, those of the request, and those that may come to share GPUs."""
        jobs = [self.request.jobs[i] for i in self.order]
        most, restart, memory, application, distribution, seconds, tenant = map(list, zip(*self._rows, strict=True))
        restart = [self.request.restart_s if own is None else own for own in restart]
        told = any(job.resume_s is not None for job in jobs)
        resume = [own if job.resume_s is None else job.resume_s for job, own in zip(jobs, restart, strict=True)]
        chosen = [*like, *[len(jobs) - 1] * len(yet)]  # the last are as the last job, but for what is said
        later_s = float(np.nextafter(self.request.now_s, np.inf))

        def column(values: list[Any], of_others: list[Any] | None = None) -> NDArray[Any]:
            found = np.array(values)[chosen]
            if of_others:
                found[len(found) - len(yet) :] = of_others
            return found

        largest = column(most, [_LEAST_EPOCHS] * len(yet))
        return JobTable(
            submission_s=column([job.submission_s for job in jobs], [later_s] * len(yet)),
            due_s=column([job.due_s for job in jobs], [later_s] * len(yet)),
            tardiness_weight_eur_per_s=column([job.tardiness_weight_eur_per_s for job in jobs]),
            max_epochs=largest,
            epochs_needed=largest,
            memory_gib=column(memory, [0.0] * len(yet)),
            seconds_per_epoch=column(seconds, list(yet.values())),
            application=column(application, list(yet)),
            applications=tuple(self._applications),
            distribution=column(distribution),
            distributions=tuple(self._made),
            restart_s=column(restart),
            start_s=column([job.start_s for job in jobs]),
            resume_s=column(resume) if told else None,
            opportunistic=column([job.opportunistic for job in jobs]),
            tenant=column(tenant),
        )

    def _neighbours(self) -> dict[int, NDArray[np.float64]]:
        """Give the times on shares of the applications whose jobs may come to share a GPU, by application.

        Policies plan for the worst neighbours that there may be: of all `applications` whose times the request tells,
        whether a job of them is there now or not.
        """
        shared = np.array([c.kind == "shared" for c in self.names.configurations])
        shared &= held(self.names)
        within = within_quota(self.request, self.names)
        shared &= within[min(self._rows[-1][TENANT], len(within) - 1)]  # they are rows as the last job's, but for this
        found = {}
        for index, (name, own) in enumerate(self.request.applications.items()):
            if self.request.interference is None or own.seconds_per_epoch is None:
                continue
            row = np.where(shared, self._seconds(f"applications.{name}", own.seconds_per_epoch, None), np.inf)
            row[memory_gib(self.names) < (own.memory_gib or 0.0)] = np.inf
            if np.any(np.isfinite(row)):
                found[index] = row
        return found

    def _row(self, index: int, job: JobFields) -> tuple[Any, ...]:
        """Give what a job takes from its application where it does not say it itself."""
        where, name = f"jobs[{index}]", job.application
        own, built_in = self._application(where, name)
        largest, memory, restart_s, whose = job.max_epochs, job.memory_gib, job.restart_s, where
        for source in (own, built_in):
            if source is not None:
                if largest is None:
                    largest, whose = source.max_epochs, f"the application {name}"
                memory = source.memory_gib if memory is None else memory
        if own is not None and restart_s is None:
            restart_s = own.restart_s
        given, told = job.seconds_per_epoch, where
        if given is None and own is not None:
            given, told = own.seconds_per_epoch, f"applications.{name}"
        if largest is None:
            raise InputError(f"{where}.max_epochs", None, "a value: neither the job nor its application has it")
        return (
            largest,
            restart_s,
            0.0 if memory is None else memory,
            self._applications.setdefault(NO_APPLICATION if name is None else name, len(self._applications)),
            self._distribution(index, job, own, (largest, whose)),
            self._seconds(told, given, built_in),
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
        return own, known.get(name if own is None or own.like is None else own.like)

    def _tenant(self, index: int, job: JobFields) -> int:
        names = [tenant.name for tenant in self.names.tenants]
        if job.tenant is None:
            return 0
        if job.tenant not in names:
            raise InputError(f"jobs[{index}].tenant", job.tenant, f"one of the tenants {', '.join(names)}")
        return names.index(job.tenant)

    def _distribution(self, index: int, job: JobFields, own: ApplicationFields | None, most: tuple[float, str]) -> int:
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
            key = key, most[0]
        if key not in self._distributions:
            self._distributions[key] = len(self._made)
            unknown = entry is None or isinstance(entry, str)
            self._made.append(CERTAIN if unknown else distribution_of(where, entry, most))  # type: ignore[arg-type]
        return self._distributions[key]

    def _seconds(self, where: str, given: Any, built_in: Application | None) -> NDArray[np.float64]:
        """Give the seconds per epoch of a job or an application on every configuration, (C,); inf: it may not use it.

        Args:
            where: The path of the job or application.
            given: Its field `seconds_per_epoch`.
            built_in: The built-in application whose times are taken where the field is not given.
        """
        where = f"{where}.seconds_per_epoch"
        key: Any = given if isinstance(given, str) else (id(given), built_in and built_in.name)
        if key in self._times:
            return self._times[key]
        if given is None and built_in is None:
            raise InputError(where, None, "a value: neither the job nor its application has it")
        if isinstance(given, str):
            times = self.request.times
            if given not in times:
                raise InputError(where, given, f"an entry of times; there are {', '.join(times) or 'none'}")
            given, where = times[given], f"times.{given}"
        self._times[key] = (
            np.array([built_in.time_s(c) for c in self.names.configurations])
            if given is None and built_in is not None
            else self._row_of_times(where, given)
        )
        return self._times[key]

    def _row_of_times(self, where: str, given: list[float | None] | dict[str, float]) -> NDArray[np.float64]:
        known = self.names.configuration
        if isinstance(given, list):
            if len(given) != len(known):
                raise InputError(where, f"{len(given)} numbers", f"{len(known)}, one for each configuration")
            return np.array([math.inf if seconds is None else seconds for seconds in given])
        row = np.full(len(known), np.inf)
        for name, seconds in given.items():
            if name in known:
                row[known[name]] = seconds
            elif not self._is_gone(name):
                raise InputError(f"{where}.{name}", seconds, f"one of the configurations {', '.join(known)}")
        return row

    def _is_gone(self, name: str) -> bool:
        if name not in self._gone:
            self._gone[name] = no_node_now(name, self.names)
        return self._gone[name]
