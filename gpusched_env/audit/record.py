"""What a run folder records and where it comes from, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.audit.instance_record import read_instance
from gpusched_env.audit.reading import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    Difference,
    Range,
    index_below,
    number_of,
    read_json,
    read_rows,
    whole_of,
)
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpusched_env.audit.holding import Holding, TenantsRecord
    from gpusched_env.audit.instance_record import (
        ConfigurationRecord,
        GpuTypeRecord,
        GuestRecord,
        InstanceRecord,
        JobRecord,
        NodeRecord,
    )
    from gpusched_env.audit.progress import SynchronisationRecord
    from gpusched_env.audit.reading import Fields

_INTERVAL_COLUMNS = ("job", "node", "gpus", "gpu", "configuration", "start_s", "ready_s", "end_s", "epochs")
_JOB_COLUMNS = (
    "job",
    "submission_s",
    "due_s",
    "start_s",
    "completion_s",
    "epochs_needed",
    "energy_eur",
    "tardiness_eur",
    "switches",
)


@dataclass(frozen=True, slots=True)
class IntervalRecord:
    """A line of intervals.csv; `gpu` is the number of the shared GPU on the node, -1 for whole GPUs.

    `host` is the host on which the node lies, -1 without cells.
    """

    line: int
    job: int
    node: int
    gpus: int
    gpu: int
    configuration: str
    start_s: float
    ready_s: float
    end_s: float
    epochs: float
    host: int = -1

    @property
    def where(self) -> str:
        """Name the line."""
        return f"intervals.csv line {self.line} (job {self.job})"


@dataclass(frozen=True, slots=True)
class Record:
    """A run folder; `claims` are the numbers of jobs.csv, one dictionary per job, and `run` is run.json."""

    instance_name: str
    instance_seed: int
    gpu_types: dict[str, GpuTypeRecord]
    nodes: list[NodeRecord]
    configurations: dict[str, ConfigurationRecord]
    jobs: list[JobRecord]
    eur_per_kwh: float
    guests: GuestRecord
    intervals: list[IntervalRecord]
    claims: list[dict[str, float]]
    run: Fields
    synchronisation: SynchronisationRecord | None
    tenants: TenantsRecord

    def billed_node(self, interval: IntervalRecord) -> int:
        """Give the node whose power an interval is part of: with cells the host on which its own lies."""
        hosts = self.tenants.hosts
        return len(self.nodes) - hosts + interval.host if hosts else interval.node


def read_record(folder: Path) -> Record:
    """Read a run folder.

    Raises:
        InputError: A file, a field or a column is missing, a field of the instance is unknown, a value is not what it
            must be or out of its range, or a line names what the instance does not have.
    """
    if not folder.is_dir():
        raise InputError("folder", str(folder), "a run folder")
    run = _check_run(read_json(folder / "run.json", "gpusched run", 2))
    instance = read_instance(folder / "instance.json")
    return Record(
        instance_name=instance.name,
        instance_seed=instance.seed,
        gpu_types=instance.gpu_types,
        nodes=instance.nodes,
        configurations=instance.configurations,
        jobs=instance.jobs,
        eur_per_kwh=instance.eur_per_kwh,
        guests=instance.guests,
        intervals=_intervals(folder / "intervals.csv", instance),
        claims=_claims(folder / "jobs.csv", len(instance.jobs)),
        run=run,
        synchronisation=instance.synchronisation,
        tenants=instance.tenants,
    )


def _check_run(run: Fields) -> Fields:
    """Check the kinds of what run.json says beside the totals."""
    run.text("policy")
    run.whole("seed", NOT_NEGATIVE)
    run.whole("rounds", AT_LEAST_ONE)
    if run.get("decision_s") is not None:
        run.number("decision_s", NOT_NEGATIVE)
    run.fields("provenance")
    return run


def _intervals(path: Path, instance: InstanceRecord) -> list[IntervalRecord]:
    intervals = []
    columns = (*_INTERVAL_COLUMNS, "host") if instance.tenants.hosts else _INTERVAL_COLUMNS
    for line, row in enumerate(read_rows(path, columns), start=2):
        where = f"{path.name} line {line}"
        job, node, gpus = (whole_of(f"{where}, {name}", row[name]) for name in ("job", "node", "gpus"))
        for name, value, values in (("job", job, instance.jobs), ("node", node, instance.nodes)):
            index_below(len(values)).check(f"{where}, {name}", value)
        gpu = -1 if row["gpu"] == "-1" else whole_of(f"{where}, gpu", row["gpu"])
        most = instance.nodes[node].gpus
        Range(f"a GPU of node {node}, from 0 to {most - 1}, or -1 for whole ones", -1, most - 1).check(
            f"{where}, gpu", gpu
        )
        if row["configuration"] not in instance.configurations:
            raise InputError(f"{where}, configuration", row["configuration"], "a configuration of the instance")
        host = -1
        if instance.tenants.hosts:
            host = whole_of(f"{where}, host", row["host"])
            index_below(instance.tenants.hosts).check(f"{where}, host", host)
        start, ready, end, done = (
            number_of(f"{where}, {name}", row[name]) for name in ("start_s", "ready_s", "end_s", "epochs")
        )
        told = (line, job, node, gpus, gpu, row["configuration"], start, ready, end, done, host)
        intervals.append(IntervalRecord(*told))
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


def check_origin(record: Record) -> Iterator[Difference]:
    """Compare those facts of the provenance that are there with run.json and instance.json."""
    name, seed, run = record.instance_name, record.instance_seed, record.run
    true = {"policy": run.text("policy"), "seed": run.whole("seed"), "instance": name, "instance_seed": seed}
    facts = run.fields("provenance").optional("facts", {})
    for fact, value in true.items():
        if isinstance(facts, dict) and facts.get(fact, value) != value:
            yield Difference(f"run.json: provenance.facts.{fact}", facts[fact], value, fact)
    scenario = facts.get("scenario") if isinstance(facts, dict) else None
    if isinstance(scenario, dict) and scenario.get("name", name) != name:
        yield Difference("run.json: provenance.facts.scenario.name", scenario["name"], name, "name of the instance")


def check_rounds(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Count the rounds that must have been: one at each time at which a holding begins, or ends before the job."""
    times = {line.start_s for line in record.intervals}
    times |= {holding.end_s for life in by_job for holding in life[:-1]}
    rounds = record.run.whole("rounds")
    if rounds < len(times):
        what = "rounds, and different times at which an interval begins, or ends before its job does"
        yield Difference("run.json", rounds, len(times), what)
