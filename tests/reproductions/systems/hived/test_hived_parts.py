"""What the parts on HiveD count, on clusters small enough to check."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import HiveD
from gpusched_env.workload import builtin_applications, with_tenancy
from gpusched_reproductions.systems.hived import anomaly, philly
from gpusched_reproductions.systems.hived.anomaly import Backfill


def trace() -> philly.TenantTrace:
    """Make two tenants with a node each: one that sends single GPUs, and one that needs its whole node."""
    return philly.TenantTrace(
        submission_s=np.array([0.0, 0.0, 60.0, 90.0]),
        duration_s=np.array([600.0, 600.0, 600.0, 120.0]),
        gpus=np.array([1, 1, 8, 4]),
        tenant=np.array([0, 0, 1, 0]),
        names=("small", "large"),
        promised=(8, 8),
    )


def test_a_quota_does_not_help_who_needs_a_whole_node_and_cells_do():
    shared = philly.shared_cluster(trace())
    private = anomaly.alone(trace(), shared)
    assert private.delay_min.tolist() == [0.0] * 4
    spread = anomaly.outcome(trace(), shared, Backfill("emptiest", emptiest=True))
    assert spread.delay_min.tolist() == [0.0, 0.0, 9.0, 0.0]
    assert spread.refused == 3  # at 60, 90 and 210 s
    packed = anomaly.outcome(trace(), shared, Backfill("best fit", emptiest=False))
    assert (packed.delay_min.tolist(), packed.refused) == ([0.0] * 4, 0)
    cells = anomaly.outcome(trace(), with_tenancy(shared, "cells"), HiveD())
    assert cells.completion_s.tolist() == private.completion_s.tolist()


def test_a_job_that_spreads_waits_for_nobody_and_is_slower():
    shared = philly.with_spread(philly.shared_cluster(trace()), "V100")
    spread = anomaly.outcome(trace(), shared, Backfill("any nodes", emptiest=True))
    assert spread.delay_min.tolist() == [0.0] * 4
    seconds = spread.completion_s - trace().submission_s
    # Eight GPUs of both nodes from 60 s on: slower by one of the measured factors for eight. The others as on one node.
    factors = [each.spread_factor.get(("V100", 8), 0.0) for each in builtin_applications().values()]
    assert seconds[2] / 600.0 in [pytest.approx(max(1.0, factor)) for factor in factors if factor > 0.0]
    assert seconds[[0, 1, 3]].tolist() == [600.0, 600.0, 120.0]


def test_cells_below_a_node_sum_to_what_was_promised():
    cells = [[(cell.gpus, cell.count) for cell in philly.cells_of(gpus)] for gpus in (63, 8, 7, 1)]
    assert cells == [[(8, 7), (4, 1), (2, 1), (1, 1)], [(8, 1)], [(4, 1), (2, 1), (1, 1)], [(1, 1)]]


def test_tenants_whose_cells_split_a_node_run_as_on_private_nodes():
    # Both have a half, a quarter and an eighth: one node of eight and one of which six GPUs are promised.
    asked = replace(trace(), gpus=np.array([4, 2, 4, 1]), promised=(7, 7))
    shared = philly.shared_cluster(asked)
    assert len(shared.nodes) == 2
    cells = anomaly.outcome(asked, with_tenancy(shared, "cells"), HiveD())
    assert cells.completion_s.tolist() == anomaly.alone(asked, shared).completion_s.tolist()


def test_lending_costs_guaranteed_jobs_nothing():
    opportunistic = np.array([True, True, False, False])
    shared = philly.shared_cluster(trace())
    instance = with_tenancy(replace(shared, jobs=replace(shared.jobs, opportunistic=opportunistic)), "cells")
    assert anomaly.outcome(trace(), instance, HiveD()).delay_min[~opportunistic].tolist() == [0.0, 0.0]


@pytest.mark.skipif(not philly.TRACE.is_file(), reason=f"no public trace in {philly.TRACE}")
def test_the_largest_virtual_clusters_of_philly_have_the_gpus_that_they_were_promised():
    found = philly.read_trace(philly.TRACE, quick=False)
    assert (len(found.tenant), sum(found.promised), len(found.names)) == (68_503, 619, 11)
