"""The instance of a request: its jobs as columns, with epochs needed that nothing depends on."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.formats.instance_file import JOB_LABELS
from gpusched_env.formats.mechanism_fields import mechanisms_of
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.model import EpochDistribution, Instance, JobTable, Mechanism
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.own_state import check_no_state
from gpusched_env.workload import Application
from gpusched_env.workload.power_limits import limited_time_s
from gpusched_operations.service.cluster import ClusterNames, distribution_of, no_node_now, usable
from gpusched_operations.service.fields import MOST_CELLS, ApplicationFields, DecideRequest, JobFields

NO_APPLICATION = ""
_LEAST_EPOCHS = 1e-6
NO_CAP_KW = 1e12  # more than any site draws


class Problem:
    """What the jobs of a request name, looked up; made for one request.

    Args:
        request: The request.
        names: Its cluster.
        order: Places in the request of the jobs, sorted by submission; equal ones as they come.

    Raises:
        InputError: A job names what is not there, or holds what it cannot hold.
    """

    def __init__(self, request: DecideRequest, names: ClusterNames, order: list[int]) -> None:
        self.request, self.names = request, names
        if len(request.jobs) * len(names.configurations) > MOST_CELLS:
            allowed = f"at most {MOST_CELLS:,} / {len(names.configurations)} configurations"
            raise InputError("jobs", len(request.jobs), allowed)
        known = names.catalogue.applications
        for name, own in request.applications.items():
            if own.like is not None and own.like not in known:
                raise InputError(f"applications.{name}.like", own.like, f"one of {', '.join(known)}")
        self._times: dict[Any, NDArray[np.float64]] = {}
        self._distributions: dict[Any, int] = {}
        self._made: list[EpochDistribution] = []
        self._applications = {name: i for i, name in enumerate(request.applications)}
        self._gone = cache(partial(no_node_now, names=names))
        rows = [self._row(index, request.jobs[index]) for index in order]
        fits = [bool(row.any()) for row in self._usable(rows)] if rows else []
        for index, able in zip(order, fits, strict=True):
            running = request.jobs[index].running
            if running is not None and not able:
                allowed = "one that the job may use, on nodes that are there"
                raise InputError(f"jobs[{index}].running.configuration", running.configuration, allowed)
        self.order = [index for index, able in zip(order, fits, strict=True) if able]
        self._rows = [row for row, able in zip(rows, fits, strict=True) if able]

    def _usable(self, rows: list[dict[str, Any]]) -> NDArray[np.bool_]:
        columns = (np.array([row[name] for row in rows]) for name in ("seconds_per_epoch", "memory_gib", "tenant"))
        return usable(self.request, self.names, *columns)

    def instance(self, like: NDArray[np.int64]) -> Instance:
        """Make the instance of the jobs in `order`, and of jobs that are over.

        Args:
            like: Of each its place in `order`, never falling; of one that is over, that of a job that it may be like.
        """
        request, rows = self.request, [*(self._rows[place] for place in like), *self._neighbours()]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        if all(request.jobs[index].resume_s is None for index in self.order):
            columns.pop("resume_s")
        try:
            return Instance(
                self.names.gpu_types,
                self.names.nodes,
                self.names.configurations,
                JobTable(
                    **columns,
                    epochs_needed=columns["max_epochs"],
                    applications=tuple(self._applications),
                    distributions=tuple(self._made),
                ),
                energy_price_eur_per_kwh=self.request.prices.energy_eur_per_kwh,
                pue=self.request.prices.pue,
                mechanisms=(*self._site(), *self._saved_power(), *self._mechanisms()),
            )
        except InputError as error:
            raise self._in_the_request(error, like) from None

    def _site(self) -> tuple[PowerCap, ...]:
        """Return the cap of now and the next one; the time after them, when every job can run, is not told."""
        given = self.request.site
        if given is None:
            return ()
        starts, caps = [0.0], [given.cap_kw]
        if given.next_cap_s is not None:
            if given.next_cap_kw is None or given.next_cap_s <= self.request.now_s:
                raise InputError("site.next_cap_s", given.next_cap_s, "a time after now_s, with next_cap_kw")
            starts, caps = [0.0, given.next_cap_s], [given.cap_kw, given.next_cap_kw]
        told = [0.0] * len(starts)
        return (PowerCap((*starts, LONGEST_S), (*caps, NO_CAP_KW), (*told, LONGEST_S), given.soft_eur_per_kwh),)

    def _mechanisms(self) -> tuple[Mechanism, ...]:
        request = self.request
        own: dict[str, Any] = {"synchronisation": request.synchronisation, "interference": request.interference}
        own |= {"prices": request.prices.series, "gpu_hour_eur": request.prices.gpu_hour_eur or None}
        given = {name: fields for name, fields in own.items() if fields is not None}
        models = mechanisms_of({**given, "mechanisms": request.mechanisms}, loaded=True)
        check_no_state((model.mechanism for model in models), "a request")
        for profile_s in (getattr(model, "profile_s", 0.0) for model in models):
            if profile_s:
                allowed = "0: give jobs of applications that are not profiled yet no times on shares"
                raise InputError("interference.profile_s", profile_s, allowed)
        tenants = Tenants(self.names.tenants, request.cluster.tenancy)
        return models if tenants == Tenants() else (*models, tenants)

    def _saved_power(self) -> tuple[SavedPower, ...]:
        """Return what GPUs save by application; nothing: what the power limits of the configurations take."""
        given = {name: own.saved_kw for name, own in self.request.applications.items() if own.saved_kw is not None}
        if not given:
            return ()
        types = {v.name: v for v in self.names.gpu_types}
        usual = [types[c.gpu_type].saved_w(c) / 1000.0 for c in self.names.configurations]
        for name, row in given.items():
            if len(row) != len(usual):
                allowed = f"{len(usual)}, one for each configuration"
                raise InputError(f"applications.{name}.saved_kw", f"{len(row)} numbers", allowed)
        return (SavedPower(tuple(tuple(given.get(name, usual)) for name in self._applications)),)

    def _in_the_request(self, error: InputError, like: NDArray[np.int64]) -> InputError:
        """Return the error with the place of its field in the request."""
        name = error.field
        if name.startswith("prices."):
            return InputError(f"prices.series{name[6:]}", error.value, error.allowed)
        if name.startswith("jobs["):
            row, rest = name[5:].split("]", 1)
            if int(row) >= len(like):
                return InputError("applications", error.value, error.allowed)
            return InputError(f"jobs[{self.order[like[int(row)]]}]{rest}", error.value, error.allowed)
        if name.split("[")[0].split(".")[0] in {"gpu_types", "nodes", "tenants"}:
            return InputError(f"cluster.{name}", error.value, error.allowed)
        return error

    def _neighbours(self) -> list[dict[str, Any]]:
        """Return jobs to come for the applications whose jobs may come to share a GPU.

        Policies plan for the worst neighbours that there may be: of all `applications` whose times the request tells,
        whether a job of them is there now or not.
        """
        shared = np.array([c.kind == "shared" for c in self.names.configurations])
        later_s, found = float(np.nextafter(self.request.now_s, np.inf)), []
        given = self.request.applications.items() if self.request.interference is not None else ()
        for index, (name, own) in enumerate(given):
            if own.seconds_per_epoch is None:
                continue
            seconds = np.where(shared, self._seconds(f"applications.{name}", own.seconds_per_epoch, None), np.inf)
            row = self._rows[-1] | {"seconds_per_epoch": seconds, "memory_gib": own.memory_gib or 0.0}
            seconds[~self._usable([row])[0]] = np.inf
            if np.any(np.isfinite(seconds)):
                row |= {"submission_s": later_s, "due_s": later_s, "max_epochs": _LEAST_EPOCHS, "application": index}
                found.append(row | {"memory_gib": 0.0})
        return found

    def _row(self, index: int, job: JobFields) -> dict[str, Any]:
        """Return a job's value in every column, from its application where it does not say it itself."""
        where, name = f"jobs[{index}]", job.application
        own, built_in = self._application(where, name)
        given, told = job.seconds_per_epoch, where
        if given is None and own is not None:
            given, told = own.seconds_per_epoch, f"applications.{name}"
        largest = _first("max_epochs", job, own, built_in)
        if largest is None:
            raise InputError(f"{where}.max_epochs", None, "a value: neither the job nor its application has it")
        whose = where if job.max_epochs is not None else f"the application {name}"
        restart_s = _first("restart_s", job, own, self.request)
        tenants = [tenant.name for tenant in self.names.tenants]
        if job.tenant is not None and job.tenant not in tenants:
            raise InputError(f"{where}.tenant", job.tenant, f"one of the tenants {', '.join(tenants)}")
        application = self._applications.setdefault(NO_APPLICATION if name is None else name, len(self._applications))
        return {
            "submission_s": job.submission_s,
            "due_s": job.due_s,
            "tardiness_weight_eur_per_s": job.tardiness_weight_eur_per_s,
            "max_epochs": largest,
            "memory_gib": _first("memory_gib", job, own, built_in) or 0.0,
            "application": application,
            "distribution": self._distribution(index, job, own, (largest, whose)),
            "seconds_per_epoch": self._seconds(told, given, built_in),
            "restart_s": restart_s,
            "start_s": job.start_s,
            "resume_s": restart_s if job.resume_s is None else job.resume_s,
            **{name: getattr(job, name) for name in JOB_LABELS},
            "tenant": 0 if job.tenant is None else tenants.index(job.tenant),
        }

    def _application(self, where: str, name: str | None) -> tuple[ApplicationFields | None, Application | None]:
        if name is None:
            return None, None
        own, known = self.request.applications.get(name), self.names.catalogue.applications
        if own is None and name not in known:
            there = ", ".join([*self.request.applications, *known])
            allowed = f"an entry of applications or a built-in one; there are {there}"
            raise InputError(f"{where}.application", name, allowed)
        return own, known.get(name if own is None or own.like is None else own.like)

    def _distribution(self, index: int, job: JobFields, own: ApplicationFields | None, most: tuple[float, str]) -> int:
        given, where = job.distribution, f"jobs[{index}].distribution"
        if given is None and own is not None and own.distribution is not None:
            given, where = own.distribution, f"applications.{job.application}.distribution"
        entry, where = self._named("distributions", where, given)
        key = id(entry), most[0] if entry is not None and entry.history_epochs is not None else None
        if key not in self._distributions:
            self._distributions[key] = len(self._made)
            self._made.append(EpochDistribution.certain() if entry is None else distribution_of(where, entry, most))
        return self._distributions[key]

    def _named(self, field: str, where: str, given: Any) -> tuple[Any, str]:
        """Return what is said once under a name, and its path; what is no name is that itself."""
        if not isinstance(given, str):
            return given, where
        entries = getattr(self.request, field)
        if given not in entries:
            raise InputError(where, given, f"an entry of {field}; there are {', '.join(entries) or 'none'}")
        return entries[given], f"{field}.{given}"

    def _seconds(self, where: str, given: Any, built_in: Application | None) -> NDArray[np.float64]:
        """Return the seconds per epoch of a job or an application on every configuration, (C,); inf: it may not use it.

        Args:
            given: Its field `seconds_per_epoch`.
            built_in: The built-in application whose times are taken where the field is not given.
        """
        given, where = self._named("times", f"{where}.seconds_per_epoch", given)
        key = id(given), None if built_in is None else built_in.name
        if key not in self._times:
            if given is None and built_in is None:
                raise InputError(where, None, "a value: neither the job nor its application has it")
            self._times[key] = (
                np.array([limited_time_s(built_in, c) for c in self.names.configurations])
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
            config = self.names.index_of(name)
            if config is not None and row[config] < np.inf:
                raise InputError(f"{where}.{name}", seconds, "each configuration once")
            if config is not None:
                row[config] = seconds
            elif not self._gone(name):
                raise InputError(f"{where}.{name}", seconds, f"one of the configurations {', '.join(known)}")
        return row


def _first(name: str, *sources: object) -> Any:
    return next((value for source in sources if (value := getattr(source, name, None)) is not None), None)
