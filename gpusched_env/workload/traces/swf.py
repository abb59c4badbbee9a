"""Traces in the Standard Workload Format of the Parallel Workloads Archive, as texts.

A line has 18 numbers; -1 is not known. Lines that begin with `;` are comments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from gpusched_env.workload.traces.cells import OddLines
    from gpusched_env.workload.traces.trace import Trace

FIELDS = (
    "job", "submit", "wait", "run", "allocated", "cpu_time", "memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think_time",
)  # fmt: skip
TAKEN = ("submit", "start", "run", "processors", "status", "user", "group", "queue", "partition")
UNKNOWN = "-1"


def is_swf(first: str) -> bool:
    """Return whether the first line of a file is one of this format: a comment, or 18 numbers."""
    cells = first.split()
    if first.startswith(";"):
        return ";" not in first[1:]
    return len(cells) == len(FIELDS) and all(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in cells)


def read_swf(lines: Sequence[str]) -> tuple[pl.DataFrame, OddLines]:
    """Return the jobs as texts with the columns `TAKEN`, and the lines that are none; what is not known is null.

    The start is submission + wait. Processors are those allocated, else those requested.
    """
    rows, odd = [], []
    for number, line in enumerate(lines, 1):
        cells = line.partition(";")[0].split()
        if cells and len(cells) != len(FIELDS):
            odd.append((number, len(cells)))
        elif cells:
            job = {name: None if cell == UNKNOWN else cell for name, cell in zip(FIELDS, cells, strict=True)}
            job["start"] = _sum(job["submit"], job["wait"])
            job["processors"] = job["allocated"] or job["requested"]
            rows.append([job[name] for name in TAKEN])
    return pl.DataFrame(rows, schema=dict.fromkeys(TAKEN, pl.String), orient="row"), odd


def _sum(first: str | None, second: str | None) -> str | None:
    try:
        return None if first is None or second is None else repr(float(first) + float(second))
    except ValueError:
        return None


def swf_text(trace: Trace) -> str:
    """Write a trace in this format: one processor for each GPU, times in whole seconds from the first submission.

    A share of a GPU counts as one processor. Users, tenants (as groups) and GPU types (as partitions) are numbered in
    order of appearance, and named in the header.
    """
    named = [("User", trace.user), ("Group", trace.tenant), ("Partition", trace.gpu_type)]
    numbers = [{name: n for n, name in enumerate(dict.fromkeys(names or ()), 1)} for _, names in named]
    head = ["; Version: 2.2", f"; Note: jobs of {trace.name}, a processor is a GPU", f"; MaxJobs: {len(trace)}"]
    for (kind, _), each in zip(named, numbers, strict=True):
        head += [f"; {kind}: {number} {name}" for name, number in each.items()]
    lines = []
    for i, (submit, run, gpus) in enumerate(zip(trace.submission_s, trace.duration_s, trace.gpus, strict=True)):
        begin = round(float(submit))
        wait = -1 if trace.start_s is None else round(float(trace.start_s[i])) - begin
        count = math.ceil(float(gpus))
        told = [number[names[i]] if names else -1 for (_, names), number in zip(named, numbers, strict=True)]
        row = [i + 1, begin, wait, max(1, round(float(run))), count, -1, -1, count, -1, -1, 1]
        lines.append(" ".join(map(str, [*row, *told[:2], -1, -1, told[2], -1, -1])))
    return "\n".join([*head, *lines]) + "\n"
