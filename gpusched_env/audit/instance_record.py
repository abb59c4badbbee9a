"""The content of instance.json as plain values; values that no cluster and no job can have are refused."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpusched_env.audit.prices import PricesRecord, read_prices
from gpusched_env.audit.reading import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    TIME,
    FieldReader,
    Range,
    anything,
    flag,
    index_below,
    list_of,
    number,
    read_json,
    text,
    whole,
)
from gpusched_env.errors import InputError

_FIELDS = (
    "format", "version", "name", "seed", "energy_price_eur_per_kwh", "pue", "gpu_types", "nodes", "configurations",
    "jobs", "applications", "distributions", "interference", "synchronisation", "tenancy", "tenants", "hosts",
    "racks", "decision_interval_s", "host_memory", "saved_kw", "site", "gpu_hour_eur", "prices",
    "mechanisms",
)  # fmt: skip
_GPU_TYPE_FIELDS = (
    "name", "gpu_power_w", "node_base_power_w", "memory_gib", "max_gpus_per_node", "idle_gpu_power_w", "node_power_w",
    "owner", "hardware",
)  # fmt: skip
_JOB_FIELDS = (
    "submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "epochs_needed", "memory_gib", "restart_s",
    "application", "distribution", "seconds_per_epoch", "start_s", "resume_s",
    "opportunistic", "tenant", "traced_start_s", "traced_config", "traced_type_known",
    "state_gib",
)  # fmt: skip
_JOB_RANGES = {
    "due_s": TIME, "tardiness_weight_eur_per_s": NOT_NEGATIVE, "max_epochs": POSITIVE, "epochs_needed": POSITIVE,
    "memory_gib": NOT_NEGATIVE, "restart_s": TIME,
}  # fmt: skip
_UTILISATION_FIELDS = (
    "utilisation", "overhead", "filled", "least_speed", "idle_power_w", "fastest", "memory", "profile_s",
)  # fmt: skip
_GPUS_OF_A_NODE = Range("a whole number from 1 to 1024", 1, 1024)
_PRIORITY = Range("a whole number from 0 to 9", 0, 9)
_SHARE = Range("a number in (0, 1]", 0.0, 1.0, open=True)
_PART = Range("a number from 0 to 1", 0.0, 1.0)
_SYNCHRONISATION_FIELDS = (
    "compute_s", "sync_s", "cpu_machines", "backend", "cpu_machine_w", "core_nodes", "inside_s",
)  # fmt: skip
_BACKENDS = ("all-reduce", "parameter-server", "byteps")
_TENANCIES = ("none", "quota", "private", "cells")


@dataclass(frozen=True, slots=True)
class GpuTypeRecord:
    """A GPU type: power of a node with 1, 2, ... busy GPUs [W], memory [GiB], and the most GPUs that a node may have.

    `slowdown[a][b]` is the factor on the time of application a beside application b on one GPU of it; None: no model.
    `utilisation[a]` is the part of the time for which application a keeps a GPU of it busy; None: no such model.
    `idle_saving_w` is the power that a held GPU saves while it is idle [W], and `hardware` the name that types of
    several owners have in common.
    """

    node_power_w: list[float]
    memory_gib: float
    most_gpus: int
    idles: bool
    slowdown: list[list[float]] | None
    utilisation: list[float] | None
    idle_saving_w: float
    hardware: str


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: the name of its GPU type, and its GPUs."""

    gpu_type: str
    gpus: int


@dataclass(frozen=True, slots=True)
class ConfigurationRecord:
    """A configuration: GPU type, GPUs on each node, nodes, share of a GPU, priority there, column in the times.

    Of a spread one `nodes` is the number of its GPUs, and `like` the column of the one with as many GPUs together, with
    the most nodes on which it counts as that one; None if there is none.
    """

    gpu_type: str
    gpus: int
    nodes: int
    share: float
    priority: int
    column: int
    spread: bool = False
    power_limit: float = 1.0
    like: tuple[int, int] | None = None

    @property
    def is_shared(self) -> bool:
        return self.share < 1.0

    @property
    def name(self) -> str:
        limit = "" if self.power_limit == 1.0 else f"@{self.power_limit:g}"
        if self.is_shared:
            mark = {0: "", 1: "!"}.get(self.priority, f"!{self.priority}")
            prefix, gpus = f"{self.nodes}*" if self.nodes > 1 else "", self.gpus * self.nodes
            return f"{prefix}{self.gpu_type}x{f'{self.gpus}x' if gpus > 1 else ''}{self.share:g}{mark}{limit}"
        if self.spread:
            return f"{self.gpu_type}~{self.nodes}{limit}"
        return f"{f'{self.nodes}*' if self.nodes > 1 else ''}{self.gpu_type}x{self.gpus}{limit}"

    @property
    def held(self) -> tuple[str, int, int, float, int, bool]:
        """Return what is held, whatever its power limit."""
        return self.gpu_type, self.gpus, self.nodes, self.share, self.priority, self.spread


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job of the instance.

    `seconds_per_epoch` is None where a configuration is not allowed, `resume_s` where distances do not matter;
    `tenant` is an index, and `state_gib` moves when the job is switched.
    """

    submission_s: float
    due_s: float
    weight_eur_per_s: float
    epochs_needed: float
    memory_gib: float
    restart_s: float
    start_s: float
    resume_s: float | None
    application: int
    seconds_per_epoch: list[float | None]
    tenant: int
    state_gib: float


@dataclass(frozen=True, slots=True)
class UtilisationRecord:
    """The overhead of the highest priority, the usable part of the time left, the least speed of the others.

    `filled` is one number for all, or has a row for each application of the highest priority, and in it a number for
    one job below it, for two, and so on. `profile_s` is the time that an application runs on whole GPUs before shares.
    """

    overhead: float = 0.0
    filled: float | list[list[float]] = 1.0
    least_speed: float = 0.0
    profile_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SharedMemoryRecord:
    """What applications need of a GPU's memory at most and at least [GiB], and seconds of a mini-batch by GPU type.

    What does not fit is moved over a link, and limits follow after some seconds.
    """

    need_gib: list[float]
    least_gib: list[float]
    iteration_s: dict[str, list[float]]
    host_gb_per_s: float
    adapt_s: float


@dataclass(frozen=True, slots=True)
class SynchronisationRecord:
    """Seconds of computing and synchronising, by GPU type and application, and what jobs share to synchronise.

    `core_nodes` is infinite without a limit, and `inside_s` None where it is 0.
    """

    compute_s: dict[str, list[float]]
    sync_s: dict[str, list[float]]
    cpu_machines: int
    backend: str
    cpu_machine_w: float
    core_nodes: float
    inside_s: dict[str, list[float]] | None


@dataclass(frozen=True, slots=True)
class HostMemoryRecord:
    """Memory of each node for states of paused jobs [GiB], GPUs on a PCIe link, and its bandwidth [GB/s]."""

    pool_gib: float = math.inf
    gpus_per_link: int = 1
    bandwidth_gb_per_s: float = 12.0


@dataclass(frozen=True, slots=True)
class CapRecord:
    """Starts of the periods of a cap [s], the cap in each [kW], and what a kWh above it costs; None: it is hard."""

    start_s: list[float]
    cap_kw: list[float]
    soft_eur_per_kwh: float | None


@dataclass(frozen=True, slots=True)
class TenantsRecord:
    """The tenants of an instance: the tenancy, their names, and the GPUs of each by GPU type.

    With cells, the last `hosts` nodes are the physical ones, to which the nodes before them are bound. `racks` has the
    number of the rack of every node, or is empty.
    """

    tenancy: str
    names: list[str]
    gpus: list[dict[str, int]]
    hosts: int = 0
    racks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """The cluster, its jobs and its prices; `gpu_hour_eur` is the price of a GPU for an hour.

    `saved_kw[a][c]` is what the GPUs of configuration c draw less than full busy ones with application a [kW]; empty
    where GPUs save nothing by that. `mechanisms` has the fields of those of other packages, by name.
    """

    name: str
    seed: int
    gpu_types: dict[str, GpuTypeRecord]
    nodes: list[NodeRecord]
    configurations: dict[str, ConfigurationRecord]
    jobs: list[JobRecord]
    prices: PricesRecord
    utilisation_model: UtilisationRecord
    synchronisation: SynchronisationRecord | None
    tenants: TenantsRecord
    host_memory: HostMemoryRecord
    shared_memory: SharedMemoryRecord | None
    saved_kw: list[list[float]]
    cap: CapRecord | None
    gpu_hour_eur: float
    mechanisms: dict[str, FieldReader]

    @property
    def adapt_s(self) -> float:
        return 0.0 if self.shared_memory is None else self.shared_memory.adapt_s


def read_instance(path: Path) -> InstanceRecord:
    instance = read_json(path, "gpusched instance", 2).only(*_FIELDS)
    applications = len(instance.column("applications", text))
    gpu_types, utilisation_model = _gpu_types(instance, applications)
    tenants = _tenants(instance)
    nodes = _nodes(instance, gpu_types, tenants.hosts)
    configurations = _configurations(instance, gpu_types, nodes)
    jobs = _jobs(instance, len(configurations), applications, _distributions(instance))
    for index, job in enumerate(jobs):
        index_below(max(1, len(tenants.names))).check(f"instance.json: jobs.tenant[{index}]", job.tenant)
    prices = read_prices(instance)
    name, seed = instance.get("name", text), instance.get("seed", whole)
    synchronisation = _synchronisation(instance, list(gpu_types), applications)
    told = (name, seed, gpu_types, nodes, configurations, jobs, prices, utilisation_model, synchronisation, tenants)
    gpu_hour_eur = instance.get("gpu_hour_eur", number, NOT_NEGATIVE) if instance.has("gpu_hour_eur") else 0.0
    memories = _host_memory(instance), _shared_memory(instance, list(gpu_types), applications)
    saved = _saved_kw(instance, applications, gpu_types, nodes, list(configurations.values()))
    return InstanceRecord(*told, *memories, saved, _cap(instance), gpu_hour_eur, _mechanisms(instance))


def _mechanisms(instance: FieldReader) -> dict[str, FieldReader]:
    if not instance.has("mechanisms"):
        return {}
    own = instance.get("mechanisms", FieldReader)
    return {name: own.get(name, FieldReader) for name in own.keys}


def _cap(instance: FieldReader) -> CapRecord | None:
    if not instance.has("site"):
        return None
    own = instance.get("site", FieldReader).only("start_s", "cap_kw", "noticed_s", "soft_eur_per_kwh")
    starts = own.column("start_s", number, None, TIME)
    if not starts or starts[0] != 0.0 or any(low >= high for low, high in pairwise(starts)):
        raise InputError(own.name("start_s"), starts, "numbers that rise from 0")
    caps = own.column("cap_kw", number, len(starts), POSITIVE)
    for i, told in enumerate(own.column("noticed_s", number, len(starts), TIME)):
        Range("a number not above start_s", 0.0, starts[i]).check(f"{own.name('noticed_s')}[{i}]", told)
    soft = own.get("soft_eur_per_kwh", number, POSITIVE) if own.has("soft_eur_per_kwh") else None
    return CapRecord(starts, caps, soft)


def _saved_kw(
    instance: FieldReader,
    applications: int,
    gpu_types: dict[str, GpuTypeRecord],
    nodes: list[NodeRecord],
    configurations: list[ConfigurationRecord],
) -> list[list[float]]:
    """Read the table of saved power; no GPU saves more than its node draws for it, whatever else runs there."""
    if not instance.has("saved_kw"):
        return []
    where, largest = instance.name("saved_kw"), dict.fromkeys(gpu_types, 0)
    for node in nodes:
        largest[node.gpu_type] = max(largest[node.gpu_type], node.gpus)
    most = []
    for own in configurations:
        watts = gpu_types[own.gpu_type].node_power_w[: largest[own.gpu_type]]
        each = min((w / (i + 1) for i, w in enumerate(watts)), default=math.inf)
        most.append(each * own.gpus * own.nodes / 1000.0 * (1.0 + 1e-9))
    rows = []
    for a, row in enumerate(instance.column("saved_kw", anything, applications)):
        rows.append(list_of(f"{where}[{a}]", row, number, len(configurations)))
        for c, kilowatts in enumerate(rows[-1]):
            allowed = Range(f"a number from 0 to {most[c]:g}, the power of its GPUs", 0.0, most[c])
            allowed.check(f"{where}[{a}][{c}]", kilowatts)
    return rows


def _shared_memory(instance: FieldReader, names: Sequence[str], applications: int) -> SharedMemoryRecord | None:
    if instance.get("interference") is None or not instance.get("interference", FieldReader).has("memory"):
        return None
    own = instance.get("interference", FieldReader).get("memory", FieldReader)
    own.only("need_gib", "least_gib", "iteration_s", "host_gb_per_s", "adapt_s")
    need, least = (own.column(key, number, applications, NOT_NEGATIVE) for key in ("need_gib", "least_gib"))
    for i, (each, most) in enumerate(zip(least, need, strict=True)):
        Range(f"at most need_gib ({most})", 0.0, most).check(f"{own.name('least_gib')}[{i}]", each)
    rows = zip(names, own.column("iteration_s", anything, len(names)), strict=True)
    table = {
        name: list_of(f"{own.name('iteration_s')}[{name}]", row, number, applications, POSITIVE) for name, row in rows
    }
    bandwidth, delay = own.get("host_gb_per_s", number, POSITIVE), own.get("adapt_s", number, NOT_NEGATIVE)
    return SharedMemoryRecord(need, least, table, bandwidth, delay)


def _gpu_types(instance: FieldReader, applications: int) -> tuple[dict[str, GpuTypeRecord], UtilisationRecord]:
    table = instance.get("gpu_types", FieldReader).only(*_GPU_TYPE_FIELDS)
    names = _all_different(table.name("name"), table.column("name", text))
    count = len(names)
    gpu = table.column("gpu_power_w", number, count, POSITIVE)
    base = table.column("node_base_power_w", number, count, NOT_NEGATIVE)
    memory = table.column("memory_gib", number, count, POSITIVE)
    most = table.column("max_gpus_per_node", whole, count, _GPUS_OF_A_NODE)
    idle = table.column("idle_gpu_power_w", number, count, NOT_NEGATIVE, default=0.0)
    tables = table.column("node_power_w", anything, count) if table.has("node_power_w") else [None] * count
    table.column("owner", text, count, default="")
    hardware = table.column("hardware", text, count, default="")
    slowdown, utilisation, rest, utilisation_model = _interference(instance, count, applications)
    records = {}
    for i in range(count):
        watts = [base[i] + idle[i] * (most[i] - busy) + gpu[i] * busy for busy in range(1, most[i] + 1)]
        if tables[i] is not None:
            watts = list_of(f"{table.name('node_power_w')}[{i}]", tables[i], number, most[i], POSITIVE)
        idle_saving = 0.0 if rest[i] is None else gpu[i] - rest[i]
        figures = watts, memory[i], most[i], idle[i] > 0.0, slowdown[i], utilisation[i], idle_saving
        records[names[i]] = GpuTypeRecord(*figures, hardware[i] or names[i])
    return records, utilisation_model


def _interference(
    instance: FieldReader, count: int, applications: int
) -> tuple[list[Any], list[Any], list[Any], UtilisationRecord]:
    """Return slow-downs, utilisations, power of held, idle GPUs [W], by GPU type, and the sharing."""
    unknown: list[Any] = [None] * count
    if instance.get("interference") is None:
        return unknown, unknown, unknown, UtilisationRecord()
    model = instance.get("interference", FieldReader)

    def rows(where: str, table: Any, length: int, within: Range) -> list[list[float]]:
        each = enumerate(list_of(where, table, anything, length))
        return [list_of(f"{where}[{i}]", row, number, applications, within) for i, row in each]

    def pairs(key: str) -> list[Any]:
        tables = enumerate(model.column(key, anything, count))
        return [rows(f"{model.name(key)}[{v}]", table, applications, AT_LEAST_ONE) for v, table in tables]

    if not model.has("utilisation"):
        model.only("slowdown", "fastest")
        return pairs("slowdown"), unknown, unknown, UtilisationRecord()
    utilisation = rows(model.only(*_UTILISATION_FIELDS).name("utilisation"), model.get("utilisation"), count, _SHARE)
    rest: list[Any] = unknown
    if model.get("idle_power_w") is not None:
        rest = model.column("idle_power_w", number, count, NOT_NEGATIVE)
    overhead, filled = model.get("overhead", number, NOT_NEGATIVE), _filled(model, applications)
    least = Range("a number > 0 and <= overhead / (1 + overhead)", 0.0, overhead / (1.0 + overhead), open=True)
    profile_s = model.get("profile_s", number, TIME) if model.has("profile_s") else 0.0
    told = UtilisationRecord(overhead, filled, model.get("least_speed", number, least), profile_s)
    return unknown, list(utilisation), rest, told


def _filled(model: FieldReader, applications: int) -> float | list[list[float]]:
    if not isinstance(model.get("filled"), list):
        return model.get("filled", number, _PART)
    where, table = model.name("filled"), model.column("filled", anything, applications)
    rows = [list_of(f"{where}[{i}]", row, number, None, _PART) for i, row in enumerate(table)]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise InputError(where, [len(row) for row in rows], "rows of one length, at least 1")
    return rows


def _synchronisation(instance: FieldReader, names: Sequence[str], applications: int) -> SynchronisationRecord | None:
    if not instance.has("synchronisation"):
        return None
    own = instance.get("synchronisation", FieldReader).only(*_SYNCHRONISATION_FIELDS)

    def table(key: str, within: Range) -> dict[str, list[float]]:
        rows = zip(names, own.column(key, anything, len(names)), strict=True)
        return {name: list_of(f"{own.name(key)}[{name}]", row, number, applications, within) for name, row in rows}

    machines = own.get("cpu_machines", whole, NOT_NEGATIVE)
    backend = own.get("backend", text) if own.has("backend") else "byteps"
    if backend not in _BACKENDS or (backend == "all-reduce" and machines):
        allowed = f"one of {', '.join(_BACKENDS)}, all-reduce without CPU machines"
        raise InputError(own.name("backend"), backend, allowed)
    return SynchronisationRecord(
        table("compute_s", POSITIVE),
        table("sync_s", NOT_NEGATIVE),
        machines,
        backend,
        own.get("cpu_machine_w", number, NOT_NEGATIVE) if own.has("cpu_machine_w") else 0.0,
        own.get("core_nodes", number, POSITIVE) if own.has("core_nodes") else math.inf,
        table("inside_s", NOT_NEGATIVE) if own.has("inside_s") else None,
    )


def _host_memory(instance: FieldReader) -> HostMemoryRecord:
    if not instance.has("host_memory"):
        return HostMemoryRecord()
    own = instance.get("host_memory", FieldReader).only("pool_gib", "gpus_per_link", "bandwidth_gb_per_s")
    pool = own.get("pool_gib", number, POSITIVE) if own.has("pool_gib") else math.inf
    return HostMemoryRecord(
        pool, own.get("gpus_per_link", whole, AT_LEAST_ONE), own.get("bandwidth_gb_per_s", number, POSITIVE)
    )


def _tenants(instance: FieldReader) -> TenantsRecord:
    if not instance.has("tenants") and not instance.has("tenancy"):
        return TenantsRecord("none", [], [])
    tenancy = instance.get("tenancy", text)
    if tenancy not in _TENANCIES:
        raise InputError(instance.name("tenancy"), tenancy, f"one of {', '.join(_TENANCIES)}")
    tenants = [tenant.only("name", "cells") for tenant in instance.column("tenants", FieldReader)]
    names, gpus = [tenant.get("name", text) for tenant in tenants], [_promised(tenant) for tenant in tenants]
    if len(set(names)) < len(names) or (tenancy != "none" and not names):
        raise InputError(instance.name("tenants"), names, "with a tenancy one or more, all with different names")
    hosts = instance.get("hosts", whole, NOT_NEGATIVE) if instance.has("hosts") else 0
    if (tenancy == "cells") != (hosts > 0):
        raise InputError(instance.name("hosts"), hosts, "the number of physical nodes with cells, else 0")
    racks = instance.column("racks", whole, instance_nodes(instance)) if instance.has("racks") else []
    return TenantsRecord(tenancy, names, gpus, hosts, racks)


def instance_nodes(instance: FieldReader) -> int:
    return len(instance.get("nodes", FieldReader).column("gpus", whole))


def _promised(tenant: FieldReader) -> dict[str, int]:
    promised: dict[str, int] = defaultdict(int)
    for i, row in enumerate(tenant.column("cells", anything)):
        where = f"{tenant.name('cells')}[{i}]"
        gpu_type, *numbers = list_of(where, row, anything, 3)
        for value in numbers:
            AT_LEAST_ONE.check(where, whole(where, value))
        promised[str(gpu_type)] += numbers[0] * numbers[1]
    return dict(promised)


def _nodes(instance: FieldReader, gpu_types: dict[str, GpuTypeRecord], hosts: int) -> list[NodeRecord]:
    table = instance.get("nodes", FieldReader).only("gpu_type", "gpus")
    names = _known_types(table, gpu_types)
    gpus = table.column("gpus", whole, len(names))
    for index, (name, count) in enumerate(zip(names, gpus, strict=True)):
        most, where = gpu_types[name].most_gpus, f"{table.name('gpus')}[{index}]"
        Range(f"a whole number from 1 to {most}, the most of {name}", 1, most).check(where, count)
        is_cell = hosts > 0 and index < len(names) - hosts
        if gpu_types[name].idles and not is_cell:
            Range(f"{most}, since idle GPUs of {name} draw power", most, most).check(where, count)
    index_below(len(names)).check("instance.json: hosts", hosts)
    return [NodeRecord(name, count) for name, count in zip(names, gpus, strict=True)]


def _configurations(
    instance: FieldReader, gpu_types: dict[str, GpuTypeRecord], nodes: list[NodeRecord]
) -> dict[str, ConfigurationRecord]:
    table = instance.get("configurations", FieldReader).only(
        "gpu_type", "gpus_per_node", "nodes", "share", "priority", "spread", "power_limit"
    )
    types = _known_types(table, gpu_types)
    length = len(types)
    gpus = table.column("gpus_per_node", whole, length, AT_LEAST_ONE)
    count = table.column("nodes", whole, length, AT_LEAST_ONE)
    share = table.column("share", number, length, _SHARE)
    priority = table.column("priority", whole, length, _PRIORITY, default=0)
    spread = table.column("spread", flag, length, default=False)
    limit = table.column("power_limit", number, length, _SHARE, default=1.0)
    rows = zip(types, gpus, count, share, priority, range(length), spread, limit, strict=True)
    configurations = [ConfigurationRecord(*row) for row in rows]
    configurations = [replace(each, like=_together(each, configurations)) for each in configurations]
    for index, configuration in enumerate(configurations):
        if configuration.priority and not configuration.is_shared:
            Range("0, unless it is a share", 0, 0).check(f"{table.name('priority')}[{index}]", configuration.priority)
        if configuration.spread:
            _check_spread(table, index, configuration)
        elif configuration.nodes > 1:
            largest = max((node.gpus for node in nodes if node.gpu_type == configuration.gpu_type), default=0)
            several = Range(f"whole nodes, {largest} GPUs on each, where they are several", largest)
            several.check(f"{table.name('gpus_per_node')}[{index}]", configuration.gpus)
    labels = _all_different(table.where, [configuration.name for configuration in configurations])
    return dict(zip(labels, configurations, strict=True))


def _together(own: ConfigurationRecord, of_all: list[ConfigurationRecord]) -> tuple[int, int] | None:
    """Return column and nodes of the configuration of as many whole GPUs as a spread one that is not spread itself."""
    whole = [c for c in of_all if own.spread and c.gpu_type == own.gpu_type and not (c.spread or c.is_shared)]
    whole = [c for c in whole if c.power_limit == own.power_limit]
    return next(((c.column, c.nodes) for c in whole if c.gpus * c.nodes == own.nodes), None)


def _check_spread(table: FieldReader, index: int, own: ConfigurationRecord) -> None:
    Range("1 where the GPUs are spread", 1, 1).check(f"{table.name('gpus_per_node')}[{index}]", own.gpus)
    Range("2 or more where the GPUs are spread", 2).check(f"{table.name('nodes')}[{index}]", own.nodes)
    Range("1 where the GPUs are spread", 1.0, 1.0).check(f"{table.name('share')}[{index}]", own.share)


def _known_types(table: FieldReader, gpu_types: dict[str, GpuTypeRecord]) -> list[str]:
    names = table.column("gpu_type", text)
    for index, name in enumerate(names):
        if name not in gpu_types:
            raise InputError(f"{table.name('gpu_type')}[{index}]", name, f"one of {', '.join(gpu_types)}")
    if not names:
        raise InputError(table.name("gpu_type"), [], "at least one value")
    return names


def _all_different(where: str, names: list[str]) -> list[str]:
    if not names or not all(names) or len(set(names)) < len(names):
        raise InputError(where, names, "one or more, all different and none empty")
    return names


def _distributions(instance: FieldReader) -> int:
    """Check every distribution of epochs needed; count them."""
    tables = instance.column("distributions", FieldReader)
    for table in tables:
        table.only("family", "edges", "survival").get("family", text)
        edges = table.column("edges", number)
        rises = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or (edges[0], edges[-1]) != (0.0, 1.0) or not rises:
            raise InputError(table.name("edges"), edges, "numbers that rise from 0 to 1")
        survival = table.column("survival", number, len(edges) - 1, NOT_NEGATIVE)
        if survival[0] != 1.0 or any(low < high for low, high in pairwise(survival)):
            raise InputError(table.name("survival"), survival, "numbers from 1 downwards")
    return len(tables)


def _jobs(instance: FieldReader, configurations: int, applications: int, distributions: int) -> list[JobRecord]:
    table = instance.get("jobs", FieldReader).only(*_JOB_FIELDS)
    submission = table.column("submission_s", number, within=TIME)
    count = len(submission)
    if not count:
        raise InputError(table.name("submission_s"), [], "at least one value")
    for index, (before, after) in enumerate(pairwise(submission), start=1):
        Range("a number not below the one before it", before).check(f"{table.name('submission_s')}[{index}]", after)
    columns = {name: table.column(name, number, count, within) for name, within in _JOB_RANGES.items()}
    due, weight, most, needed, memory, restart = columns.values()
    start = table.column("start_s", number, count, TIME, default=0.0)
    resume: list[Any] = [None] * count
    if table.has("resume_s"):
        resume = table.column("resume_s", number, count, TIME)
    for name in ("opportunistic", "traced_type_known"):
        table.column(name, flag, count, default=False)
    application = table.column("application", whole, count, index_below(applications))
    table.column("distribution", whole, count, index_below(distributions))
    for index in range(count):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('due_s')}[{index}]", due[index])
        least = Range("a number <= max_epochs", 0.0, most[index])
        least.check(f"{table.name('epochs_needed')}[{index}]", needed[index])
    rows = enumerate(table.column("seconds_per_epoch", anything, count))
    seconds = [_seconds(f"{table.name('seconds_per_epoch')}[{i}]", row, configurations, most[i]) for i, row in rows]
    _check_traced(table, submission, seconds)
    tenant = table.column("tenant", whole, count, default=0)
    state = table.column("state_gib", number, count, NOT_NEGATIVE, default=0.0)
    told = (submission, due, weight, needed, memory, restart, start, resume, application, seconds, tenant, state)
    return [JobRecord(*values) for values in zip(*told, strict=True)]


def _seconds(where: str, row: Any, configurations: int, epochs: float) -> list[float | None]:
    if not isinstance(row, list) or len(row) != configurations:
        raise InputError(where, row, f"a list of {configurations} values, null where not allowed")
    seconds = [None if value is None else number(where, value) for value in row]
    known = [value for value in seconds if value is not None]
    if not known or min(known) <= 0.0:
        raise InputError(where, row, "numbers > 0, at least one, and null where not allowed")
    if max(known) * epochs > TIME.highest:
        raise InputError(where, max(known), f"numbers that max_epochs times make {TIME.highest:g} s at most")
    return seconds


def _check_traced(table: FieldReader, submission: list[float], seconds: list[list[float | None]]) -> None:
    """Check the traced times and configurations of jobs, if there are any: after the submission, and allowed."""
    if not table.has("traced_start_s") and not table.has("traced_config"):
        return
    count = len(submission)
    for index, start in enumerate(table.column("traced_start_s", number, count, TIME)):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('traced_start_s')}[{index}]", start)
    for index, config in enumerate(table.column("traced_config", whole, count, index_below(len(seconds[0])))):
        if seconds[index][config] is None:
            raise InputError(f"{table.name('traced_config')}[{index}]", config, "one that the job may use")
