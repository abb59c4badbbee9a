"""The audit of a site's cap: the power of all nodes at every time, and what the power above a soft cap costs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from gpusched_env.audit.mechanisms import rents
from gpusched_env.audit.reading import NOT_NEGATIVE, Difference, number, same_amount
from gpusched_env.audit.record import IntervalRecord, Record, stretches
from gpusched_env.audit.shares import gpus_of

_ROUNDED = 1.0 + 2e-9


def power_of_site(record: Record) -> Iterator[tuple[float, float, float, float, list[IntervalRecord]]]:
    """Yield start, end, power [kW], cap [kW] and intervals of every stretch of time in which none of them changes."""
    cap = record.cap
    for start, end, holding in stretches(record.intervals):
        saved = (-saved_kw(record, interval) for interval in holding)
        drawn = math.fsum([*power_of_nodes(record, holding).values(), *saved])
        inside = [time for time in (cap.start_s if cap else []) if start < time < end]
        for begin, until in zip([start, *inside], [*inside, end], strict=True):
            limit = cap.cap_kw[bisect_right(cap.start_s, begin) - 1] if cap else math.inf
            yield begin, until, drawn, limit, holding


def busy_gpus(holding: list[IntervalRecord]) -> dict[int, int]:
    """Return the busy GPUs of each node on which something is held, a shared one once."""
    busy: dict[int, int] = defaultdict(int)
    shared: set[tuple[int, int]] = set()
    for interval in holding:
        if interval.configuration.is_shared:
            shared.update(gpus_of(interval))
        else:
            busy[interval.node] += interval.held
    for node, _ in shared:
        busy[node] += 1
    return busy


def power_of_nodes(record: Record, holding: list[IntervalRecord]) -> dict[int, float]:
    """Return the power of each node on which something is held, without what its GPUs save [kW]."""
    power = {}
    for node, gpus in busy_gpus(holding).items():
        watts = record.gpu_types[record.nodes[node].gpu_type].node_power_w
        power[node] = watts[min(gpus, len(watts)) - 1] / 1000.0
    return power


def saved_kw(record: Record, interval: IntervalRecord) -> float:
    """Return what the GPUs of an interval on its node draw less than full busy ones [kW]."""
    if not record.saved_kw:
        return 0.0
    own = interval.configuration
    return record.saved_kw[record.jobs[interval.job].application][own.column] / own.nodes


def over_cap_eur(record: Record) -> dict[int, list[float]]:
    """Return what power above a soft cap costs each job [€]: by what it is charged while the cap is exceeded."""
    pieces: dict[int, list[float]] = defaultdict(list)
    soft = record.cap.soft_eur_per_kwh if record.cap else None
    if soft is None:
        return pieces
    for start, end, drawn, limit, holding in power_of_site(record):
        if drawn <= limit:
            continue
        charges = _charges(record, holding)
        total = math.fsum(charge for _, charge in charges)
        for job, charge in charges:
            pieces[job].append((drawn - limit) * (end - start) / 3600.0 * soft * charge / total)
    return pieces


def gpu_hours_eur(record: Record) -> dict[int, list[float]]:
    """Return what each job pays for the GPUs that it holds [€]; a shared one is split by share."""
    pieces: dict[int, list[float]] = defaultdict(list)
    for start, end, holding in stretches(record.intervals) if record.gpu_hour_eur else ():
        for job, gpus, _ in _gpus_charged(holding):
            pieces[job].append(gpus * (end - start) / 3600.0 * record.gpu_hour_eur)
    return pieces


def _gpus_charged(holding: list[IntervalRecord]) -> list[tuple[int, float, int]]:
    """Return of each interval its job, the GPUs that it is charged for, and the node."""
    shares: dict[tuple[int, int], float] = defaultdict(float)
    for interval in holding:
        for gpu in gpus_of(interval) if interval.configuration.is_shared else ():
            shares[gpu] += interval.configuration.share
    found = []
    for interval in holding:
        own = float(interval.held)
        if interval.configuration.is_shared:
            own = math.fsum(interval.configuration.share / shares[gpu] for gpu in gpus_of(interval))
        found.append((interval.job, own, interval.node))
    return found


def _charges(record: Record, holding: list[IntervalRecord]) -> list[tuple[int, float]]:
    """Return each interval's job and its part of the cost of its node [€/h]."""
    power, busy, price = power_of_nodes(record, holding), busy_gpus(holding), record.prices.reference
    found = []
    for interval, (job, gpus, node) in zip(holding, _gpus_charged(holding), strict=True):
        rate = power[node] * price / busy[node] + record.gpu_hour_eur
        found.append((job, rate * gpus - saved_kw(record, interval) * price))
    return found


def _check_gpu_hours(record: Record) -> Iterator[Difference]:
    pieces = [
        (end - start) / 3600.0 * busy * record.gpu_hour_eur
        for start, end, holding in stretches(record.intervals)
        for busy in busy_gpus(holding).values()
    ]
    pieces += [eur for by_job in rents(record) for own in by_job.values() for eur in own]
    claimed = record.run.get("gpu_eur", number, NOT_NEGATIVE)
    if not same_amount(claimed, math.fsum(pieces)):
        yield Difference("run.json", claimed, math.fsum(pieces), "gpu_eur")


def check_cap(record: Record) -> Iterator[Difference]:
    """Compare the power of the site with a hard cap at every time, and what the run says of its cap.

    Of a run in which the cap never fell below the power just before, the throttled time is 0. Only the first stretch of
    several in a row above the cap is reported.
    """
    if record.gpu_hour_eur or record.cap or record.mechanisms:
        yield from _check_gpu_hours(record)
    if record.cap is None:
        return
    over = False
    may_force, before = False, 0.0
    for start, _, drawn, limit, _ in power_of_site(record):
        is_over = drawn > limit * _ROUNDED and record.cap.soft_eur_per_kwh is None
        if is_over and not over:
            yield Difference(f"intervals.csv (site from {start!r} s)", drawn, limit, "power of all nodes, and cap [kW]")
        over, may_force = is_over, may_force or before > limit
        before = drawn
    forced = record.run.get("cap_forced_s", number, NOT_NEGATIVE)
    if forced > 0.0 and not may_force:
        yield Difference("run.json", forced, 0.0, "cap_forced_s")
    excess = math.fsum(math.fsum(part) for part in over_cap_eur(record).values())
    claimed = record.run.get("over_cap_eur", number, NOT_NEGATIVE)
    if not same_amount(claimed, excess):
        yield Difference("run.json", claimed, excess, "over_cap_eur")
