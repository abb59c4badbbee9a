"""What `sacct` prints of a job: its steps, attempts, elapsed times, and GPUs in the columns of resources."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gpusched_env.workload.tables import SLICE, SLICES
from gpusched_env.workload.traces.columns import missing

OF_SLURM = {"Elapsed", "ElapsedRaw", "AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES", "ReqGres", "AllocGres"}
"""Columns by which a table with JobID is known as one of `sacct`, whatever stands between its cells."""
_OTHERS = r"(^|,)(gres/|shard|mps)"
_STEP = r"\."
_ELAPSED = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"
_FACTORS = (86400.0, 3600.0, 60.0, 1.0)
_OF_GPUS = r"^(?:gres[:/])?gpu(?::|$)"
_PART = (pl.element().str.extract(f"(?i){SLICE}", 1).cast(pl.Float64) / SLICES).fill_null(1.0)  # of a GPU
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

    A slice of MIG counts as that many sevenths of a GPU (`a100_3g.20gb`), more than one GPU as whole ones.

    Returns:
        The table; a job without an end has no `elapsed_s`; one that cannot be read stands there as it is.
    """
    if (identity := _identity(table)) is not None:
        table = table.filter(~pl.col(identity).str.contains(_STEP).fill_null(value=False))
    added = []
    if (elapsed := _elapsed(table)) is not None:
        if "End" in table.columns:
            ended = ~missing(table["End"].str.strip_chars())
            elapsed = pl.select(pl.when(ended).then(elapsed)).to_series()
        added.append(elapsed.alias("elapsed_s"))
    tres = [table[name] for name in _TRES if name in table.columns]
    gres = [table[name] for name in _GRES if name in table.columns]
    if tres or gres:
        gpus = pl.select(pl.coalesce([*map(_of_tres, tres), *map(_of_gres, gres), pl.lit(0)])).to_series()
        named = [text.str.split(",").list.eval(_TYPE_OF_TRES) for text in tres]
        named += [text.str.split(",").list.eval(_TYPE_OF_GRES) for text in gres]
        names = [each.list.drop_nulls().list.unique(maintain_order=True).list.join("+") for each in named]
        found = pl.select(pl.coalesce(pl.when(each != "").then(each) for each in names)).to_series()
        added += [] if found.is_null().all() else [found.alias("gpu_type")]
        held = gpus.cast(pl.Float64).round(9)
        whole = pl.when((held > 1.0) | (held == held.floor())).then(held.ceil().cast(pl.Int64).cast(pl.String))
        added.append(pl.select(whole.otherwise(held.cast(pl.String))).to_series().alias("gpus"))
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


def asked_for_others(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which jobs asked for generic resources and no GPU among them, such as shares of GPUs, shape (rows,)."""
    texts = [pl.col(name).fill_null("") for name in (*_TRES, *_GRES) if name in table.columns]
    if not texts:
        return np.zeros(len(table), dtype=np.bool_)
    text = table.select(pl.concat_str(texts, separator=",")).to_series()
    others: NDArray[np.bool_] = (text.str.contains(_OTHERS) & ~text.str.contains(r"(^|[,/:])gpu")).to_numpy()
    return others


def _identity(table: pl.DataFrame) -> str | None:
    return next((name for name in ("JobID", "JobIDRaw") if name in table.columns), None)


def _elapsed(table: pl.DataFrame) -> pl.Series | None:
    """Return what jobs ran [s] as texts; a cell that cannot be read stays as it is."""
    name = next((name for name in ("ElapsedRaw", "Elapsed") if name in table.columns), None)
    if name is None:
        return None
    text = table[name].str.strip_chars()
    seconds = text.cast(pl.Float64, strict=False)
    if name == "Elapsed":
        parts = [text.str.extract(_ELAPSED, i + 1).cast(pl.Float64, strict=False) for i in range(4)]
        total = parts[3] * 0.0
        for part, factor in zip(parts, _FACTORS, strict=True):
            total = total + part.fill_null(0.0) * factor
        seconds = pl.select(pl.when(parts[3].is_not_null()).then(total)).to_series()
    return pl.select(pl.coalesce(seconds.cast(pl.String), text)).to_series()


def _of_tres(text: pl.Series) -> pl.Series:
    """Read `…,gres/gpu=4,…`, or the sum of `gres/gpu:a100=4`, with slices; null where the cell is empty."""
    total = text.str.extract(r"(?:^|,)gres/gpu=(\d+)", 1).cast(pl.Float64, strict=False)
    of_types = text.str.extract_all(r"gres/gpu:[^=,]+=\d+")
    count = pl.element().str.extract(r"(\d+)$", 1).cast(pl.Float64)
    slices = of_types.list.eval(count * (1.0 - _PART)).list.sum()  # what these are less than GPUs
    typed = of_types.list.eval(count).list.sum()
    return pl.select(pl.when(text.is_not_null()).then(pl.coalesce([total, typed]) - slices)).to_series()


def _of_gres(text: pl.Series) -> pl.Series:
    """Read `gpu:a100:4`, `gpu:4` or `gpu`, which is one, several with commas between; null where the cell is empty."""
    entry = pl.element().str.strip_chars()
    count = entry.str.extract(r":(\d+)$").cast(pl.Float64).fill_null(1.0)
    gpus = pl.when(entry.str.contains(_OF_GPUS)).then(count * _PART)
    total = text.str.replace_all(_NOTE, "").str.split(",").list.eval(gpus).list.sum()
    return pl.select(pl.when(text.is_not_null()).then(total)).to_series()
