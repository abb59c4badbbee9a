"""The content of a run folder as plain values, and the holdings of each job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpusched_env.audit.instance_record import ConfigurationRecord, InstanceRecord, read_instance
from gpusched_env.audit.reading import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    FieldReader,
    Range,
    index_below,
    number,
    number_of,
    read_json,
    read_rows,
    text,
    whole,
    whole_of,
)
from gpusched_env.errors import InputError

_INTERVAL_COLUMNS = ("job", "node", "gpus", "gpu", "configuration", "start_s", "ready_s", "end_s", "epochs")
_JOB_COLUMNS = (
    "job", "submission_s", "due_s", "start_s", "completion_s", "epochs_needed", "energy_eur", "tardiness_eur",
    "switches",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IntervalRecord:
    """A line of intervals.csv; `gpu` is the number of the shared GPU on the node, -1 for whole GPUs.

    `host` is the host to which the node is bound, -1 without cells.
    """

    line: int
    job: int
    node: int
    gpus: int
    gpu: int
    configuration: ConfigurationRecord
    start_s: float
    ready_s: float
    end_s: float
    epochs: float
    host: int

    @property
    def held(self) -> int:
        return self.gpus if self.configuration.spread else self.configuration.gpus

    @property
    def where(self) -> str:
        return f"intervals.csv line {self.line} (job {self.job})"


@dataclass(frozen=True, slots=True)
class Record(InstanceRecord):
    """A run folder; `claims` are the numbers of jobs.csv, one dictionary per job, and `run` is run.json."""

    intervals: list[IntervalRecord]
    claims: list[dict[str, float]]
    run: FieldReader


@dataclass(frozen=True, slots=True)
class Holding:
    """A configuration that a job held in one place from a start [s]: a line of intervals.csv for each of its nodes.

    All lines have the same start, and must have the same end [s].
    """

    lines: tuple[IntervalRecord, ...]
    configuration: ConfigurationRecord
    start_s: float
    end_s: float

    @property
    def place(self) -> tuple[int, list[int], list[int], list[int]]:
        """Return the number of the shared GPU, if any, the nodes, their hosts, and the GPUs on each."""
        lines = sorted(self.lines, key=lambda line: line.node)
        nodes, hosts = [line.node for line in lines], [line.host for line in lines]
        return self.lines[0].gpu, nodes, hosts, [line.held for line in lines]

    @property
    def where(self) -> str:
        if len(self.lines) == 1:
            return self.lines[0].where
        return f"intervals.csv lines {', '.join(str(i.line) for i in self.lines)} (job {self.lines[0].job})"

    def same_gpus(self, before: Holding) -> bool:
        same = (before.configuration.held, before.place) == (self.configuration.held, self.place)
        return same and self.start_s == before.end_s

    def continues(self, before: Holding) -> bool:
        """Whether it is the same configuration in the same place as `before`, which ends where it starts."""
        same = (before.configuration, before.place) == (self.configuration, self.place)
        return same and self.start_s == before.end_s


def lives(record: Record) -> list[list[Holding]]:
    """Return the holdings of each job, sorted by start.

    Lines of one job belong together if they have the same start and the same configuration of several nodes.
    """
    by_job: list[list[list[IntervalRecord]]] = [[] for _ in record.jobs]
    for line in sorted(record.intervals, key=lambda line: (line.start_s, line.configuration.name, line.line)):
        life = by_job[line.job]
        together = life and (life[-1][0].start_s, life[-1][0].configuration) == (line.start_s, line.configuration)
        if together and line.configuration.nodes > 1:
            life[-1].append(line)
        else:
            life.append([line])
    return [
        [Holding(tuple(lines), lines[0].configuration, lines[0].start_s, lines[0].end_s) for lines in life]
        for life in by_job
    ]


def read_record(folder: Path) -> Record:
    if not folder.is_dir():
        raise InputError("folder", str(folder), "a run folder")
    run = read_json(folder / "run.json", "gpusched run", 2)
    run.get("policy", text)
    run.get("seed", whole, NOT_NEGATIVE)
    run.get("rounds", whole, AT_LEAST_ONE)
    if run.get("decision_s") is not None:
        run.get("decision_s", number, NOT_NEGATIVE)
    run.get("provenance", FieldReader)
    instance = read_instance(folder / "instance.json")
    intervals = _intervals(folder / "intervals.csv", instance)
    facts: dict[str, Any] = {field.name: getattr(instance, field.name) for field in fields(instance)}
    claims = _claims(folder / "jobs.csv", len(instance.jobs))
    return Record(**facts, intervals=intervals, claims=claims, run=run)


def _intervals(path: Path, instance: InstanceRecord) -> list[IntervalRecord]:
    intervals, hosts = [], instance.tenants.hosts
    columns = (*_INTERVAL_COLUMNS, "host") if hosts else _INTERVAL_COLUMNS
    for line, row in enumerate(read_rows(path, columns), start=2):
        where = f"{path.name} line {line}"
        job, node, gpus = (whole_of(f"{where}, {name}", row[name]) for name in ("job", "node", "gpus"))
        index_below(len(instance.jobs)).check(f"{where}, job", job)
        index_below(len(instance.nodes)).check(f"{where}, node", node)
        gpu, most = -1 if row["gpu"] == "-1" else whole_of(f"{where}, gpu", row["gpu"]), instance.nodes[node].gpus
        allowed = Range(f"a GPU of node {node}, from 0 to {most - 1}, or -1 for whole ones", -1, most - 1)
        allowed.check(f"{where}, gpu", gpu)
        configuration = instance.configurations.get(row["configuration"])
        if configuration is None:
            raise InputError(f"{where}, configuration", row["configuration"], "a configuration of the instance")
        host = whole_of(f"{where}, host", row["host"]) if hosts else -1
        if hosts:
            index_below(hosts).check(f"{where}, host", host)
        times = ("start_s", "ready_s", "end_s", "epochs")
        start, ready, end, done = (number_of(f"{where}, {name}", row[name]) for name in times)
        intervals.append(IntervalRecord(line, job, node, gpus, gpu, configuration, start, ready, end, done, host))
    return intervals


def _claims(path: Path, jobs: int) -> list[dict[str, float]]:
    rows = read_rows(path, _JOB_COLUMNS)
    if len(rows) != jobs:
        raise InputError(f"{path.name}: lines", len(rows), f"{jobs}, one for each job of the instance")
    claims = []
    for line, row in enumerate(rows, start=2):
        claim = {name: number_of(f"{path.name} line {line}, {name}", row[name]) for name in _JOB_COLUMNS}
        if claim["job"] != line - 2:
            raise InputError(f"{path.name} line {line}, job", row["job"], f"{line - 2}: one line per job, in order")
        claims.append(claim)
    return claims


def stretches(intervals: Iterable[IntervalRecord]) -> Iterator[tuple[float, float, list[IntervalRecord]]]:
    """Yield start and end of each stretch of time in which the same `intervals` last, at least one, and those."""
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
