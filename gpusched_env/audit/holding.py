"""Whether what jobs held was allowed: to each, on its node, of its tenant's quota, in its cell."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from gpusched_env.audit.progress import stretches
from gpusched_env.audit.reading import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import Holding, IntervalRecord, Record

_ROUNDED = 1.0 + 1e-9  # shares that sum to whole GPUs may be a rounding above them


def check_together(by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that holdings are on as many nodes as their configuration, each once, and end on all of them at once."""
    for holding in (holding for life in by_job for holding in life):
        nodes, wanted = holding.place[1], holding.configuration.nodes
        if len(nodes) != wanted or len(set(nodes)) != wanted:
            yield Difference(holding.where, nodes, wanted, "nodes held at once, and different nodes to hold")
        for line in holding.lines[1:]:
            if line.end_s != holding.end_s:
                what = f"end_s, as on node {holding.lines[0].node} (line {holding.lines[0].line})"
                yield Difference(line.where, line.end_s, holding.end_s, what)


def check_allowed(record: Record) -> Iterator[Difference]:
    """Compare GPUs, GPU type, memory, permission and shared GPU of each interval with the instance."""
    for interval in record.intervals:
        configuration, where = interval.configuration, interval.where
        node, job = record.nodes[interval.node], record.jobs[interval.job]
        if interval.gpus != configuration.gpus:
            yield Difference(where, interval.gpus, configuration.gpus, "GPUs of the configuration")
        if node.gpu_type != configuration.gpu_type:
            yield Difference(where, configuration.gpu_type, node.gpu_type, f"GPU type on node {interval.node}")
        if job.seconds_per_epoch[configuration.column] is None:
            yield Difference(where, configuration.name, "not allowed", "configuration of the job")
        memory = record.gpu_types[configuration.gpu_type].memory_gib * configuration.share
        if job.memory_gib > memory:
            yield Difference(where, job.memory_gib, memory, "memory needed on a GPU, and there [GiB]")
        if configuration.is_shared and interval.gpu < 0:
            yield Difference(where, interval.gpu, f"0 to {node.gpus - 1}", "number of the shared GPU")
        if not configuration.is_shared and interval.gpu >= 0:
            yield Difference(where, interval.gpu, -1, "number of the shared GPU, -1 for whole GPUs")


def check_quotas(record: Record) -> Iterator[Difference]:
    """Compare what the jobs of each tenant hold of each GPU type, at every time, with its quota, if there are quotas.

    Only the first stretch of several in a row beyond the quota is reported.
    """
    if record.tenants.tenancy != "quota":
        return
    held: dict[tuple[int, str], list[IntervalRecord]] = defaultdict(list)
    for interval in record.intervals:
        held[record.jobs[interval.job].tenant, interval.configuration.gpu_type].append(interval)
    for (tenant, gpu_type), intervals in sorted(held.items()):
        quota = record.tenants.gpus[tenant].get(gpu_type, 0)
        over = False
        for start, _, holding in stretches(intervals):
            gpus = math.fsum(interval.configuration.gpus * interval.configuration.share for interval in holding)
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
        host, cell = record.nodes[first + interval.host].gpu_type, record.nodes[interval.node].gpu_type
        if cell.rpartition("/")[2] != host.rpartition("/")[2]:
            yield Difference(interval.where, host, cell, "hardware of the host")
        if interval.node >= first and interval.host != interval.node - first:
            yield Difference(interval.where, interval.host, interval.node - first, "host of a host")
    for node in sorted(by_cell):
        if node < first:
            yield from _check_cell(record.nodes[node].gpus, node, by_cell[node])
    for number in sorted(by_host):
        yield from _check_host(record, first, number, by_host[number])


def _check_cell(gpus: int, cell: int, intervals: list[IntervalRecord]) -> Iterator[Difference]:
    for start, _, holding in stretches(intervals):
        where = f"intervals.csv (node {cell} from {start!r} s)"
        hosts = sorted({interval.host for interval in holding})
        if len(hosts) > 1:
            yield Difference(where, hosts, 1, "hosts on which a cell lies at one time")
        if busy_gpus(holding) > gpus:
            yield Difference(where, busy_gpus(holding), gpus, "busy GPUs, and GPUs of the cell")


def _check_host(record: Record, first: int, host: int, intervals: list[IntervalRecord]) -> Iterator[Difference]:
    """Count every used cell as a whole."""
    most, over = record.nodes[first + host].gpus, False
    for start, _, holding in stretches(intervals):
        cells = {interval.node for interval in holding if interval.node < first}
        lent = busy_gpus([interval for interval in holding if interval.node >= first])
        taken = lent + sum(record.nodes[cell].gpus for cell in cells)
        before, over = over, taken > most
        if over and not before:
            where = f"intervals.csv (host {host} from {start!r} s)"
            yield Difference(where, taken, most, "GPUs of used cells and of opportunistic jobs, and GPUs of the host")


def busy_gpus(holding: list[IntervalRecord]) -> int:
    """Count the busy GPUs of a node, a shared one once."""
    shared = {(interval.node, interval.gpu) for interval in holding if interval.configuration.is_shared}
    return len(shared) + sum(i.configuration.gpus for i in holding if not i.configuration.is_shared)
