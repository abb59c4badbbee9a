"""When holdings make progress: the costs of switching by distance, and the states that host memory keeps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from gpusched_env.audit.instance_record import JobRecord
from gpusched_env.audit.reading import Difference, same_time
from gpusched_env.audit.record import Holding, Record

BYTES = 2.0**30


class Course:
    """The course of a job so far: its last holding, when that was or will be ready, and where its state is."""

    def __init__(self, record: Record, facts: JobRecord) -> None:
        self._facts, self._memory = facts, record.host_memory
        self._before: Holding | None = None
        self.ready_s = 0.0
        self.nodes: list[int] | None = None  # where it was last ready
        self.dropped = False  # whether its state is not there any more

    def begin(self, holding: Holding) -> None:
        facts, before = self._facts, self._before
        if before is not None and (holding.same_gpus(before) or _changes_share(facts, before, holding)):
            self.ready_s = max(holding.start_s, self.ready_s)
        elif self.nodes is None:
            self.ready_s = holding.start_s + facts.start_s
        else:
            there = facts.resume_s is not None and holding.place[1] == self.nodes and not self.dropped
            self.ready_s = holding.start_s + (self._resume_s(holding) if there else facts.restart_s)
        self._before = holding

    def end(self, holding: Holding) -> None:
        if self.ready_s <= holding.end_s:
            self.nodes, self.dropped = holding.place[1], False

    def _resume_s(self, holding: Holding) -> float:
        """Return the time of continuing, in which the GPUs on a link send one after the other."""
        alone_s, memory = self._facts.resume_s or 0.0, self._memory
        others = min(holding.configuration.gpus, memory.gpus_per_link) - 1
        send_s = self._facts.state_gib * BYTES / (memory.bandwidth_gb_per_s * 1e9)
        return min(alone_s + 2 * others * send_s, max(alone_s, self._facts.restart_s))


def check_ready(record: Record, by_job: list[list[Holding]]) -> list[list[Difference]]:
    """Check that progress begins after the cost of the switch, which depends on where the state is; by job.

    All jobs are followed together through time, since their states share the host memory of nodes.
    """
    courses = [Course(record, facts) for facts in record.jobs]
    found: list[list[Difference]] = [[] for _ in by_job]
    pools: dict[int, int] | None = None
    if math.isfinite(record.host_memory.pool_gib):
        pools = defaultdict(lambda: math.floor(record.host_memory.pool_gib * BYTES))
    kept: dict[int, int] = {}
    begins, ends = defaultdict(list), defaultdict(list)
    for job, life in enumerate(by_job):
        for i, holding in enumerate(life):
            begins[holding.start_s].append((job, holding))
            ends[holding.end_s].append((job, holding, i + 1 < len(life) and life[i + 1].start_s > holding.end_s))
    for time in sorted({*begins, *ends}):
        for job, holding, _ in ends[time]:
            courses[job].end(holding)
        for job, holding in begins[time]:
            if pools is not None and job in kept:
                pools[kept.pop(job)] += math.ceil(record.jobs[job].state_gib * BYTES)
            courses[job].begin(holding)
            found[job] += _compare(holding, courses[job].ready_s)
        for job, _, pauses in ends[time]:
            if pools is not None and pauses:
                _keep(courses[job], job, math.ceil(record.jobs[job].state_gib * BYTES), pools, kept)
    return found


def _keep(course: Course, job: int, size: int, pools: dict[int, int], kept: dict[int, int]) -> None:
    """Keep the state of a job that pauses in the memory of its one node, or drop it."""
    if course.nodes is None or course.dropped:
        return
    if len(course.nodes) == 1 and pools[course.nodes[0]] >= size:
        kept[job] = course.nodes[0]
        pools[course.nodes[0]] -= size
    else:
        course.dropped = True


def _compare(holding: Holding, ready_s: float) -> Iterator[Difference]:
    for line in holding.lines:
        expected = min(line.end_s, ready_s)
        if not same_time(line.ready_s, expected):
            yield Difference(line.where, line.ready_s, expected, "ready_s, from when on it makes progress [s]")


def _changes_share(facts: JobRecord, before: Holding, holding: Holding) -> bool:
    """Whether it is another share of the same GPU, without a pause, where that costs nothing."""
    shared = before.configuration.is_shared and holding.configuration.is_shared
    sizes = [(each.configuration.gpus, each.configuration.nodes) for each in (before, holding)]
    together = before.place == holding.place and before.end_s == holding.start_s and sizes[0] == sizes[1]
    return facts.resume_s is not None and shared and together
