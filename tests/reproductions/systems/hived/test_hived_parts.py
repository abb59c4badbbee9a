"""What the parts on HiveD count, on clusters small enough to check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import HiveD
from gpusched_env.workload import with_tenancy
from gpusched_reproductions.systems.hived import anomaly
from gpusched_reproductions.systems.hived.anomaly import Backfill


def trace() -> anomaly.TenantTrace:
    """Make two tenants with a node each: one that sends single GPUs, and one that needs its whole node."""
    return anomaly.TenantTrace(
        submission_s=np.array([0.0, 0.0, 60.0, 90.0]),
        duration_s=np.array([600.0, 600.0, 600.0, 120.0]),
        gpus=np.array([1, 1, 8, 4]),
        tenant=np.array([0, 0, 1, 0]),
        names=("small", "large"),
        nodes=(1, 1),
    )


def test_a_quota_does_not_help_who_needs_a_whole_node_and_cells_do() -> None:
    shared = anomaly.shared_cluster(trace())
    private = anomaly.alone(trace(), shared)
    assert private.delay_min.tolist() == [0.0] * 4
    spread = anomaly.outcome(trace(), shared, Backfill("spread", spreads=True))
    assert spread.delay_min.tolist() == [0.0, 0.0, 9.0, 0.0]
    assert spread.refused == 3  # at 60, 90 and 210 s
    packed = anomaly.outcome(trace(), shared, Backfill("best fit", spreads=False))
    assert (packed.delay_min.tolist(), packed.refused) == ([0.0] * 4, 0)
    cells = anomaly.outcome(trace(), with_tenancy(shared, "cells"), HiveD())
    assert cells.completion_s.tolist() == private.completion_s.tolist()


def test_lending_costs_guaranteed_jobs_nothing() -> None:
    opportunistic = np.array([True, True, False, False])
    shared = anomaly.shared_cluster(trace())
    instance = with_tenancy(replace(shared, jobs=replace(shared.jobs, opportunistic=opportunistic)), "cells")
    assert anomaly.outcome(trace(), instance, HiveD()).delay_min[~opportunistic].tolist() == [0.0, 0.0]


@pytest.mark.skipif(not anomaly.TRACE.is_file(), reason=f"no public trace in {anomaly.TRACE}")
def test_the_largest_virtual_clusters_of_philly_have_the_nodes_that_they_were_promised() -> None:
    found = anomaly.read_trace(anomaly.TRACE, quick=False)
    assert (len(found.tenant), sum(found.nodes), len(found.names)) == (68_503, 82, 11)
