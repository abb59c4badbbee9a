"""The audit of a run folder."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.audit.holding import check_allowed, check_cells, check_quotas, check_together, lives
from gpusched_env.audit.progress import check_progress, duty_of, paces, stretches
from gpusched_env.audit.reading import Difference, check_lines, same_amount
from gpusched_env.audit.record import check_origin, check_rounds, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.record import IntervalRecord, Record

_SHARES_ROUNDED = 1.0 + 1e-9  # shares that sum to 1 may be a rounding above it


@dataclass(frozen=True, slots=True)
class Bill:
    """The energy cost of a run.

    Attributes:
        energy_eur: What all nodes cost [€].
        of_job: What is attributed to each job [€].
        overfull: Where a node holds more GPUs than it has, or a GPU more than the whole of it.
    """

    energy_eur: float
    of_job: list[float]
    overfull: list[Difference]


def make_bill(record: Record) -> Bill:
    """Sum up what each node costs while u of its GPUs are busy: its power/1000 · price · PUE · hours.

    Each busy GPU is charged 1/u of that: to the job that holds the whole of it, or by share to those that share it.
    With cells it is the hosts that cost, with all that lies on them.
    Where GPUs draw less when they do nothing, each job is charged so much less, and for its own work in full.
    """
    on_node: list[list[IntervalRecord]] = [[] for _ in record.nodes]
    for interval in record.intervals:
        on_node[record.billed_node(interval)].append(interval)
    pieces: list[float] = []
    parts: list[list[float]] = [[] for _ in record.jobs]
    overfull: list[Difference] = []
    for node, intervals in enumerate(on_node):
        power = record.gpu_types[record.nodes[node].gpu_type]
        over: set[tuple[int, int] | None] = set()
        for start, end, holding in stretches(intervals):
            busy, gpus_of = _gpus_held(record, holding)
            hours = (end - start) / 3600.0
            kwh = power.node_power_w[min(busy, power.most_gpus) - 1] / 1000.0 * hours
            pieces.append(kwh * record.eur_per_kwh)
            for interval, gpus in gpus_of:
                parts[interval.job].append(kwh * record.eur_per_kwh * gpus / busy)
            for interval, gpus in _spared(record, holding, gpus_of) if power.spared_w > 0.0 else ():
                saved = power.spared_w / 1000.0 * gpus * hours * record.eur_per_kwh
                pieces.append(-saved)
                parts[interval.job].append(-saved)
            before, over = over, set()
            for gpu, difference in _beyond(record, node, start, holding, busy):
                over.add(gpu)
                if gpu not in before:
                    overfull.append(difference)
    return Bill(math.fsum(pieces), [math.fsum(part) for part in parts], overfull)


def check_bill(record: Record, bill: Bill) -> Iterator[Difference]:
    """Compare the attributions in jobs.csv with the bill."""
    for job, (claim, energy) in enumerate(zip(record.claims, bill.of_job, strict=True)):
        if not same_amount(claim["energy_eur"], energy):
            yield Difference(f"jobs.csv line {job + 2} (job {job})", claim["energy_eur"], energy, "energy_eur")


def _gpus_held(record: Record, holding: list[IntervalRecord]) -> tuple[int, list[tuple[IntervalRecord, float]]]:
    """Count the busy GPUs of a node, a shared one once, and say for how many of them each interval is charged."""
    shares = _shares(record, holding)
    gpus_of, busy = [], len(shares)
    for interval in holding:
        configuration = record.configurations[interval.configuration]
        if configuration.is_shared:
            gpus_of.append((interval, configuration.share / math.fsum(shares[interval.node, interval.gpu])))
        else:
            busy += configuration.gpus
            gpus_of.append((interval, float(configuration.gpus)))
    return busy, gpus_of


def _spared(
    record: Record, holding: list[IntervalRecord], gpus_of: list[tuple[IntervalRecord, float]]
) -> Iterator[tuple[IntervalRecord, float]]:
    """Say how many of the GPUs that each interval is charged for do nothing: those, less its work on them."""
    for interval, gpus in gpus_of:
        duty = duty_of(record, interval) or 0.0
        if record.configurations[interval.configuration].is_shared:
            on_it = [other for other in holding if (other.node, other.gpu) == (interval.node, interval.gpu)]
            yield interval, gpus - duty * dict(zip(map(id, on_it), paces(record, on_it), strict=True))[id(interval)]
        else:
            yield interval, gpus * (1.0 - duty)


def _shares(record: Record, holding: list[IntervalRecord]) -> dict[tuple[int, int], list[float]]:
    """List the shares held of each shared GPU, by its node and number there."""
    shares: dict[tuple[int, int], list[float]] = defaultdict(list)
    for interval in holding:
        configuration = record.configurations[interval.configuration]
        if configuration.is_shared:
            shares[interval.node, interval.gpu].append(configuration.share)
    return shares


def _beyond(
    record: Record, node: int, start_s: float, holding: list[IntervalRecord], busy: int
) -> Iterator[tuple[tuple[int, int] | None, Difference]]:
    """Say where more is held than there is: on the node (None), and on each of its shared GPUs (node and number)."""
    if busy > record.nodes[node].gpus:
        where = _lines(holding, f"node {node} from {start_s!r} s")
        yield None, Difference(where, busy, record.nodes[node].gpus, "busy GPUs, and GPUs of the node")
    for gpu, shares in _shares(record, holding).items():
        if math.fsum(shares) > _SHARES_ROUNDED:
            sharers = [i for i in holding if record.configurations[i.configuration].is_shared]
            on_it = [i for i in sharers if (i.node, i.gpu) == gpu]
            where = _lines(on_it, f"node {gpu[0]}, GPU {gpu[1]} from {start_s!r} s")
            yield gpu, Difference(where, math.fsum(shares), 1.0, "shares held of the GPU, and the whole of it")


def _lines(intervals: list[IntervalRecord], place: str) -> str:
    lines = sorted(interval.line for interval in intervals)
    return f"intervals.csv lines {', '.join(map(str, lines))} ({place})"


_LATE_S = 1e-6  # a job that ends within a microsecond of its due date is not counted as late


def audit(folder: str | Path) -> list[Difference]:
    """Recompute a run from its folder alone, and list what the folder records otherwise.

    Checked are: GPUs, GPU type, memory and permission of every interval; the nodes of what takes several; the GPUs of
    every node, the shares of every GPU and the quotas of tenants at every time; order, restart overhead, interference
    and progress of every job's intervals; start, completion, switches, energy and tardiness cost of every job; the
    totals; the order of the lines; policy, seeds and names that the folder gives twice; and that there were as many
    rounds as the intervals tell of. Amounts are compared to 1e-9 relative, times to a nanosecond (see `difference`).
    The seconds of decision leave no trace to check.

    Args:
        folder: A run folder, as docs/run-format.md says.

    Returns:
        The differences, causes before effects: what the intervals hold, progress, attributions, totals, lines,
        origin. Empty if all agree.

    Raises:
        InputError: The folder is malformed: a file, field or column is missing, a value is no number or is out of its
            range, a version is unknown, or a line names what the instance does not have.
    """
    record = read_record(Path(folder))
    by_job = lives(record)
    bill = make_bill(record)
    return [
        *check_allowed(record),
        *check_together(record, by_job),
        *bill.overfull,
        *check_quotas(record),
        *check_cells(record),
        *check_progress(record, by_job),
        *check_bill(record, bill),
        *_check_costs(record, by_job, bill),
        *check_lines(record, by_job),
        *check_rounds(record, by_job),
        *check_origin(record),
    ]


def _check_costs(record: Record, by_job: list[list[Holding]], bill: Bill) -> Iterator[Difference]:
    """Compare tardiness costs and totals; a job without intervals is reported elsewhere and left out here."""
    tardiness: list[float] = []
    stays: list[float] = []
    late = 0
    for job, (facts, life) in enumerate(zip(record.jobs, by_job, strict=True)):
        if not life:
            continue
        completion = max(holding.end_s for holding in life)
        cost = facts.weight_eur_per_s * max(0.0, completion - facts.due_s)
        tardiness.append(cost)
        stays.append(completion - facts.submission_s)
        late += completion > facts.due_s + _LATE_S
        claimed = record.claims[job]["tardiness_eur"]
        if not same_amount(claimed, cost):
            yield Difference(f"jobs.csv line {job + 2} (job {job})", claimed, cost, "tardiness_eur")
    recomputed = {
        "energy_eur": bill.energy_eur,
        "tardiness_eur": math.fsum(tardiness),
        "total_eur": bill.energy_eur + math.fsum(tardiness),
        "late_jobs": late,
        "mean_completion_s": math.fsum(stays) / max(1, len(stays)),
    }
    for name, value in recomputed.items():
        claimed = record.run.number(name)
        if not same_amount(claimed, value):
            yield Difference("run.json", claimed, value, name)
