"""Cells: whether what is used of them lies on a host, in one place, and leaves its GPUs to nobody else."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference
from gpusched_env.audit.stretches import stretches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import IntervalRecord, Record


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
