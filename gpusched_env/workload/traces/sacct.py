"""Slurm's accounting as `sacct -P` prints it, and Philly's JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpusched_env.errors import InputError
from gpusched_env.workload.traces.columns import missing
from gpusched_env.workload.traces.packed import UNREADABLE, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_STEP = r"\."
_ELAPSED = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"
_OF_GPUS = r"^(?:gres[:/])?gpu(?::|$)"
_NOTE = r"\([^)]*\)"  # which ones, as in gpu:2(IDX:0,1)
_FACTORS = (86400.0, 3600.0, 60.0, 1.0)
_TYPE_OF_TRES = pl.element().str.extract(r"^gres/gpu:([^=]+)=[1-9]", 1)
_TYPE_OF_GRES = pl.element().str.strip_chars().str.extract(r"^(?:gres[:/])?gpu:(\d*[^\d:(][^:(]*)", 1)
_TRES = ("AllocTRES", "ReqTRES")
_GRES = ("AllocGRES", "ReqGRES", "ReqGres", "AllocGres")


def jobs_of_sacct(table: pl.DataFrame) -> pl.DataFrame:
    """Leave job steps (`123.batch`) out; add what a job ran, `elapsed_s` [s], and number and type of its GPUs.

    Args:
        table: What `sacct -P` printed, as texts. It needs `ElapsedRaw` or `Elapsed`, or both `Start` and `End`; and the
            GPUs stand in `AllocTRES`, `ReqTRES`, `AllocGRES` or `ReqGRES`, the first that says something of a job. A
            column that is missing is not added: `gpus`, and `gpu_type` where no job names a type.

    Returns:
        The table; a job without an end has no `elapsed_s`.
    """
    identity = _identity(table)
    if identity is not None:
        table = table.filter(~pl.col(identity).str.contains(_STEP).fill_null(value=False))
    added = []
    if (elapsed := _elapsed(table)) is not None:
        if "End" in table.columns:
            ended = ~missing(table["End"].str.strip_chars())
            elapsed = pl.select(pl.when(ended).then(elapsed)).to_series()
        added.append(elapsed.cast(pl.String).alias("elapsed_s"))
    if (gpus := _gpus(table)) is not None:
        added.append(gpus.cast(pl.String).alias("gpus"))
    if (gpu_type := _gpu_type(table)) is not None:
        added.append(gpu_type.alias("gpu_type"))
    return table.with_columns(added)


def earlier_attempts(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which rows have one with the same JobID, cluster and user below them, shape (rows,).

    `sacct -D` prints a row for each attempt of a job that was queued again, and other tools print what it told twice.
    """
    keys = [name for name in (_identity(table), "Cluster", "User") if name is not None and name in table.columns]
    if _identity(table) is None:
        return np.zeros(len(table), dtype=np.bool_)
    earlier: NDArray[np.bool_] = (~table.select(pl.struct(keys)).to_series().is_last_distinct()).to_numpy()
    return earlier


def _identity(table: pl.DataFrame) -> str | None:
    return next((name for name in ("JobID", "JobIDRaw") if name in table.columns), None)


def _elapsed(table: pl.DataFrame) -> pl.Series | None:
    if "ElapsedRaw" in table.columns:
        return table["ElapsedRaw"].str.strip_chars().cast(pl.Float64, strict=False)
    if "Elapsed" not in table.columns:
        return None
    text = table["Elapsed"].str.strip_chars()
    parts = [text.str.extract(_ELAPSED, i + 1).cast(pl.Float64, strict=False) for i in range(4)]
    known = parts[3].is_not_null()
    total = parts[3] * 0.0
    for part, factor in zip(parts, _FACTORS, strict=True):
        total = total + part.fill_null(0.0) * factor
    return pl.select(pl.when(known).then(total)).to_series()


def _gpus(table: pl.DataFrame) -> pl.Series | None:
    """Count each job's GPUs: by the first column that says something of it; 0 if none does."""
    said = [_of_tres(table[name]) for name in _TRES if name in table.columns]
    said += [_of_gres(table[name]) for name in _GRES if name in table.columns]
    return pl.select(pl.coalesce([*said, pl.lit(0)])).to_series() if said else None


def _gpu_type(table: pl.DataFrame) -> pl.Series | None:
    """Return each job's GPU type, several with + between, by the first column that names any; None if none does."""
    said = [table[name].str.split(",").list.eval(_TYPE_OF_TRES) for name in _TRES if name in table.columns]
    said += [table[name].str.split(",").list.eval(_TYPE_OF_GRES) for name in _GRES if name in table.columns]
    names = [each.list.drop_nulls().list.unique(maintain_order=True).list.join("+") for each in said]
    found = pl.select(pl.coalesce(pl.when(each != "").then(each) for each in names)).to_series() if names else None
    return None if found is None or found.is_null().all() else found


def _of_tres(text: pl.Series) -> pl.Series:
    """Read `…,gres/gpu=4,…`, else the sum of `gres/gpu:a100=4`; null where the cell is empty."""
    total = text.str.extract(r"(?:^|,)gres/gpu=(\d+)", 1).cast(pl.Int64, strict=False)
    typed = _sum(text.str.extract_all(r"gres/gpu:[^=,]+=\d+"))
    return pl.select(pl.when(text.is_not_null()).then(pl.coalesce([total, typed]))).to_series()


def _of_gres(text: pl.Series) -> pl.Series:
    """Read `gpu:a100:4`, `gpu:4` or `gpu`, which is one, several with commas between; null where the cell is empty."""
    entry = pl.element().str.strip_chars()
    gpus = pl.when(entry.str.contains(_OF_GPUS)).then(entry.str.extract(r":(\d+)$").cast(pl.Int64).fill_null(1))
    total = text.str.replace_all(_NOTE, "").str.split(",").list.eval(gpus).list.sum()
    return pl.select(pl.when(text.is_not_null()).then(total)).to_series()


def _sum(found: pl.Series) -> pl.Series:
    """Add up the numbers in which texts of a list end."""
    return found.list.eval(pl.element().str.extract(r"(\d+)$", 1).cast(pl.Int64)).list.sum()


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
