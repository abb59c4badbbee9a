"""Philly's virtual clusters as tenants: its trace on nodes of eight GPUs, with hard affinity."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpusched_env.model import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    JobTable,
    Node,
    Tenant,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRACE = Path("../shared/data/philly/philly.csv")
FIRST, LAST = pl.datetime(2017, 10, 1), pl.datetime(2017, 12, 1)
QUICK_LAST = pl.datetime(2017, 10, 15)
LARGEST_TENANTS = 11
HEADROOM = 1.3
"""A tenant was promised so much more than it uses in the mean."""
NODE_GPUS = 8
GPU = GpuType("K80", gpu_power_w=150.0, node_base_power_w=350.0, memory_gib=12.0, max_gpus_per_node=NODE_GPUS)
DAY_S = 86400.0


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Some of the trace's jobs, by submission.

    Attributes:
        submission_s: Submission times, from the first [s], (J,).
        duration_s: Durations [s], (J,).
        gpus: GPUs asked for, (J,).
        tenant: Index of the virtual cluster, (J,).
        names: Their names.
        nodes: Nodes that each was promised.
    """

    submission_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    gpus: NDArray[np.int64]
    tenant: NDArray[np.int64]
    names: tuple[str, ...]
    nodes: tuple[int, ...]


def read(path: Path, *, quick: bool) -> Trace:
    """Read October and November 2017 of the largest virtual clusters, by GPU time; quick: the jobs of two weeks.

    What tenants were promised follows from both months either way.
    """
    table = pl.read_csv(path, try_parse_dates=True).filter(
        (pl.col("timestamp") >= FIRST) & (pl.col("timestamp") < LAST)
    )
    use = table.group_by("cluster").agg(pl.col("gpu_time").sum()).sort("gpu_time", "cluster", descending=True)
    use = use.head(LARGEST_TENANTS)
    months_s = (table["timestamp"].max() - table["timestamp"].min()).total_seconds()  # type: ignore[operator,union-attr]
    nodes = [int(np.ceil(HEADROOM * s / months_s / NODE_GPUS)) for s in use["gpu_time"]]
    if quick:
        table = table.filter(pl.col("timestamp") < QUICK_LAST)
    names = use["cluster"].to_list()
    table = table.filter(pl.col("cluster").is_in(names)).sort("timestamp", maintain_order=True)
    seconds = table["timestamp"].dt.epoch("s").to_numpy().astype(np.float64)
    return Trace(
        submission_s=seconds - seconds[0],
        duration_s=table["duration"].to_numpy().astype(np.float64),
        gpus=table["num_gpus"].to_numpy().astype(np.int64),
        tenant=np.array([names.index(name) for name in table["cluster"]], dtype=np.int64),
        names=tuple(names),
        nodes=tuple(nodes),
    )


def shared(trace: Trace) -> Instance:
    """Make the cluster that all tenants share, with quotas: as many GPUs as each was promised nodes of.

    A job gets just the GPUs that it asked for, on one node or on whole ones; none more than its tenant was promised.
    """
    size = np.where(trace.gpus > NODE_GPUS, -(-trace.gpus // NODE_GPUS) * NODE_GPUS, trace.gpus)
    size = np.minimum(size, NODE_GPUS * np.array(trace.nodes)[trace.tenant])
    sizes = np.unique(size).tolist()
    configurations = tuple(Configuration(GPU.name, min(s, NODE_GPUS), nodes=max(1, s // NODE_GPUS)) for s in sizes)
    seconds = np.where(size[:, None] == np.array(sizes)[None, :], trace.duration_s[:, None], np.inf)
    tenants = tuple(
        Tenant(name, (Cells(GPU.name, NODE_GPUS, nodes),)) for name, nodes in zip(trace.names, trace.nodes, strict=True)
    )
    nodes = (Node(GPU.name, NODE_GPUS),) * sum(trace.nodes)
    return Instance((GPU,), nodes, configurations, _table(trace, seconds), tenants=tenants, tenancy="quota")


def _table(trace: Trace, seconds: NDArray[np.float64]) -> JobTable:
    """Make the jobs: one epoch each, of a length that is known, and no due dates."""
    count = len(trace.submission_s)
    return JobTable(
        submission_s=trace.submission_s,
        due_s=np.full(count, 1e10),
        tardiness_weight_eur_per_s=np.zeros(count),
        max_epochs=np.ones(count),
        epochs_needed=np.ones(count),
        memory_gib=np.zeros(count),
        seconds_per_epoch=seconds,
        application=np.zeros(count, dtype=np.int64),
        applications=("job",),
        distribution=np.zeros(count, dtype=np.int64),
        distributions=(EpochDistribution(np.array([0.0, 1.0]), np.array([1.0])),),
        tenant=trace.tenant,
    )


def private(instance: Instance, tenant: int) -> tuple[Instance, NDArray[np.int64]]:
    """Give the cluster of one tenant alone, with its nodes and its jobs, and the indices of those."""
    jobs = instance.jobs
    own = np.flatnonzero(jobs.tenant == tenant)
    columns = {field.name: getattr(jobs, field.name) for field in fields(jobs)}
    rows = {name: column[own] for name, column in columns.items() if isinstance(column, np.ndarray)}
    rows["tenant"] = np.zeros(len(own), dtype=np.int64)
    table = replace(jobs, **rows)  # type: ignore[arg-type]
    nodes = (Node(GPU.name, NODE_GPUS),) * (instance.tenants[tenant].gpus(GPU.name) // NODE_GPUS)
    alone = replace(instance, nodes=nodes, jobs=table, tenants=(instance.tenants[tenant],), tenancy="none")
    return alone, own
