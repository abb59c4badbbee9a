"""The sharing anomaly on Philly's virtual clusters: private nodes, quotas, and cells with and without lending."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import HiveD
from gpusched_env.simulator import simulate
from gpusched_env.workload import with_tenancy
from gpusched_reproductions.systems.hived import philly
from gpusched_reproductions.systems.hived.queues import Backfill, refusals
from gpusched_reproductions.systems.store import Check, Findings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy, State

OUT_OF_FOUR = 4
"""Every so many jobs of a tenant one is submitted as an opportunistic one."""
SOURCE = "Zhao et al., OSDI 2020: up to 1,000 min of extra delay with quotas, none with cells"
BAND = "our band, from a prototype on the same trace"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A run.

    Attributes:
        delay_min: How long each job waited in all, before it ran and between [min], (J,).
        completion_s: When each job was complete [s], (J,).
        refused: How often a tenant within its quota found no room for jobs of a size, each round counted once.
    """

    delay_min: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    refused: int


def run(quick: bool) -> Findings:
    """Run the tenants of Philly on private nodes, under quotas and in cells; quick: the jobs of two weeks."""
    trace = philly.read(philly.TRACE, quick=quick)
    shared = philly.shared(trace)
    private = alone(trace, shared)
    spread = outcome(trace, shared, Backfill("quota, spreading", spreads=True))
    packed = outcome(trace, shared, Backfill("quota, best fit", spreads=False))
    cells = outcome(trace, with_tenancy(shared, "cells"), HiveD())
    lent = np.arange(len(trace.tenant)) % OUT_OF_FOUR == 0
    labelled = replace(shared, jobs=replace(shared.jobs, opportunistic=lent))
    lending = outcome(trace, with_tenancy(labelled, "cells"), HiveD())
    extra = by_tenant(trace, spread) - by_tenant(trace, private)
    differ = int(np.sum(cells.completion_s != private.completion_s))
    guaranteed = by_tenant(trace, lending, ~lent) - by_tenant(trace, private)
    mean = float(lending.delay_min.mean() - private.delay_min.mean())
    low, high = (0.0, 10_000.0) if quick else (500.0, 5000.0)
    return Findings(
        (
            Check(
                "tenants that quotas delay by more than 100 min, of 11",
                float(np.sum(extra > 100.0)),
                3.0,
                11.0,
                None,
                BAND,
            ),
            Check("largest extra mean delay of a tenant [min]", float(extra.max()), low, high, 1000.0, SOURCE),
            Check("refused within quota, spreading", float(spread.refused), low=1.0),
            Check(
                "refused within quota, best fit [% of those]",
                100.0 * packed.refused / spread.refused,
                0.0,
                1.0,
                None,
                BAND,
            ),
            Check("jobs that end otherwise in cells than on private nodes", float(differ), 0.0, 0.0, 0.0, SOURCE),
            Check("largest extra mean delay of guaranteed jobs, lending [min]", float(guaranteed.max()), high=0.0),
            Check("extra mean delay of all jobs, lending [min]", mean, high=0.0),
        )
    )


def alone(trace: philly.Trace, shared: Instance) -> Outcome:
    """Run every tenant on its own nodes, in a cluster of its own."""
    delay, completion = np.empty(len(trace.tenant)), np.empty(len(trace.tenant))
    for tenant in range(len(trace.names)):
        instance, own = philly.private(shared, tenant)
        result = simulate(instance, Backfill("private", spreads=False), record=False)
        completion[own] = result.completion_s
        delay[own] = (result.completion_s - trace.submission_s[own] - trace.duration_s[own]) / 60.0
    return Outcome(delay, completion, 0)


def outcome(trace: philly.Trace, instance: Instance, policy: Policy) -> Outcome:
    """Run a policy."""
    first: list[State] = []
    result = simulate(instance, policy, record=False, on_round=lambda state: first.append(state) if not first else None)
    delay = (result.completion_s - trace.submission_s - trace.duration_s) / 60.0
    return Outcome(delay, result.completion_s, refusals(first[0].view))


def by_tenant(trace: philly.Trace, what: Outcome, some: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Give every tenant's mean delay [min], of some of its jobs or all, (tenants,)."""
    chosen = np.ones(len(trace.tenant), dtype=np.bool_) if some is None else some
    return np.array([what.delay_min[chosen & (trace.tenant == t)].mean() for t in range(len(trace.names))])
