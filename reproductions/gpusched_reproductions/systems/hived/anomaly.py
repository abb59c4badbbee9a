"""What affinity is worth on Philly's virtual clusters: private nodes, quotas that wait for it or spread, and cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import HiveD
from gpusched_env.mechanisms.quotas.kernels import tenants_with_quotas, within_quota
from gpusched_env.simulator import Policy, State, View, simulate
from gpusched_env.simulator.kernels import ask_order, at, fits, kernel, place, set_preferred_node
from gpusched_env.workload import builtin_applications, with_tenancy
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.hived.philly import (
    NODE_GPUS,
    TRACE,
    TenantTrace,
    private_nodes,
    read_trace,
    shared_cluster,
    with_spread,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.arrays import Ints
    from gpusched_env.model import Instance
    from gpusched_env.simulator.run import Board

REFUSED = 0  # column of memory: in how many rounds a job was the first of its tenant and size that found no room


@dataclass(frozen=True, slots=True)
class Backfill:
    """Waiting jobs by submission, each on one node, or on whole ones, where that fits now, as long as its quota allows.

    Where it does not fit, a job that may use spread GPUs takes those at once.

    Args:
        name: Name, as tables show it.
        emptiest: Whether a job goes to the node with most free GPUs; else to the one with fewest that has room.
    """

    name: str
    emptiest: bool
    preemption: bool = False

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        backfill(view.board, ask_order(view, "submission", waiting_only=True), self.emptiest)


@kernel
def backfill(board: Board, order: Ints, emptiest: bool) -> None:
    """Place the jobs of `order`, (A,), in turn."""
    refused = np.zeros((tenants_with_quotas(board), board.tau.shape[1]), dtype=np.bool_)
    for job in order:
        config = _first(board, job)
        if not within_quota(board, job, config):
            continue
        if not fits(board, config):
            config = _spread(board, job, config)
            if fits(board, config):
                place(board, job, config)
                continue
            tenant = int(board.jobs[job, at.TENANT])
            if refused.shape[0] > 0 and not refused[tenant, config]:
                refused[tenant, config] = True
                board.memory[job, REFUSED] += 1.0
            continue
        if emptiest:
            set_preferred_node(board, job, _emptiest(board, config), -1)
        place(board, job, config)


def refusals(view: View) -> int:
    """Count what was refused in a run with `Backfill`: each tenant and size once in a round."""
    return int(view.memory[:, REFUSED].sum())


@kernel
def _first(board: Board, job: int) -> int:
    config = 0
    while board.tau[job, config] > 1e300:
        config += 1
    return config


@kernel
def _spread(board: Board, job: int, config: int) -> int:
    """Return the configuration with which a job spreads as many GPUs as `config` has; `config` if it may not."""
    for c in range(config + 1, board.tau.shape[1]):
        if board.facts.configs[c, at.CONFIG_SPREAD] > 0 and board.tau[job, c] < np.inf:
            return c
    return config


@kernel
def _emptiest(board: Board, config: int) -> int:
    nodes, gpu_type = board.nodes, board.facts.configs[config, at.CONFIG_TYPE]
    best, most = -1, -1
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] > most:
            best, most = n, nodes[n, at.FREE]
    return best


OUT_OF_FOUR = 4
"""Every so many jobs of a tenant one is submitted as an opportunistic one."""
SOURCE = "Zhao et al., OSDI 2020: up to 1,000 min of extra delay with quotas, none with cells"
PRIVATE, WAITS, FITS, SPREADS, CELLS = (
    "private nodes", "quotas, emptiest node", "quotas, best fit", "quotas, any nodes", "cells"
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class AnomalyOutcome:
    """A run.

    Attributes:
        delay_min: How long each job waited in all, before it ran and between [min], (J,).
        hours: How long each job took from its submission to its completion [h], (J,).
        completion_s: When each job was complete [s], (J,).
        refused: How often a tenant within its quota found no room for jobs of a size, each round counted once.
    """

    delay_min: NDArray[np.float64]
    hours: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    refused: int


def run(quick: bool) -> Measured:
    """Run the tenants of Philly on private nodes, under quotas and in cells; quick: the jobs of two weeks."""
    trace = read_trace(TRACE, quick=quick)
    shared = shared_cluster(trace)
    runs = {
        PRIVATE: alone(trace, shared),
        WAITS: outcome(trace, shared, Backfill(WAITS, emptiest=True)),
        FITS: outcome(trace, shared, Backfill(FITS, emptiest=False)),
        SPREADS: outcome(trace, with_spread(shared, "V100"), Backfill(SPREADS, emptiest=True)),
        CELLS: outcome(trace, with_tenancy(shared, "cells"), HiveD()),
    }
    beside = {
        f"{SPREADS}, factors of P100": outcome(trace, with_spread(shared, "P100"), Backfill(SPREADS, emptiest=True)),
        f"{FITS}, else any nodes": outcome(trace, with_spread(shared, "V100"), Backfill(FITS, emptiest=False)),
    }
    opportunistic = np.arange(len(trace.tenant)) % OUT_OF_FOUR == 0
    labelled = replace(shared, jobs=replace(shared.jobs, opportunistic=opportunistic))
    lending = outcome(trace, with_tenancy(labelled, "cells"), HiveD())
    private = by_tenant(trace, runs[PRIVATE].delay_min)
    guaranteed = by_tenant(trace, lending.delay_min, ~opportunistic) - private
    return Measured(
        (*anomaly_checks(trace, runs, float(guaranteed.max())), *affinity_checks(trace, runs | beside)),
        chart_of(trace, runs),
    )


def anomaly_checks(trace: TenantTrace, runs: dict[str, AnomalyOutcome], guaranteed: float) -> tuple[Check, ...]:
    """Compare the delays of tenants with those on private nodes.

    Args:
        guaranteed: The largest extra mean delay of a tenant's guaranteed jobs with opportunistic ones in cells [min].
    """
    private = by_tenant(trace, runs[PRIVATE].delay_min)
    extra = {name: float((by_tenant(trace, each.delay_min) - private).max()) for name, each in runs.items()}
    quotas = f"{SOURCE}; with 1.3 times the mean use promised, see the price of affinity"
    differ = int(np.sum(runs[CELLS].completion_s != runs[PRIVATE].completion_s))
    what = "largest extra mean delay of a tenant, {} [min]"
    refused = 100.0 * runs[FITS].refused / max(1, runs[WAITS].refused)
    return (
        Check(what.format(WAITS), extra[WAITS], published=1000.0, source=quotas),
        Check(what.format(FITS), extra[FITS]),
        Check(what.format(SPREADS), extra[SPREADS]),
        Check("refused within quota, best fit [% of those with emptiest node]", refused),
        Check("jobs that end otherwise in cells than on private nodes", differ, 0.0, 0.0, 0.0, SOURCE, "prediction"),
        Check(
            "largest extra mean delay of guaranteed jobs, cells that lend [min]",
            guaranteed,
            -np.inf,
            0.0,
            0.0,
            SOURCE,
            "prediction",
        ),
    )


def affinity_checks(trace: TenantTrace, runs: dict[str, AnomalyOutcome]) -> tuple[Check, ...]:
    """Return what spreading costs a job, and mean completion by policy, of all jobs and of those that need a node."""
    eight = [each.spread_factor.get(("V100", NODE_GPUS)) for each in builtin_applications().values()]
    factor = float(np.median([f for f in eight if f is not None]))
    large = trace.gpus >= NODE_GPUS
    rows = [Check(f"mean completion, {name} [h]", float(each.hours.mean())) for name, each in runs.items()]
    rows += [
        Check(f"jobs of 8 GPUs and more, {name} [h]", float(each.hours[large].mean())) for name, each in runs.items()
    ]
    about = "Zhao et al., OSDI 2020: 5 times between machines; ours: Gavel's measurements"
    what = "time on 8 V100 of different nodes over together, median"
    return (Check(what, factor, published=5.0, source=about, kind="input"), *rows)


def chart_of(trace: TenantTrace, runs: dict[str, AnomalyOutcome]) -> Chart:
    """Draw queueing delay and completion by tenant, as HiveD's figures do; tenants by their GPU time."""
    order = [f"{name}\n{gpus}" for name, gpus in zip(trace.names, trace.promised, strict=True)]

    def panel(title: str, label: str, values: dict[str, NDArray[np.float64]]) -> Panel:
        bars = [
            series(name, ((x, Estimate(float(y), None, 1)) for x, y in zip(order, by_tenant(trace, each), strict=True)))
            for name, each in values.items()
        ]
        return Panel(title, "tenant, GPUs promised", label, tuple(bars), kind="bars", logarithmic="y")

    delays = panel("Queueing", "mean delay [min]", {name: each.delay_min for name, each in runs.items()})
    hours = panel("Completion", "mean from submission [h]", {name: each.hours for name, each in runs.items()})
    return Chart("Philly's tenants: what affinity is worth", ((delays,), (hours,)), (9.0, 2.9))


def alone(trace: TenantTrace, shared: Instance) -> AnomalyOutcome:
    start, completion = np.empty(len(trace.tenant)), np.empty(len(trace.tenant))
    for tenant in range(len(trace.names)):
        instance, own = private_nodes(shared, tenant)
        result = simulate(instance, Backfill(PRIVATE, emptiest=False), record=False)
        start[own], completion[own] = result.start_s, result.completion_s
    took = completion - trace.submission_s
    return AnomalyOutcome((took - trace.duration_s) / 60.0, took / 3600.0, completion, 0)


def outcome(trace: TenantTrace, instance: Instance, policy: Policy) -> AnomalyOutcome:
    """Run a policy; where jobs spread, they start once, and wait until then."""
    first: list[State] = []
    result = simulate(instance, policy, record=False, on_round=lambda state: first.append(state) if not first else None)
    took = result.completion_s - trace.submission_s
    delay_s = result.start_s - trace.submission_s if instance.most_spread else took - trace.duration_s
    return AnomalyOutcome(delay_s / 60.0, took / 3600.0, result.completion_s, refusals(first[0].view))


def by_tenant(
    trace: TenantTrace, values: NDArray[np.float64], some: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    chosen = np.ones(len(trace.tenant), dtype=np.bool_) if some is None else some
    return np.array([values[chosen & (trace.tenant == t)].mean() for t in range(len(trace.names))])
