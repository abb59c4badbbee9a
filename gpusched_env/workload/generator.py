"""From a scenario and a seed to an instance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Duty, Instance, JobTable, Tenant, checks
from gpusched_env.model.tenant import tenant_name
from gpusched_env.workload.catalogue import Catalogue
from gpusched_env.workload.families import draw_fractions, given_library, make_library
from gpusched_env.workload.interference_model import interference_model
from gpusched_env.workload.job_times import application_times, job_times
from gpusched_env.workload.network import Network, switching_columns
from gpusched_env.workload.scenario.arrivals import BY_SATURATION, submission_times
from gpusched_env.workload.scenario.epochs import HistogramEpochs, due_dates
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.site import Site
from gpusched_env.workload.tenancy import with_tenancy
from gpusched_env.workload.traces.replay import (
    choose_applications,
    dithered,
    epochs_of_duration,
    gpu_type_of_jobs,
    names_a_type,
    offered,
    replayed_trace,
    traced_configurations,
)

if TYPE_CHECKING:
    from collections.abc import Generator as Generation

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.model import EpochDistribution
    from gpusched_env.workload.interference_model import InterferenceModel, SharingTimes
    from gpusched_env.workload.tables.applications import Application
    from gpusched_env.workload.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class _Streams:
    """One independent stream per concern: a change of one rule leaves what the others draw as it was."""

    applications: Generator
    library: Generator
    distributions: Generator
    epochs: Generator
    arrivals: Generator
    due_dates: Generator
    weights: Generator
    sharing: Generator
    durations: Generator
    labels: Generator
    tenants: Generator

    @classmethod
    def of(cls, seed: int) -> _Streams:
        # The order of the fields is part of what a seed means: new concerns go to the end.
        return cls(*(np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(11)))


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """What the jobs are, before due dates and weights."""

    submission_s: NDArray[np.float64]
    application: NDArray[np.int64]
    distribution: NDArray[np.int64]
    distributions: tuple[EpochDistribution, ...]
    fractions: NDArray[np.float64]
    max_epochs: NDArray[np.float64]
    times: SharingTimes
    trace: Trace | None = None
    ran_on: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None


def make_instance(scenario: Scenario, seed: int, interference: InterferenceModel | None = None) -> Instance:
    """Make an instance: a pure function of the scenario (with the content of its trace, if any) and the seed.

    Applications, library, distributions, epochs needed, arrivals, due dates, weights, sharing and the durations of
    traced jobs each draw from their own stream of the seed. Jobs are sorted by submission.

    Args:
        scenario: The scenario.
        seed: Seed, a whole number from 0 to 2^63 - 1.
        interference: What sharing a GPU costs; by default the model that the scenario's `sharing` section names.

    Raises:
        InputError: The seed is out of its range, an application or a job fits no configuration of the cluster, no
            application fits a fraction or was measured on several nodes, or the trace is not valid.
    """
    return InstanceMaker(scenario, interference).make(seed)


class InstanceMaker:
    """Makes instances of one scenario, as `make_instance` does; what all of them share is worked out once.

    Args:
        scenario: The scenario. A trace is read here, and not again.
        interference: What sharing a GPU costs; by default the model that the scenario's `sharing` section names.
        trace: The scenario's trace as `replayed_trace` gives it, where that was read before.

    Raises:
        InputError: An application fits no configuration of the cluster, no application fits a fraction or was measured
            on several nodes, or the trace is not valid.
    """

    def __init__(
        self, scenario: Scenario, interference: InterferenceModel | None = None, trace: Trace | None = None
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise InputError("scenario", scenario, "a Scenario; load_scenario(name_or_path) makes one")
        catalogue = Catalogue.of(scenario)
        applications = catalogue.chosen()
        self._scenario, self._applications, self._site = scenario, applications, Site.of(scenario)
        self._library = given_library(scenario.epochs, catalogue.names)
        self._model = interference_model(scenario.sharing) if interference is None else interference
        self._trace = replayed_trace(scenario) if trace is None and scenario.trace is not None else trace
        self._tenants = _tenants(scenario, self._trace)
        self._network = Network.of(scenario, applications, self._site, application_times(applications, self._site))
        self._max_epochs = np.array([application.max_epochs for application in applications])
        self._memory_gib = np.array([application.memory_gib for application in applications])
        self._switching = [catalogue.switching[name] for name in catalogue.names]
        self._saturation = np.full(len(applications), np.nan)
        if self._trace is None and scenario.arrivals.kind in BY_SATURATION:
            self._saturation = self._site.gpus / np.array(
                [_one_gpu_s(application, self._site) for application in applications]
            )

    @property
    def trace(self) -> Trace | None:
        """Give the trace that is replayed, as `replayed_trace` gives it."""
        return self._trace

    def make(self, seed: int) -> Instance:
        """Make the instance of `seed`, a whole number from 0 to 2^63 - 1.

        Raises:
            InputError: The seed is out of its range, or a job fits no configuration of the cluster.
        """
        making = self.making(seed)
        try:
            while True:
                next(making)
        except StopIteration as done:
            made: Instance = done.value
            return made

    def making(self, seed: int) -> Generation[None, None, Instance]:
        """Do what `make` does in parts, as a generator that returns the instance: a part ends at each `yield`."""
        seed = checks.seed(seed)
        streams, site, prices = _Streams.of(seed), self._site, self._scenario.prices
        yield
        library = make_library(self._scenario.epochs, streams.library) if self._library is None else self._library
        yield
        draw = self._draw_jobs if self._trace is None else self._replay_jobs
        draft = draw(library, streams)
        yield
        table = self._job_table(draft, streams)
        yield
        made = Instance(
            site.gpu_types,
            site.nodes,
            site.configurations,
            table,
            energy_price_eur_per_kwh=prices.energy_price_eur_per_kwh,
            pue=prices.pue,
            interference=draft.times.interference,
            name=self._scenario.name,
            seed=seed,
            synchronisation=self._network.synchronisation,
            tenants=self._tenants,
        )
        return made if self._scenario.tenancy == "none" else with_tenancy(made, self._scenario.tenancy)

    def _draw_jobs(self, library: tuple[EpochDistribution, ...], streams: _Streams) -> _Draft:
        """Draw jobs by the published rules."""
        scenario, nodes, count = self._scenario, len(self._site.nodes), self._scenario.jobs.count
        choice = streams.applications.integers(len(self._applications), size=count)
        distribution = self._distribution_of_jobs(library, choice, streams)
        return _Draft(
            submission_s=submission_times(scenario.arrivals, self._saturation[choice], nodes, streams.arrivals),
            application=choice,
            distribution=distribution,
            distributions=library,
            fractions=draw_fractions(library, distribution, streams.epochs),
            max_epochs=self._max_epochs[choice],
            times=self._job_times(choice, streams),
        )

    def _replay_jobs(self, library: tuple[EpochDistribution, ...], streams: _Streams) -> _Draft:
        """Take jobs from the scenario's trace, which there must be; draw what it lacks."""
        scenario, applications, trace = self._scenario, self._applications, self._trace
        assert trace is not None  # noqa: S101 - for mypy
        names = tuple(application.name for application in applications)
        choice = choose_applications(trace, names, streams.applications)
        distribution = self._distribution_of_jobs(library, choice, streams)
        fractions = draw_fractions(library, distribution, streams.epochs)
        gpu_type = gpu_type_of_jobs(scenario, trace)
        resolution_s = scenario.trace.resolution_s if scenario.trace else 1.0
        epochs = epochs_of_duration(trace, applications, choice, fractions, gpu_type)
        times = self._job_times(choice, streams)
        open_to = offered(scenario, trace, self._site, tuple(names[i] for i in choice), times.seconds_per_epoch)
        seconds = np.where(open_to, times.seconds_per_epoch, np.inf)
        ran_on = traced_configurations(trace, self._site, seconds, gpu_type, names_a_type(scenario, trace))
        return _Draft(
            submission_s=trace.submission_s,
            application=choice,
            distribution=distribution,
            distributions=library,
            fractions=fractions,
            max_epochs=dithered(epochs, trace, resolution_s, streams.durations),
            times=replace(times, seconds_per_epoch=seconds),
            trace=trace,
            ran_on=None if trace.start_s is None else ran_on,
        )

    def _distribution_of_jobs(
        self, library: tuple[EpochDistribution, ...], choice: NDArray[np.int64], streams: _Streams
    ) -> NDArray[np.int64]:
        """Give every job's distribution, an index of the library: drawn, or that of its application."""
        epochs = self._scenario.epochs
        if isinstance(epochs, HistogramEpochs) and epochs.by_application:
            return choice
        return streams.distributions.integers(len(library), size=len(choice))

    def _job_times(self, choice: NDArray[np.int64], streams: _Streams) -> SharingTimes:
        return job_times(self._network.seconds, self._applications, self._site, choice, self._model, streams.sharing)

    def _job_table(self, draft: _Draft, streams: _Streams) -> JobTable:
        """Add due dates, weights and restart overheads, and sort by submission."""
        scenario, trace, seconds = self._scenario, draft.trace, draft.times.seconds_per_epoch
        full_s = draft.max_epochs[:, None] * _reference_times(seconds, self._site)
        due = due_dates(scenario.due_dates, draft.submission_s, full_s, streams.due_dates)
        weight = streams.weights.uniform(scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s, len(due))
        if trace is not None and trace.due_s is not None:
            due = trace.due_s
        if trace is not None and trace.tardiness_weight_eur_per_s is not None:
            weight = trace.tardiness_weight_eur_per_s
        started = None if trace is None else trace.start_s
        order = np.argsort(draft.submission_s, kind="stable")
        by_duty = isinstance(draft.times.interference, Duty)
        return JobTable(
            submission_s=draft.submission_s[order],
            due_s=due[order],
            tardiness_weight_eur_per_s=weight[order],
            max_epochs=draft.max_epochs[order],
            epochs_needed=(draft.fractions * draft.max_epochs)[order],
            memory_gib=self._memory_gib[draft.application[order]],
            seconds_per_epoch=seconds[order],
            application=draft.application[order],
            applications=tuple(application.name for application in self._applications),
            distribution=draft.distribution[order],
            distributions=draft.distributions,
            **switching_columns(self._switching, draft.application[order], told=by_duty),
            opportunistic=streams.labels.random(len(order)) < scenario.jobs.opportunistic,
            tenant=self._tenant_of_jobs(order, streams.tenants),
            traced_start_s=None if started is None else started[order],
            traced_config=None if draft.ran_on is None else draft.ran_on[0][order],
            traced_type_known=None if draft.ran_on is None else draft.ran_on[1][order],  # type: ignore[arg-type]
        )

    def _tenant_of_jobs(self, order: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
        """Give the tenants of jobs in this order: drawn by the shares of the scenario, else the trace's; else 0."""
        share = np.array([tenant.share for tenant in self._scenario.tenants])
        if len(share):
            return rng.choice(len(share), size=len(order), p=share / share.sum())
        if self._trace is not None and self._trace.tenant is not None:
            index = {tenant.name: i for i, tenant in enumerate(self._tenants)}
            return np.array([index[tenant_name(name)] for name in self._trace.tenant], dtype=np.int64)[order]
        return np.zeros(len(order), dtype=np.int64)


def _tenants(scenario: Scenario, trace: Trace | None) -> tuple[Tenant, ...]:
    """Give the scenario's tenants, else the names of those of the trace, in the order of their first jobs."""
    if scenario.tenants or trace is None or trace.tenant is None:
        return tuple(tenant.tenant() for tenant in scenario.tenants)
    return tuple(Tenant(name) for name in dict.fromkeys(map(tenant_name, trace.tenant)))


def _reference_times(seconds: NDArray[np.float64], site: Site) -> NDArray[np.float64]:
    """Give the times from which due dates follow: the single-node ones, so that sharing and whole nodes change none.

    A traced job that is offered none, because it asked for a share or for several nodes, keeps all that it is offered.
    """
    single = site.of_kind("single-node")
    none = ~np.any(np.isfinite(seconds[:, single]), axis=1)
    return np.where(single[None, :] | none[:, None], seconds, np.inf)


def _one_gpu_s(application: Application, site: Site) -> float:
    """Give the least execution time of all epochs on one GPU, over the types that have a node [s]."""
    types = {node.gpu_type for node in site.nodes}
    one = [s for (v, gpus), s in application.seconds_per_epoch.items() if v in types and gpus == 1]
    if not one:
        raise InputError("jobs.applications", application.name, "applications measured on one GPU of the cluster")
    return application.max_epochs * min(one)
