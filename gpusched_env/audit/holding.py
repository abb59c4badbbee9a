"""The holdings of each job: what it held at one time, on one node or several, and whether it was allowed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference
from gpusched_env.audit.reading import TIME, Range, index_below
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.reading import Fields
    from gpusched_env.audit.record import IntervalRecord, Record


@dataclass(frozen=True, slots=True)
class Holding:
    """A configuration that a job held in one place: one line of intervals.csv for each of its nodes."""

    lines: tuple[IntervalRecord, ...]

    @property
    def configuration(self) -> str:
        """Name the configuration."""
        return self.lines[0].configuration

    @property
    def start_s(self) -> float:
        """Give its start [s], the same on all lines."""
        return self.lines[0].start_s

    @property
    def end_s(self) -> float:
        """Give its end [s], which must be the same on all lines."""
        return self.lines[0].end_s

    @property
    def place(self) -> tuple[int, list[int], list[int]]:
        """Give the number of the shared GPU, if any, the nodes, and the hosts on which these lie."""
        lines = sorted(self.lines, key=lambda line: line.node)
        return self.lines[0].gpu, [line.node for line in lines], [line.host for line in lines]

    @property
    def where(self) -> str:
        """Name the lines."""
        if len(self.lines) == 1:
            return self.lines[0].where
        return f"intervals.csv lines {', '.join(str(i.line) for i in self.lines)} (job {self.lines[0].job})"

    def continues(self, before: Holding) -> bool:
        """Say whether it is the same configuration in the same place as `before`, which ends where it starts."""
        same = (before.configuration, before.place) == (self.configuration, self.place)
        return same and self.start_s == before.end_s


def lives(record: Record) -> list[list[Holding]]:
    """Give the holdings of each job, sorted by start.

    Lines of one job belong together if they have the same start and the same configuration of several nodes.
    """
    by_job: list[list[list[IntervalRecord]]] = [[] for _ in record.jobs]
    for line in sorted(record.intervals, key=lambda line: (line.start_s, line.configuration, line.line)):
        life = by_job[line.job]
        together = life and (life[-1][0].start_s, life[-1][0].configuration) == (line.start_s, line.configuration)
        if together and record.configurations[line.configuration].nodes > 1:
            life[-1].append(line)
        else:
            life.append([line])
    return [[Holding(tuple(lines)) for lines in life] for life in by_job]


def check_together(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Check that holdings are on as many nodes as their configuration, each once, and end on all of them at once."""
    for life in by_job:
        for holding in life:
            nodes, wanted = holding.place[1], record.configurations[holding.configuration].nodes
            if len(nodes) != wanted or len(set(nodes)) != wanted:
                yield Difference(holding.where, nodes, wanted, "nodes held at once, and different nodes to hold")
            for line in holding.lines[1:]:
                if line.end_s != holding.end_s:
                    what = f"end_s, as on node {holding.lines[0].node} (line {holding.lines[0].line})"
                    yield Difference(line.where, line.end_s, holding.end_s, what)


def check_allowed(record: Record) -> Iterator[Difference]:
    """Compare GPUs, GPU type, memory, permission and shared GPU of each interval with the instance."""
    for interval in record.intervals:
        configuration = record.configurations[interval.configuration]
        node, job = record.nodes[interval.node], record.jobs[interval.job]
        if interval.gpus != configuration.gpus:
            yield Difference(interval.where, interval.gpus, configuration.gpus, "GPUs of the configuration")
        if node.gpu_type != configuration.gpu_type:
            yield Difference(interval.where, configuration.gpu_type, node.gpu_type, f"GPU type on node {interval.node}")
        if job.seconds_per_epoch[configuration.column] is None:
            yield Difference(interval.where, interval.configuration, "not allowed", "configuration of the job")
        memory = record.gpu_types[configuration.gpu_type].memory_gib * configuration.share
        if job.memory_gib > memory:
            yield Difference(interval.where, job.memory_gib, memory, "memory needed on a GPU, and there [GiB]")
        yield from _check_gpu(record, interval)


def _check_gpu(record: Record, interval: IntervalRecord) -> Iterator[Difference]:
    """A share has a numbered GPU, and whole GPUs have none."""
    is_shared, most = record.configurations[interval.configuration].is_shared, record.nodes[interval.node].gpus
    if is_shared and interval.gpu < 0:
        yield Difference(interval.where, interval.gpu, f"0 to {most - 1}", "number of the shared GPU")
    if not is_shared and interval.gpu >= 0:
        yield Difference(interval.where, interval.gpu, -1, "number of the shared GPU, -1 for whole GPUs")


def check_traced(table: Fields, submission: list[float], seconds: list[list[float | None]]) -> None:
    """Check when and on what jobs really ran, where a trace has told: a start after the submission, on what is allowed.

    Raises:
        InputError: One of the two columns is missing, or a value cannot be.
    """
    told = [name for name in ("traced_start_s", "traced_config") if table.optional(name, None) is not None]
    if not told:
        return
    count = len(submission)
    for index, start in enumerate(table.numbers("traced_start_s", count, TIME)):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('traced_start_s')}[{index}]", start)
    for index, config in enumerate(table.wholes("traced_config", count, index_below(len(seconds[0])))):
        if seconds[index][config] is None:
            raise InputError(f"{table.name('traced_config')}[{index}]", config, "one that the job may use")
