"""One problem to solve: a cluster, its jobs and its prices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import Configuration
from gpusched_env.model.job_table import JobTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.gpu_type import GpuType
    from gpusched_env.model.job import Job
    from gpusched_env.model.node import Node


@dataclass(frozen=True, slots=True)
class Instance:
    """A cluster, its jobs and its prices: all that a run depends on beside the policy and its seed.

    Configurations that no node of the cluster can hold, and jobs whose memory exceeds a GPU's, are closed here:
    their `seconds_per_epoch` becomes inf.

    Args:
        gpu_types: The GPU types V, with unique names.
        nodes: The nodes N.
        configurations: The configurations C that jobs may be given; an environment's action a is `[a - 1]`.
        jobs: The jobs J.
        energy_price_eur_per_kwh: Energy price [€/kWh], ≥ 0.
        pue: Power usage effectiveness of the data centre, ≥ 1.
        restart_s: Seconds without progress after a job's configuration or node has changed, ≥ 0.
        name: Name of the scenario or trace it comes from.
        seed: Seed it was made with.

    Raises:
        InputError: A value is out of its range, names an unknown GPU type, or a job fits no configuration.
    """

    gpu_types: tuple[GpuType, ...]
    nodes: tuple[Node, ...]
    configurations: tuple[Configuration, ...]
    jobs: JobTable
    energy_price_eur_per_kwh: float = 0.172
    pue: float = 1.58
    restart_s: float = 0.0
    name: str = ""
    seed: int = 0
    _type_index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks.not_negative("energy_price_eur_per_kwh", self.energy_price_eur_per_kwh)
        checks.not_negative("restart_s", self.restart_s)
        if checks.positive("pue", self.pue) < 1.0:
            raise InputError("pue", self.pue, "a finite number >= 1")
        names = [v.name for v in self.gpu_types]
        if not names or len(set(names)) != len(names):
            raise InputError("gpu_types", names, "one or more, with unique names")
        object.__setattr__(self, "_type_index", {name: i for i, name in enumerate(names)})
        self._check_nodes()
        self._check_configurations()
        self._close_what_does_not_fit()

    def _check_nodes(self) -> None:
        for index, node in enumerate(self.nodes):
            most = self.gpu_types[self.type_index(f"nodes[{index}].gpu_type", node.gpu_type)].max_gpus_per_node
            if node.gpus > most:
                raise InputError(f"nodes[{index}].gpus", node.gpus, f"at most {most} for {node.gpu_type}")
        if not self.nodes:
            raise InputError("nodes", [], "at least one node")

    def _check_configurations(self) -> None:
        for index, configuration in enumerate(self.configurations):
            self.type_index(f"configurations[{index}].gpu_type", configuration.gpu_type)
            if configuration.kind != "single-node":
                raise InputError(f"configurations[{index}]", configuration.name, "a single-node configuration")
        if len(set(self.configurations)) != len(self.configurations) or not self.configurations:
            raise InputError("configurations", [c.name for c in self.configurations], "one or more, all different")

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
    ) -> Instance:
        """Make an instance from single jobs, sorting them by submission (stable).

        Args:
            gpu_types: The GPU types.
            nodes: The nodes.
            jobs: The jobs, in any order.
            configurations: The configurations; by default every number of GPUs that a node of the cluster has.
            energy_price_eur_per_kwh: Energy price [€/kWh].
            pue: Power usage effectiveness.
            restart_s: Restart overhead [s].
            name: Name of the instance.
        """
        if configurations is None:
            configurations = single_node_configurations(gpu_types, nodes)
        table = JobTable.from_jobs(sorted(jobs, key=lambda job: job.submission_s), configurations)
        return cls(
            tuple(gpu_types),
            tuple(nodes),
            tuple(configurations),
            table,
            energy_price_eur_per_kwh=energy_price_eur_per_kwh,
            pue=pue,
            restart_s=restart_s,
            name=name,
        )

    def type_index(self, where: str, name: str) -> int:
        """Give the index of the GPU type `name`; `where` names the field in the error.

        Raises:
            InputError: There is no such type.
        """
        if name not in self._type_index:
            raise InputError(where, name, f"one of the GPU types {', '.join(self._type_index)}")
        return self._type_index[name]

    @property
    def type_of_configuration(self) -> NDArray[np.int64]:
        """Give the GPU type's index of every configuration, shape (C,)."""
        return np.array([self._type_index[c.gpu_type] for c in self.configurations], dtype=np.int64)

    @property
    def type_of_node(self) -> NDArray[np.int64]:
        """Give the GPU type's index of every node, shape (N,)."""
        return np.array([self._type_index[n.gpu_type] for n in self.nodes], dtype=np.int64)

    def _close_what_does_not_fit(self) -> None:
        seconds = self.jobs.seconds_per_epoch
        if seconds.shape[1] != len(self.configurations):
            raise InputError("jobs.seconds_per_epoch", seconds.shape, f"{len(self.configurations)} columns")
        largest: dict[str, int] = {}
        for node in self.nodes:
            largest[node.gpu_type] = max(largest.get(node.gpu_type, 0), node.gpus)
        closed = np.array([c.gpus_per_node > largest.get(c.gpu_type, 0) for c in self.configurations])
        memory = np.array([self.gpu_types[v].memory_gib for v in self.type_of_configuration])
        not_allowed = closed[None, :] | (self.jobs.memory_gib[:, None] > memory[None, :])
        if np.any(not_allowed & np.isfinite(seconds)):
            open_seconds = np.where(not_allowed, np.inf, seconds)
            for job in np.flatnonzero(~np.any(np.isfinite(open_seconds), axis=1)):
                raise self._fits_nowhere(int(job), closed)
            object.__setattr__(self, "jobs", replace(self.jobs, seconds_per_epoch=open_seconds))

    def _fits_nowhere(self, job: int, closed: NDArray[np.bool_]) -> InputError:
        """Say why: its memory, or else no node holds a configuration that it may use."""
        may_use = np.isfinite(self.jobs.seconds_per_epoch[job])
        types = {self.configurations[c].gpu_type for c in np.flatnonzero(may_use & ~closed)}
        if types:
            has = ", ".join(f"{v.name} {v.memory_gib:g}" for v in self.gpu_types if v.name in types)
            allowed = f"at most what a GPU has that the job may use [GiB]: {has}"
            return InputError(f"jobs[{job}].memory_gib", float(self.jobs.memory_gib[job]), allowed)
        asked = [self.configurations[c].name for c in np.flatnonzero(may_use)]
        held = ", ".join(self.configurations[c].name for c in np.flatnonzero(~closed)) or "none of them"
        allowed = f"one or more that the nodes of the cluster can hold: {held}"
        return InputError(f"jobs[{job}].seconds_per_epoch", asked, allowed)


def single_node_configurations(gpu_types: Sequence[GpuType], nodes: Sequence[Node]) -> tuple[Configuration, ...]:
    """List every number of GPUs of every type that the largest node of that type can hold."""
    largest = {v.name: max((n.gpus for n in nodes if n.gpu_type == v.name), default=0) for v in gpu_types}
    return tuple(Configuration(v.name, g) for v in gpu_types for g in range(1, largest[v.name] + 1))
