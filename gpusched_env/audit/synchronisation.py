"""BytePS: how much working time each interval on several nodes was worth."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.audit.ranges import NOT_NEGATIVE, POSITIVE
from gpusched_env.audit.reading import numbers_of
from gpusched_env.audit.stretches import stretches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.audit.ranges import Range
    from gpusched_env.audit.reading import Fields
    from gpusched_env.audit.record import IntervalRecord, Record

_FIELD = "synchronisation"


@dataclass(frozen=True, slots=True)
class SynchronisationRecord:
    """Seconds of computing and of synchronising, by GPU type and application, and the CPU machines that help."""

    compute_s: dict[str, list[float]]
    sync_s: dict[str, list[float]]
    cpu_machines: int


def read_synchronisation(instance: Fields, names: Sequence[str], applications: int) -> SynchronisationRecord | None:
    """Read what the instance says of synchronising; None if it says nothing.

    Args:
        instance: The instance.
        names: Names of the GPU types.
        applications: Number of applications.
    """
    if instance.optional(_FIELD, None) is None:
        return None
    own = instance.fields(_FIELD).only("compute_s", "sync_s", "cpu_machines")

    def table(key: str, within: Range) -> dict[str, list[float]]:
        rows = zip(names, own.items(key, len(names)), strict=True)
        return {name: numbers_of(f"{own.name(key)}[{name}]", row, applications, within) for name, row in rows}

    return SynchronisationRecord(
        table("compute_s", POSITIVE), table("sync_s", NOT_NEGATIVE), own.whole("cpu_machines", NOT_NEGATIVE)
    )


def seconds_on_several_nodes(record: Record) -> dict[int, float]:
    """Give the working seconds of each interval on several nodes, by line, in seconds of a job that nobody helps.

    Who is there helps as long as it holds its node, restarts included.
    """
    own = record.synchronisation
    spread = [line for line in record.intervals if record.configurations[line.configuration].nodes > 1]
    if own is None or not spread:
        return {}
    pieces: dict[int, list[float]] = defaultdict(list)
    for start, end, holding in stretches(record.intervals):
        several = [line for line in holding if record.configurations[line.configuration].nodes > 1]
        beside = {line.node for line in holding if record.configurations[line.configuration].nodes == 1}
        for line in several:
            working = end - max(start, line.ready_s)
            if working > 0.0:
                helped = min(1.0, (own.cpu_machines + len(beside)) / len(several))
                pieces[line.line].append(working / _part(record, own, line, helped))
    return {line.line: math.fsum(pieces[line.line]) for line in spread}


def _part(record: Record, own: SynchronisationRecord, line: IntervalRecord, helped: float) -> float:
    """Say which part of its time without help an iteration takes with so many spare machines for each of its nodes."""
    configuration, application = record.configurations[line.configuration], record.jobs[line.job].application
    n = configuration.nodes
    k = n * helped
    compute = own.compute_s[configuration.gpu_type][application] / n
    sync = own.sync_s[configuration.gpu_type][application]
    return (compute + sync * 2 * n * (n - 1) / (n * n + k * n - 2 * k)) / (compute + sync * 2 * (n - 1) / n)
