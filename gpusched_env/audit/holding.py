"""The holdings of each job: what it held at one time, on one node or several, and whether it was allowed to."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.audit.progress import stretches
from gpusched_env.audit.reading import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    TIME,
    Difference,
    Fields,
    Range,
    index_below,
    items_of,
    whole,
)
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import IntervalRecord, Record


@dataclass(frozen=True, slots=True)
class Holding:
    """A configuration that a job held in one place: one line of intervals.csv for each of its nodes."""

    lines: tuple[IntervalRecord, ...]

    @property
    def configuration(self) -> str:
        """Name the configuration."""
        return self.lines[0].configuration

    @property
    def start_s(self) -> float:
        """Give its start [s], the same on all lines."""
        return self.lines[0].start_s

    @property
    def end_s(self) -> float:
        """Give its end [s], which must be the same on all lines."""
        return self.lines[0].end_s

    @property
    def place(self) -> tuple[int, list[int], list[int]]:
        """Give the number of the shared GPU, if any, the nodes, and the hosts on which these lie."""
        lines = sorted(self.lines, key=lambda line: line.node)
        return self.lines[0].gpu, [line.node for line in lines], [line.host for line in lines]

    @property
    def where(self) -> str:
        """Name the lines."""
        if len(self.lines) == 1:
            return self.lines[0].where
        return f"intervals.csv lines {', '.join(str(i.line) for i in self.lines)} (job {self.lines[0].job})"

    def continues(self, before: Holding) -> bool:
        """Say whether it is the same configuration in the same place as `before`, which ends where it starts."""
        same = (before.configuration, before.place) == (self.configuration, self.place)
        return same and self.start_s == before.end_s


def lives(record: Record) -> list[list[Holding]]:
    """Give the holdings of each job, sorted by start.

    Lines of one job belong together if they have the same start and the same configuration of several nodes.
    """
    by_job: list[list[list[IntervalRecord]]] = [[] for _ in record.jobs]
    for line in sorted(record.intervals, key=lambda line: (line.start_s, line.configuration, line.line)):
        life = by_job[line.job]
        together = life and (life[-1][0].start_s, life[-1][0].configuration) == (line.start_s, line.configuration)
        if together and record.configurations[line.configuration].nodes > 1:
            life[-1].append(line)
        else:
            life.append([line])
    return [[Holding(tuple(lines)) for lines in life] for life in by_job]


def check_together(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that holdings are on as many nodes as their configuration, each once, and end on all of them at once."""
    for life in by_job:
        for holding in life:
            nodes, wanted = holding.place[1], record.configurations[holding.configuration].nodes
            if len(nodes) != wanted or len(set(nodes)) != wanted:
                yield Difference(holding.where, nodes, wanted, "nodes held at once, and different nodes to hold")
            for line in holding.lines[1:]:
                if line.end_s != holding.end_s:
                    what = f"end_s, as on node {holding.lines[0].node} (line {holding.lines[0].line})"
                    yield Difference(line.where, line.end_s, holding.end_s, what)


def check_allowed(record: Record) -> Iterator[Difference]:
    """Compare GPUs, GPU type, memory, permission and shared GPU of each interval with the instance."""
    for interval in record.intervals:
        configuration = record.configurations[interval.configuration]
        node, job = record.nodes[interval.node], record.jobs[interval.job]
        if interval.gpus != configuration.gpus:
            yield Difference(interval.where, interval.gpus, configuration.gpus, "GPUs of the configuration")
        if node.gpu_type != configuration.gpu_type:
            yield Difference(interval.where, configuration.gpu_type, node.gpu_type, f"GPU type on node {interval.node}")
        if job.seconds_per_epoch[configuration.column] is None:
            yield Difference(interval.where, interval.configuration, "not allowed", "configuration of the job")
        memory = record.gpu_types[configuration.gpu_type].memory_gib * configuration.share
        if job.memory_gib > memory:
            yield Difference(interval.where, job.memory_gib, memory, "memory needed on a GPU, and there [GiB]")
        yield from _check_gpu(record, interval)


def _check_gpu(record: Record, interval: IntervalRecord) -> Iterator[Difference]:
    """A share has a numbered GPU, and whole GPUs have none."""
    is_shared, most = record.configurations[interval.configuration].is_shared, record.nodes[interval.node].gpus
    if is_shared and interval.gpu < 0:
        yield Difference(interval.where, interval.gpu, f"0 to {most - 1}", "number of the shared GPU")
    if not is_shared and interval.gpu >= 0:
        yield Difference(interval.where, interval.gpu, -1, "number of the shared GPU, -1 for whole GPUs")


def check_traced(table: Fields, submission: list[float], seconds: list[list[float | None]]) -> None:
    """Check when and on what jobs really ran, where a trace has told: a start after the submission, on what is allowed.

    Raises:
        InputError: One of the two columns is missing, or a value cannot be.
    """
    told = [name for name in ("traced_start_s", "traced_config") if table.optional(name, None) is not None]
    if not told:
        return
    count = len(submission)
    for index, start in enumerate(table.numbers("traced_start_s", count, TIME)):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('traced_start_s')}[{index}]", start)
    for index, config in enumerate(table.wholes("traced_config", count, index_below(len(seconds[0])))):
        if seconds[index][config] is None:
            raise InputError(f"{table.name('traced_config')}[{index}]", config, "one that the job may use")


TENANCIES = ("none", "quota", "private", "cells")
_ROUNDED = 1.0 + 1e-9  # shares that sum to whole GPUs may be a rounding above them


@dataclass(frozen=True, slots=True)
class TenantsRecord:
    """The tenants of an instance: what they are to the cluster, their names, and the GPUs of each by GPU type.

    With cells, the last `hosts` nodes are the physical ones, on which the nodes before them lie.
    """

    tenancy: str
    names: list[str]
    gpus: list[dict[str, int]]
    hosts: int = 0


def read_tenants(instance: Fields) -> TenantsRecord:
    """Read the tenants of an instance, if it has any.

    Raises:
        InputError: A field is missing or unknown, or a value is not what it must be.
    """
    if instance.optional("tenants", None) is None and instance.optional("tenancy", None) is None:
        return TenantsRecord("none", [], [])
    tenancy = instance.text("tenancy")
    if tenancy not in TENANCIES:
        raise InputError(instance.name("tenancy"), tenancy, f"one of {', '.join(TENANCIES)}")
    names, gpus = [], []
    for index, entry in enumerate(instance.items("tenants")):
        tenant = Fields(f"{instance.name('tenants')}[{index}]", entry).only("name", "cells")
        names.append(tenant.text("name"))
        gpus.append(_promised(tenant))
    if len(set(names)) < len(names) or (tenancy != "none" and not names):
        raise InputError(instance.name("tenants"), names, "with a tenancy one or more, all with different names")
    hosts = instance.whole("hosts", NOT_NEGATIVE) if instance.optional("hosts", None) is not None else 0
    if (tenancy == "cells") != (hosts > 0):
        raise InputError(instance.name("hosts"), hosts, "the number of physical nodes with cells, else 0")
    return TenantsRecord(tenancy, names, gpus, hosts)


def _promised(tenant: Fields) -> dict[str, int]:
    """Sum up the GPUs of a tenant's cells by GPU type."""
    promised: dict[str, int] = defaultdict(int)
    for i, row in enumerate(tenant.items("cells")):
        where = f"{tenant.name('cells')}[{i}]"
        gpu_type, *numbers = items_of(where, row, 3)
        size, count = (_number(where, number) for number in numbers)
        promised[str(gpu_type)] += size * count
    return dict(promised)


def _number(where: str, value: Any) -> int:
    number = whole(where, value)
    AT_LEAST_ONE.check(where, number)
    return number


def check_quotas(record: Record) -> Iterator[Difference]:
    """Compare what the jobs of each tenant hold of each GPU type, at every time, with its quota, if there are quotas.

    Only the first stretch of several in a row beyond the quota is reported.
    """
    if record.tenants.tenancy != "quota":
        return
    held: dict[tuple[int, str], list[IntervalRecord]] = defaultdict(list)
    for interval in record.intervals:
        gpu_type = record.configurations[interval.configuration].gpu_type
        held[record.jobs[interval.job].tenant, gpu_type].append(interval)
    for (tenant, gpu_type), intervals in sorted(held.items()):
        quota = record.tenants.gpus[tenant].get(gpu_type, 0)
        over = False
        for start, _, holding in stretches(intervals):
            configurations = [record.configurations[interval.configuration] for interval in holding]
            gpus = math.fsum(configuration.gpus * configuration.share for configuration in configurations)
            before, over = over, gpus > quota * _ROUNDED
            if over and not before:
                where = f"intervals.csv (tenant {record.tenants.names[tenant]} from {start!r} s)"
                yield Difference(where, gpus, quota, f"GPUs of {gpu_type} held, and the tenant's quota")


def check_cells(record: Record) -> Iterator[Difference]:
    """Check the cells that are used, if there are any.

    Each lies on a host of its hardware, on one while it is used; in it no more is held than it has; and on no host do
    the cells that are used, and what opportunistic jobs hold, add up to more than it has. Hosts lie on themselves.
    """
    if not record.tenants.hosts:
        return
    first = len(record.nodes) - record.tenants.hosts
    by_cell: dict[int, list[IntervalRecord]] = defaultdict(list)
    by_host: dict[int, list[IntervalRecord]] = defaultdict(list)
    for interval in record.intervals:
        by_cell[interval.node].append(interval)
        by_host[interval.host].append(interval)
        host = record.nodes[first + interval.host]
        if _hardware(record.nodes[interval.node].gpu_type) != _hardware(host.gpu_type):
            yield Difference(
                interval.where, host.gpu_type, record.nodes[interval.node].gpu_type, "hardware of the host"
            )
        if interval.node >= first and interval.host != interval.node - first:
            yield Difference(interval.where, interval.host, interval.node - first, "host of a host")
    for cell in sorted(by_cell):
        if cell < first:
            yield from _check_cell(record, cell, by_cell[cell])
    for number in sorted(by_host):
        yield from _check_host(record, first, number, by_host[number])


def _check_cell(record: Record, cell: int, intervals: list[IntervalRecord]) -> Iterator[Difference]:
    for start, _, holding in stretches(intervals):
        where = f"intervals.csv (node {cell} from {start!r} s)"
        hosts = sorted({interval.host for interval in holding})
        if len(hosts) > 1:
            yield Difference(where, hosts, 1, "hosts on which a cell lies at one time")
        busy = _busy(record, holding)
        if busy > record.nodes[cell].gpus:
            yield Difference(where, busy, record.nodes[cell].gpus, "busy GPUs, and GPUs of the cell")


def _check_host(record: Record, first: int, host: int, intervals: list[IntervalRecord]) -> Iterator[Difference]:
    """Count every used cell as a whole."""
    most, over = record.nodes[first + host].gpus, False
    for start, _, holding in stretches(intervals):
        cells = {interval.node for interval in holding if interval.node < first}
        lent = _busy(record, [interval for interval in holding if interval.node >= first])
        taken = lent + sum(record.nodes[cell].gpus for cell in cells)
        before, over = over, taken > most
        if over and not before:
            where = f"intervals.csv (host {host} from {start!r} s)"
            yield Difference(where, taken, most, "GPUs of used cells and of opportunistic jobs, and GPUs of the host")


def _busy(record: Record, holding: list[IntervalRecord]) -> int:
    """Count the busy GPUs of a node, a shared one once."""
    whole, shared = 0, set()
    for interval in holding:
        configuration = record.configurations[interval.configuration]
        if configuration.is_shared:
            shared.add(interval.gpu)
        else:
            whole += configuration.gpus
    return whole + len(shared)


def _hardware(gpu_type: str) -> str:
    return gpu_type.rpartition("/")[2]
