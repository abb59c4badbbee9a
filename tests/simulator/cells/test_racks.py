"""Cells of several nodes in runs: racks, the guarantee, and the audit of them."""

import numpy as np
import pytest

from gpusched_baselines import HiveD, make_policy
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    Node,
    Tenant,
    Tenants,
    load_scenario,
    make_instance,
    simulate,
)
from gpusched_env.workload import with_tenancy
from gpusched_env.workload.tenancy import racks_of
from refusals import refused

CERTAIN = EpochDistribution.certain()
V100 = GpuType("V100", 300.0, 200.0, 32.0, 4)


def job(gpus: int, seconds: float, *, tenant: int = 0, at_s: float = 0.0, opportunistic: bool = False) -> Job:
    """Make a job of one epoch on so many GPUs: of a node of 4, or of whole nodes."""
    several = Configuration("V100", 4, gpus // 4) if gpus > 4 else Configuration("V100", gpus)
    times = {several: seconds}
    return Job(at_s, 1e7, 0.0, 1.0, CERTAIN, 1.0, times, tenant=tenant, opportunistic=opportunistic)


def shared(jobs: list[Job], *cells: tuple[int, ...], nodes: int = 4, per_rack: int = 2) -> Instance:
    """Make racks of nodes of 4 GPUs, of which tenants a, b, ... are promised cells of so many GPUs."""
    tenants = [
        Tenant(name, tuple(Cells("V100", size, own.count(size)) for size in sorted(set(own))))
        for name, own in zip("abc", cells, strict=False)
    ]
    cluster = [Node("V100", 4)] * nodes
    offers = [Configuration("V100", gpus) for gpus in (1, 2, 4)] + [Configuration("V100", 4, 2)]
    sharing = Tenants(tenants, racks=racks_of(cluster, per_rack))
    return Instance.from_jobs([V100], cluster, jobs, offers, mechanisms=[sharing])


def hosts_of(result, job_index: int) -> list[int]:
    rows = result.intervals()
    return rows.filter(rows["job"] == job_index)["host"].to_list()


def test_the_nodes_of_a_cell_are_in_one_rack_and_nobody_else_is():
    nodes = [Node("A", 4), Node("B", 4)] * 3 + [Node("A", 2)]
    assert racks_of(nodes, 2) == (0, 2, 0, 2, 1, 3, 4)
    assert racks_of(nodes, 1) == ()
    # The first node of a's rack is bound to rack 0; b's two nodes must then both be in the other one.
    jobs = [job(4, 900.0), job(4, 900.0, tenant=1), job(4, 900.0, tenant=1), job(4, 900.0, at_s=60.0)]
    instance = with_tenancy(shared(jobs, (8,), (4, 4)), "cells")
    assert Tenants.of(instance).racks == (0, 0, 1, 2, 3, 3, 4, 4)
    result = simulate(instance, HiveD())
    assert [hosts_of(result, j) for j in range(4)] == [[0], [2], [3], [1]]


def test_a_job_on_several_nodes_is_in_one_cell_if_one_has_room():
    """Of a's cells, the two single nodes come last: the rack is where two nodes are one cell."""
    jobs = [job(4, 900.0), job(8, 900.0, at_s=60.0)]
    instance = with_tenancy(shared(jobs, (8, 8), nodes=4), "cells")
    rows = simulate(instance, HiveD()).intervals()
    assert rows.filter(rows["job"] == 1)["node"].to_list() == [2, 3]
    opportunistic = [job(4, 900.0, opportunistic=True), job(8, 900.0, at_s=60.0, opportunistic=True)]
    instance = with_tenancy(shared([*opportunistic, job(1, 9.0)], (8, 8)), "cells")
    assert hosts_of(simulate(instance, make_policy("fifo")), 2) == [2, 3]


def test_a_job_on_several_nodes_is_in_the_rack_with_fewest_empty_nodes_of_those_with_enough():
    """At 200 s three nodes of the first rack are empty, and two of the second."""
    times = ((8, 100.0, 0.0), (4, 900.0, 10.0), (8, 900.0, 20.0), (8, 900.0, 200.0))
    jobs = [job(gpus, seconds, at_s=at_s, opportunistic=True) for gpus, seconds, at_s in times]
    instance = with_tenancy(shared([*jobs, job(1, 9.0, at_s=5000.0)], (16, 16), nodes=8, per_rack=4), "cells")
    result = simulate(instance, make_policy("fifo"))
    assert [hosts_of(result, j) for j in range(4)] == [[0, 1], [2], [4, 5], [6, 7]]


def test_opportunistic_jobs_run_on_the_idle_node_of_a_rack_that_is_used_and_leave_it():
    jobs = [job(4, 900.0), job(4, 1200.0, opportunistic=True), job(4, 900.0, at_s=60.0)]
    instance = with_tenancy(shared(jobs, (8,), nodes=2), "cells")
    result = simulate(instance, HiveD())
    assert result.completion_s.tolist() == [900.0, 900.0 + 1140.0, 960.0]
    assert result.start_s.tolist() == [0.0, 0.0, 60.0]


def random_cluster(seed: int) -> Instance:
    """Promise three racks of two nodes of 4 away, cut up at random: all of it, to three tenants."""
    rng = np.random.default_rng(seed)
    promised: list[list[int]] = [[8], [4], [2]]
    pieces = [2, 8]
    while pieces:
        size = pieces.pop()
        if size > 1 and rng.random() < 0.6:
            pieces += [size // 2] * 2
        else:
            promised[rng.integers(3)].append(size)
    jobs = []
    for _ in range(40):
        tenant = int(rng.integers(3))
        most = max(promised[tenant])
        sizes = [size for size in (1, 2, 4, 8) if size <= most]
        gpus, seconds = int(rng.choice(sizes)), float(rng.uniform(600, 6000))
        jobs.append(job(gpus, seconds, tenant=tenant, at_s=float(rng.uniform(0, 20_000))))
    return shared(jobs, *(tuple(own) for own in promised), nodes=6)


@pytest.mark.parametrize("seed", range(6))
def test_in_cells_every_job_ends_as_in_a_private_cluster_of_its_tenant(seed):
    instance = random_cluster(seed)
    cells, private = (with_tenancy(instance, tenancy) for tenancy in ("cells", "private"))
    ours, alone = simulate(cells, HiveD()), simulate(private, make_policy("fifo"))
    np.testing.assert_array_equal(ours.completion_s, alone.completion_s)


def test_racks_that_cannot_be_are_refused_and_cells_larger_than_a_node_need_some_that_hold_them():
    for racks, field in (((0, 0, 1), "racks"), ((0, 0, 1, -1), "racks[3]")):
        with refused(field):
            shared([job(4, 9.0)], (8,)).with_mechanisms(Tenants(racks=racks))
    for cells, more in (([(8,)], {"per_rack": 1}), ([(8, 8), (4,)], {})):
        with refused("tenants' cells of V100", allowed="cells that fit into"):
            with_tenancy(shared([job(4, 9.0)], *cells, **more), "cells")
    with refused("tenants' cells of V100", 8, "a part of 12 GPUs"):
        with_tenancy(shared([job(4, 9.0)], (8,), nodes=3, per_rack=3), "cells")


def test_a_scenario_has_racks():
    settings = {
        "tenancy": "cells",
        "cluster.gpu_types": ["T4"],
        "cluster.gpus_per_node": 4,
        "cluster.nodes": 4,
        "cluster.nodes_per_rack": 2,
        "jobs.gpu_counts": [1, 2, 4],
        "jobs.node_counts": [1, 2],
        "jobs.count": 20,
        "tenants": [{"name": "a", "cells": {"T4": [8]}}, {"name": "b", "cells": {"T4": [4, 2, 2]}}],
    }
    instance = make_instance(load_scenario("default").replace(settings), 0)
    assert Tenants.of(instance).racks == (0, 0, 1, 2, 3, 4, 4, 5, 5)
    result = simulate(instance, HiveD())
    assert np.all(np.isfinite(result.completion_s))
