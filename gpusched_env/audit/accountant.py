"""The audit of a run folder: the bill, tardiness costs and totals, and what all checks find."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusched_env.audit.mechanisms import check_mechanisms, rents
from gpusched_env.audit.network import drawn_by_cpu_machines
from gpusched_env.audit.prices import EnergyDrawn, demand_eur, metered
from gpusched_env.audit.progress import (
    check_lines,
    check_profiles,
    check_progress,
    check_rounds,
    row_of,
)
from gpusched_env.audit.reading import Difference, number, same_amount
from gpusched_env.audit.record import Holding, IntervalRecord, Record, lives, read_record, stretches
from gpusched_env.audit.shares import SpeedPeriod, gpus_of, speed_pieces, utilisation_of, worked_s
from gpusched_env.audit.site import check_cap, gpu_hours_eur, over_cap_eur

_ROUNDED = 1.0 + 1e-9  # shares that sum to whole GPUs may exceed them by rounding
_LATE_S = 1e-6  # a job that ends within a microsecond of its due date is not counted as late


def check_together(by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that holdings are on as many nodes as their configuration, each once, and end on all of them at once."""
    for holding in (holding for life in by_job for holding in life):
        nodes, wanted, spread = holding.place[1], holding.configuration.nodes, holding.configuration.spread
        if spread and (sum(holding.place[3]) != wanted or len(set(nodes)) != len(nodes)):
            yield Difference(
                holding.where, sum(holding.place[3]), wanted, "spread GPUs held at once, on different nodes"
            )
        if not spread and (len(nodes) != wanted or len(set(nodes)) != wanted):
            yield Difference(holding.where, nodes, wanted, "nodes held at once, and different nodes to hold")
        if holding.configuration.is_shared and nodes != list(range(nodes[0], nodes[0] + len(nodes))):
            yield Difference(holding.where, nodes, "consecutive", "nodes of a share")
        for line in holding.lines[1:]:
            if line.end_s != holding.end_s:
                what = f"end_s, as on node {holding.lines[0].node} (line {holding.lines[0].line})"
                yield Difference(line.where, line.end_s, holding.end_s, what)


def check_allowed(record: Record) -> Iterator[Difference]:
    """Compare GPUs, GPU type, memory, permission and shared GPU of each interval with the instance."""
    for interval in record.intervals:
        configuration, where = interval.configuration, interval.where
        node, job = record.nodes[interval.node], record.jobs[interval.job]
        if interval.gpus < 1 or (interval.gpus != configuration.gpus and not configuration.spread):
            yield Difference(where, interval.gpus, configuration.gpus, "GPUs of the configuration")
        if node.gpu_type != configuration.gpu_type:
            yield Difference(where, configuration.gpu_type, node.gpu_type, f"GPU type on node {interval.node}")
        if job.seconds_per_epoch[configuration.column] is None:
            yield Difference(where, configuration.name, "not allowed", "configuration of the job")
        memory = record.gpu_types[configuration.gpu_type].memory_gib
        memory *= configuration.share if record.shared_memory is None else 1.0
        if job.memory_gib > memory:
            yield Difference(where, job.memory_gib, memory, "memory needed on a GPU, and there [GiB]")
        if configuration.is_shared and interval.gpu < 0:
            yield Difference(where, interval.gpu, f"0 to {node.gpus - 1}", "number of the shared GPU")
        elif configuration.is_shared and (
            interval.gpu % configuration.gpus or interval.gpu + configuration.gpus > node.gpus
        ):
            what = f"first shared GPU, a multiple of {configuration.gpus}, with so many on the node"
            yield Difference(where, interval.gpu, f"at most {node.gpus - configuration.gpus}", what)
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
            gpus = math.fsum(interval.held * interval.configuration.share for interval in holding)
            before, over = over, gpus > quota * _ROUNDED
            if over and not before:
                where = f"intervals.csv (tenant {record.tenants.names[tenant]} from {start!r} s)"
                yield Difference(where, gpus, quota, f"GPUs of {gpu_type} held, and the tenant's quota")


def check_cells(record: Record) -> Iterator[Difference]:
    """Check the cells that are used, if there are any.

    Each is bound to a host of its hardware, to one while it is used; jobs hold at most its GPUs in it; and on every
    host, the used cells and the GPUs of opportunistic jobs sum to at most the host's GPUs. A host is its own host.
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
        if record.gpu_types[cell].hardware != record.gpu_types[host].hardware:
            yield Difference(interval.where, host, cell, "hardware of the host")
        if interval.node >= first and interval.host != interval.node - first:
            yield Difference(interval.where, interval.host, interval.node - first, "host of a host")
    for node in sorted(by_cell):
        for start, _, holding in stretches(by_cell[node]) if node < first else ():
            where = f"intervals.csv (node {node} from {start!r} s)"
            hosts, gpus = sorted({interval.host for interval in holding}), record.nodes[node].gpus
            if len(hosts) > 1:
                yield Difference(where, hosts, 1, "hosts to which a cell is bound at one time")
            if busy_gpus(holding) > gpus:
                yield Difference(where, busy_gpus(holding), gpus, "busy GPUs, and GPUs of the cell")
    for each in sorted(by_host):
        yield from _check_host(record, first, each, by_host[each])
    yield from _check_racks(record, first) if record.tenants.racks else ()


def _check_racks(record: Record, first: int) -> Iterator[Difference]:
    """Check the cells of several nodes: their used nodes are in one part of a rack, in which no other cell is used."""
    racks = record.tenants.racks
    sizes, place = Counter(racks), dict[int, int]()
    for host in range(first, len(racks)):
        place[host] = sum(racks[other] == racks[host] for other in range(first, host))
    for start, _, holding in stretches([interval for interval in record.intervals if interval.node < first]):
        parts: dict[int, set[tuple[int, int]]] = defaultdict(set)
        hosts = {(racks[interval.node], first + interval.host) for interval in holding}
        for cell, host in sorted(hosts):
            parts[cell].add((racks[host], place[host] // sizes[cell]))
        for cell, own in parts.items():
            where = f"intervals.csv (cell {cell} from {start!r} s)"
            if sizes[cell] > 1 and len(own) > 1:
                yield Difference(where, sorted(own), 1, "parts of racks that a cell has")
            inside = {other for other, host in hosts if (racks[host], place[host] // sizes[cell]) in own} - {cell}
            if sizes[cell] > 1 and inside:
                yield Difference(where, sorted(inside), 0, "other cells in its part of a rack")


def _check_host(record: Record, first: int, host: int, intervals: list[IntervalRecord]) -> Iterator[Difference]:
    most, over = record.nodes[first + host].gpus, False
    for start, _, holding in stretches(intervals):
        cells = {interval.node for interval in holding if interval.node < first}
        opportunistic = busy_gpus([interval for interval in holding if interval.node >= first])
        taken = opportunistic + sum(record.nodes[cell].gpus for cell in cells)
        before, over = over, taken > most
        if over and not before:
            where = f"intervals.csv (host {host} from {start!r} s)"
            yield Difference(where, taken, most, "GPUs of used cells and of opportunistic jobs, and GPUs of the host")


def busy_gpus(holding: list[IntervalRecord]) -> int:
    shared = {gpu for interval in holding for gpu in gpus_of(interval)}
    return len(shared) + sum(i.held for i in holding if not i.configuration.is_shared)


def audit(folder: str | Path) -> list[Difference]:
    """Recompute a run from its folder alone, and list what the folder records otherwise.

    Checked are: GPUs, GPU type, memory and permission of every interval; the nodes of what takes several; the GPUs of
    every node, the shares of every GPU, the quotas of tenants and the cap of the site at every time; order, restart
    overhead, interference and progress of all intervals; start, completion, switches, energy and tardiness cost of
    every job; the totals; the order of the lines; policy, seeds and names that the folder gives twice; and the number
    of rounds, which follows from the intervals. Amounts are compared to 1e-9 relative, times to a nanosecond (see
    `difference`).
    The seconds of decision cannot be checked.

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
    bill, overfull = _bill(record)
    return [
        *check_allowed(record),
        *check_together(by_job),
        *overfull,
        *check_quotas(record),
        *check_cells(record),
        *check_cap(record),
        *check_mechanisms(record),
        *check_progress(record, by_job),
        *check_profiles(record),
        *_check_costs(record, by_job, bill),
        *check_lines(record, by_job),
        *check_rounds(record, by_job),
        *_check_origin(record),
    ]


@dataclass(frozen=True, slots=True)
class _Bill:
    """What all nodes cost [€], what is attributed to each job [€], and what the meter says where prices change."""

    energy_eur: float
    of_job: list[float]
    meter: dict[str, float]


def _bill(record: Record) -> tuple[_Bill, list[Difference]]:
    """Sum up what each node costs while u of its GPUs are busy: its power/1000 · price · PUE · hours, by period.

    Each busy GPU is charged 1/u of that: to the job that holds the whole of it, or by share to those that share it.
    With cells, the cost is that of the hosts, with all that is bound to them.
    Where GPUs draw less when they do nothing, each job is charged that much less, and its own work in full. What its
    GPUs save while they work, by its application and their power limit, is subtracted.
    CPU machines that help jobs on several nodes are charged to these, and GPUs at their price. What power above a soft
    cap costs is split by what jobs are charged.

    Returns:
        The bill, and where a node holds more GPUs than it has, or a GPU more than the whole of it.
    """
    on_node: list[list[IntervalRecord]] = [[] for _ in record.nodes]
    hosts = record.tenants.hosts
    for interval in record.intervals:
        on_node[len(record.nodes) - hosts + interval.host if hosts else interval.node].append(interval)
    nodes: list[EnergyDrawn] = []  # what they draw, of which jobs have parts
    parts: list[EnergyDrawn] = drawn_by_cpu_machines(record)
    nodes += parts
    overfull: list[Difference] = []
    pieces_of = speed_pieces(record)
    for node, intervals in enumerate(on_node):
        over: set[tuple[int, int] | None] = set()
        for start, end, holding in stretches(intervals):
            for low, high, _ in record.prices.cuts(start, end):
                drawn, of_jobs = _drawn(record, node, holding, (low, high), pieces_of)
                nodes += drawn
                parts += of_jobs
            before, over = over, set()
            for gpu, difference in _beyond(record, node, start, holding, busy_gpus(holding)):
                over.add(gpu)
                if gpu not in before:
                    overfull.append(difference)
    return _bill_of(record, nodes, parts), overfull


def _drawn(
    record: Record,
    node: int,
    holding: list[IntervalRecord],
    times: tuple[float, float],
    pieces_of: dict[int, list[SpeedPeriod]],
) -> tuple[list[EnergyDrawn], list[EnergyDrawn]]:
    """Return what a node draws between two times in which its jobs stay, and what each of these is charged for."""
    power, hours = record.gpu_types[record.nodes[node].gpu_type], (times[1] - times[0]) / 3600.0
    busy, shares = busy_gpus(holding), _shares(holding)
    kwh = power.node_power_w[min(busy, power.most_gpus) - 1] / 1000.0 * hours
    parts, saved = [], []
    for interval in holding:
        gpus = float(interval.held)
        if interval.configuration.is_shared:
            gpus = math.fsum(interval.configuration.share / math.fsum(shares[gpu]) for gpu in gpus_of(interval))
        parts.append(EnergyDrawn(interval.job, *times, kwh * gpus / busy))
        kilowatts = _saved_kw(record, interval, times, pieces_of, gpus)
        saved += [EnergyDrawn(interval.job, *times, -saved_kw * hours) for saved_kw in kilowatts]
    return [EnergyDrawn(-1, *times, kwh), *saved], [*parts, *saved]


def _bill_of(record: Record, nodes: list[EnergyDrawn], parts: list[EnergyDrawn]) -> _Bill:
    """Make the bill of what nodes draw and of the parts of jobs, with the demand charges."""
    costs: list[list[float]] = [[] for _ in record.jobs]
    for part in parts:
        costs[part.job].append(record.prices.eur(part))
    charged = demand_eur(record.prices, parts)
    meter: dict[str, float] = {}
    if record.prices.start_s:
        total_demand = math.fsum(cost for own in charged.values() for cost in own)
        meter = metered(record.prices, nodes) | {"demand_eur": total_demand}
    of_all: list[float] = []
    for by_job in (charged, gpu_hours_eur(record), over_cap_eur(record), *rents(record)):
        for job, own in by_job.items():
            costs[job] += own
            of_all += own
    total = math.fsum([*(record.prices.eur(each) for each in nodes), *of_all])
    return _Bill(total, [math.fsum(own) for own in costs], meter)


def _saved_kw(
    record: Record,
    interval: IntervalRecord,
    times: tuple[float, float],
    pieces_of: dict[int, list[SpeedPeriod]],
    gpus: float,
) -> Iterator[float]:
    """Yield what the GPUs that an interval is charged for save while they idle [kW], and while they work."""
    own, working = interval.configuration, gpus
    idle_saving_w = record.gpu_types[record.nodes[interval.node].gpu_type].idle_saving_w
    if idle_saving_w > 0.0:
        idle = _idle_gpus(record, interval, times, pieces_of, gpus)
        working -= idle
        yield idle_saving_w / 1000.0 * idle
    if record.saved_kw:
        saved_kw = record.saved_kw[record.jobs[interval.job].application][own.column]
        yield saved_kw / (own.gpus * own.nodes) * working


def _idle_gpus(
    record: Record,
    interval: IntervalRecord,
    times: tuple[float, float],
    pieces_of: dict[int, list[SpeedPeriod]],
    gpus: float,
) -> float:
    """Return how many of the GPUs that an interval is charged for are idle: those GPUs less its work on them.

    It is the mean between two times, in which its co-runners on this node stay.
    """
    utilisation = utilisation_of(record, interval) or 0.0
    if not interval.configuration.is_shared:
        return gpus * (1.0 - utilisation)
    start, end = times
    speed = worked_s(pieces_of[interval.line], start, end) / (end - start)
    return gpus - utilisation * speed * interval.configuration.gpus


def _shares(holding: list[IntervalRecord]) -> dict[tuple[int, int], list[float]]:
    shares: dict[tuple[int, int], list[float]] = defaultdict(list)
    for interval in holding:
        for gpu in gpus_of(interval):
            shares[gpu].append(interval.configuration.share)
    return shares


def _beyond(
    record: Record, node: int, start_s: float, holding: list[IntervalRecord], busy: int
) -> Iterator[tuple[tuple[int, int] | None, Difference]]:
    """Return where more is held than there is: on the node (None), and on each of its shared GPUs (node and number)."""
    if busy > record.nodes[node].gpus:
        where = _lines(holding, f"node {node} from {start_s!r} s")
        yield None, Difference(where, busy, record.nodes[node].gpus, "busy GPUs, and GPUs of the node")
    for gpu, shares in _shares(holding).items():
        if math.fsum(shares) > _ROUNDED:
            on_it = [i for i in holding if gpu in gpus_of(i)]
            where = _lines(on_it, f"node {gpu[0]}, GPU {gpu[1]} from {start_s!r} s")
            yield gpu, Difference(where, math.fsum(shares), 1.0, "shares held of the GPU, and the whole of it")


def _lines(intervals: list[IntervalRecord], place: str) -> str:
    lines = sorted(interval.line for interval in intervals)
    return f"intervals.csv lines {', '.join(map(str, lines))} ({place})"


def _check_costs(record: Record, by_job: list[list[Holding]], bill: _Bill) -> Iterator[Difference]:
    """Compare attributions, tardiness costs and totals; a job without intervals is left out, and reported elsewhere."""
    for job, (claim, energy) in enumerate(zip(record.claims, bill.of_job, strict=True)):
        if not same_amount(claim["energy_eur"], energy):
            yield Difference(row_of(job), claim["energy_eur"], energy, "energy_eur")
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
            yield Difference(row_of(job), claimed, cost, "tardiness_eur")
    recomputed = {
        "energy_eur": bill.energy_eur,
        "tardiness_eur": math.fsum(tardiness),
        "total_eur": bill.energy_eur + math.fsum(tardiness),
        "late_jobs": late,
        "mean_completion_s": math.fsum(stays) / max(1, len(stays)),
        **bill.meter,
    }
    for name, value in recomputed.items():
        claimed = record.run.get(name, number)
        if not same_amount(claimed, value):
            yield Difference("run.json", claimed, value, name)


def _check_origin(record: Record) -> Iterator[Difference]:
    """Compare those facts of the provenance that are there with run.json and instance.json."""
    name, run = record.name, record.run
    true = {"policy": run.get("policy"), "seed": run.get("seed"), "instance": name, "instance_seed": record.seed}
    facts: Any = run.get("provenance").get("facts", {})
    if not isinstance(facts, dict):
        return
    for fact, value in true.items():
        if facts.get(fact, value) != value:
            yield Difference(f"run.json: provenance.facts.{fact}", facts[fact], value, fact)
    scenario = facts.get("scenario")
    if isinstance(scenario, dict) and scenario.get("name", name) != name:
        yield Difference("run.json: provenance.facts.scenario.name", scenario["name"], name, "name of the instance")
