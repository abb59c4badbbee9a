"""HiveD's policy: guaranteed jobs first, opportunistic ones away from them."""

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
from refusals import refused

CERTAIN = EpochDistribution.certain()
V100 = GpuType("V100", 300.0, 200.0, 32.0, 8)


def job(gpus: int, seconds: float, *, at_s: float = 0.0, opportunistic: bool = False) -> Job:
    times = {Configuration("V100", gpus): seconds}
    return Job(at_s, 1e7, 0.0, 1.0, CERTAIN, 1.0, times, opportunistic=opportunistic)


def cells(*jobs: Job, hosts: int = 3) -> Instance:
    """Make hosts of 8 GPUs, all of them one tenant's in cells of 8."""
    tenant = Tenant("a", (Cells("V100", 8, hosts),))
    shared = Instance.from_jobs([V100], [Node("V100", 8)] * hosts, jobs, mechanisms=[Tenants((tenant,))])
    return with_tenancy(shared, "cells")


@pytest.mark.parametrize("inner", ["fifo", "edf:preemptive"])
def test_without_cells_it_is_the_rule_within_it(inner):
    instance = make_instance(load_scenario("tiny"), 1)
    rule = make_policy(inner)
    ours, alone = simulate(instance, HiveD(rule)), simulate(instance, rule)  # type: ignore[arg-type]
    assert ours.total_eur == alone.total_eur
    np.testing.assert_array_equal(ours.completion_s, alone.completion_s)


def test_opportunistic_jobs_are_placed_together_and_away_from_cells_that_are_used():
    instance = cells(job(2, 900.0), job(2, 900.0, opportunistic=True), job(4, 900.0, opportunistic=True))
    hosts = simulate(instance, HiveD()).intervals().sort("job")["host"].to_list()
    assert hosts[0] == 0
    assert hosts[1] == hosts[2] != 0


def test_a_preempted_job_goes_on_elsewhere_in_the_same_round():
    instance = cells(job(8, 900.0, opportunistic=True), job(8, 900.0, at_s=60.0), job(8, 900.0, at_s=60.0), hosts=3)
    result = simulate(instance, HiveD())
    assert result.completion_s.tolist() == [900.0, 960.0, 960.0]
    full = cells(job(8, 900.0, opportunistic=True), *[job(8, 900.0, at_s=60.0)] * 3, hosts=3)
    result = simulate(full, HiveD())
    assert result.completion_s.tolist() == [1800.0, 960.0, 960.0, 960.0]
    assert result.switches.tolist() == [2, 0, 0, 0]


def test_guaranteed_jobs_end_as_if_there_were_no_others():
    rng = np.random.default_rng(2)
    jobs = [
        job(int(rng.choice([1, 2, 4, 8])), float(rng.uniform(600, 6000)), at_s=300.0 * i, opportunistic=i % 2 == 0)
        for i in range(24)
    ]
    guaranteed = [job for job in jobs if not job.opportunistic]
    both, alone = simulate(cells(*jobs), HiveD()), simulate(cells(*guaranteed), HiveD())
    kept = [i for i, job in enumerate(jobs) if not job.opportunistic]
    np.testing.assert_array_equal(both.completion_s[kept], alone.completion_s)


def test_it_runs_under_quotas_as_its_rule_does():
    shared = make_instance(load_scenario("tiny"), 2).with_mechanisms(Tenants((Tenant("a", (Cells("V100", 1, 2),)),)))
    shared = with_tenancy(
        shared.with_mechanisms(Tenants((Tenant("a", tuple(Cells(v.name, 1, 4) for v in shared.gpu_types)),))), "quota"
    )
    assert simulate(shared, HiveD()).total_eur == simulate(shared, make_policy("fifo")).total_eur


@pytest.mark.parametrize("name", ["conservative", "slurm-backfill", "multifactor"])
def test_backfilling_by_nodes_refuses_cells_which_move_between_hosts(name):
    with refused(f"{name}: tenancy", allowed="none, quota or private"):
        simulate(cells(job(8, 900.0), hosts=3), make_policy(name))
