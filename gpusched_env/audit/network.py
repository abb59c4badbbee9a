"""Jobs on several nodes: who helps them to synchronise, how busy the network is, and the power of CPU machines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpusched_env.audit.instance_record import SynchronisationRecord
from gpusched_env.audit.prices import EnergyDrawn
from gpusched_env.audit.record import IntervalRecord, Record, stretches


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of time with jobs on several nodes: those, and their share of the network.

    `helped` are spare machines for each of their nodes, `cpu` the CPU machines among them, and `busy` how many times
    as many nodes they have as the core of the network carries.
    """

    start_s: float
    end_s: float
    several: list[IntervalRecord]
    helped: float
    cpu: float
    busy: float


def _stretches(record: Record, own: SynchronisationRecord) -> Iterator[_Stretch]:
    """Yield the stretches with jobs on several nodes. A job counts as long as it holds its nodes, restarts included."""
    for start, end, holding in stretches(record.intervals):
        several = [line for line in holding if line.configuration.nodes > 1]
        if not several:
            continue
        neighbours = {line.node for line in holding if line.configuration.nodes == 1}
        networks = len(neighbours) if own.backend == "byteps" else 0
        machines = own.cpu_machines if own.backend != "all-reduce" else 0
        helped = min(1.0, (networks + machines) / len(several))
        cpu = max(0.0, helped - networks / len(several))
        yield _Stretch(start, end, several, helped, cpu, len(several) / own.core_nodes)


def _iteration_s(record: Record, own: SynchronisationRecord, line: IntervalRecord, helped: float, busy: float) -> float:
    """Return the time of an iteration with so many spare machines per node [s]."""
    configuration, application = line.configuration, record.jobs[line.job].application
    n = configuration.nodes
    k = n * helped
    ring = 2 * (n - 1) / n
    sent = ring * max(1.0, busy)
    if k > 0.0 and own.backend == "parameter-server":
        sent = min(sent, max(1.0, n / k, 2.0 * busy))
    elif k > 0.0 and own.backend == "byteps":
        used = min(k, n * max(0.0, 1.0 / busy - 1.0)) if busy > 0.0 else k  # nodes and they send as the core carries
        sent = 2 * n * (n - 1) / (n * n + used * n - 2 * used) * max(1.0, busy)
    inside = 0.0 if own.inside_s is None else own.inside_s[configuration.gpu_type][application]
    own_s = max(own.sync_s[configuration.gpu_type][application] * sent, inside)
    return own.compute_s[configuration.gpu_type][application] / n + own_s


def seconds_on_several_nodes(record: Record) -> dict[int, float]:
    """Return the working seconds of each interval on several nodes, by line, in seconds of its time in the instance.

    That time holds without help, and while jobs on several nodes hold all nodes of the cluster.
    """
    own = record.synchronisation
    if own is None:
        return {}
    pieces: dict[int, list[float]] = {line.line: [] for line in record.intervals if line.configuration.nodes > 1}
    most_busy = len(record.nodes) / own.core_nodes
    for stretch in _stretches(record, own):
        for line in stretch.several:
            working = stretch.end_s - max(stretch.start_s, line.ready_s)
            if working > 0.0:
                now_s = _iteration_s(record, own, line, stretch.helped, stretch.busy)
                pieces[line.line].append(working * _iteration_s(record, own, line, 0.0, most_busy) / now_s)
    return {line: math.fsum(parts) for line, parts in pieces.items()}


def drawn_by_cpu_machines(record: Record) -> list[EnergyDrawn]:
    """Return what the CPU machines draw that make jobs faster, for each job, stretch and period of prices.

    A job that they help pays for its part of them, by its nodes.
    """
    own, drawn = record.synchronisation, list[EnergyDrawn]()
    if own is None or own.cpu_machine_w == 0.0:
        return drawn
    for stretch in _stretches(record, own):
        kw = stretch.cpu * own.cpu_machine_w / 1000.0
        for line in stretch.several if stretch.cpu > 0.0 else ():
            alone_s = _iteration_s(record, own, line, 0.0, stretch.busy)
            if _iteration_s(record, own, line, stretch.helped, stretch.busy) < alone_s:
                for start, end, _ in record.prices.cuts(stretch.start_s, stretch.end_s):
                    drawn.append(EnergyDrawn(line.job, start, end, kw * (end - start) / 3600.0))
    return drawn
