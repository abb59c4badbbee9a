"""What instance.json records, as plain values: whatever no cluster and no job can be is refused here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusched_env.audit.holding import TenantsRecord, check_traced, read_tenants
from gpusched_env.audit.progress import SynchronisationRecord, read_synchronisation
from gpusched_env.audit.reading import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    TIME,
    Fields,
    Range,
    index_below,
    items_of,
    number,
    numbers_of,
    read_json,
)
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DUTY_FIELDS = ("duty", "overhead", "filled", "least_pace", "idle_power_w", "fastest")
_DUTY, _PART = Range("a number in (0, 1]", 0.0, 1.0, open=True), Range("a number from 0 to 1", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class GuestRecord:
    """What those lose who have guests, the part of the time left that guests fill, and the least they keep."""

    overhead: float = 0.0
    filled: float = 1.0
    least_pace: float = 0.0


def _is_by_duty(instance: Fields) -> bool:
    model = instance.get("interference")
    return isinstance(model, dict) and "duty" in model


def read_guests(instance: Fields) -> GuestRecord:
    """Give what hosts lose and guests get; nothing of either if GPUs are not shared by duty."""
    if not _is_by_duty(instance):
        return GuestRecord()
    model = instance.fields("interference")
    overhead, filled = model.number("overhead", NOT_NEGATIVE), model.number("filled", _PART)
    least = Range("a number > 0 and <= overhead / (1 + overhead)", 0.0, overhead / (1.0 + overhead), open=True)
    return GuestRecord(overhead, filled, model.number("least_pace", least))


def read_slowdown(instance: Fields, gpu_types: int, applications: int) -> list[list[list[float]]] | list[None]:
    """Give the slow-downs of pairs of applications for each GPU type; None for each if there is no model."""
    if instance.get("interference") is None or _is_by_duty(instance):
        return [None] * gpu_types
    model = instance.fields("interference").only("slowdown", "fastest")
    where, tables = model.name("slowdown"), []
    for v, table in enumerate(model.items("slowdown", gpu_types)):
        rows = enumerate(items_of(f"{where}[{v}]", table, applications))
        tables.append([numbers_of(f"{where}[{v}][{a}]", row, applications, AT_LEAST_ONE) for a, row in rows])
    return tables


def read_duty(instance: Fields, gpu_types: int, applications: int) -> tuple[list[Any], list[Any]]:
    """Give the duties of the applications for each GPU type, and the power of one that is held and does nothing."""
    if not _is_by_duty(instance):
        return [None] * gpu_types, [None] * gpu_types
    model = instance.fields("interference").only(*_DUTY_FIELDS)
    where = model.name("duty")
    rows = enumerate(model.items("duty", gpu_types))
    duty = [numbers_of(f"{where}[{v}]", row, applications, _DUTY) for v, row in rows]
    if model.get("idle_power_w") is None:
        return list(duty), [None] * gpu_types
    return list(duty), list(model.numbers("idle_power_w", gpu_types, NOT_NEGATIVE))


_FIELDS = (
    "format", "version", "name", "seed", "energy_price_eur_per_kwh", "pue", "gpu_types", "nodes", "configurations",
    "jobs", "applications", "distributions", "interference", "synchronisation", "tenancy", "tenants", "hosts",
)  # fmt: skip
_GPU_TYPE_FIELDS = (
    "name", "gpu_power_w", "node_base_power_w", "memory_gib", "max_gpus_per_node", "idle_gpu_power_w", "node_power_w",
)  # fmt: skip
_JOB_FIELDS = (
    "submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "epochs_needed", "memory_gib", "restart_s",
    "application", "distribution", "seconds_per_epoch", "start_s", "resume_s",
    "opportunistic", "tenant", "traced_start_s", "traced_config", "traced_type_known",
)  # fmt: skip
_GPUS_OF_A_NODE = Range("a whole number from 1 to 1024", 1, 1024)
_PRIORITY = Range("a whole number from 0 to 9", 0, 9)
_SHARE = Range("a number in (0, 1]", 0.0, 1.0, open=True)
_WHOLE_GPUS = Range("1, unless the configuration is one GPU on one node", 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class GpuTypeRecord:
    """A GPU type: power of a node with 1, 2, ... busy GPUs [W], memory [GiB], and the most GPUs that a node may have.

    `slowdown[a][b]` is the factor on the time of application a beside application b on one GPU of it; None: no model.
    `duty[a]` is the part of the time for which application a keeps a GPU of it busy; None: GPUs are not shared so.
    `spared_w` is what a GPU that is held draws less when it does nothing [W].
    """

    node_power_w: list[float]
    memory_gib: float
    most_gpus: int
    idles: bool
    slowdown: list[list[float]] | None
    duty: list[float] | None = None
    spared_w: float = 0.0


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: the name of its GPU type, and its GPUs."""

    gpu_type: str
    gpus: int


@dataclass(frozen=True, slots=True)
class ConfigurationRecord:
    """A configuration: GPU type, GPUs on each node, nodes, share of a GPU, priority there, column in the times."""

    gpu_type: str
    gpus: int
    nodes: int
    share: float
    priority: int
    column: int

    @property
    def is_shared(self) -> bool:
        """Say whether it is a share of a GPU."""
        return self.share < 1.0

    @property
    def name(self) -> str:
        """Give the name by which intervals know it."""
        if self.is_shared:
            mark = {0: "", 1: "!"}.get(self.priority, f"!{self.priority}")
            return f"{self.gpu_type}x{self.share:g}{mark}"
        return f"{self.nodes}*{self.gpu_type}x{self.gpus}" if self.nodes > 1 else f"{self.gpu_type}x{self.gpus}"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job of the instance.

    `seconds_per_epoch` is None where a configuration is not allowed, `resume_s` where distances are not told apart;
    `tenant` is an index.
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


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """The cluster, its jobs and its prices; `eur_per_kwh` is the energy price times the PUE."""

    name: str
    seed: int
    gpu_types: dict[str, GpuTypeRecord]
    nodes: list[NodeRecord]
    configurations: dict[str, ConfigurationRecord]
    jobs: list[JobRecord]
    eur_per_kwh: float
    guests: GuestRecord
    synchronisation: SynchronisationRecord | None
    tenants: TenantsRecord


def read_instance(path: Path) -> InstanceRecord:
    """Read an instance.

    Raises:
        InputError: A field is missing or unknown, or a value is not what it must be or out of its range.
    """
    instance = read_json(path, "gpusched instance", 2).only(*_FIELDS)
    applications = len(instance.texts("applications"))
    gpu_types = _gpu_types(instance, applications)
    tenants = read_tenants(instance)
    nodes = _nodes(instance.fields("nodes"), gpu_types, tenants.hosts)
    configurations = _configurations(instance.fields("configurations"), gpu_types, nodes)
    jobs = _jobs(instance.fields("jobs"), len(configurations), applications, _distributions(instance))
    index_below(max(1, len(tenants.names))).check_each("instance.json: jobs.tenant", [job.tenant for job in jobs])
    price = instance.number("energy_price_eur_per_kwh", NOT_NEGATIVE) * instance.number("pue", AT_LEAST_ONE)
    name, seed = instance.text("name"), instance.whole("seed")
    synchronisation = read_synchronisation(instance, list(gpu_types), applications)
    guests = read_guests(instance)
    told = (name, seed, gpu_types, nodes, configurations, jobs, price, guests, synchronisation, tenants)
    return InstanceRecord(*told)


def _gpu_types(instance: Fields, applications: int) -> dict[str, GpuTypeRecord]:
    table = instance.fields("gpu_types").only(*_GPU_TYPE_FIELDS)
    names = _all_different(table.name("name"), table.texts("name"))
    count = len(names)
    gpu, base = table.numbers("gpu_power_w", count, POSITIVE), table.numbers("node_base_power_w", count, NOT_NEGATIVE)
    memory = table.numbers("memory_gib", count, POSITIVE)
    most = table.wholes("max_gpus_per_node", count, _GPUS_OF_A_NODE)
    slowdown = read_slowdown(instance, count, applications)
    duty, rest = read_duty(instance, count, applications)
    idle = [0.0] * count
    if table.optional("idle_gpu_power_w", None) is not None:
        idle = table.numbers("idle_gpu_power_w", count, NOT_NEGATIVE)
    tables = items_of(table.name("node_power_w"), table.optional("node_power_w", [None] * count), count)
    records = {}
    for i in range(count):
        watts = [base[i] + idle[i] * (most[i] - busy) + gpu[i] * busy for busy in range(1, most[i] + 1)]
        if tables[i] is not None:
            watts = numbers_of(f"{table.name('node_power_w')}[{i}]", tables[i], most[i], POSITIVE)
        spared = 0.0 if rest[i] is None else gpu[i] - rest[i]
        records[names[i]] = GpuTypeRecord(watts, memory[i], most[i], idle[i] > 0.0, slowdown[i], duty[i], spared)
    return records


def _nodes(table: Fields, gpu_types: dict[str, GpuTypeRecord], hosts: int) -> list[NodeRecord]:
    names = _known_types(table.only("gpu_type", "gpus"), gpu_types)
    gpus = table.wholes("gpus", len(names))
    for index, (name, count) in enumerate(zip(names, gpus, strict=True)):
        most, where = gpu_types[name].most_gpus, f"{table.name('gpus')}[{index}]"
        Range(f"a whole number from 1 to {most}, the most of {name}", 1, most).check(where, count)
        is_cell = hosts > 0 and index < len(names) - hosts
        if gpu_types[name].idles and not is_cell:
            Range(f"{most}, since idle GPUs of {name} draw power", most, most).check(where, count)
    index_below(len(names)).check("instance.json: hosts", hosts)
    return [NodeRecord(name, count) for name, count in zip(names, gpus, strict=True)]


def _configurations(
    table: Fields, gpu_types: dict[str, GpuTypeRecord], nodes: list[NodeRecord]
) -> dict[str, ConfigurationRecord]:
    types = _known_types(table.only("gpu_type", "gpus_per_node", "nodes", "share", "priority"), gpu_types)
    gpus, count = (
        table.wholes("gpus_per_node", len(types), AT_LEAST_ONE),
        table.wholes("nodes", len(types), AT_LEAST_ONE),
    )
    share = table.numbers("share", len(types), _SHARE)
    priority = [0] * len(types)
    if table.optional("priority", None) is not None:
        priority = table.wholes("priority", len(types), _PRIORITY)
    rows = zip(types, gpus, count, share, priority, strict=True)
    configurations = [ConfigurationRecord(*row, column) for column, row in enumerate(rows)]
    for index, configuration in enumerate(configurations):
        _check_kind(table, index, configuration, nodes)
    labels = [configuration.name for configuration in configurations]
    _all_different(table.where, labels)
    return dict(zip(labels, configurations, strict=True))


def _check_kind(table: Fields, index: int, configuration: ConfigurationRecord, nodes: list[NodeRecord]) -> None:
    """Several nodes must be whole ones, and a share is one of one GPU."""
    if configuration.is_shared and (configuration.gpus, configuration.nodes) != (1, 1):
        _WHOLE_GPUS.check(f"{table.name('share')}[{index}]", configuration.share)
    if configuration.priority and not configuration.is_shared:
        Range("0, unless it is a share", 0, 0).check(f"{table.name('priority')}[{index}]", configuration.priority)
    if configuration.nodes > 1:
        largest = max((node.gpus for node in nodes if node.gpu_type == configuration.gpu_type), default=0)
        whole = Range(f"whole nodes, {largest} GPUs on each, where they are several", largest)
        whole.check(f"{table.name('gpus_per_node')}[{index}]", configuration.gpus)


def _known_types(table: Fields, gpu_types: dict[str, GpuTypeRecord]) -> list[str]:
    names = table.texts("gpu_type")
    for index, name in enumerate(names):
        if name not in gpu_types:
            raise InputError(f"{table.name('gpu_type')}[{index}]", name, f"one of {', '.join(gpu_types)}")
    if not names:
        raise InputError(table.name("gpu_type"), [], "at least one value")
    return names


def _all_different(where: str, names: Sequence[str]) -> list[str]:
    if not names or not all(names) or len(set(names)) < len(names):
        raise InputError(where, list(names), "one or more, all different and none empty")
    return list(names)


def _distributions(instance: Fields) -> int:
    """Check every distribution of epochs needed; count them."""
    entries = instance.items("distributions")
    for index, entry in enumerate(entries):
        table = Fields(f"{instance.name('distributions')}[{index}]", entry).only("family", "edges", "survival")
        table.text("family")
        edges = table.numbers("edges")
        rises = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or (edges[0], edges[-1]) != (0.0, 1.0) or not rises:
            raise InputError(table.name("edges"), edges, "numbers that rise from 0 to 1")
        survival = table.numbers("survival", len(edges) - 1, NOT_NEGATIVE)
        if survival[0] != 1.0 or any(low < high for low, high in pairwise(survival)):
            raise InputError(table.name("survival"), survival, "numbers from 1 downwards")
    return len(entries)


def _jobs(table: Fields, configurations: int, applications: int, distributions: int) -> list[JobRecord]:
    submission = table.only(*_JOB_FIELDS).numbers("submission_s", within=TIME)
    count = len(submission)
    if not count:
        raise InputError(table.name("submission_s"), [], "at least one value")
    for index, (before, after) in enumerate(pairwise(submission), start=1):
        Range("a number not below the one before it", before).check(f"{table.name('submission_s')}[{index}]", after)
    due, weight = table.numbers("due_s", count, TIME), table.numbers("tardiness_weight_eur_per_s", count, NOT_NEGATIVE)
    most, needed = table.numbers("max_epochs", count, POSITIVE), table.numbers("epochs_needed", count, POSITIVE)
    memory = table.numbers("memory_gib", count, NOT_NEGATIVE)
    restart = table.numbers("restart_s", count, TIME)
    start = table.numbers("start_s", count, TIME) if table.optional("start_s", None) is not None else [0.0] * count
    told = table.optional("resume_s", None) is not None
    resume: list[float | None] = [*table.numbers("resume_s", count, TIME)] if told else [None] * count
    table.optional_flags("opportunistic", count)
    table.optional_flags("traced_type_known", count)
    application = table.wholes("application", count, index_below(applications))
    table.wholes("distribution", count, index_below(distributions))
    for index in range(count):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('due_s')}[{index}]", due[index])
        Range("a number <= max_epochs", 0.0, most[index]).check(
            f"{table.name('epochs_needed')}[{index}]", needed[index]
        )
    rows = table.items("seconds_per_epoch", count)
    where = table.name("seconds_per_epoch")
    seconds = [_seconds(f"{where}[{i}]", row, configurations, most[i]) for i, row in enumerate(rows)]
    check_traced(table, submission, seconds)
    tenant = table.wholes("tenant", count) if table.optional("tenant", None) is not None else [0] * count
    columns = (submission, due, weight, needed, memory, restart, start, resume, application, seconds, tenant)
    return [JobRecord(*values) for values in zip(*columns, strict=True)]


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
