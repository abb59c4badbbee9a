"""From a scenario and a seed to an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, Instance, Interference, JobTable, Tenant, UtilisationModel, checks
from gpusched_env.workload.catalogue import Catalogue, Site
from gpusched_env.workload.families import draw_fractions, given_library, make_library
from gpusched_env.workload.interference_model import InterferenceModel, application_times, interference_model, job_times
from gpusched_env.workload.mixture import classes_of, join_classes, seed_of_class, variant_of, variants_of
from gpusched_env.workload.network import over_network, switching_columns
from gpusched_env.workload.power_limits import with_power
from gpusched_env.workload.priced import price_fields, price_table
from gpusched_env.workload.scenario.arrivals import BY_SATURATION, submission_times
from gpusched_env.workload.scenario.epochs import HistogramEpochs, due_dates
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.scenario.site import SitePower, with_site

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.tables.applications import Application
    from gpusched_env.workload.traces.trace import Trace


NOBODY = "nobody*"
"""Tenant of the jobs of a trace that names none."""

# The draws of a seed depend on this order: add new concerns at the end.
_CONCERNS = (
    "applications", "library", "distributions", "epochs", "arrivals", "due_dates", "weights", "sharing", "durations",
    "labels", "tenants", "prices", "site",
)  # fmt: skip


class _Streams:
    """One independent stream per concern: a change of one rule does not change the draws of the others.

    Each is made when it is first used, as `SeedSequence(seed).spawn` would.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __getattr__(self, concern: str) -> Generator:
        if concern not in _CONCERNS:
            raise AttributeError(concern)
        key = (_CONCERNS.index(concern),)
        made = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))
        setattr(self, concern, made)
        return made


def make_instance(scenario: Scenario, seed: int, interference: InterferenceModel | None = None) -> Instance:
    """Make an instance: a pure function of the scenario (with the content of its trace, if any) and the seed.

    Applications, library, distributions, epochs needed, arrivals, due dates, weights, sharing and the durations of
    traced jobs each draw from their own stream of the seed. Jobs are sorted by submission.

    Args:
        scenario: The scenario.
        seed: Seed, a whole number from 0 to 2^63 - 1.
        interference: The model of GPU sharing; by default the model that the scenario's `sharing` section names.

    Raises:
        InputError: The seed is out of its range, an application or a job fits no configuration of the cluster, no
            application fits a fraction or was measured on several nodes, or the trace is not valid.
    """
    if not isinstance(scenario, Scenario):
        raise InputError("scenario", scenario, "a Scenario; load_scenario(name_or_path) makes one")
    return InstanceMaker(variant_of(scenario, checks.seed(seed)), interference).make(seed)


class InstanceMaker:
    """Makes instances of a scenario, as `make_instance` does; the common parts are computed once.

    Of a mixture it makes those of each of its scenarios.

    Args:
        scenario: The scenario. A trace is read here, and not again.
        interference: The model of GPU sharing; by default the model that the scenario's `sharing` section names.
        trace: The scenario's trace as `replayed_trace` returns it, where that was read before.

    Raises:
        InputError: An application fits no configuration of the cluster, no application fits a fraction or was measured
            on several nodes, or the trace is not valid.
    """

    def __init__(
        self, scenario: Scenario, interference: InterferenceModel | None = None, trace: Trace | None = None
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise InputError("scenario", scenario, "a Scenario; load_scenario(name_or_path) makes one")
        read = None if scenario.mixture else trace
        kinds = ((_Classes if variant.job_classes else _Maker, variant) for variant in variants_of(scenario))
        self._makers = tuple(kind(variant, interference, read) for kind, variant in kinds)

    @property
    def trace(self) -> Trace | None:
        """Return the trace that is replayed, as `replayed_trace` returns it; of a mixture that of its first part."""
        return self._makers[0].trace

    def make(self, seed: int) -> Instance:
        """Make the instance of `seed`, a whole number from 0 to 2^63 - 1.

        Raises:
            InputError: The seed is out of its range, or a job fits no configuration of the cluster.
        """
        seed = checks.seed(seed)
        return self._makers[seed % len(self._makers)].make(seed)


class _Classes:
    """Makes instances of a scenario with classes of jobs; the arguments are those of `InstanceMaker`."""

    def __init__(self, scenario: Scenario, interference: InterferenceModel | None, trace: Trace | None) -> None:
        self._scenario, self.trace = scenario, trace
        self._makers = tuple(_Maker(each, interference, None) for each in classes_of(scenario))

    def make(self, seed: int) -> Instance:
        parts = [maker.make(seed_of_class(seed, number)) for number, maker in enumerate(self._makers)]
        return join_classes(self._scenario, parts, seed)


class _Maker:
    """Makes instances of a scenario without mixture and classes; the arguments are those of `InstanceMaker`."""

    def __init__(self, scenario: Scenario, interference: InterferenceModel | None, trace: Trace | None) -> None:
        catalogue = Catalogue.of(scenario)
        applications = catalogue.chosen()
        self._scenario, self._applications, self._site = scenario, applications, Site.of(scenario)
        self._names = tuple(application.name for application in applications)
        self._has_site = scenario.site != SitePower()
        self._library = given_library(scenario.epochs, catalogue.names)
        self._model = interference_model(scenario.sharing) if interference is None else interference
        if trace is None and scenario.trace is not None:
            from gpusched_env.workload.traces import replay  # noqa: PLC0415 - for polars

            trace = replay.replayed_trace(scenario)
        self.trace = trace
        self._tenants, self._prices = _tenants(scenario, self.trace), price_table(scenario.prices)
        measured = application_times(applications, self._site)
        seconds, network = over_network(scenario, applications, self._site, measured)
        self._seconds, self._saved_kw = with_power(scenario, applications, self._site, seconds)
        self._mechanisms = (*network, *scenario.switching.host_memory)
        self._max_epochs = np.array([application.max_epochs for application in applications])
        self._memory_gib = np.array([application.memory_gib for application in applications])
        self._state_gib = np.array([application.state_gib for application in applications])
        self._switching = [catalogue.switching[name] for name in catalogue.names]
        self._saturation = np.full(len(applications), np.nan)
        if self.trace is None and scenario.arrivals.kind in BY_SATURATION:
            self._saturation = self._site.gpus / np.array(
                [_one_gpu_s(application, self._site) for application in applications]
            )

    def make(self, seed: int) -> Instance:
        streams, site = _Streams(seed), self._site
        library = make_library(self._scenario.epochs, streams.library) if self._library is None else self._library
        columns, interference = self._jobs(library, streams)
        table = self._job_table(columns, library, streams, by_utilisation=isinstance(interference, UtilisationModel))
        made = Instance(
            site.gpu_types,
            site.nodes,
            site.configurations,
            table,
            **price_fields(self._scenario.prices, self._prices, float(table.submission_s[-1]), seed, streams.prices),
            interference=interference,
            name=self._scenario.name,
            seed=seed,
            tenants=self._tenants,
            racks=self._racks(),
            decision_interval_s=self._scenario.decision_interval_s,
            saved_kw=self._saved_kw,
            mechanisms=self._mechanisms,
        )
        if self._scenario.tenancy != "none":
            from gpusched_env.workload.tenancy import with_tenancy  # noqa: PLC0415 - few need it

            made = with_tenancy(made, self._scenario.tenancy)
        if self._has_site:
            made = with_site(made, self._scenario.site, streams.site)
        return self._with_mechanisms(made, seed)

    def _with_mechanisms(self, instance: Instance, seed: int) -> Instance:
        """Return the instance with the mechanisms of other packages, each of which draws from a stream of its own."""
        for name in self._scenario.mechanisms:
            sequence = np.random.SeedSequence(seed, spawn_key=(len(_CONCERNS), crc32(name.encode())))
            own = self._scenario.table(name).model(instance, np.random.default_rng(sequence))
            instance = instance if own is None else instance.with_mechanisms(own)
        return instance

    def _jobs(
        self, library: tuple[EpochDistribution, ...], streams: _Streams
    ) -> tuple[dict[str, NDArray[Any]], Interference | UtilisationModel | None]:
        """Draw jobs by the published rules, or take them from the trace and draw its missing columns: not sorted yet.

        It also returns the interference of co-runners on one GPU.
        """
        scenario, trace, names = self._scenario, self.trace, self._names
        if trace is None:
            choice = streams.applications.integers(len(names), size=scenario.jobs.count)
        else:
            from gpusched_env.workload.traces import replay  # noqa: PLC0415 - for polars

            choice = replay.choose_applications(trace, names, streams.applications)
        distribution = choice
        if not (isinstance(scenario.epochs, HistogramEpochs) and scenario.epochs.by_application):
            distribution = streams.distributions.integers(len(library), size=len(choice))
        fractions = draw_fractions(library, distribution, streams.epochs)
        times = job_times(self._seconds, self._applications, self._site, choice, self._model, streams.sharing)
        columns: dict[str, NDArray[Any]] = {
            "application": choice, "distribution": distribution, "memory_gib": self._memory_gib[choice],
        }  # fmt: skip
        if trace is None:
            nodes = len(self._site.nodes)
            columns |= {
                "submission_s": submission_times(scenario.arrivals, self._saturation[choice], nodes, streams.arrivals),
                "max_epochs": self._max_epochs[choice],
                "seconds_per_epoch": times.seconds_per_epoch,
            }
        else:
            columns |= self._traced(trace, choice, fractions, times.seconds_per_epoch, streams.durations)
        return columns | {"epochs_needed": fractions * columns["max_epochs"]}, times.interference

    def _traced(
        self,
        trace: Trace,
        choice: NDArray[np.int64],
        fractions: NDArray[np.float64],
        seconds: NDArray[np.float64],
        rng: Generator,
    ) -> dict[str, NDArray[Any]]:
        """Return the columns of a trace, and the configurations that jobs are offered by their demand."""
        from gpusched_env.workload.traces import replay  # noqa: PLC0415 - for polars

        scenario = self._scenario
        gpu_type = replay.gpu_type_of_jobs(scenario, trace)
        epochs = replay.epochs_of_duration(trace, self._applications, choice, fractions, gpu_type)
        open_to = replay.offered(scenario, trace, self._site, tuple(self._names[i] for i in choice), seconds)
        seconds = np.where(open_to, seconds, np.inf)
        resolution_s = scenario.trace.resolution_s if scenario.trace else 1.0
        columns = {
            "submission_s": trace.submission_s,
            "max_epochs": replay.dithered(epochs, trace, resolution_s, rng),
            "seconds_per_epoch": seconds,
        }
        if trace.start_s is None:
            return columns
        named = replay.names_a_type(scenario, trace)
        config, known = replay.traced_configurations(trace, self._site, seconds, gpu_type, named)
        return columns | {"traced_start_s": trace.start_s, "traced_config": config, "traced_type_known": known}

    def _job_table(
        self,
        columns: dict[str, NDArray[Any]],
        library: tuple[EpochDistribution, ...],
        streams: _Streams,
        *,
        by_utilisation: bool,
    ) -> JobTable:
        """Add due dates, weights, restart overheads and labels, and sort by submission."""
        scenario, trace, submission_s = self._scenario, self.trace, columns["submission_s"]
        full_s = columns["max_epochs"][:, None] * _reference_times(columns["seconds_per_epoch"], self._site)
        due = due_dates(scenario.due_dates, submission_s, full_s, streams.due_dates)
        weight = streams.weights.uniform(scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s, len(due))
        if trace is not None and trace.due_s is not None:
            due = trace.due_s
        if trace is not None and trace.tardiness_weight_eur_per_s is not None:
            weight = trace.tardiness_weight_eur_per_s
        order = np.argsort(submission_s, kind="stable")
        columns = columns | {"due_s": due, "tardiness_weight_eur_per_s": weight}
        return JobTable(
            **{name: column[order] for name, column in columns.items()},
            applications=self._names,
            distributions=library,
            **switching_columns(self._switching, columns["application"][order], told=by_utilisation),
            opportunistic=self._opportunistic(len(order), streams),
            tenant=self._tenant_of_jobs(order, streams),
            **self._states(columns["application"][order]),
        )

    def _racks(self) -> tuple[int, ...]:
        if self._scenario.cluster.nodes_per_rack == 1:
            return ()
        from gpusched_env.workload.tenancy import racks_of  # noqa: PLC0415 - few need it

        return racks_of(self._site.nodes, self._scenario.cluster.nodes_per_rack)

    def _states(self, application: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"state_gib": self._state_gib[application]} if self._scenario.switching.host_memory else {}

    def _opportunistic(self, jobs: int, streams: _Streams) -> NDArray[np.bool_]:
        share = self._scenario.jobs.opportunistic
        return streams.labels.random(jobs) < share if share > 0.0 else np.zeros(jobs, dtype=np.bool_)

    def _tenant_of_jobs(self, order: NDArray[np.int64], streams: _Streams) -> NDArray[np.int64]:
        """Return the tenants of jobs in this order: drawn by the shares of the scenario, else the trace's; else 0."""
        share = np.array([tenant.share for tenant in self._scenario.tenants])
        if len(share):
            return streams.tenants.choice(len(share), size=len(order), p=share / share.sum())
        if self.trace is not None and self.trace.tenant is not None:
            index = {tenant.name: i for i, tenant in enumerate(self._tenants)}
            return np.array([index[name or NOBODY] for name in self.trace.tenant], dtype=np.int64)[order]
        return np.zeros(len(order), dtype=np.int64)


def _tenants(scenario: Scenario, trace: Trace | None) -> tuple[Tenant, ...]:
    if scenario.tenants or trace is None or trace.tenant is None:
        return tuple(tenant.tenant() for tenant in scenario.tenants)
    return tuple(Tenant(name or NOBODY) for name in dict.fromkeys(trace.tenant))


def _reference_times(seconds: NDArray[np.float64], site: Site) -> NDArray[np.float64]:
    """Return the times from which due dates follow: single-node ones without a power limit, so that others change none.

    A traced job that is offered none, because it asked for a share or for several nodes, keeps all its configurations.
    """
    single = site.of_kind("single-node") & site.unlimited
    none = ~np.any(np.isfinite(seconds[:, single]), axis=1)
    return np.where(single[None, :] | (none[:, None] & site.unlimited), seconds, np.inf)


def _one_gpu_s(application: Application, site: Site) -> float:
    """Return the least execution time of all epochs on one GPU, over the types that have a node [s]."""
    types = {node.gpu_type for node in site.nodes}
    one = [s for (v, gpus), s in application.seconds_per_epoch.items() if v in types and gpus == 1]
    if not one:
        raise InputError("jobs.applications", application.name, "applications measured on one GPU of the cluster")
    return application.max_epochs * min(one)
