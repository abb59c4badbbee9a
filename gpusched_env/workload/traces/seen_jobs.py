"""The jobs that a journal saw: when each was submitted, ran and ended, as rows of a trace.

What is read of a journal are its lines of these kinds:
- `watch`: `gpu_types`, the cluster's names of GPU types by those of the manager; `speed`, seconds of the model in one
  of the cluster;
- `state`: `read`, the time; `full`, whether it is the whole state; `nodes` and `jobs` by name or id, what changed of
  each, in the fields of `LiveNode` and `LiveJob`; `gone`, ids that are no longer there;
- `round`: `read`, a time at which nothing else had changed;
- `progress`: `id`, `epochs` done `at_s`; `event`: `event`, what happened;
- `job`: `id`, and what is known of the job: `application`, `due_s`, `weight_eur_per_s`, `max_epochs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.journal import KIND, read_journal

RUNNING = "running"
"""The outcome of a job that still ran when the journal ended."""
LEAST_S, SHARE = 600.0, 0.1
COLUMNS = (
    "job", "submission_s", "start_s", "end_s", "duration_s", "gpus", "gpu_type", "application", "due_s",
    "tardiness_weight_eur_per_s", "tenant", "user", "partition", "nodes", "outcome",
)  # fmt: skip
"""The columns of a journal's rows."""


_TEXTS = (list, str)
_KINDS: dict[str, Any] = dict.fromkeys(("submit_s", "start_s", "end_s", "due_s", "read", "at_s", "gpus"), float)
_KINDS |= dict.fromkeys(("epochs", "weight_eur_per_s", "max_epochs", "restart_s"), float)
_KINDS |= dict.fromkeys(("id", "gpu_type", "account", "user", "partition", "phase", "outcome", "application"), str)
_KINDS |= {"seconds_per_epoch": (dict, float), "gpu_types": (dict, str), "defaults": _TEXTS, "partitions": _TEXTS}
"""What fields of lines, nodes and jobs are, where they are not null: a type, or a collection and what it holds."""


def _check(fields: dict[str, Any], needs: tuple[str, ...] = ()) -> None:
    """Raise a TypeError that names a field that is of another kind, or missing."""
    for name, value in fields.items():
        if value is not None and name in _KINDS and not _is(value, _KINDS[name]):
            raise TypeError(f"{name} = {value!r:.80}")
    for name in needs:
        if fields.get(name) is None:
            raise TypeError(f"{name} is missing")


def _is(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and abs(value) < 1e15
    if kind is str:
        return isinstance(value, str)
    held = value.values() if isinstance(value, dict) else value
    return isinstance(value, kind[0]) and all(each is None or _is(each, kind[1]) for each in held)


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A job on its GPUs, from one start to the end that follows.

    Attributes:
        start_s: When it started [Unix s].
        end_s: When it ended [Unix s]; where only that it was gone was seen, the middle between the two readings.
        gpus: Number of GPUs that it held.
        gpu_type: Their type, as the manager names it; empty where it is not known.
        nodes: Names of its nodes.
        within_s: By how much the end may be wrong [s]; 0: the manager told it.
    """

    start_s: float
    end_s: float
    gpus: int
    gpu_type: str
    nodes: tuple[str, ...]
    within_s: float = 0.0


@dataclass(slots=True)
class SeenJob:
    """A job as the journal saw it.

    Attributes:
        id: Its id.
        submit_s: When it was submitted [Unix s], as first told: Slurm changes it when a job is queued again.
        fields: What the manager told of it last, in the fields of `LiveJob`.
        known: What is known of it otherwise: the fields of the last line `job`.
        reports: Epochs done that it reported, and when [Unix s], in order.
        runs: Its runs, in order; those that began and ended between two readings are missing.
        outcome: How it ended; `running`: it had not when the journal ended; empty: not known, or it never ran.
        left: Whether it ended.
    """

    id: str
    submit_s: float
    fields: dict[str, Any]
    known: dict[str, Any] = field(default_factory=dict)
    reports: list[tuple[float, float]] = field(default_factory=list)
    runs: list[SeenRun] = field(default_factory=list)
    outcome: str = ""
    left: bool = False

    @property
    def duration_s(self) -> float:
        """How long it ran, all runs together [s]."""
        return sum(run.end_s - run.start_s for run in self.runs)

    @property
    def is_known(self) -> bool:
        """Whether it ran on nodes that were seen, and its duration may be wrong by at most 10 minutes, or a tenth."""
        return (
            bool(self.runs)
            and all(run.nodes for run in self.runs)
            and sum(run.within_s for run in self.runs) <= max(LEAST_S, SHARE * self.duration_s)
        )


@dataclass(slots=True)
class SeenCluster:
    """All that a journal saw.

    Attributes:
        jobs: The jobs by id, in the order in which they were first seen.
        nodes: Every node that was seen, by name, in the fields of `LiveNode`.
        gpu_types: The cluster's names of GPU types by those of the manager.
        speed: Seconds of the model in one of the cluster.
        first_s: The first reading [Unix s]; NaN: there is none.
        last_s: The last one.
        readings: Number of readings.
        longest_gap_s: The longest time between two readings that follow each other [s].
        events: How often what happened, such as `read-failed`.
        partition: The only partition that was watched; None: all.
    """

    jobs: dict[str, SeenJob] = field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    gpu_types: dict[str, str] = field(default_factory=dict)
    speed: float = 1.0
    first_s: float = float("nan")
    last_s: float = float("nan")
    readings: int = 0
    longest_gap_s: float = 0.0
    events: Counter[str] = field(default_factory=Counter)
    partition: str | None = None

    @classmethod
    def of(cls, path: str | Path) -> SeenCluster:
        """Read a journal. Raises InputError: it is none, or a line lacks what its kind has."""
        return cls.of_lines(read_journal(path))

    @classmethod
    def of_lines(cls, lines: Iterable[dict[str, Any]]) -> SeenCluster:
        made = cls()
        there: set[str] = set()
        running: set[str] = set()
        for line in lines:
            try:
                made._take(line, there, running)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                shown = f"{line[KIND]} at {line['time']}"
                raise InputError("journal", shown, f"a line with all that this kind has ({error!r})") from error
        for name in running:
            made.jobs[name].outcome = RUNNING
        return made

    def _take(self, line: dict[str, Any], there: set[str], running: set[str]) -> None:
        _check(line)
        if line[KIND] == "watch":
            self.gpu_types |= line.get("gpu_types", {})
            self.speed, self.partition = float(line.get("speed", 1.0)), line.get("partition")
        elif line[KIND] == "event":
            self.events[str(line["event"])] += 1
        elif line[KIND] == "job":
            if line["id"] in self.jobs:
                _check(line, ("application", "max_epochs", "seconds_per_epoch", "defaults"))
                self.jobs[line["id"]].known = line
        elif line[KIND] == "progress":
            if line["id"] in self.jobs:
                self.jobs[line["id"]].reports.append((float(line["epochs"]), float(line["at_s"])))
        elif line[KIND] in {"state", "round"} and line.get("read") is not None:
            self._read(line, there, running)

    def _read(self, line: dict[str, Any], there: set[str], running: set[str]) -> None:
        read_s = float(line["read"])
        between_s = (self.last_s + read_s) / 2.0 if self.readings else read_s
        changed = line.get("jobs", {})
        if line[KIND] == "state":
            for name, fields in line["nodes"].items():
                _check(fields)
                self.nodes.setdefault(name, {"gpus": 0, "gpu_type": ""}).update(fields)
            gone = there - changed.keys() if line["full"] else there & set(line["gone"])
            for name in gone:
                self._end(self.jobs[name], running, between_s, read_s - between_s)
            there -= gone
            for name, fields in changed.items():
                _check(fields)
                if name not in there and fields.get("phase") == "ended" and self._ended_before(fields):
                    continue  # nobody saw on which nodes it ran
                job = self._job(name, fields, new=name not in there, whole=bool(line["full"]))
                there.add(name)
                self._change(job, running, read_s, between_s)
        for name in running:  # they run at least until now
            runs = self.jobs[name].runs
            runs[-1] = replace(runs[-1], end_s=max(runs[-1].start_s, read_s))
        self.first_s = self.first_s if self.readings else read_s
        self.longest_gap_s = max(self.longest_gap_s, read_s - self.last_s) if self.readings else 0.0
        self.readings += read_s != self.last_s  # a state and the round have one reading
        self.last_s = read_s

    def _ended_before(self, fields: dict[str, Any]) -> bool:
        end_s = fields.get("end_s")
        return not self.readings or (end_s is not None and float(end_s) <= self.last_s)

    def _job(self, name: str, fields: dict[str, Any], *, new: bool, whole: bool) -> SeenJob:
        """Return the job with what changed; an id that comes again after its end, as numbers do, is another job."""
        job = self.jobs.get(name)
        if job is not None and new and float(fields.get("submit_s", 0.0)) != job.fields.get("submit_s"):
            self.jobs[f"{name} of {job.submit_s:.0f}"] = self.jobs.pop(name)
            job = None
        if job is None:
            job = self.jobs[name] = SeenJob(name, float(fields.get("submit_s", 0.0)), {})
        job.fields = dict(fields) if whole or new else job.fields | fields
        return job

    def _change(self, job: SeenJob, running: set[str], read_s: float, between_s: float) -> None:
        """Take in what a job does now."""
        phase, start_s = job.fields.get("phase"), job.fields.get("start_s")
        end_s: float | None = job.fields.get("end_s")
        if phase in {"running", "ending"} and start_s is not None:
            if job.id in running and job.runs[-1].start_s != start_s:  # it was stopped and started between two readings
                self._end(job, running, min(between_s, start_s), read_s - between_s)
            if job.id not in running:
                running.add(job.id)
                job.runs.append(self._run(job.fields, float(start_s), read_s))
                job.left, job.outcome = False, ""
            elif job.fields.get("holds"):
                job.runs[-1] = self._run(job.fields, float(start_s), read_s)
            if phase == "ending" and end_s is not None and end_s <= read_s:
                self._end(job, running, end_s)
        elif phase == "ended":
            if job.id not in running and start_s is not None and end_s is not None and not job.left:
                job.runs.append(self._run(job.fields, float(start_s), read_s))  # it began since the last reading
                running.add(job.id)
            if end_s is not None and end_s <= read_s:
                self._end(job, running, end_s)
            else:
                self._end(job, running, between_s, read_s - between_s)
            job.left, job.outcome = True, job.fields.get("outcome", "")
        elif job.id in running:  # it was put back into the queue
            self._end(job, running, between_s, read_s - between_s)
            job.left = False

    def _run(self, fields: dict[str, Any], start_s: float, read_s: float) -> SeenRun:
        held = fields.get("holds") or []
        kinds = dict.fromkeys(self.nodes.get(node, {}).get("gpu_type", "") for node, _ in held)
        kind = next(iter(kinds), "") or fields.get("gpu_type") or ""
        gpus = sum(int(count) for _, count in held) or int(fields.get("gpus") or 0)
        return SeenRun(start_s, max(start_s, read_s), gpus, kind, tuple(str(node) for node, _ in held))

    def _end(self, job: SeenJob, running: set[str], end_s: float, within_s: float = 0.0) -> None:
        if job.id in running:
            running.discard(job.id)
            job.runs[-1] = replace(job.runs[-1], end_s=max(job.runs[-1].start_s, end_s), within_s=within_s)
        job.left = True

    def rows(self) -> Iterator[tuple[str | None, ...]]:
        """Yield the jobs as rows of a trace (`COLUMNS`), in order of submission; times are those of the model.

        The duration is that of all runs together, on the GPUs of the last. A job that never ran has no start; one that
        still ran ends with the journal, with the outcome `running`; one whose end nobody saw has no duration. A job
        that the policy was not told, while it was told others, has the most frequent application, ran until its due
        date, and costs nothing when it is late.
        """
        origin_s = min((job.submit_s for job in self.jobs.values()), default=0.0)
        usual = self.usual

        def at(unix_s: Any) -> str | None:
            return None if unix_s is None else repr(round(origin_s + (float(unix_s) - origin_s) * self.speed, 3))

        for job in sorted(self.jobs.values(), key=lambda each: each.submit_s):
            told, last = job.fields, job.runs[-1] if job.runs else None
            known = job.known
            if usual is not None and not known:
                known = {"application": usual, "due_s": None if last is None else last.end_s, "weight_eur_per_s": 0.0}
            weight = known.get("weight_eur_per_s")
            yield (
                job.id,
                at(job.submit_s),
                at(job.runs[0].start_s) if job.runs else None,
                None if last is None else at(last.end_s),
                repr(round(job.duration_s * self.speed, 3)) if job.is_known else None,
                str(told.get("gpus", 0) if last is None else last.gpus),
                self.type_of(last),
                known.get("application"),
                at(known.get("due_s")),
                None if weight is None else repr(weight),
                told.get("account", ""),
                told.get("user", ""),
                told.get("partition", ""),
                "" if last is None else "+".join(last.nodes),
                job.outcome,
            )

    @property
    def usual(self) -> str | None:
        """The most frequent application of the jobs of which one is known; None: of none."""
        counted = Counter(job.known["application"] for job in self.jobs.values() if job.known)
        return counted.most_common(1)[0][0] if counted else None

    def type_of(self, run: SeenRun | None) -> str:
        return "" if run is None else self.gpu_types.get(run.gpu_type, run.gpu_type)

    def table(self) -> pl.DataFrame:
        table = pl.DataFrame(list(self.rows()), schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        ran = table.filter(pl.col("start_s").is_not_null())
        return table.drop(
            [name for name in ("application", "due_s", "tardiness_weight_eur_per_s") if ran[name].null_count()]
        )
