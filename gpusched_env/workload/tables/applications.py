"""The built-in applications and GPU types, from the public measurements that `data/README.md` explains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import Configuration, GpuType
from gpusched_env.workload.tables import read_table


def number(field: str, text: str, *, positive: bool = False) -> float:
    """Return the number in a cell; `field` names the cell in the error."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(field, text, "a number") from None
    if positive and not 0.0 < value < math.inf:
        raise InputError(field, value, "a finite number > 0")
    return value


def whole(field: str, text: str) -> int:
    """Return the whole number in a cell; `field` names the cell in the error."""
    try:
        value = int(text)
    except ValueError:
        raise InputError(field, text, "a whole number") from None
    if value < 1:
        raise InputError(field, value, "a whole number >= 1")
    return value


def _table(name: str, keys: Sequence[str], value: str | Sequence[str]) -> MappingProxyType[Any, Any]:
    """Return the numbers in a column of a table of the package, or the lists of those in several, by key columns.

    Keys are texts, or numbers where the column counts something.
    """
    table: dict[Any, Any] = {}
    for row in read_table(name):
        where = f"{name}.{'.'.join(row[key] for key in keys if key not in _NUMBERS)}"
        key = tuple(_NUMBERS[key](f"{where}.{key}", row[key]) if key in _NUMBERS else row[key] for key in keys)
        if key in table:
            raise InputError(f"{where}.{keys[-1]}", key[-1], f"each {keys[-1]} once")
        cells = [number(f"{where}.{column}", row[column]) for column in ([value] if isinstance(value, str) else value)]
        table[key] = cells[0] if isinstance(value, str) else cells
    return MappingProxyType(table)


_NUMBERS: dict[str, Callable[[str, str], float]] = {
    "gpus": whole, "nodes": whole, "gpus_per_node": whole, "fraction": number,
    "gap_every": whole, "waiting": whole,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Application:
    """A training application: how long one epoch takes on each GPU type and number of GPUs, and on whole nodes.

    Args:
        name: Model, data set and batch, such as "resnet50-imagenet-bs64".
        max_epochs: Most epochs E_j that a run needs, > 0.
        memory_gib: Memory that training takes on each GPU [GiB], ≥ 0.
        seconds_per_epoch: Time of one epoch τ [s] by (GPU type, number of GPUs), > 0; copied, and read-only afterwards.
        whole_nodes_s: Time of one epoch [s] by (GPU type, whole nodes, GPUs of a node), > 0, where known; the same.
        restart_s: Seconds without progress after a change of configuration or node, ≥ 0.
        state_gib: State that is moved when jobs are switched: weights, gradients, optimiser state [GiB], ≥ 0.
        batches_per_epoch: Mini-batches of an epoch, ≥ 0; 0: not known.
        spread_factor: Factor on the time of an epoch by (GPU type, number of GPUs) if they are on different nodes, > 0,
            where known; copied, and read-only afterwards.

    Raises:
        InputError: A value is out of its range.
    """

    name: str
    max_epochs: float
    memory_gib: float
    seconds_per_epoch: Mapping[tuple[str, int], float]
    whole_nodes_s: Mapping[tuple[str, int, int], float] = field(default_factory=dict)
    restart_s: float = 0.0
    state_gib: float = 0.0
    batches_per_epoch: float = 0.0
    spread_factor: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"applications.{self.name}"
        checks.positive(f"{where}.max_epochs", self.max_epochs)
        checks.not_negative(f"{where}.memory_gib", self.memory_gib)
        checks.seconds(f"{where}.restart_s", self.restart_s)
        checks.not_negative(f"{where}.state_gib", self.state_gib)
        checks.not_negative(f"{where}.batches_per_epoch", self.batches_per_epoch)
        if not self.seconds_per_epoch and not self.whole_nodes_s:
            raise InputError(f"{where}.seconds_per_epoch", self.seconds_per_epoch, "at least one entry")
        for column in ("seconds_per_epoch", "whole_nodes_s", "spread_factor"):
            for key, seconds in getattr(self, column).items():
                checks.positive(f"{where}.{column}[{', '.join(map(str, key))}]", seconds)
            object.__setattr__(self, column, MappingProxyType(dict(getattr(self, column))))

    @classmethod
    def of_times(
        cls, name: str, facts: Mapping[str, float], times: Mapping[tuple[str, int, int], float]
    ) -> Application:
        """Make an application of its `facts`, by field, and its times [s] by (GPU type, nodes, GPUs of a node)."""
        single = {(v, gpus): seconds for (v, nodes, gpus), seconds in times.items() if nodes == 1}
        several = {key: seconds for key, seconds in times.items() if key[1] > 1}
        return cls(name=name, seconds_per_epoch=single, whole_nodes_s=several, spread_factor={}, **facts)

    def time_s(self, configuration: Configuration) -> float:
        """Return the time of one epoch on a configuration [s]; inf where it is not known.

        On a share of a GPU it is the time alone on that GPU: the effect of co-runners is not part of the application.
        """
        c = configuration
        if c.spread:
            key = c.gpu_type, c.nodes
            return self.seconds_per_epoch.get(key, math.inf) * self.spread_factor.get(key, math.inf)
        if c.nodes > 1:
            return self.whole_nodes_s.get((c.gpu_type, c.nodes, c.gpus_per_node), math.inf)
        return self.seconds_per_epoch.get((c.gpu_type, c.gpus_per_node), math.inf)

    def __reduce__(self) -> tuple[type[Application], tuple[object, ...]]:
        times = dict(self.seconds_per_epoch), dict(self.whole_nodes_s)
        rest = self.restart_s, self.state_gib, self.batches_per_epoch, dict(self.spread_factor)
        return type(self), (self.name, self.max_epochs, self.memory_gib, *times, *rest)


def builtin_applications() -> dict[str, Application]:
    """Return the built-in applications by name, in a new dictionary of frozen values.

    Raises:
        InputError: A table of the package was damaged.
    """
    return dict(_applications())


def builtin_gpu_types() -> dict[str, GpuType]:
    """Return the built-in GPU types by name, in a new dictionary of frozen values.

    Raises:
        InputError: A table of the package was damaged.
    """
    return dict(_gpu_types())


@cache
def _applications() -> Mapping[str, Application]:
    times = _table("applications.csv", ("application", "gpu_type", "gpus"), "seconds_per_epoch")
    whole_nodes = _table("whole_nodes.csv", ("application", "gpu_type", "nodes", "gpus_per_node"), "seconds_per_epoch")
    spread = _table("spread.csv", ("application", "gpu_type", "gpus"), "factor")
    columns = ("max_epochs", "memory_gib", "restart_s", "state_gib", "samples_per_epoch", "batch_size")
    facts = {name: values for (name,), values in _table("application_facts.csv", ("application",), columns).items()}
    known = {name for name, *_ in times}
    if facts.keys() != known:
        raise InputError(
            "application_facts.csv", sorted(facts), f"the applications of applications.csv, {sorted(known)}"
        )
    return MappingProxyType(
        {
            name: Application(
                name,
                max_epochs,
                memory_gib,
                {key[1:]: seconds for key, seconds in times.items() if key[0] == name},
                {key[1:]: seconds for key, seconds in whole_nodes.items() if key[0] == name},
                restart_s,
                state_gib,
                samples / batch,
                {key[1:]: factor for key, factor in spread.items() if key[0] == name},
            )
            for name, (max_epochs, memory_gib, restart_s, state_gib, samples, batch) in facts.items()
        }
    )


@cache
def _gpu_types() -> Mapping[str, GpuType]:
    columns = ("gpu_power_w", "node_base_power_w", "memory_gib", "max_gpus_per_node", "idle_gpu_power_w")
    rows = _table("gpu_types.csv", ("name",), columns)
    return MappingProxyType(
        {
            name: GpuType(name, gpu, base, memory, int(gpus), idle)
            for (name,), (gpu, base, memory, gpus, idle) in rows.items()
        }
    )


@cache
def builtin_slowdowns() -> Mapping[tuple[str, str, str], float]:
    """Return the factor on an application's time with a co-runner, by (GPU type, application, other), ≥ 1."""
    return _table("colocation.csv", ("gpu_type", "application", "other"), "slowdown")


@cache
def builtin_utilisations() -> Mapping[tuple[str, str], float]:
    """Return the part of the time for which an application keeps a GPU busy alone, by (GPU type, application)."""
    return _table("utilisation.csv", ("gpu_type", "application"), "utilisation")


@cache
def builtin_power_curves() -> Mapping[str, tuple[float, float, float, float]]:
    """Return a and b of the time at a power limit, the least limit, and the part of waiting nodes, by GPU type."""
    columns = ("a", "b", "least_limit", "waiting_part")
    return MappingProxyType({v: tuple(row) for (v,), row in _table("power_curves.csv", ("gpu_type",), columns).items()})


@cache
def builtin_application_power() -> Mapping[tuple[str, str], tuple[float, float, float]]:
    """Return the part of a full busy GPU's power that an application draws, a and b, by (application, GPU type)."""
    rows = _table("application_power.csv", ("application", "gpu_type"), ("drawn", "a", "b"))
    return MappingProxyType({key: tuple(row) for key, row in rows.items()})


@cache
def builtin_filled() -> Mapping[tuple[int, int], float]:
    """Return the part of a job's idle time that others fill, by (kernels per gap, jobs that wait), in [0, 1]."""
    return _table("filled.csv", ("gap_every", "waiting"), "filled")


@cache
def builtin_max_inflation() -> Mapping[tuple[str, float], float]:
    """Return the greatest inflation of a job's time by (GPU type, fraction of the GPU), > 1; read-only."""
    return _table("inflation.csv", ("gpu_type", "fraction"), "max_inflation")


RDMA = 0.6
"""Share of synchronising that no computing hides, over the efficiency of the link, with RDMA, over which
all rows were measured.

Nine efficiencies that Horovod's authors measured agree with it (`docs/systems/byteps.md`).
"""


@dataclass(frozen=True, slots=True)
class Communication:
    """An iteration on n nodes takes `compute_s` / n + `sync_s` · 2(n - 1)/n, as measured with all-reduce.

    Attributes:
        compute_s: Time on one node [s].
        sync_s: Time of synchronising that no computing hides, for each size of the model sent [s].
        model_gb: Size of the model's gradients [GB].
        nic_gb_per_s: Network of a node in one direction, where it was measured [GB/s].
        worst_error: Largest relative error of the fit.
    """

    compute_s: float
    sync_s: float
    model_gb: float
    nic_gb_per_s: float
    worst_error: float

    def sync_on(self, nic_gb_per_s: float, exposed: float) -> float:
        """Return the time of synchronising on another network [s]: a model, and no measurement.

        A network alone takes exposed · size / bandwidth. Where that is half of what was measured or more, the network
        bounds it, and it changes as the networks do. Elsewhere messages and processors bound it: it stays as it was
        measured, unless the other network alone takes longer.

        Args:
            nic_gb_per_s: Network of a node in one direction [GB/s], > 0.
            exposed: Share of synchronising that no computing hides, over the efficiency of the link.
        """
        measured_s, other_s = RDMA * self.model_gb / self.nic_gb_per_s, exposed * self.model_gb / nic_gb_per_s
        if measured_s >= self.sync_s / 2.0:
            return self.sync_s * other_s / measured_s
        return max(self.sync_s, other_s)


@cache
def builtin_communication() -> Mapping[tuple[str, str], Communication]:
    """Return how iterations spend their time, by (application, GPU type); read-only."""
    columns = ("compute_s", "sync_s", "model_gb", "nic_gb_per_s", "worst_error")
    rows = _table("communication.csv", ("application", "gpu_type"), columns)
    return MappingProxyType({key: Communication(*values) for key, values in rows.items()})


WEEK_H = 168


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalProfile:
    """How the rate of arrivals changes from hour to hour.

    Attributes:
        factors: Factor on the mean rate by hour of the week, (168,), > 0, mean 1.
        variation: Coefficient of variation of the hourly rate about that, ≥ 0.
        persistence: Correlation of that variation with the hour before, from 0 to below 1.
    """

    factors: NDArray[np.float64]
    variation: float
    persistence: float


@cache
def arrival_profile(name: str) -> ArrivalProfile:
    where = "arrival_profiles.csv"
    factors = np.array([number(f"{where}.{name}", row[name]) for row in read_table(where)])
    factors /= factors.mean()
    factors.flags.writeable = False
    variation, persistence = _table("arrival_bursts.csv", ("profile",), ("variation", "persistence"))[name,]
    return ArrivalProfile(factors, variation, persistence)
