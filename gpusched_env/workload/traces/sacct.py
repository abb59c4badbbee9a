"""What `sacct` prints of a job: its steps, attempts, elapsed times, and GPUs in the columns of resources."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gpusched_env.workload.traces.columns import missing

_STEP = r"\."
_ELAPSED = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"
_FACTORS = (86400.0, 3600.0, 60.0, 1.0)
_OF_GPUS = r"^(?:gres[:/])?gpu(?::|$)"
_NOTE = r"\([^)]*\)"  # which ones, as in gpu:2(IDX:0,1)
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
    if (identity := _identity(table)) is not None:
        table = table.filter(~pl.col(identity).str.contains(_STEP).fill_null(value=False))
    added = []
    if (elapsed := _elapsed(table)) is not None:
        if "End" in table.columns:
            ended = ~missing(table["End"].str.strip_chars())
            elapsed = pl.select(pl.when(ended).then(elapsed)).to_series()
        added.append(elapsed.cast(pl.String).alias("elapsed_s"))
    tres = [table[name] for name in _TRES if name in table.columns]
    gres = [table[name] for name in _GRES if name in table.columns]
    if tres or gres:
        gpus = pl.coalesce([*map(_of_tres, tres), *map(_of_gres, gres), pl.lit(0)])
        added.append(pl.select(gpus).to_series().cast(pl.String).alias("gpus"))
        named = [text.str.split(",").list.eval(_TYPE_OF_TRES) for text in tres]
        named += [text.str.split(",").list.eval(_TYPE_OF_GRES) for text in gres]
        names = [each.list.drop_nulls().list.unique(maintain_order=True).list.join("+") for each in named]
        found = pl.select(pl.coalesce(pl.when(each != "").then(each) for each in names)).to_series()
        added += [] if found.is_null().all() else [found.alias("gpu_type")]
    return table.with_columns(added)


def earlier_attempts(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which rows have one with the same JobID, cluster and user below them, shape (rows,).

    `sacct -D` prints a row for each attempt of a job that was queued again, and other tools print what it told twice.
    """
    identity = _identity(table)
    if identity is None:
        return np.zeros(len(table), dtype=np.bool_)
    keys = [identity, *(name for name in ("Cluster", "User") if name in table.columns)]
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
    total = parts[3] * 0.0
    for part, factor in zip(parts, _FACTORS, strict=True):
        total = total + part.fill_null(0.0) * factor
    return pl.select(pl.when(parts[3].is_not_null()).then(total)).to_series()


def _of_tres(text: pl.Series) -> pl.Series:
    """Read `…,gres/gpu=4,…`, else the sum of `gres/gpu:a100=4`; null where the cell is empty."""
    total = text.str.extract(r"(?:^|,)gres/gpu=(\d+)", 1).cast(pl.Int64, strict=False)
    of_types = text.str.extract_all(r"gres/gpu:[^=,]+=\d+")
    typed = of_types.list.eval(pl.element().str.extract(r"(\d+)$", 1).cast(pl.Int64)).list.sum()
    return pl.select(pl.when(text.is_not_null()).then(pl.coalesce([total, typed]))).to_series()


def _of_gres(text: pl.Series) -> pl.Series:
    """Read `gpu:a100:4`, `gpu:4` or `gpu`, which is one, several with commas between; null where the cell is empty."""
    entry = pl.element().str.strip_chars()
    gpus = pl.when(entry.str.contains(_OF_GPUS)).then(entry.str.extract(r":(\d+)$").cast(pl.Int64).fill_null(1))
    total = text.str.replace_all(_NOTE, "").str.split(",").list.eval(gpus).list.sum()
    return pl.select(pl.when(text.is_not_null()).then(total)).to_series()
