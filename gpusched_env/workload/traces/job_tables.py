"""Tables of jobs that are not plain columns: of Microsoft, `sacct --json`, slurmdbd, Gavel, Pollux and Sia."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.tables import read_table

if TYPE_CHECKING:
    from gpusched_env.workload.traces.cells import OddLines

SACCT_COLUMNS = (
    "JobID", "JobName", "User", "Account", "Partition", "Submit", "Start", "End", "ElapsedRaw", "AllocTRES", "ReqTRES",
    "State",
)  # fmt: skip
GAVEL_COLUMNS = ("job_type", "total_steps", "arrival", "scale_factor", "duration")
GAVEL_PLACES = {6: (3, 5, 4), 7: (4, 6, 5), 8: (4, 5, 7), 9: (4, 5, 8), 10: (5, 6, 9), 11: (5, 6, 10)}
"""By the number of cells of a line, those with steps, GPUs and arrival; before them are job type and command."""
ONLY_ENDED = "the JSON of sacct --json, whose jobs have time and tres; squeue --json has no jobs that ended"


def jobs_of_json(file: str, document: Any, *, skips: bool) -> tuple[pl.DataFrame, int]:
    """Return the jobs of `sacct --json` as the texts that `sacct -P` prints, and how many others are skipped.

    Raises:
        InputError: It is another document, or one of its jobs has another form.
    """
    jobs = document.get("jobs") if isinstance(document, dict) else None
    listed: list[Any] = jobs if isinstance(jobs, list) else [None]
    known = [isinstance(job, dict) and _has_tables(job) for job in listed]
    if known and not any(known):
        raise InputError(f"{file}: jobs", "no list of jobs with times", ONLY_ENDED)
    if not all(known) and not skips:
        raise _no_job(file, known.index(False) + 1, "without its times, or with another form of tres", ONLY_ENDED)
    rows = []
    for job in (job for job, good in zip(listed, known, strict=True) if good):
        time, tres = job["time"], job.get("tres") or {}
        state = job.get("state")
        state = state.get("current") if isinstance(state, dict) else state
        told = (job.get("job_id"), *(job.get(name) for name in ("name", "user", "account", "partition")))
        dates = (_date(time.get(name)) for name in ("submission", "start", "end"))
        counts = (_tres(tres.get(name)) for name in ("allocated", "requested"))
        state = state[0] if isinstance(state, list) and state else state
        cells = (*told, *dates, _number(time.get("elapsed")), *counts, state)
        rows.append([None if cell is None else str(cell) for cell in cells])
    table = pl.DataFrame(rows, schema=dict.fromkeys(SACCT_COLUMNS, pl.String), orient="row")
    return table, known.count(False)


def _has_tables(job: dict[str, Any]) -> bool:
    return isinstance(job.get("time"), dict) and isinstance(job.get("tres") or {}, dict)


def _no_job(file: str, number: int, what: str, allowed: str) -> InputError:
    said = "--skip-invalid (trace.skip_invalid) leaves such jobs out"
    return InputError(f"{file} job {number}", what, f"{allowed}; {said}")


def _number(value: Any) -> int | None:
    value = value.get("number") if isinstance(value, dict) and value.get("set", True) else value
    return value if isinstance(value, int) else None


def _date(value: Any) -> str | None:
    seconds = _number(value)
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") if seconds else None
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def _tres(entries: Any) -> str | None:
    known = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    names = ["/".join(filter(None, (str(each.get("type")), each.get("name")))) for each in known]
    return ",".join(f"{name}={each.get('count')}" for name, each in zip(names, known, strict=True)) or None


_PHILLY = ("jobid", "user", "vc", "status", "submitted_time")
_PHILLY_COLUMNS = (*_PHILLY, "start_time", "end_time", "duration", "gpus", "attempts")


def jobs_of_philly(file: str, jobs: Any, *, skips: bool) -> tuple[pl.DataFrame, int]:
    """Return Microsoft's `cluster_job_log` as texts with a row for each job, and how many others are skipped.

    Beside what a job has itself, a row holds the start of its first attempt, the end of its last one, how long all
    attempts took together [s], the most GPUs of an attempt, and how many there were. A job whose last begun attempt has
    no end was still running: it has no end and no duration.
    """
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(file, "no list of jobs", "a JSON list of jobs, as cluster_job_log is")
    rows = []
    for number, job in enumerate(jobs, 1):
        try:
            rows.append(_row(job))
        except (AttributeError, KeyError, TypeError, ValueError):
            if not skips:
                allowed = "a job with submitted_time and attempts, which have start_time, end_time and detail"
                raise _no_job(file, number, "another form", allowed) from None
    table = pl.DataFrame(rows, schema=dict.fromkeys(_PHILLY_COLUMNS, pl.String), orient="row")
    return table, len(jobs) - len(rows)


def _row(job: dict[str, Any]) -> tuple[str | None, ...]:
    attempts = [(_time(a.get("start_time")), _time(a.get("end_time")), a["detail"] or []) for a in job["attempts"]]
    ran = [(start, end) for start, end, _ in attempts if start is not None and end is not None]
    starts = [start for start, _, _ in attempts if start is not None]
    began = [end for start, end, _ in attempts if start is not None or end is not None]
    ended = bool(ran) and began[-1] is not None
    gpus = max((sum(len(machine["gpus"]) for machine in detail) for *_, detail in attempts), default=0)
    told = (*(job.get(key) for key in _PHILLY[:-1]), job["submitted_time"])
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
    return None if value in (None, "", "None") else datetime.fromisoformat(str(value))


def with_slurmdbd(table: pl.DataFrame) -> pl.DataFrame:
    """Add GPUs and their type to a dump of slurmdbd's table of jobs, and take times of 0 as not known.

    GPUs are those of `gres_used` or `gres_alloc` (`gpu:volta:2`), else the largest count in `tres_alloc` of the numbers
    from 1001 on, which a site gives to its own resources (`1001=2,1002=2`).
    """
    dates = {"time_submit", "time_start", "time_end"} & set(table.columns)
    times = [pl.col(name).replace("0", None) for name in dates]
    gres = pl.coalesce(
        *(pl.col(name).str.extract(r"^gpu:(.*)$", 1) for name in ("gres_used", "gres_alloc") if name in table.columns),
        pl.lit(None, pl.String),
    )
    tres = pl.col("tres_alloc") if "tres_alloc" in table.columns else pl.lit("")
    counts = tres.str.extract_all(r"\b1\d{3}=\d+").list.eval(pl.element().str.extract(r"=(\d+)", 1).cast(pl.Int64))
    gpus = pl.coalesce(gres.str.extract(r"(\d+)(?:\(.*)?$", 1).cast(pl.Int64), counts.list.max(), 0).cast(pl.String)
    kind = gres.str.extract(r"^([A-Za-z_][^:,(]*)", 1)
    return table.with_columns(*times, gpus.alias("gpus"), kind.alias("gpu_type"))


def is_gavel(first: str) -> bool:
    """Return whether the first line of a file is a job of Gavel."""
    cells = first.split("\t")
    return len(cells) in GAVEL_PLACES and all(plain_number(cells[place]) for place in GAVEL_PLACES[len(cells)])


def plain_number(cell: str) -> bool:
    return cell.strip().replace(".", "", 1).isdigit()


def read_gavel(lines: Sequence[str]) -> tuple[pl.DataFrame, OddLines]:
    """Return the jobs of a trace of Gavel, and the lines that are none.

    Durations are steps times the seconds of a step on V100, those of the published throughputs.
    """
    rows, odd = [], []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) in GAVEL_PLACES:
            steps, gpus, arrival = (cells[place] for place in GAVEL_PLACES[len(cells)])
            rows.append([cells[0], steps, arrival, gpus, _seconds("gavel", cells[0], "", gpus, steps)])
        elif line.strip():
            odd.append((number, len(cells)))
    return pl.DataFrame(rows, schema=dict.fromkeys(GAVEL_COLUMNS, pl.String), orient="row"), odd


def with_pollux(table: pl.DataFrame) -> pl.DataFrame:
    """Add how long each job of Pollux or Sia trains with the batch and GPUs that its user chose, on T4, `duration`."""
    columns = [table[name].fill_null("").to_list() for name in ("application", "batch_size", "num_replicas")]
    spent = [_seconds("pollux", kind, batch, gpus, "1") for kind, batch, gpus in zip(*columns, strict=True)]
    return table.with_columns(pl.Series("duration", spent, dtype=pl.String))


@cache
def _times() -> dict[tuple[str, str], dict[str, tuple[list[float], list[float]]]]:
    """Return GPUs and seconds by trace and kind of job, and by batch."""
    found: dict[tuple[str, str], dict[str, tuple[list[float], list[float]]]] = {}
    for row in read_table("trace_times.csv"):
        gpus, seconds = found.setdefault((row["trace"], row["kind"]), {}).setdefault(row["batch"], ([], []))
        gpus.append(float(row["gpus"]))
        seconds.append(float(row["seconds"]))
    return found


def _seconds(trace: str, kind: str, batch: str, gpus: str, times: str) -> str:
    """Return a time of `trace_times.csv`, linear between numbers of GPUs; a text where there is none."""
    known = _times().get((trace, kind), {})
    if batch not in known:
        return f"no time of {kind}{batch and f' with batch {batch}'}"
    if not plain_number(gpus) or not plain_number(times):
        return f"{times} x a time on {gpus} GPUs"
    return f"{float(times) * float(np.interp(float(gpus), *known[batch])):.9g}"
