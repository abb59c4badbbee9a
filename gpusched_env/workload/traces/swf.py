"""Traces in the Standard Workload Format of the Parallel Workloads Archive, as texts.

A line has 18 numbers; -1 is not known. Lines that begin with `;` are comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from gpusched_env.workload.traces.cells import OddLines

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
