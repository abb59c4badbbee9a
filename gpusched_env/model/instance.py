"""One problem to solve: a cluster, its jobs and its prices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import single_node_configurations
from gpusched_env.model.job_table import JobTable
from gpusched_env.model.mechanism import M, Mechanism, in_order, model_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Configuration, GpuType, Node
    from gpusched_env.model.job import Job


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
        name: Name of the scenario or trace it comes from.
        seed: Seed it was made with.
        decision_interval_s: Decision rounds are at multiples of this time, after which something has happened [s], from
            0, a round at every event, to `checks.LONGEST_S`.
        mechanisms: Models of mechanisms that runs use, at most one of each, kept by name: prices of energy by period
            (`PriceSeries`), the price of a held GPU (`Rent`), a cap on the power of all nodes (`PowerCap`), how
            co-runners on one GPU affect one another (`Interference`, `UtilisationModel`; without one jobs take the time
            in `jobs` there), what GPUs save (`SavedPower`, added where there are power limits), who shares the cluster
            (`Tenants`), and others.

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
    name: str = ""
    seed: int = 0
    decision_interval_s: float = 0.0
    mechanisms: tuple[Mechanism, ...] = ()
    _type_index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks.not_negative("energy_price_eur_per_kwh", self.energy_price_eur_per_kwh)
        checks.seconds("decision_interval_s", self.decision_interval_s)
        if checks.positive("pue", self.pue) < 1.0:
            raise InputError("pue", self.pue, "a finite number >= 1")
        object.__setattr__(self, "mechanisms", in_order(self.mechanisms))
        names = [v.name for v in self.gpu_types]
        if not names or len(set(names)) != len(names):
            raise InputError("gpu_types", names, "one or more, with unique names")
        object.__setattr__(self, "_type_index", {name: i for i, name in enumerate(names)})
        self._check_nodes()
        self._check_configurations()
        self._add_needed()
        self._close_what_does_not_fit()
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

    def without(self, *mechanisms: str) -> Instance:
        """Return the instance without the models of some mechanisms, by name; those that it needs are made again."""
        return replace(self, mechanisms=tuple(own for own in self.mechanisms if own.mechanism not in mechanisms))

    def _check_nodes(self) -> None:
        first = self.first_machine
        for index, node in enumerate(self.nodes):
            most = self.gpu_types[self.type_index(f"nodes[{index}].gpu_type", node.gpu_type)].max_gpus_per_node
            if node.gpus > most:
                raise InputError(f"nodes[{index}].gpus", node.gpus, f"at most {most} for {node.gpu_type}")
            idle_w = self.gpu_types[self._type_index[node.gpu_type]].idle_gpu_power_w
            if index >= first and node.gpus < most and idle_w > 0.0:
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
        names = [c.name for c in self.configurations]
        if len(set(names)) != len(names) or not names:
            raise InputError("configurations", names, "one or more, all with different names")
        first = next((c for c in self.configurations if c.priority), None)
        if first is not None and not any(own.divides_time for own in self.mechanisms):
            allowed = "shares without priorities, unless interference is a UtilisationModel"
            raise InputError("configurations", first.name, allowed)

    def _add_needed(self) -> None:
        """Add the models that configurations need, where none is given."""
        for name in dict.fromkeys(c.needs for c in self.configurations if c.needs):
            if self.find(name) is None:
                kind: Any = model_of(name)
                object.__setattr__(self, "mechanisms", in_order((*self.mechanisms, kind.by_default(self))))

    def __repr__(self) -> str:
        types = ", ".join(v.name for v in self.gpu_types)
        return (
            f"Instance({self.name or 'no name'!r}, seed {self.seed}: {len(self.nodes):,} nodes of {types}, "
            f"{len(self.jobs):,} jobs, {len(self.configurations)} configurations)"
        )

    def _repr_html_(self) -> str:
        from gpusched_env.notebook import instance_table  # noqa: PLC0415 - few need it

        return instance_table(self)

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
        name: str = "",
        decision_interval_s: float = 0.0,
        mechanisms: Sequence[Mechanism] = (),
    ) -> Instance:
        """Make an instance from single jobs, sorting them by submission (stable).

        Args:
            gpu_types: The GPU types.
            nodes: The nodes.
            jobs: The jobs, in any order.
            configurations: The configurations; by default every number of GPUs that a node of the cluster has.
            restart_s: Restart overhead of jobs without one of their own [s], from 0 to `checks.LONGEST_S`.

        The other arguments are those of the instance.
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
            name=name,
            decision_interval_s=decision_interval_s,
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
            seconds = own.least_seconds(self, seconds)
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
    def first_machine(self) -> int:
        """Return the index of the first physical node; those before it are bound to physical ones. 0: all are."""
        last = max((own.machines for own in self.mechanisms), default=0)
        return len(self.nodes) - last if last > 0 else 0

    @property
    def machines(self) -> tuple[Node, ...]:
        """Return the physical nodes."""
        return self.nodes[self.first_machine :]

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
        for own in self.mechanisms:
            seconds = own.open_seconds(self, seconds)
        closed = ~self._held()
        moves = any(own.moves_memory for own in self.mechanisms)
        memory = np.array(
            [
                self.gpu_types[self._type_index[c.gpu_type]].memory_gib * (1.0 if moves else c.share)
                for c in self.configurations
            ]
        )
        not_allowed = closed[None, :] | (self.jobs.memory_gib[:, None] > memory[None, :])
        if seconds is not self.jobs.seconds_per_epoch or np.any(not_allowed & np.isfinite(seconds)):
            open_seconds = np.where(not_allowed, np.inf, seconds)
            for job in np.flatnonzero(~np.any(np.isfinite(open_seconds), axis=1)):
                raise self._fits_nowhere(int(job), np.isfinite(seconds[job]), closed, memory)
            object.__setattr__(self, "jobs", replace(self.jobs, seconds_per_epoch=open_seconds))

    def _fits_nowhere(
        self, job: int, may_use: NDArray[np.bool_], closed: NDArray[np.bool_], memory: NDArray[np.float64]
    ) -> InputError:
        """Return the error of a job that fits nothing: its memory, or that no node holds an allowed configuration."""
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
