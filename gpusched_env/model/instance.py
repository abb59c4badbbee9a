"""One problem to solve: a cluster, its jobs and its prices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import single_node_configurations
from gpusched_env.model.job_table import JobTable
from gpusched_env.model.mechanism import M, Mechanism, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Configuration, GpuType, Node
    from gpusched_env.model.interference import Interference, UtilisationModel
    from gpusched_env.model.job import Job
    from gpusched_env.model.prices import PriceSeries
    from gpusched_env.model.tenant import Tenancy, Tenant

ROUNDED = 1e-9
"""What a saving may exceed the power that it is taken from by, relative: rounding."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A cluster, its jobs and its prices: all that a run depends on except the policy and its seed.

    Configurations that the nodes of the cluster cannot hold, and those whose memory a job exceeds, are excluded
    here: their `seconds_per_epoch` becomes inf. A job may use a share f of a GPU if its memory fits f of the GPU's, or
    all of it where memory moves between jobs (`SharedMemory`).

    Args:
        gpu_types: The GPU types V, with unique names.
        nodes: The nodes N.
        configurations: The configurations C that jobs may be given; an environment's action a is `[a - 1]`.
        jobs: The jobs J.
        energy_price_eur_per_kwh: Energy price [€/kWh], ≥ 0.
        pue: Power usage effectiveness of the data centre, ≥ 1.
        interference: How co-runners on one GPU affect one another: slow-downs of pairs, or how they divide its time;
            None: on shared GPUs jobs take the time in `jobs`.
        name: Name of the scenario or trace it comes from.
        seed: Seed it was made with.
        tenants: The tenants of the cluster; `jobs.tenant` are indices of them.
        tenancy: How tenants share the cluster: `none` (names only), `quota` (the GPUs of every type that a tenant's
            jobs hold at one time are at most those of its cells), `private` or `cells` (what `workload.with_tenancy`
            makes).
        hosts: With `cells` the last so many nodes are the physical ones: opportunistic jobs run on them, and the nodes
            before them are the tenants' cells, which are bound to them when they are used. Else 0.
        racks: Number of the rack of every node, if there are racks: cells of tenants may be larger than a node. With
            `cells`, of the nodes before the physical ones: of the tenant's cell of which each is a part.
        decision_interval_s: Decision rounds are at multiples of this time, after which something has happened [s], from
            0, a round at every event, to `checks.LONGEST_S`.
        saved_kw: What the GPUs of a configuration draw less than full busy ones [kW], by application, on a share as
            whole GPUs, (A, C); None: what their power limit takes, for every application (`GpuType.saved_w`).
        gpu_hour_eur: Price of a GPU for each hour for which it is held [€/h], ≥ 0; it is billed with the energy.
        prices: Prices of energy by period; None: the one price. Rates and plans stay at that one, the reference, which
            must be > 0 then.
        mechanisms: Models of mechanisms that runs use, such as a cap on the power of all nodes (`PowerCap`), at most
            one of each; they are kept by name.

    Raises:
        InputError: A value is out of its range, names an unknown GPU type, or a job fits no configuration; or a
            configuration of several nodes does not take whole nodes.
    """

    gpu_types: tuple[GpuType, ...]
    nodes: tuple[Node, ...]
    configurations: tuple[Configuration, ...]
    jobs: JobTable
    energy_price_eur_per_kwh: float = 0.172
    pue: float = 1.58
    interference: Interference | UtilisationModel | None = None
    name: str = ""
    seed: int = 0
    tenants: tuple[Tenant, ...] = ()
    tenancy: Tenancy = "none"
    hosts: int = 0
    racks: tuple[int, ...] = ()
    decision_interval_s: float = 0.0
    saved_kw: tuple[tuple[float, ...], ...] | None = field(default=None, repr=False)
    gpu_hour_eur: float = 0.0
    prices: PriceSeries | None = None
    mechanisms: tuple[Mechanism, ...] = ()
    _type_index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks.not_negative("energy_price_eur_per_kwh", self.energy_price_eur_per_kwh)
        if self.prices is not None and self.energy_price_eur_per_kwh == 0.0:
            raise InputError("energy_price_eur_per_kwh", 0.0, "a number > 0 with prices: rates are those at this price")
        checks.seconds("decision_interval_s", self.decision_interval_s)
        if checks.positive("pue", self.pue) < 1.0:
            raise InputError("pue", self.pue, "a finite number >= 1")
        names = [v.name for v in self.gpu_types]
        if not names or len(set(names)) != len(names):
            raise InputError("gpu_types", names, "one or more, with unique names")
        object.__setattr__(self, "_type_index", {name: i for i, name in enumerate(names)})
        self._check_nodes()
        self._check_configurations()
        self._check_interference()
        self._check_saved_power()
        self._check_tenants()
        self._close_what_does_not_fit()
        if checks.not_negative("gpu_hour_eur", self.gpu_hour_eur) and self.hosts:
            raise InputError("gpu_hour_eur", self.gpu_hour_eur, "0 with cells, which are on whole hosts")
        object.__setattr__(self, "mechanisms", in_order(self.mechanisms))
        for own in self.mechanisms:
            own.check(self)

    def of(self, kind: type[M]) -> M | None:
        """Return the instance's model of a mechanism; None if it has none."""
        return next((own for own in self.mechanisms if isinstance(own, kind)), None)

    def find(self, mechanism: str) -> Any:
        """Return the model of a mechanism by the name of that; None if the instance has none."""
        return next((own for own in self.mechanisms if own.mechanism == mechanism), None)

    def with_mechanisms(self, *mechanisms: Mechanism) -> Instance:
        """Return the instance with models of mechanisms, in place of those that it has of the same ones."""
        kept = {own.mechanism: own for own in (*self.mechanisms, *mechanisms)}
        return replace(self, mechanisms=tuple(kept.values()))

    def _check_nodes(self) -> None:
        for index, node in enumerate(self.nodes):
            most = self.gpu_types[self.type_index(f"nodes[{index}].gpu_type", node.gpu_type)].max_gpus_per_node
            if node.gpus > most:
                raise InputError(f"nodes[{index}].gpus", node.gpus, f"at most {most} for {node.gpu_type}")
            is_cell = index < len(self.nodes) - self.hosts and self.hosts > 0
            if (
                not is_cell
                and node.gpus < most
                and self.gpu_types[self._type_index[node.gpu_type]].idle_gpu_power_w > 0.0
            ):
                allowed = (
                    f"{most}, since idle GPUs of {node.gpu_type} draw power; smaller nodes need a type of their own"
                )
                raise InputError(f"nodes[{index}].gpus", node.gpus, allowed)
        if not self.nodes:
            raise InputError("nodes", [], "at least one node")

    def _check_configurations(self) -> None:
        largest = self.largest_node
        for index, configuration in enumerate(self.configurations):
            where = f"configurations[{index}]"
            self.type_index(f"{where}.gpu_type", configuration.gpu_type)
            gpus = largest.get(configuration.gpu_type, 0)
            if configuration.nodes > 1 and not configuration.spread and configuration.gpus_per_node < gpus:
                allowed = f"whole nodes: {gpus} GPUs on each of the nodes of {configuration.gpu_type}"
                raise InputError(where, configuration.name, allowed)
            if configuration.kind == "shared" and configuration.gpus_per_node * configuration.nodes > 1 and self.hosts:
                raise InputError(where, configuration.name, "shares of one GPU with tenancy = 'cells'")
        names = [c.name for c in self.configurations]
        if len(set(names)) != len(names) or not names:
            raise InputError("configurations", names, "one or more, all with different names")

    def _check_interference(self) -> None:
        model, kinds, types = self.interference, len(self.jobs.applications), len(self.gpu_types)
        divided = self.divided_time
        if any(c.priority for c in self.configurations) and divided is None:
            first = next(c for c in self.configurations if c.priority)
            raise InputError(
                "configurations", first.name, "shares without priorities, unless interference is a UtilisationModel"
            )
        if model is None:
            return
        name = "slowdown" if divided is None else "utilisation"
        table = getattr(model, name)
        if table.shape != (types, kinds, kinds)[: table.ndim]:
            axes = "GPU types, applications" + (", applications" if table.ndim == 3 else "")
            wanted = ", ".join(map(str, (types, kinds, kinds)[: table.ndim]))
            raise InputError(f"interference.{name}", table.shape, f"({wanted}): {axes}")
        self._check_shared_memory()
        below = None if divided is None else divided.below
        if below is not None and below.shape != (types, kinds, kinds):
            raise InputError("interference.below", below.shape, f"({types}, {kinds}, {kinds}): GPU types, applications")
        shared = [configuration.kind == "shared" for configuration in self.configurations]
        full_s = self.jobs.seconds_per_epoch[:, shared] * self.jobs.max_epochs[:, None]
        longest_s = float(np.max(full_s, initial=0.0, where=np.isfinite(full_s)))
        slowest = model.most_slowdown(min((c.share for c in self.configurations), default=1.0))
        if longest_s * slowest > checks.LONGEST_S:
            allowed = f"factors by which no job takes longer than {checks.LONGEST} beside another one"
            raise InputError(f"interference.{name}", slowest, allowed)
        if divided is not None:
            self._check_idle_power(divided)
            whole = np.isfinite(self.jobs.seconds_per_epoch[:, ~np.array(shared)]).any(axis=1)
            if divided.profile_s and not np.all(whole):
                allowed = f"0, since job {int(np.argmin(whole))} may use no whole GPUs, on which it would be profiled"
                raise InputError("interference.profile_s", divided.profile_s, allowed)

    def _check_shared_memory(self) -> None:
        own = None if self.divided_time is None else self.divided_time.memory
        if own is None:
            return
        shape = (len(self.gpu_types), len(self.jobs.applications))
        if own.iteration_s.shape != shape:
            raise InputError("interference.memory.iteration_s", own.iteration_s.shape, f"{shape}: types, applications")
        if own.adapt_s and self.decision_interval_s:
            raise InputError("interference.memory.adapt_s", own.adapt_s, "0 with a decision_interval_s")

    def _check_idle_power(self, model: UtilisationModel) -> None:
        """Check that the idle-power saving of a GPU is at most the power that its node draws for it."""
        for v, gpu_type in enumerate(self.gpu_types if model.idle_power_w is not None else ()):
            most = range(1, self.largest_node.get(gpu_type.name, 0) + 1)
            each_w = min((gpu_type.power_w(busy) / busy for busy in most), default=np.inf)
            low, high = max(0.0, gpu_type.gpu_power_w - each_w), gpu_type.gpu_power_w
            idle_w = float(model.idle_power_w[v])  # type: ignore[index]
            if not low <= idle_w <= high:
                allowed = f"from {low:g} to {high:g} W, the power of a busy {gpu_type.name}"
                raise InputError(f"interference.idle_power_w[{v}]", idle_w, allowed)

    def _check_saved_power(self) -> None:
        """Check that no GPU saves more than its node draws for it, and write what power limits save by themselves."""
        rows, wanted = self.saved_kw, self.configurations
        if rows is None:
            if all(c.power_limit == 1.0 for c in wanted):
                return
            row = [self.gpu_types[self._type_index[c.gpu_type]].saved_w(c) / 1000.0 for c in wanted]
            rows = (tuple(row),) * len(self.jobs.applications)
        rows = tuple(tuple(map(float, row)) for row in rows)
        shape = len(self.jobs.applications), len(wanted)
        if len(rows) != shape[0] or {len(row) for row in rows} != {shape[1]}:
            raise InputError("saved_kw", [len(row) for row in rows], f"{shape}: applications, configurations")
        saved = np.array(rows)
        largest = self.largest_node
        for c, own in enumerate(wanted):
            v = self.gpu_types[self._type_index[own.gpu_type]]
            drawn_w = [v.power_w(busy) / busy for busy in range(1, largest.get(v.name, 0) + 1)]
            most = min(drawn_w, default=np.inf) * own.gpus_per_node * own.nodes / 1000.0
            for a in np.flatnonzero(~((saved[:, c] >= 0.0) & (saved[:, c] <= most * (1.0 + ROUNDED)))):
                allowed = f"from 0 to {most:g} kW, the power of busy GPUs of {own.name}"
                raise InputError(f"saved_kw[{a}][{c}]", float(saved[a, c]), allowed)
        object.__setattr__(self, "saved_kw", rows)

    def _check_tenants(self) -> None:
        if not (self.tenants or self.racks or self.hosts) and self.tenancy == "none":
            return
        from gpusched_env.model import tenant  # noqa: PLC0415 - few need it

        tenant.check_tenants(self.tenants, self.tenancy, self.jobs.tenant, self.gpu_types)
        tenant.check_racks(self.nodes, self.racks)
        tenant.check_hosts(self.nodes, self.racks, self.hosts, self.tenancy, self.tenants, self.gpu_types)

    def __repr__(self) -> str:
        types = ", ".join(v.name for v in self.gpu_types)
        return (
            f"Instance({self.name or 'no name'!r}, seed {self.seed}: {len(self.nodes):,} nodes of {types}, "
            f"{len(self.jobs):,} jobs, {len(self.configurations)} configurations)"
        )

    def _repr_html_(self) -> str:
        return _html(self)

    @classmethod
    def from_jobs(
        cls,
        gpu_types: Sequence[GpuType],
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        configurations: Sequence[Configuration] | None = None,
        *,
        energy_price_eur_per_kwh: float = 0.172,
        pue: float = 1.58,
        restart_s: float = 0.0,
        interference: Interference | UtilisationModel | None = None,
        name: str = "",
        tenants: Sequence[Tenant] = (),
        tenancy: Tenancy = "none",
        decision_interval_s: float = 0.0,
        saved_kw: Sequence[Sequence[float]] | None = None,
        gpu_hour_eur: float = 0.0,
        prices: PriceSeries | None = None,
        mechanisms: Sequence[Mechanism] = (),
    ) -> Instance:
        """Make an instance from single jobs, sorting them by submission (stable).

        Args:
            gpu_types: The GPU types.
            nodes: The nodes.
            jobs: The jobs, in any order.
            configurations: The configurations; by default every number of GPUs that a node of the cluster has.
            energy_price_eur_per_kwh: Energy price [€/kWh].
            pue: Power usage effectiveness.
            restart_s: Restart overhead of jobs without one of their own [s], from 0 to `checks.LONGEST_S`.
            interference: How co-runners on one GPU affect one another.
            name: Name of the instance.
            tenants: The tenants of the cluster.
            tenancy: How they share it.
            decision_interval_s: Interval of decision rounds [s].
            saved_kw: What GPUs draw less than full busy ones [kW], (A, C).
            gpu_hour_eur: Price of a held GPU [€/h].
            prices: Prices of energy by period.
            mechanisms: Models of further mechanisms.
        """
        checks.seconds("restart_s", restart_s)
        if configurations is None:
            configurations = single_node_configurations(gpu_types, nodes)
        table = JobTable.from_jobs(sorted(jobs, key=lambda job: job.submission_s), configurations, restart_s)
        return cls(
            tuple(gpu_types),
            tuple(nodes),
            tuple(configurations),
            table,
            energy_price_eur_per_kwh=energy_price_eur_per_kwh,
            pue=pue,
            interference=interference,
            name=name,
            tenants=tuple(tenants),
            tenancy=tenancy,
            decision_interval_s=decision_interval_s,
            saved_kw=None if saved_kw is None else tuple(tuple(row) for row in saved_kw),
            gpu_hour_eur=gpu_hour_eur,
            prices=prices,
            mechanisms=tuple(mechanisms),
        )

    def type_index(self, where: str, name: str) -> int:
        """Return the index of the GPU type `name`; `where` names the field in the error.

        Raises:
            InputError: There is no such type.
        """
        if name not in self._type_index:
            raise InputError(where, name, f"one of the GPU types {', '.join(self._type_index)}")
        return self._type_index[name]

    @property
    def type_of_configuration(self) -> NDArray[np.int64]:
        """Return the GPU type's index of every configuration, shape (C,)."""
        return np.array([self._type_index[c.gpu_type] for c in self.configurations], dtype=np.int64)

    @property
    def type_of_node(self) -> NDArray[np.int64]:
        """Return the GPU type's index of every node, shape (N,)."""
        return np.array([self._type_index[n.gpu_type] for n in self.nodes], dtype=np.int64)

    @property
    def largest_node(self) -> dict[str, int]:
        """Return the GPUs of the largest node of every GPU type that has a node."""
        largest: dict[str, int] = {}
        for node in self.nodes:
            largest[node.gpu_type] = max(largest.get(node.gpu_type, 0), node.gpus)
        return largest

    @property
    def fastest_seconds_per_epoch(self) -> NDArray[np.float64]:
        """Return the least seconds per epoch of every job and configuration, with the most help, shape (J, C)."""
        seconds = self.jobs.seconds_per_epoch
        if self.most_spread:
            whole = self.consolidated
            seconds = checks.frozen_array(np.where(whole >= 0, np.minimum(seconds, _or_inf(seconds, whole)), seconds))
        for own in self.mechanisms:
            seconds = own.fastest(self, seconds)
        return seconds

    @property
    def most_spread(self) -> int:
        """Return the GPUs of the largest spread configuration; 0 if there is none."""
        return max((c.nodes for c in self.configurations if c.spread), default=0)

    @property
    def consolidated(self) -> NDArray[np.int64]:
        """Return for every spread configuration the one with as many GPUs on one node, or on whole ones, shape (C,).

        It has the same power limit.

        While the GPUs of a spread configuration are on no more nodes than that one has, a job that may use both is as
        fast as with that one. -1 for the other kinds, and where there is none.
        """
        wanted, keys = self.configurations, [(c.gpu_type, c.gpus, c.power_limit) for c in self.configurations]
        whole = {key: i for i, key in enumerate(keys) if not wanted[i].spread and wanted[i].share == 1.0}
        own = [whole.get(key, -1) if c.spread else -1 for key, c in zip(keys, wanted, strict=True)]
        return np.array(own, dtype=np.int64)

    @property
    def unlimited(self) -> NDArray[np.int64]:
        """Return for every configuration that of the same GPUs with the highest power limit, shape (C,).

        In any order of the configurations that is the one at full power, if there is one.
        """
        highest: dict[Configuration, int] = {}
        for i, c in enumerate(self.configurations):
            best = highest.setdefault(c.unlimited, i)
            if c.power_limit > self.configurations[best].power_limit:
                highest[c.unlimited] = i
        return np.array([highest[c.unlimited] for c in self.configurations], dtype=np.int64)

    @property
    def divided_time(self) -> UtilisationModel | None:
        """Return how jobs divide the time of GPUs; None: shares are not by utilisation."""
        if self.interference is None:
            return None
        from gpusched_env.model.interference import UtilisationModel  # noqa: PLC0415 - few need it

        return self.interference if isinstance(self.interference, UtilisationModel) else None

    @property
    def machines(self) -> tuple[Node, ...]:
        """Return the physical nodes: with cells the hosts, to which the nodes before them are bound; else all nodes."""
        return self.nodes[-self.hosts :]

    @property
    def quotas(self) -> NDArray[np.int64]:
        """Return the GPUs of every type that each tenant's jobs may hold at one time, (T, V); (0, V) without quotas."""
        if self.tenancy != "quota":
            return np.zeros((0, len(self.gpu_types)), dtype=np.int64)
        each = [tenant.gpus(v.name) for tenant in self.tenants for v in self.gpu_types]
        return np.array(each, dtype=np.int64).reshape(len(self.tenants), -1)

    def _beyond_quota(self) -> NDArray[np.bool_]:
        """Return which configurations take more than the whole quota of a job's tenant, (J, C)."""
        limits = self.quotas
        if not len(limits):
            return np.zeros((1, 1), dtype=np.bool_)
        gpus = np.array([c.gpus_per_node * c.nodes * c.share for c in self.configurations])
        beyond: NDArray[np.bool_] = (gpus[None, :] > limits[:, self.type_of_configuration])[self.jobs.tenant]
        return beyond

    def _held(self) -> NDArray[np.bool_]:
        gpus, wanted = np.array([node.gpus for node in self.nodes]), self.configurations
        of_type = self.type_of_node[None, :] == self.type_of_configuration[:, None]
        able = of_type & (gpus[None, :] >= np.array([c.gpus_per_node for c in wanted])[:, None])
        able_gpus = np.where([[c.spread] for c in wanted], of_type * gpus[None, :], able)
        return able_gpus.sum(axis=1) >= np.array([c.nodes for c in wanted])

    def _close_what_does_not_fit(self) -> None:
        seconds = self.jobs.seconds_per_epoch
        if seconds.shape[1] != len(self.configurations):
            raise InputError("jobs.seconds_per_epoch", seconds.shape, f"{len(self.configurations)} columns")
        closed = ~self._held()
        moves = self.divided_time is not None and self.divided_time.memory is not None
        memory = np.array(
            [
                self.gpu_types[self._type_index[c.gpu_type]].memory_gib * (1.0 if moves else c.share)
                for c in self.configurations
            ]
        )
        not_allowed = closed[None, :] | (self.jobs.memory_gib[:, None] > memory[None, :]) | self._beyond_quota()
        if np.any(not_allowed & np.isfinite(seconds)):
            open_seconds = np.where(not_allowed, np.inf, seconds)
            for job in np.flatnonzero(~np.any(np.isfinite(open_seconds), axis=1)):
                raise self._fits_nowhere(int(job), closed, memory)
            object.__setattr__(self, "jobs", replace(self.jobs, seconds_per_epoch=open_seconds))

    def _fits_nowhere(self, job: int, closed: NDArray[np.bool_], memory: NDArray[np.float64]) -> InputError:
        """Return the error of a job that fits nothing: its memory, or that no node holds an allowed configuration."""
        beyond = np.broadcast_to(self._beyond_quota(), self.jobs.seconds_per_epoch.shape)[job]
        may_use = np.isfinite(self.jobs.seconds_per_epoch[job])
        if np.any(may_use & ~closed & beyond):
            tenant = self.tenants[int(self.jobs.tenant[job])].name
            return InputError(f"jobs[{job}].seconds_per_epoch", "inf for all", f"one within the quota of {tenant}")
        able = np.flatnonzero(may_use & ~closed)
        if len(able):
            shared = any(self.configurations[c].kind == "shared" for c in able)
            names = [
                (self.configurations[c].name if shared else self.configurations[c].gpu_type, memory[c]) for c in able
            ]
            has = ", ".join(f"{name} {gib:g}" for name, gib in dict(names).items())
            allowed = f"at most what a GPU has that the job may use [GiB]: {has}"
            return InputError(f"jobs[{job}].memory_gib", float(self.jobs.memory_gib[job]), allowed)
        asked = [self.configurations[c].name for c in np.flatnonzero(may_use)]
        held = ", ".join(self.configurations[c].name for c in np.flatnonzero(~closed)) or "none of them"
        allowed = f"one or more that the nodes of the cluster can hold: {held}"
        return InputError(f"jobs[{job}].seconds_per_epoch", asked, allowed)


def _or_inf(seconds: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the given columns of `seconds`, (J, C); inf where `seconds` itself is."""
    return np.where(np.isfinite(seconds), seconds[:, columns], np.inf)


def _html(instance: Instance) -> str:
    """Return an HTML table with the size of the instance and the price of energy."""
    from gpusched_env.notebook import facts_table  # noqa: PLC0415 - few need it

    nodes = Counter(f"{node.gpus} x {node.gpu_type}" for node in instance.nodes)
    tenants = [("tenants", ", ".join(tenant.name for tenant in instance.tenants))] if instance.tenants else []
    facts = [
        ("nodes", f"{len(instance.nodes):,}: " + ", ".join(f"{count} of {kind}" for kind, count in nodes.items())),
        ("GPUs", f"{sum(node.gpus for node in instance.nodes):,}"),
        ("jobs", f"{len(instance.jobs):,} of {len(set(instance.jobs.application.tolist()))} applications"),
        ("submitted", f"from {instance.jobs.submission_s.min():,.0f} s to {instance.jobs.submission_s.max():,.0f} s"),
        ("configurations", f"{len(instance.configurations)}"),
        ("energy price, PUE", f"{instance.energy_price_eur_per_kwh:g} €/kWh, {instance.pue:g}"),
        *tenants,
    ]
    return facts_table(f"Instance {instance.name or 'without a name'}, seed {instance.seed}", facts)
