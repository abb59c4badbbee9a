"""Philly's virtual clusters: what their jobs asked for, and the clusters that could have served them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.model import Cells, Configuration, EpochDistribution, GpuType, Instance, JobTable, Node, Tenant
from gpusched_env.workload import builtin_applications
from gpusched_reproductions.data_sources import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

TRACE = DATA / "philly" / "philly.csv"
FIRST, LAST = pl.datetime(2017, 10, 1), pl.datetime(2017, 12, 1)
QUICK_LAST = pl.datetime(2017, 10, 15)
LARGEST_TENANTS = 11
HEADROOM = 1.3
"""GPUs that a tenant was promised over those that it uses in the mean: not public, an assumption."""
NODE_GPUS = 8
GPU = GpuType("V100", gpu_power_w=250.0, node_base_power_w=350.0, memory_gib=16.0, max_gpus_per_node=NODE_GPUS)


@dataclass(frozen=True, slots=True, eq=False)
class TenantTrace:
    """Some of the trace's jobs, by submission.

    Attributes:
        submission_s: Submission times, from the first [s], (J,).
        duration_s: Durations [s], (J,).
        gpus: GPUs asked for, (J,).
        tenant: Index of the virtual cluster, (J,).
        names: Their names.
        promised: GPUs that each was promised.
    """

    submission_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    gpus: NDArray[np.int64]
    tenant: NDArray[np.int64]
    names: tuple[str, ...]
    promised: tuple[int, ...]


def read_trace(path: Path, *, quick: bool, headroom: float = HEADROOM) -> TenantTrace:
    """Read October and November 2017 of the largest virtual clusters, by GPU time; quick: the jobs of two weeks.

    What tenants were promised follows from both months either way.
    """
    table = pl.read_csv(path, try_parse_dates=True).filter(
        (pl.col("timestamp") >= FIRST) & (pl.col("timestamp") < LAST)
    )
    use = table.group_by("cluster").agg(pl.col("gpu_time").sum()).sort("gpu_time", "cluster", descending=True)
    use = use.head(LARGEST_TENANTS)
    months_s = (table["timestamp"].max() - table["timestamp"].min()).total_seconds()  # type: ignore[operator,union-attr]
    promised = [int(np.ceil(headroom * s / months_s)) for s in use["gpu_time"]]
    if quick:
        table = table.filter(pl.col("timestamp") < QUICK_LAST)
    names = use["cluster"].to_list()
    table = table.filter(pl.col("cluster").is_in(names)).sort("timestamp", maintain_order=True)
    seconds = table["timestamp"].dt.epoch("s").to_numpy().astype(np.float64)
    return TenantTrace(
        submission_s=seconds - seconds[0],
        duration_s=table["duration"].to_numpy().astype(np.float64),
        gpus=table["num_gpus"].to_numpy().astype(np.int64),
        tenant=np.array([names.index(name) for name in table["cluster"]], dtype=np.int64),
        names=tuple(names),
        promised=tuple(promised),
    )


def cells_of(gpus: int) -> tuple[Cells, ...]:
    """Return the cells of so many GPUs: nodes, then a half, a quarter and an eighth of one, each once at most."""
    sizes = [NODE_GPUS >> k for k in range(NODE_GPUS.bit_length())]
    counts = [gpus // NODE_GPUS, *(gpus // size % 2 for size in sizes[1:])]
    return tuple(Cells(GPU.name, size, n) for size, n in zip(sizes, counts, strict=True) if n)


def shared_cluster(trace: TenantTrace) -> Instance:
    """Make the cluster that all tenants share, with quotas: as many GPUs as they were promised, in whole nodes.

    A job gets just the GPUs that it asked for, on one node or on whole ones; none more than its tenant's cells allow.
    """
    cells = [cells_of(gpus) for gpus in trace.promised]
    most = np.array([each[0].gpus * (each[0].count if each[0].gpus == NODE_GPUS else 1) for each in cells])
    size = np.where(trace.gpus > NODE_GPUS, -(-trace.gpus // NODE_GPUS) * NODE_GPUS, trace.gpus)
    size = np.minimum(size, most[trace.tenant])
    sizes = np.unique(size).tolist()
    configurations = tuple(Configuration(GPU.name, min(s, NODE_GPUS), nodes=max(1, s // NODE_GPUS)) for s in sizes)
    seconds = np.where(size[:, None] == np.array(sizes)[None, :], trace.duration_s[:, None], np.inf)
    tenants = tuple(Tenant(name, each) for name, each in zip(trace.names, cells, strict=True))
    nodes = (Node(GPU.name, NODE_GPUS),) * -(-sum(trace.promised) // NODE_GPUS)
    return Instance((GPU,), nodes, configurations, _table(trace, seconds), mechanisms=(Tenants(tenants, "quota"),))


def with_spread(shared: Instance, gpu_type: str) -> Instance:
    """Let every job of two GPUs or more also run on any nodes, slower by a factor that was measured.

    Every job is one of the built-in applications with such factors, drawn once (seed 0). Beyond the largest measured
    number of GPUs the factor is that of this number; below 1 it counts as 1.
    """
    factors = [each.spread_factor for each in builtin_applications().values()]
    known = [each for each in factors if any(v == gpu_type for v, _ in each)]
    chosen = np.random.default_rng(0).integers(0, len(known), len(shared.jobs))
    sizes = [int(c.gpus) for c in shared.configurations]
    columns = [(c, size) for c, size in enumerate(sizes) if size > 1]
    spread = tuple(Configuration(GPU.name, 1, nodes=size, spread=True) for _, size in columns)
    slower = np.array([[factor_of(each, gpu_type, size) for _, size in columns] for each in known])
    seconds = shared.jobs.seconds_per_epoch
    more = seconds[:, [c for c, _ in columns]] * slower[chosen]
    jobs = replace(shared.jobs, seconds_per_epoch=np.hstack([seconds, more]))
    return replace(shared, configurations=(*shared.configurations, *spread), jobs=jobs)


def factor_of(factors: Mapping[tuple[str, int], float], gpu_type: str, gpus: int) -> float:
    """Return how many times as long an application takes on GPUs of different nodes, ≥ 1."""
    measured = [(g, factor) for (v, g), factor in sorted(factors.items()) if v == gpu_type and g <= gpus]
    return max(1.0, measured[-1][1])


def _table(trace: TenantTrace, seconds: NDArray[np.float64]) -> JobTable:
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
        distributions=(EpochDistribution.certain(),),
        tenant=trace.tenant,
    )


def private_nodes(instance: Instance, tenant: int) -> tuple[Instance, NDArray[np.int64]]:
    """Return the cluster of one tenant alone, with its nodes and its jobs, and the indices of those."""
    jobs = instance.jobs
    own = np.flatnonzero(jobs.tenant == tenant)
    columns = {field.name: getattr(jobs, field.name) for field in fields(jobs)}
    rows = {name: column[own] for name, column in columns.items() if isinstance(column, np.ndarray)}
    rows["tenant"] = np.zeros(len(own), dtype=np.int64)
    table = replace(jobs, **rows)  # type: ignore[arg-type]
    its = Tenants.of(instance).tenants[tenant]
    nodes = tuple(Node(GPU.name, cell.gpus) for cell in its.cells for _ in range(cell.count))
    own_cluster = replace(instance.without("tenants"), nodes=nodes, jobs=table)
    return own_cluster.with_mechanisms(Tenants((its,))), own
