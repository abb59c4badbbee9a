"""The bill: a sweep over each node's time, counting its busy GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference, same_amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import IntervalRecord, Record


@dataclass(frozen=True, slots=True)
class Bill:
    """The energy cost of a run.

    Attributes:
        energy_eur: What all nodes cost [€].
        of_job: What is attributed to each job [€].
        overfull: Where a node holds more GPUs than it has.
    """

    energy_eur: float
    of_job: list[float]
    overfull: list[Difference]


def make_bill(record: Record) -> Bill:
    """Sum up what each node costs while u of its GPUs are busy: (base + u · GPU power)/1000 · price · PUE · hours.

    A job that holds g of the u busy GPUs is charged g/u of that.
    """
    on_node: list[list[IntervalRecord]] = [[] for _ in record.nodes]
    for interval in record.intervals:
        on_node[interval.node].append(interval)
    pieces: list[float] = []
    shares: list[list[float]] = [[] for _ in record.jobs]
    overfull: list[Difference] = []
    for node, intervals in enumerate(on_node):
        facts = record.nodes[node]
        power = record.gpu_types[facts.gpu_type]
        was_over = False
        for start, end, holding in _stretches(intervals):
            held = [(interval.job, record.configurations[interval.configuration].gpus) for interval in holding]
            busy = sum(gpus for _, gpus in held)
            kwh = (power.base_power_w + busy * power.gpu_power_w) / 1000.0 * ((end - start) / 3600.0)
            pieces.append(kwh * record.eur_per_kwh)
            for job, gpus in held:
                shares[job].append(kwh * record.eur_per_kwh * gpus / busy)
            if busy > facts.gpus and not was_over:
                lines = ", ".join(str(interval.line) for interval in holding)
                where = f"intervals.csv lines {lines} (node {node} from {start!r} s)"
                overfull.append(Difference(where, busy, facts.gpus, "busy GPUs, and GPUs of the node"))
            was_over = busy > facts.gpus
    return Bill(math.fsum(pieces), [math.fsum(share) for share in shares], overfull)


def check_bill(record: Record, bill: Bill) -> Iterator[Difference]:
    """Compare the attributions in jobs.csv with the bill."""
    for job, (claim, energy) in enumerate(zip(record.claims, bill.of_job, strict=True)):
        if not same_amount(claim["energy_eur"], energy):
            yield Difference(f"jobs.csv line {job + 2} (job {job})", claim["energy_eur"], energy, "energy_eur")


def _stretches(intervals: list[IntervalRecord]) -> Iterator[tuple[float, float, list[IntervalRecord]]]:
    """Give each stretch of time in which the same intervals lie on the node, with at least one on it."""
    lasting = [interval for interval in intervals if interval.start_s < interval.end_s]
    boundaries = sorted({time for interval in lasting for time in (interval.start_s, interval.end_s)})
    waiting = sorted(lasting, key=lambda interval: interval.start_s, reverse=True)
    holding: list[IntervalRecord] = []
    for start, end in pairwise(boundaries):
        holding = [interval for interval in holding if interval.end_s > start]
        while waiting and waiting[-1].start_s <= start:
            holding.append(waiting.pop())
        if holding:
            yield start, end, list(holding)
