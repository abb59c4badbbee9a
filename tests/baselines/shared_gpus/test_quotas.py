"""Policies that share GPUs, within quotas: a job that only its quota stops takes nothing from others."""

from collections.abc import Sequence

import numpy as np
import pytest

from gpusched_baselines import make_policy
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
    UtilisationModel,
    simulate,
)
from gpusched_env.model import Mechanism

CERTAIN = EpochDistribution.certain()
GUARANTEED, OPPORTUNISTIC = Configuration("V", 1, share=0.6, priority=1), Configuration("V", 1, share=0.4)
TENANTS = "ab"


def job(tenant: int, submission_s: float, seconds: dict[Configuration, float], **more: object) -> Job:
    return Job(submission_s, 1e6, 1e-3, 1.0, CERTAIN, 1.0, seconds, tenant=tenant, application="x", **more)


def made(
    nodes: list[Node], jobs: list[Job], quotas: tuple[int, int], models: Sequence[Mechanism] = (), **more: object
) -> Instance:
    gpu = GpuType("V", 300.0, 200.0, 32.0, nodes[0].gpus)
    tenants = [Tenant(name, (Cells("V", 1, gpus),)) for name, gpus in zip(TENANTS, quotas, strict=True)]
    return Instance.from_jobs([gpu], nodes, jobs, mechanisms=[Tenants(tenants, "quota"), *models], **more)


@pytest.mark.parametrize("name", ["antman", "fill", "pack", "fifo", "time-slice"])
def test_a_job_that_only_its_quota_holds_back_keeps_no_node_from_others(name):
    """Two nodes of 8 and a quota of 8 each: while the first tenant's second job waits, the other tenant's runs."""
    whole = {Configuration("V", 8): 10_000.0}
    jobs = [job(0, 0.0, whole), job(0, 1.0, whole), job(1, 2.0, whole)]
    result = simulate(made([Node("V", 8)] * 2, jobs, (8, 8)), make_policy(name))
    assert result.start_s[[0, 2]].tolist() == [0.0, 2.0]


@pytest.mark.parametrize("name", ["antman", "fill"])
def test_no_opportunistic_job_is_stopped_for_a_place_beyond_the_quota_of_a_tenant(name):
    """Two jobs fill the first tenant's one GPU: the opportunistic one stays there when the other GPU becomes idle."""
    shares = {GUARANTEED: 10_000.0, OPPORTUNISTIC: 10_000.0}
    jobs = [
        job(0, 0.0, shares), job(0, 1.0, shares, opportunistic=True), job(1, 0.0, {GUARANTEED: 3_000.0}),
    ]  # fmt: skip
    model = UtilisationModel(np.array([[0.5]]))
    instance = made([Node("V", 2)], jobs, (1, 1), configurations=[GUARANTEED, OPPORTUNISTIC], models=[model])
    result = simulate(instance, make_policy(name))
    log = result.intervals()
    own = log.filter(log["job"] == 2)
    assert result.start_s[2] == 1.0
    assert own["start_s"][1:].to_list() == own["end_s"][:-1].to_list()  # it never waited again
