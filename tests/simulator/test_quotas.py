"""Quotas: what a tenant's jobs hold at one time is at most what it was promised."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from first_rounds import begin_run
from gpusched_baselines import make_policy, policy_names
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
    simulate,
)
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.holdings import QUOTA, apply_holding
from gpusched_env.simulator.policy import can_decide
from gpusched_env.simulator.state import State
from refusals import refused

V100, T4 = GpuType("V100", 300.0, 200.0, 32.0, 4), GpuType("T4", 70.0, 100.0, 16.0, 4)
CERTAIN = EpochDistribution.certain()


def job(tenant: int, gpus: int = 2, seconds: float = 100.0, *, at_s: float = 0.0, kind: str = "V100") -> Job:
    return Job(at_s, 1e6, 1e-3, 1.0, CERTAIN, 1.0, {Configuration(kind, gpus): seconds}, tenant=tenant)


def cluster(*jobs: Job, nodes: int = 2, quota: tuple[int, int] = (1, 1), tenancy: str = "quota") -> Instance:
    """Make a cluster of V100 nodes of 4 GPUs, where two tenants were promised so many cells of 4 GPUs."""
    tenants = [Tenant(name, (Cells("V100", 4, count),)) for name, count in zip("ab", quota, strict=True)]
    return Instance.from_jobs([V100], [Node("V100", 4)] * nodes, jobs, mechanisms=[Tenants(tenants, tenancy)])


def test_a_tenant_waits_at_its_quota_though_gpus_are_free_but_names_alone_hold_nobody_back():
    instance = cluster(job(0), job(0), job(0), job(1))
    result = simulate(instance, make_policy("fifo"))
    assert result.completion_s.tolist() == [100.0, 100.0, 200.0, 100.0]
    instance = cluster(job(0), job(0), job(0), job(1), tenancy="none")
    assert simulate(instance, make_policy("fifo")).completion_s.tolist() == [100.0] * 4


def test_quotas_are_by_gpu_type():
    tenant = Tenant("a", (Cells("V100", 2, 1), Cells("T4", 2, 1)))
    jobs = [job(0), job(0), job(0, kind="T4")]
    nodes = [Node("V100", 4), Node("T4", 4)]
    instance = Instance.from_jobs([V100, T4], nodes, jobs, mechanisms=[Tenants((tenant,), "quota")])
    assert simulate(instance, make_policy("fifo")).completion_s.tolist() == [100.0, 200.0, 100.0]


def test_a_placement_from_outside_beyond_the_quota_is_refused_though_gpus_are_free():
    board = begin_run(cluster(job(0), job(0), job(0), job(1))).board
    assert [apply_holding(board, i, 1, [i // 2], None) for i in range(4)] == [0, 0, QUOTA, 0]


def test_what_a_tenant_has_given_back_it_may_take_again_at_once():
    state = begin_run(cluster(job(0), job(0), job(0)))
    assert [state.view.place(i, 1) for i in range(3)] == [True, True, False]
    assert state.view.quota[:, 1].tolist() == [4 * at.UNITS, 0]
    state.view.release(0)
    assert state.view.place(2, 1)
    state.commit_round()
    state.begin_round(preemption=True)
    assert state.view.quota[:, 1].tolist() == [0, 0]


def test_a_configuration_beyond_the_whole_quota_is_closed():
    both = {Configuration("V100", 4): 50.0, Configuration("V100", 2): 100.0}
    tenant = Tenant("a", (Cells("V100", 2, 1),))
    wide = Job(0.0, 1e6, 1e-3, 1.0, CERTAIN, 1.0, both)
    instance = Instance.from_jobs([V100], [Node("V100", 4)], [wide], mechanisms=[Tenants((tenant,), "quota")])
    assert np.isfinite(instance.jobs.seconds_per_epoch).tolist() == [[False, True, False, False]]
    with refused("jobs[0].seconds_per_epoch", "inf for all", "one within the quota of a"):
        Instance.from_jobs([V100], [Node("V100", 4)], [job(0, 4)], mechanisms=[Tenants((tenant,), "quota")])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tenancy": "share"}, ("tenancy", "share", "one of none, quota, private, cells")),
        ({"tenants": ()}, ("tenants", [])),
        ({"tenants": [Tenant("a", (Cells("V100", 4, 1),))] * 2}, ("tenants", ["a", "a"], "all with different names")),
        ({"tenants": [Tenant("a", (Cells("A100", 4, 1),))]}, ("tenants[0].cells[0].gpu_type", "A100", "V100")),
        ({"jobs": [job(2)]}, ("jobs[0].tenant", 2, "the index of one of the 1 tenants")),
    ],
)
def test_what_no_tenancy_can_be_is_refused(change, error):
    given_ = {"jobs": [job(0)], "tenants": [Tenant("a", (Cells("V100", 4, 1),))], "tenancy": "quota"} | change
    model = Tenants(given_["tenants"], given_["tenancy"])
    with refused(*error):
        Instance.from_jobs([V100], [Node("V100", 4)], given_["jobs"], mechanisms=[model])


def test_a_tenant_has_a_name():
    with refused("tenant.name", ""):
        Tenant("", (Cells("V100", 1, 1),))


def most_held(instance: Instance, name: str, seed: int) -> np.ndarray:
    """Run a policy, and give the most GPUs that each tenant's jobs hold after any round."""
    most = np.zeros(len(Tenants.of(instance).tenants))

    def look(state: State) -> None:
        held = np.zeros(len(most))
        for i in state.view.active:
            config = int(state.view.jobs[i, at.CONFIG])
            held[instance.jobs.tenant[i]] += state.view.configs[config, at.CONFIG_SIZE] / at.UNITS if config >= 0 else 0
        np.testing.assert_array_equal(held, state.view.quota[:, 1] / at.UNITS)
        np.maximum(most, held, out=most)

    simulate(instance, make_policy(name), seed=seed, on_round=look)
    return most


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_no_policy_gets_a_tenant_beyond_its_quota(data):
    jobs = []
    for _ in range(data.draw(st.integers(2, 8))):
        gpus = data.draw(st.integers(1, 4))
        offers = {Configuration("V100", g): 400.0 / g**0.9 for g in range(1, gpus + 1)}
        due = data.draw(st.sampled_from([300.0, 1e4]))
        jobs.append(Job(0.0, due, 1e-3, 1.0, CERTAIN, 1.0, offers, tenant=data.draw(st.integers(0, 1))))
    instance = cluster(*jobs, nodes=3, quota=(1, 2))
    names = [n for n in policy_names() if can_decide(make_policy(n), instance) and "ipopt" not in n]
    most = most_held(instance, data.draw(st.sampled_from(names)), data.draw(st.integers(0, 9)))
    assert np.all(most <= [4, 8])


def test_local_search_says_that_it_cannot_decide_with_quotas():
    instance = cluster(job(0))
    for name in ("local-search", "path-relinking"):
        with refused(f"{name}: tenancy", "quota"):
            simulate(instance, make_policy(name))


SPREAD = Configuration("V100", 1, 3, spread=True)


@pytest.mark.parametrize(
    ("configuration", "nodes", "free"),
    [(Configuration("V100", 4, 2), [0, 2], [0, 4, 0]), (SPREAD, [0, 2, 2], [3, 4, 2])],
)
def test_a_placement_from_outside_is_on_the_nodes_that_are_named(configuration, nodes, free):
    jobs = [Job(0.0, 1e6, 1e-3, 1.0, CERTAIN, 1.0, {configuration: 100.0})]
    board = begin_run(Instance.from_jobs([V100], [Node("V100", 4)] * 3, jobs, [configuration])).board
    assert apply_holding(board, 0, 0, nodes, None) == 0
    assert board.nodes[:, at.FREE].tolist() == free
