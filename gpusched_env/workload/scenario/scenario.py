"""A scenario: all that an instance is made from except the seed, and the settings of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.parts import part_of, short_name
from gpusched_env.workload.catalogue import NAMED_TABLES, Catalogue, gpu_types_of
from gpusched_env.workload.scenario.arrivals import BY_GAP, Arrivals
from gpusched_env.workload.scenario.cluster import Cluster, OwnGpuType
from gpusched_env.workload.scenario.comparison import (
    ComparisonSettings,
    JobClass,
    MixtureScenario,
    TraceReplay,
)
from gpusched_env.workload.scenario.epochs import GIVEN_HISTOGRAMS, DueDates, Epochs, HistogramEpochs, OwnApplication
from gpusched_env.workload.scenario.prices import Prices, SitePower
from gpusched_env.workload.scenario.settings import (
    Count,
    Limit,
    Many,
    MechanismTable,
    NotNegative,
    Part,
    Seconds,
    Settings,
    as_tables,
    check_each_once,
    setting,
    whole,
)
from gpusched_env.workload.scenario.sharing import Interconnect, OwnTenant, Sharing, Switching

if TYPE_CHECKING:
    from gpusched_env.model.configuration import GpuType

MOST_JOBS = 10_000_000
"""Most jobs of an instance: as many as a large machine's memory can hold."""


def _restart(value: object) -> object:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= LONGEST_S
    if value is not None and value != "measured" and not good:
        raise InputError("", value, f'a number >= 0 and <= {LONGEST}, or "measured"')
    return float(value) if good else value  # type: ignore[arg-type]


def _applications(value: object) -> object:
    if value is not None and not isinstance(value, str | list | tuple):
        raise InputError("", value, f"{', '.join(NAMED_TABLES)}, a CSV file, or a list of applications")
    return as_tables(OwnApplication)(value)


OwnApplications = Annotated[str | tuple[OwnApplication, ...] | None, BeforeValidator(_applications)]
RestartSeconds = Annotated[float | Literal["measured"] | None, BeforeValidator(_restart)]


class Jobs(Settings):
    """The number of jobs, their applications, and the configurations that they are offered."""

    count: Annotated[int, whole(1, MOST_JOBS)] = setting(
        100, "Number of jobs; with a trace, with job classes, or in a scenario of a mixture, at most so many."
    )
    applications: Many[str] | None = setting(
        None, "Applications; each job draws one uniformly. By default all: your own, or else the built-in ones."
    )
    gpu_counts: Many[Count] = setting(
        (1, 2, 3, 4, 5, 6, 7, 8), "Numbers of GPUs that a job is offered, where a node has them."
    )
    node_counts: Many[Count] = setting(
        (1,), "Numbers of whole nodes that a job is offered, where there are so many; 1 stands for gpu_counts."
    )
    spread_counts: Many[Count] = setting(
        (), "Numbers of GPUs, from 2 on, that a job is offered on any nodes, where that was measured."
    )
    power_limits: Many[Limit] = setting(
        (1.0,), "Power limits of GPUs, as parts of the power of a busy one: each multiplies what a job is offered."
    )
    application_power: Literal["full", "measured"] = setting(
        "full", "What the GPUs of a job draw: as full busy ones, or what was measured of its application and its nodes."
    )
    opportunistic: Part = setting(
        0.0, "Probability that a job is opportunistic: a label, for policies that serve guaranteed jobs first."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_each_once(self, "applications", "gpu_counts", "node_counts", "power_limits")
        if 1 in self.spread_counts or len(set(self.spread_counts)) < len(self.spread_counts):
            raise InputError("spread_counts", list(self.spread_counts), "numbers from 2 on, each once")
        if 1.0 not in self.power_limits:
            raise InputError(
                "power_limits", list(self.power_limits), "1, from which due dates follow, and smaller numbers"
            )
        if 1 not in self.node_counts:
            raise InputError(
                "node_counts", list(self.node_counts), "1, from which due dates follow, and larger numbers"
            )
        return self


class Weights(Settings):
    """Tardiness weights, drawn uniformly; the defaults are those that the authors use with prices of electricity."""

    min_eur_per_s: NotNegative = setting(0.000253709514333333, "Least tardiness weight [€/s].")
    max_eur_per_s: NotNegative = setting(0.000443991650083333, "Greatest tardiness weight [€/s].")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_eur_per_s < self.min_eur_per_s:
            raise InputError("max_eur_per_s", self.max_eur_per_s, f"at least min_eur_per_s ({self.min_eur_per_s})")
        return self


def _table(mechanism: str, values: Any) -> MechanismTable:
    kind = getattr(part_of(mechanism, "scenario"), "TABLE", None)
    if not isinstance(kind, type) or not issubclass(kind, MechanismTable):
        raise InputError("mechanisms", mechanism, "a package whose module scenario has a TABLE")
    if isinstance(values, kind):
        return values
    if not isinstance(values, Mapping):
        raise InputError(short_name(mechanism), values, "a table of settings")
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{short_name(mechanism)}.{error.field}", error.value, error.allowed) from None


NAMED_BY_TRACES = "trace.gpu_types."


class Scenario(Settings):
    """All that an instance is made from except the seed: `make_instance(scenario, seed)`.

    Every section and every value has a default, except the trace's path; `docs/your-cluster.md` lists them. The section
    `compare` does not affect the instance: it has the settings of `gpusched compare`.

    Raises:
        InputError: A value is not allowed; the error names the field with dots (`cluster.gpu_types[1]`), the value and
            what is allowed.
    """

    model_config = ConfigDict(extra="allow")  # the tables of mechanisms

    name: str = setting("custom", "Name, as tables show it.")
    description: str = setting("", "What it is for.")
    restart_s: RestartSeconds = setting(
        None,
        "Seconds without progress after a change of configuration or node: one number, or measured (by "
        "application). By default that of your own applications, and 0 for the built-in ones.",
    )
    restart_by_application: dict[str, Seconds] = Field(
        default_factory=dict, description="The same for single applications, by name; it overrides restart_s [s]."
    )
    decision_interval_s: Seconds = setting(
        0.0, "Interval of decision rounds: they are at multiples of it; 0: a round at every event [s]."
    )
    gpu_types: Annotated[tuple[OwnGpuType, ...], BeforeValidator(as_tables(OwnGpuType))] = setting(
        (), "GPU types of your own, beside the built-in ones."
    )
    tenancy: Literal["none", "quota", "private", "cells"] = setting(
        "none", "How tenants share the cluster: none (names), quota, private (own nodes), or cells."
    )
    tenants: Annotated[tuple[OwnTenant, ...], BeforeValidator(as_tables(OwnTenant))] = setting(
        (), "Tenants of the cluster. By default none."
    )
    mechanisms: Many[str] = setting(
        (), "Mechanisms of other packages, by the names of these; each has a table by the last part of its name."
    )
    mixture: Annotated[tuple[MixtureScenario, ...], BeforeValidator(as_tables(MixtureScenario))] = setting(
        (), "Scenarios of which the workload of a seed is one: number seed modulo how many there are. By default none."
    )
    job_classes: Annotated[tuple[JobClass, ...], BeforeValidator(as_tables(JobClass))] = setting(
        (), "Classes of jobs: a workload has the jobs of all, each as many as `jobs.count`. By default one class."
    )
    applications: OwnApplications = setting(
        None, "Applications of jobs: measured (the default), published, published-inhouse, a CSV file; or a list."
    )
    cluster: Cluster = Field(default_factory=Cluster)
    prices: Prices = Field(default_factory=Prices)
    site: SitePower = Field(default_factory=SitePower)
    jobs: Jobs = Field(default_factory=Jobs)
    sharing: Sharing = Field(default_factory=Sharing)
    switching: Switching = Field(default_factory=Switching)
    interconnect: Interconnect = Field(default_factory=Interconnect)
    arrivals: Arrivals = Field(default_factory=Arrivals)
    epochs: Epochs = Field(default_factory=HistogramEpochs)
    due_dates: DueDates = Field(default_factory=DueDates)
    weights: Weights = Field(default_factory=Weights)
    trace: TraceReplay | None = Field(default=None)
    compare: ComparisonSettings = Field(default_factory=ComparisonSettings)

    @model_validator(mode="before")
    @classmethod
    def _read_tables(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the tables of mechanisms; no other setting is unknown."""
        given = values.get("mechanisms", ())
        names = given if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given) else ()
        if len({short_name(name) for name in names} - cls.model_fields.keys()) < len(names):
            raise InputError("mechanisms", list(names), "packages whose last parts are no other settings, each once")
        tables = {short_name(name): _table(name, values.get(short_name(name), {})) for name in names}
        for name in values.keys() - cls.model_fields.keys() - tables.keys():
            there = ", ".join([*cls.model_fields, *tables])
            raise InputError(name, values[name], f"no such setting; there are {there}")
        return values | tables

    def table(self, mechanism: str) -> MechanismTable:
        """Return the table of one of the scenario's `mechanisms`."""
        return getattr(self, short_name(mechanism))

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Check every name that no file has to be read for; the others are checked when instances are made."""
        names = [v.name for v in self.gpu_types]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise InputError(f"gpu_types[{index}].name", name, "each name once")
        known = self.known_gpu_types()
        try:
            self.cluster.check_names(known)
        except InputError as error:
            raise InputError(f"cluster.{error.field}", error.value, error.allowed) from None
        if self.trace is not None and self.trace.reference_gpu_type not in {None, *known}:
            allowed = f"one of the GPU types {', '.join(known)}"
            raise InputError("trace.reference_gpu_type", self.trace.reference_gpu_type, allowed)
        self._check_due_dates(known)
        rented = [i for i, own in enumerate(self.gpu_types) if own.node_eur_per_h is not None]
        if rented and self.prices.series is not None:
            allowed = "nothing with prices.series: nodes that are paid by the hour draw no energy"
            raise InputError(f"gpu_types[{rented[0]}].node_eur_per_h", "...", allowed)
        free = "nothing with switching.model = 'free'"
        if self.switching.model == "free" and self.restart_s is not None and self.restart_s != 0.0:
            raise InputError("restart_s", self.restart_s, free)
        if self.switching.model == "free" and any(self.restart_by_application.values()):
            raise InputError("restart_by_application", dict(self.restart_by_application), free)
        self._check_parts()
        if self.tenancy != "none" and not self.tenants:
            raise InputError("tenants", [], f"at least one with tenancy = {self.tenancy!r}")
        if not isinstance(self.applications, str) or self.applications in NAMED_TABLES:
            self.catalogue()
        return self

    def known_gpu_types(self) -> dict[str, GpuType]:
        """Return all GPU types that the scenario may name, by name."""
        return gpu_types_of(self.gpu_types, self.prices.energy_price_eur_per_kwh * self.prices.pue)

    def catalogue(self) -> Catalogue:
        """Return the values of its names. Raises InputError: there is no such name, or a file is not valid."""
        return Catalogue.of(
            self.known_gpu_types(),
            self.gpu_types,
            self.applications,
            self.jobs.applications,
            self.switching,
            self.restart_s,
            self.restart_by_application,
        )

    def _check_parts(self) -> None:
        if any(variant.scenario is not None for variant in self.mixture):
            self._check_alone()
        if self.job_classes and self.trace is not None:
            raise InputError("job_classes", len(self.job_classes), "none with a trace, which has the jobs")

    def _check_due_dates(self, known: Mapping[str, GpuType]) -> None:
        gpu_types = self.due_dates.gpu_types
        if gpu_types and (self.trace is not None or not self.cluster.pools):
            raise InputError("due_dates.gpu_types", list(gpu_types), "none with a trace, or without cluster.pools")
        for index, name in enumerate(gpu_types):
            if name not in known:
                raise InputError(f"due_dates.gpu_types[{index}]", name, f"one of the GPU types {', '.join(known)}")

    def _check_alone(self) -> None:
        """Check that a mixture of other scenarios has no settings of its own that they would not have."""
        from gpusched_env.notebook import dotted_names  # noqa: PLC0415 - few need it

        given = self.model_dump(exclude_defaults=True, exclude={"name", "description", "mixture", "compare"})
        if "jobs" in given:
            given["jobs"].pop("count", None)
        for name, value in dotted_names({name: value for name, value in given.items() if value != {}}):
            allowed = "the default beside a mixture of other scenarios: mixture.settings changes what they have"
            raise InputError(name, value, allowed)

    def __repr__(self) -> str:
        if self.mixture:
            return f"Scenario({self.name!r}: a mixture of {len(self.mixture)} scenarios)"
        cluster = self.cluster
        return (
            f"Scenario({self.name!r}: {cluster.nodes} nodes of {', '.join(cluster.gpu_types)}, {self.jobs.count} jobs, "
            f"arrivals {self.arrivals.kind!r}{', a trace' if self.trace is not None else ''})"
        )

    def _repr_html_(self) -> str:
        from gpusched_env.notebook import dotted_names, facts_table  # noqa: PLC0415 - few need it

        settings = self.model_dump(mode="json", exclude_defaults=True, exclude={"name", "description"})
        sizes = [("nodes", self.cluster.nodes), ("jobs", self.jobs.count)]
        facts = [("what it is for", self.description), *sizes, *dotted_names(settings)]
        return facts_table(f"Scenario {self.name}", facts)

    def replace(self, values: Mapping[str, object]) -> Scenario:
        """Make a scenario with other values: `scenario.replace({"cluster.nodes": 20, "jobs.count": 200})`.

        A new `epochs.family` starts from its own defaults (bins and library size stay), and a new `arrivals.kind` that
        sets its own rate drops the gap of the old one. Histograms given in one way replace those given in another, and
        `cluster.pools` replaces the nodes. Where no description is given, it becomes one that names the sections.

        Args:
            values: New values by dotted name; a name may also be that of a whole section, and None for the default.

        Raises:
            InputError: There is no such setting, the value is not allowed, or `values` is no such mapping.
        """
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise InputError("settings", values, 'a mapping of dotted names to values, such as {"cluster.nodes": 20}')
        data = self.model_dump(exclude_none=True)
        if "cluster.pools" in values:
            data["cluster"] = {name: data["cluster"][name] for name in ("overrides",) if name in data["cluster"]}
        if values.get("epochs.family", self.epochs.family) != self.epochs.family:
            data["epochs"] = {"bins": self.epochs.bins, "library_size": self.epochs.library_size}
        if (kind := values.get("arrivals.kind") or self.arrivals.kind) != self.arrivals.kind:
            kept = ("rate", "mean_gap_s", "lambda_s") if kind in BY_GAP else ("rate",)
            data["arrivals"] = {name: data["arrivals"][name] for name in kept if name in data["arrivals"]}
        given = [name for name in GIVEN_HISTOGRAMS if values.get(f"epochs.{name}") is not None]
        for name in GIVEN_HISTOGRAMS if given else ():
            data["epochs"].pop(name, None)
        for name, value in values.items():
            _put(data, name, value)
        if "description" not in values:
            data["description"] = changed_description(self.name, self.description, values)
        return Scenario(**data)


def changed_description(name: str, description: str, changed: Iterable[str]) -> str:
    """Return the description of scenario `name` with other settings, by dotted name; of none it stays none."""
    begin = f"As {name}, with other settings of: "
    sections = {setting.partition(".")[0] for setting in changed} - {"name", "description", "compare"}
    if not description or not sections:
        return description
    if description.startswith(begin):
        sections |= set(description.removeprefix(begin).split(", "))
    return begin + ", ".join(sorted(sections))


def _put(data: dict[str, Any], name: str, value: object) -> None:
    """Set the value of a dotted name in nested settings; None removes it."""
    *sections, last = name.split(".")
    if name.startswith(NAMED_BY_TRACES):  # names of a trace's GPU types have dots of their own
        sections, last = ["trace", "gpu_types"], name.removeprefix(NAMED_BY_TRACES)
    section: Any = data
    for part in sections:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise InputError(name, value, f"no such setting; {part} is not a section")
    if value is None:
        section.pop(last, None)
    else:
        section[last] = value.model_dump(exclude_none=True) if isinstance(value, Settings) else value
