"""Makes instances of a scenario without mixture and classes of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, Instance, JobTable
from gpusched_env.model.mechanism import model_of
from gpusched_env.workload.families import draw_fractions, given_library, make_library
from gpusched_env.workload.scenario.arrivals import BY_SATURATION, submission_times
from gpusched_env.workload.scenario.epochs import HistogramEpochs, due_dates
from gpusched_env.workload.scenario.prices import SitePower, with_site
from gpusched_env.workload.site import Site, application_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.model import Mechanism, Tenant
    from gpusched_env.workload.interference_model import InterferenceModel
    from gpusched_env.workload.scenario.prices import Prices
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.scenario.sharing import SwitchingCosts
    from gpusched_env.workload.tables.applications import Application
    from gpusched_env.workload.tables.hourly_prices import PriceTable
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


class Maker:
    """Makes instances of a scenario without mixture and classes; the arguments are those of `InstanceMaker`."""

    def __init__(
        self, scenario: Scenario, interference: InterferenceModel | None = None, trace: Trace | None = None
    ) -> None:
        catalogue = scenario.catalogue()
        applications = catalogue.chosen()
        self._scenario, self._applications, self._site = scenario, applications, Site.of(scenario)
        self._names = tuple(application.name for application in applications)
        self._has_site = scenario.site != SitePower()
        self._library = given_library(scenario.epochs, catalogue.names)
        self._model = interference
        if trace is None and scenario.trace is not None:
            from gpusched_env.workload.traces import replay  # noqa: PLC0415 - for polars

            trace = replay.replayed_trace(scenario)
        self.trace = trace
        self._tenants, self._prices = _tenants(scenario, self.trace), _price_table(scenario.prices)
        measured = application_times(applications, self._site)
        seconds, network = _over_network(scenario, applications, self._site, measured)
        self._seconds, saved = _with_power(scenario, applications, self._site, seconds)
        lacking = [v for v in scenario.due_dates.gpu_types if v not in scenario.cluster.gpu_types]
        self._due_from_s = Maker(_with_types(scenario, lacking)).reference_times() if lacking else None
        self._mechanisms = (*network, *saved, *scenario.switching.host_memory)
        self._max_epochs = np.array([application.max_epochs for application in applications])
        self._memory_gib = np.array([application.memory_gib for application in applications])
        self._state_gib = np.array([application.state_gib for application in applications])
        self._switching = [catalogue.switching[name] for name in catalogue.names]
        self._saturation = np.full(len(applications), np.nan)
        if self.trace is None and scenario.arrivals.kind in BY_SATURATION:
            self._saturation = self._site.gpus / np.array(
                [_one_gpu_s(application, self._site) for application in applications]
            )

    def reference_times(self) -> NDArray[np.float64]:
        """Return the seconds per epoch from which due dates follow, of every application, (A, C); inf if none do."""
        return _reference_times(self._seconds, self._site)

    def make(self, seed: int) -> Instance:
        streams, site = _Streams(seed), self._site
        library = make_library(self._scenario.epochs, streams.library) if self._library is None else self._library
        columns, interference = self._jobs(library, streams)
        table = self._job_table(columns, library, streams, by_utilisation=any(own.divides_time for own in interference))
        priced = self._price_fields(float(table.submission_s[-1]), seed, streams)
        priced["mechanisms"] += (*interference, *self._mechanisms, *self._tenancy())
        made = Instance(
            site.gpu_types,
            site.nodes,
            site.configurations,
            table,
            **priced,
            name=self._scenario.name,
            seed=seed,
            decision_interval_s=self._scenario.decision_interval_s,
        )
        if self._scenario.tenancy != "none":
            from gpusched_env.workload.tenancy import with_tenancy  # noqa: PLC0415 - few need it

            made = with_tenancy(made, self._scenario.tenancy)
        if self._has_site:
            made = with_site(made, self._scenario.site, streams.site)
        return self._with_mechanisms(made, seed)

    def _price_fields(self, until_s: float, seed: int, streams: _Streams) -> dict[str, Any]:
        prices = self._scenario.prices
        if self._prices is None:
            return {"energy_price_eur_per_kwh": prices.energy_price_eur_per_kwh, "pue": prices.pue, "mechanisms": ()}
        from gpusched_env.workload.priced import price_fields  # noqa: PLC0415 - few need it

        return price_fields(prices, self._prices, until_s, seed, streams.prices)

    def _with_mechanisms(self, instance: Instance, seed: int) -> Instance:
        """Return the instance with the mechanisms of other packages, each of which draws from a stream of its own."""
        for name in self._scenario.mechanisms:
            sequence = np.random.SeedSequence(seed, spawn_key=(len(_CONCERNS), crc32(name.encode())))
            own = self._scenario.table(name).model(instance, np.random.default_rng(sequence))
            instance = instance if own is None else instance.with_mechanisms(own)
        return instance

    def _jobs(
        self, library: tuple[EpochDistribution, ...], streams: _Streams
    ) -> tuple[dict[str, NDArray[Any]], tuple[Mechanism, ...]]:
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
        seconds, interference = self._job_times(choice, streams)
        columns: dict[str, NDArray[Any]] = {
            "application": choice, "distribution": distribution, "memory_gib": self._memory_gib[choice],
        }  # fmt: skip
        if trace is None:
            nodes = len(self._site.nodes)
            columns |= {
                "submission_s": submission_times(scenario.arrivals, self._saturation[choice], nodes, streams.arrivals),
                "max_epochs": self._max_epochs[choice],
                "seconds_per_epoch": seconds,
            }
        else:
            columns |= replay.columns_of(
                scenario, trace, self._site, self._applications, choice, fractions, seconds, streams.durations
            )
        return columns | {"epochs_needed": fractions * columns["max_epochs"]}, interference

    def _job_times(
        self, choice: NDArray[np.int64], streams: _Streams
    ) -> tuple[NDArray[np.float64], tuple[Mechanism, ...]]:
        """Return τ of every job on every configuration, (J, C); inf where it does not fit, or is not known."""
        if not np.any(self._site.of_kind("shared")):
            return self._seconds[choice], ()
        from gpusched_env.workload.interference_model import interference_model, job_times  # noqa: PLC0415

        model = interference_model(self._scenario.sharing) if self._model is None else self._model
        times = job_times(self._seconds, self._applications, self._site, choice, model, streams.sharing)
        return times.seconds_per_epoch, () if times.interference is None else (times.interference,)

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
        from_s = _reference_times(columns["seconds_per_epoch"], self._site)
        if self._due_from_s is not None:
            from_s = self._due_from_s[columns["application"]]
        full_s = columns["max_epochs"][:, None] * from_s
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
            **_switching_columns(self._switching, columns["application"][order], told=by_utilisation),
            opportunistic=self._opportunistic(len(order), streams),
            tenant=self._tenant_of_jobs(order, streams),
            **self._states(columns["application"][order]),
        )

    def _tenancy(self) -> tuple[Mechanism, ...]:
        if not self._tenants and self._scenario.cluster.nodes_per_rack == 1:
            return ()
        from gpusched_env.workload.tenancy import racks_of  # noqa: PLC0415 - few need it

        kind: Any = model_of("tenants")
        return (kind(self._tenants, racks=racks_of(self._site.nodes, self._scenario.cluster.nodes_per_rack)),)

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


def _with_types(scenario: Scenario, gpu_types: Sequence[str]) -> Scenario:
    """Return the scenario with a node of each of these GPU types too, from which due dates follow."""
    pools = [*scenario.cluster.pools, *({"gpu_type": name, "nodes": 1} for name in gpu_types)]
    return scenario.replace({"cluster.pools": pools, "due_dates.gpu_types": None})


def _tenants(scenario: Scenario, trace: Trace | None) -> tuple[Tenant, ...]:
    if scenario.tenants or trace is None or trace.tenant is None:
        return tuple(tenant.tenant() for tenant in scenario.tenants)
    from gpusched_env.model.tenant import Tenant  # noqa: PLC0415 - few need it

    return tuple(Tenant(name or NOBODY) for name in dict.fromkeys(trace.tenant))


def _price_table(prices: Prices) -> PriceTable | None:
    if prices.series is None:
        return None
    from gpusched_env.workload.priced import price_table  # noqa: PLC0415 - few need it

    return price_table(prices)


def _over_network(
    scenario: Scenario, applications: tuple[Application, ...], site: Site, seconds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[Mechanism, ...]]:
    if scenario.interconnect.measured:
        return seconds, ()
    from gpusched_env.workload.network import over_network  # noqa: PLC0415 - few need it

    return over_network(scenario, applications, site, seconds)


def _with_power(
    scenario: Scenario, applications: tuple[Application, ...], site: Site, seconds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[Mechanism, ...]]:
    if scenario.jobs.application_power != "measured" and np.all(site.unlimited):
        return seconds, ()
    from gpusched_env.workload.power_limits import with_power  # noqa: PLC0415 - few need it

    return with_power(scenario, applications, site.gpu_types, site.configurations, seconds)


def _switching_columns(
    costs: Sequence[SwitchingCosts], application: NDArray[np.int64], *, told: bool
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of jobs, by name, for the application of every job, (J,).

    Where costs depend on the distance (`told`) but the cost of continuing is unknown, it is that of a restart: a job
    that changes its share on its GPU then loses nothing.
    """
    columns = {
        "start_s": np.array([each.start_s for each in costs])[application],
        "restart_s": np.array([each.restart_s for each in costs])[application],
    }
    if any(each.resume_s is None for each in costs):
        return columns | {"resume_s": columns["restart_s"]} if told else columns
    return columns | {"resume_s": np.array([each.resume_s for each in costs])[application]}


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
