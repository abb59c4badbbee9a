"""Microsoft's Philly trace as published: `cluster_job_log`, one JSON list of jobs with their attempts."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.packed import UNREADABLE, text_of

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = ("jobid", "user", "vc", "status", "submitted_time")
_COLUMNS = (*_KEYS, "start_time", "end_time", "duration", "gpus", "attempts")


def read_philly_json(path: Path) -> pl.DataFrame:
    """Read the file as a table of texts with a row for each job.

    Beside what a job has itself, a row holds the start of its first attempt, the end of its last one, how long all
    attempts took together [s], the most GPUs of an attempt, and how many there were. A job whose last begun attempt has
    no end was still running: it has no end and no duration.

    Raises:
        InputError: The file is not such a list.
    """
    try:
        jobs = json.loads(text_of(path))
    except (*UNREADABLE, RecursionError) as error:
        raise InputError(path.name, str(error), "a whole JSON file in UTF-8, as cluster_job_log is") from None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(path.name, type(jobs).__name__, "a JSON list of jobs, as cluster_job_log is")
    try:
        rows = [_row(job) for job in jobs]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        allowed = "jobs with submitted_time and attempts, which have start_time, end_time and detail"
        raise InputError(f"{path.name}: a job", repr(error), allowed) from None
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")


def _row(job: dict[str, Any]) -> tuple[str | None, ...]:
    attempts = [(_time(a.get("start_time")), _time(a.get("end_time")), a["detail"] or []) for a in job["attempts"]]
    ran = [(start, end) for start, end, _ in attempts if start is not None and end is not None]
    starts = [start for start, _, _ in attempts if start is not None]
    began = [end for start, end, _ in attempts if start is not None or end is not None]
    ended = bool(ran) and began[-1] is not None
    gpus = max((sum(len(machine["gpus"]) for machine in detail) for *_, detail in attempts), default=0)
    told = (*(job.get(key) for key in _KEYS[:-1]), job["submitted_time"])
    values = (
        *told,
        min(starts) if starts else None,
        max(end for _, end in ran) if ended else None,
        sum((end - start).total_seconds() for start, end in ran) if ended else None,
        gpus,
        len(attempts),
    )
    return tuple(None if value is None else str(value) for value in values)


def _time(value: object) -> datetime | None:
    """Read a time; nothing, or the word None, is none."""
    return None if value in (None, "", "None") else datetime.fromisoformat(str(value))
