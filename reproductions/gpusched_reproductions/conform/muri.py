"""What Muri's program answers for AntMan, Tiresias and SRTF, compared with our own version of its rules.

A table has the columns of `COLUMNS`: for a trace, a number of nodes with 8 GPUs and a policy, how many jobs ended, the
mean completion, the end of the last one, and the 99 % quantile of completion (of n sorted values that at floor(0.99 n),
from 0), in seconds. A ' after the name of a trace means that all of its jobs are submitted at once. A row agrees if as
many jobs end, and each time is within 0.1 %.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.data_sources import where_from
from gpusched_reproductions.systems.muri.preemptive import MuriTiresias, Srtf
from gpusched_reproductions.systems.muri.program import MuriPolicy, simulate_trace
from gpusched_reproductions.systems.muri.sharing import MuriAntMan
from gpusched_reproductions.systems.muri.traces import TraceJob, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

POLICIES: dict[str, Callable[[int], MuriPolicy]] = {"AntMan": MuriAntMan, "Tiresias": MuriTiresias, "SRTF": Srtf}
COLUMNS = ("trace", "nodes", "policy", "jobs", "mean_completion_s", "end_s", "p99_completion_s")
VALUES = f"policies: {', '.join(POLICIES)}; numbers > 0"
TOLERANCE = 1e-3
"""Relative deviation of a time that counts as agreement."""
AT_ONCE = "'"
"""How the name of a trace ends whose jobs are all submitted at once."""


@dataclass(frozen=True, slots=True)
class MuriTimes:
    """How many jobs ended, and their times [s].

    Attributes:
        jobs: How many jobs ended.
        mean_s: Their mean completion.
        end_s: End of the last one.
        p99_s: The 99 % quantile of their completion.
    """

    jobs: int
    mean_s: float
    end_s: float
    p99_s: float

    @classmethod
    def of(cls, jobs: Sequence[TraceJob], policy: MuriPolicy) -> MuriTimes:
        ended = [job for job in simulate_trace(jobs, policy) if job.end_s < inf]
        completion_s = sorted(job.end_s - job.trace.submission_s for job in ended)
        if not ended:
            return cls(0, inf, inf, inf)
        at = int(0.99 * len(ended))
        return cls(len(ended), fmean(completion_s), max(job.end_s for job in ended), completion_s[at])

    def deviation(self, other: MuriTimes) -> float:
        """Return the largest relative deviation of a time from that of another program; inf if other jobs ended."""
        if self.jobs != other.jobs:
            return inf
        pairs = ((self.mean_s, other.mean_s), (self.end_s, other.end_s), (self.p99_s, other.p99_s))
        return max(abs(own / theirs - 1.0) for own, theirs in pairs)

    def __str__(self) -> str:
        return f"{self.jobs} jobs, mean {self.mean_s:.1f}, end {self.end_s:.1f}, 99 % {self.p99_s:.1f} s"


@dataclass(frozen=True, slots=True)
class _Row:
    trace: str
    nodes: int
    policy: str
    times: MuriTimes


def answers(paths: Sequence[Path], table: Path | None = None) -> Iterator[Answer]:
    """Yield every row of the tables of some folders, with our times.

    Args:
        paths: Folders with answers.csv and traces; a trace that is not there is looked for in `muri` next to it.
        table: Another table than the answers.csv of each folder.

    Raises:
        InputError: A table or a trace is not there, or is not of this form.
    """
    for folder in paths:
        for row in read_table(folder / "answers.csv" if table is None else table):
            jobs = _jobs(_trace_file(folder, row.trace.removesuffix(AT_ONCE)), row.trace.endswith(AT_ONCE))
            own = MuriTimes.of(jobs, POLICIES[row.policy](row.nodes))
            deviation = own.deviation(row.times)
            case = f"trace {row.trace}, {row.nodes} nodes, {row.policy}"
            ours = f"{own} (largest deviation {deviation:.4%})" if deviation < inf else str(own)
            yield Answer(case, str(row.times), ours, deviation <= TOLERANCE)


def read_table(path: Path) -> list[_Row]:
    """Read a table of answers.

    Raises:
        InputError: It cannot be read, has no rows, lacks a column, or has a value that is not allowed.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_row(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(str(path), str(error), f"a table with the columns {', '.join(COLUMNS)}; {VALUES}") from error
    if not rows:
        raise InputError(str(path), "no rows", "a table with a row or more")
    return rows


def _row(row: dict[str, str]) -> _Row:
    trace, nodes, policy, jobs, *times = (row[name] for name in COLUMNS)
    found = _Row(trace, int(nodes), policy, MuriTimes(int(jobs), *(float(each) for each in times)))
    if policy not in POLICIES:
        raise ValueError(policy)
    if not all(0.0 < each < inf for each in (found.nodes, found.times.jobs, *map(float, times))):
        raise ValueError(",".join(row[name] for name in COLUMNS))
    return found


def _trace_file(folder: Path, trace: str) -> Path:
    places = [place / f"trace{trace}.csv" for place in (folder, folder.resolve().parent / "muri")]
    for place in places:
        if place.is_file():
            return place
    allowed = f"a file there or in {places[1].parent}{where_from(places[1])}"
    raise InputError("trace", str(places[0]), allowed)


@cache
def _jobs(path: Path, at_once: bool) -> list[TraceJob]:
    return read_trace(path, at_once=at_once)
