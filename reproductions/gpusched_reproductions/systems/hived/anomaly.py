"""The sharing anomaly on Philly's virtual clusters: private nodes, quotas, and cells with and without lending."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpusched_baselines import HiveD
from gpusched_env.model import Cells, Configuration, EpochDistribution, GpuType, Instance, JobTable, Node, Tenant
from gpusched_env.simulator import Policy, State, View, simulate
from gpusched_env.simulator.kernels import ask_order, at, fits, kernel, place, set_preferred_node
from gpusched_env.simulator.placement.release import within_quota
from gpusched_env.workload import with_tenancy
from gpusched_reproductions.systems.validation import Check, Measured

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator.run import Board

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
class TenantTrace:
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


def read_trace(path: Path, *, quick: bool) -> TenantTrace:
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
    return TenantTrace(
        submission_s=seconds - seconds[0],
        duration_s=table["duration"].to_numpy().astype(np.float64),
        gpus=table["num_gpus"].to_numpy().astype(np.int64),
        tenant=np.array([names.index(name) for name in table["cluster"]], dtype=np.int64),
        names=tuple(names),
        nodes=tuple(nodes),
    )


def shared_cluster(trace: TenantTrace) -> Instance:
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
    nodes = (Node(GPU.name, NODE_GPUS),) * (instance.tenants[tenant].gpus(GPU.name) // NODE_GPUS)
    alone = replace(instance, nodes=nodes, jobs=table, tenants=(instance.tenants[tenant],), tenancy="none")
    return alone, own


REFUSED = 0  # column of memory: in how many rounds a job was the first of its tenant and size that found no room


@dataclass(frozen=True, slots=True)
class Backfill:
    """Waiting jobs by submission, each on the one configuration that it may use, wherever that fits now.

    Args:
        name: Name, as tables show it.
        spreads: Whether a job goes to the node with most free GPUs; else to the one with fewest that has room.
    """

    name: str
    spreads: bool
    preemption: bool = False

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs, and count those that their quota would have allowed."""
        backfill(view.board, ask_order(view, "submission", waiting_only=True), self.spreads)


@kernel
def backfill(board: Board, order: Ints, spreads: bool) -> None:
    """Place the jobs of `order`, (A,), in turn."""
    refused = np.zeros((board.quota.shape[0], board.tau.shape[1]), dtype=np.bool_)
    for job in order:
        config = _only(board, job)
        if not within_quota(board, job, config):
            continue
        if not fits(board, config):
            tenant = int(board.jobs[job, at.TENANT])
            if board.quota.shape[0] > 0 and not refused[tenant, config]:
                refused[tenant, config] = True
                board.memory[job, REFUSED] += 1.0
            continue
        if spreads:
            set_preferred_node(board, job, _emptiest(board, config), -1)
        place(board, job, config)


def refusals(view: View) -> int:
    """Count what was refused in a run with `Backfill`: each tenant and size once in a round."""
    return int(view.memory[:, REFUSED].sum())


@kernel
def _only(board: Board, job: int) -> int:
    """Return the first configuration that a job may use."""
    config = 0
    while board.tau[job, config] > 1e300:
        config += 1
    return config


@kernel
def _emptiest(board: Board, config: int) -> int:
    """Return the node of a configuration's type with most free GPUs, the first of several."""
    nodes, gpu_type = board.nodes, board.facts.configs[config, at.CONFIG_TYPE]
    best, most = -1, -1
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] > most:
            best, most = n, nodes[n, at.FREE]
    return best


OUT_OF_FOUR = 4
"""Every so many jobs of a tenant one is submitted as an opportunistic one."""
SOURCE = "Zhao et al., OSDI 2020: up to 1,000 min of extra delay with quotas, none with cells"
BAND = "our band, from a prototype on the same trace"


@dataclass(frozen=True, slots=True, eq=False)
class AnomalyOutcome:
    """A run.

    Attributes:
        delay_min: How long each job waited in all, before it ran and between [min], (J,).
        completion_s: When each job was complete [s], (J,).
        refused: How often a tenant within its quota found no room for jobs of a size, each round counted once.
    """

    delay_min: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    refused: int


def run(quick: bool) -> Measured:
    """Run the tenants of Philly on private nodes, under quotas and in cells; quick: the jobs of two weeks."""
    trace = read_trace(TRACE, quick=quick)
    shared = shared_cluster(trace)
    private = alone(trace, shared)
    spread = outcome(trace, shared, Backfill("quota, spreading", spreads=True))
    packed = outcome(trace, shared, Backfill("quota, best fit", spreads=False))
    cells = outcome(trace, with_tenancy(shared, "cells"), HiveD())
    opportunistic = np.arange(len(trace.tenant)) % OUT_OF_FOUR == 0
    labelled = replace(shared, jobs=replace(shared.jobs, opportunistic=opportunistic))
    lending = outcome(trace, with_tenancy(labelled, "cells"), HiveD())
    extra = by_tenant(trace, spread) - by_tenant(trace, private)
    delayed, refused = float(np.sum(extra > 100.0)), 100.0 * packed.refused / spread.refused
    differ = int(np.sum(cells.completion_s != private.completion_s))
    guaranteed = by_tenant(trace, lending, ~opportunistic) - by_tenant(trace, private)
    mean = float(lending.delay_min.mean() - private.delay_min.mean())
    low, high = (0.0, 10_000.0) if quick else (500.0, 5000.0)
    return Measured(
        (
            Check("tenants that quotas delay by more than 100 min, of 11", delayed, 3.0, 11.0, None, BAND),
            Check("largest extra mean delay of a tenant [min]", float(extra.max()), low, high, 1000.0, SOURCE),
            Check("refused within quota, spreading", float(spread.refused), low=1.0),
            Check("refused within quota, best fit [% of those]", refused, 0.0, 1.0, None, BAND),
            Check("jobs that end otherwise in cells than on private nodes", float(differ), 0.0, 0.0, 0.0, SOURCE),
            Check("largest extra mean delay of guaranteed jobs, lending [min]", float(guaranteed.max()), high=0.0),
            Check("extra mean delay of all jobs, lending [min]", mean, high=0.0),
        )
    )


def alone(trace: TenantTrace, shared: Instance) -> AnomalyOutcome:
    """Run every tenant on its own nodes, in a cluster of its own."""
    delay, completion = np.empty(len(trace.tenant)), np.empty(len(trace.tenant))
    for tenant in range(len(trace.names)):
        instance, own = private_nodes(shared, tenant)
        result = simulate(instance, Backfill("private", spreads=False), record=False)
        completion[own] = result.completion_s
        delay[own] = (result.completion_s - trace.submission_s[own] - trace.duration_s[own]) / 60.0
    return AnomalyOutcome(delay, completion, 0)


def outcome(trace: TenantTrace, instance: Instance, policy: Policy) -> AnomalyOutcome:
    """Run a policy."""
    first: list[State] = []
    result = simulate(instance, policy, record=False, on_round=lambda state: first.append(state) if not first else None)
    delay = (result.completion_s - trace.submission_s - trace.duration_s) / 60.0
    return AnomalyOutcome(delay, result.completion_s, refusals(first[0].view))


def by_tenant(trace: TenantTrace, what: AnomalyOutcome, some: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return every tenant's mean delay [min], of some of its jobs or all, (tenants,)."""
    chosen = np.ones(len(trace.tenant), dtype=np.bool_) if some is None else some
    return np.array([what.delay_min[chosen & (trace.tenant == t)].mean() for t in range(len(trace.names))])
