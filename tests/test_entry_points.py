"""A policy that decides job by job gives the same schedule and cost through every door."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from examples.compiled_policy import ExpectedCost
from gpusched_baselines import Sts, make_policy
from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, Instance, JobPolicy, Scenario, load_scenario, rollout, simulate
from helpers import helped_instance
from instances import random_instance, with_switching
from refusals import refused

INDEX_RULES = ("atc", "atc:co-located", "atc:worst", "gittins", "sept", "sept:worst", "las")
NAMES = ("fifo", "edf", "edf:preemptive", "priority", "sts-x", "edf:mean", "edf:conditional-mean", *INDEX_RULES)
POLICIES = {name: make_policy(name) for name in NAMES} | {
    "sts": Sts(postprocess=False),
    "sts:published": Sts("published", postprocess=False),
    "sts-restarts-small": Sts(restarts_small=True, postprocess=False),
    "expected-cost": ExpectedCost(),
}


def assert_agree(policy: JobPolicy, instance: Instance) -> None:
    """Check that `simulate` and the environment make the same schedule, which costs the same and pays it."""
    direct = simulate(instance, policy)
    env = AnyInstance(instance, job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    stepped, rewards = rollout(env, policy, instance=instance)
    assert stepped.total_eur == pytest.approx(direct.total_eur, rel=1e-9)
    assert -rewards == pytest.approx(direct.total_eur, rel=1e-9)
    np.testing.assert_array_equal(stepped.log, direct.log)
    np.testing.assert_allclose(stepped.job_energy_eur, direct.job_energy_eur, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), restart_s=st.sampled_from([0.0, 5.0]), kinds=st.booleans())
def test_simulate_and_the_environment_agree(name, seed, restart_s, kinds):
    assert_agree(POLICIES[name], random_instance(seed, restart_s=restart_s, kinds=kinds, interference=kinds))


@pytest.mark.parametrize("name", ["fifo", "sts", "sts-x"])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_they_agree_where_spare_machines_help(name, seed):
    assert_agree(POLICIES[name], helped_instance(seed, types=1, restart_s=5.0))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), restart_s=st.sampled_from([0.0, 5.0]))
def test_where_nothing_is_shared_sts_with_its_last_step_agrees_too(seed, restart_s):
    assert_agree(Sts(), random_instance(seed, restart_s=restart_s))


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans())
def test_they_agree_where_switches_cost_by_distance(name, seed, kinds):
    instance = random_instance(seed, span_s=400.0, kinds=kinds, interference=kinds)
    assert_agree(POLICIES[name], with_switching(instance, seed))


def test_where_gpus_are_shared_an_environment_knows_no_last_step():
    """With its last step `simulate` gives another schedule; through the environment STS is as without it."""
    with_it, without = Sts(), Sts(postprocess=False)
    instance = random_instance(3, jobs=25, nodes=6, kinds=True)
    env = AnyInstance(instance, job_order="pressure", milestones=0)
    stepped = rollout(env, with_it, instance=instance)[0].log
    np.testing.assert_array_equal(stepped, simulate(instance, without).log)
    assert stepped.tobytes() != simulate(instance, with_it).log.tobytes()


@pytest.mark.parametrize("name", POLICIES)
def test_the_made_environment_agrees_on_a_scenario(name):
    policy = POLICIES[name]
    env = gymnasium.make(
        f"gpusched_env:{ENVIRONMENT_ID}",
        scenario="tiny",
        job_order=policy.job_order,
        preemption=policy.preemption,
        milestones=0,
    )
    for seed in range(3):
        by_seed, _ = rollout(env, policy, seed=seed)
        direct = simulate(by_seed.instance, policy)
        replayed, _ = rollout(env, policy, instance=by_seed.instance)
        np.testing.assert_array_equal(by_seed.log, direct.log)
        np.testing.assert_array_equal(replayed.log, direct.log)


def test_a_policy_that_asks_in_another_order_is_refused():
    env = GpuClusterEnv(load_scenario("tiny"), job_order="due")
    with refused("env.job_order", "due"):
        rollout(env, make_policy("sts"), seed=0)  # type: ignore[arg-type]


def test_an_environment_that_asks_at_milestones_too_is_refused():
    with refused("env.milestones", 4):
        rollout(GpuClusterEnv("tiny"), make_policy("sts"), seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["due_date_timers", "consolidation"])
def test_an_environment_that_does_what_policies_do_themselves_is_refused(flag):
    with refused(f"env.{flag}", True):
        rollout(GpuClusterEnv("tiny", milestones=0, **{flag: True}), make_policy("sts"), seed=0)  # type: ignore[arg-type]


def test_a_policy_that_builds_whole_rounds_is_refused():
    env = GpuClusterEnv(Scenario(name="x"))
    with refused("policy", "greedy"):
        rollout(env, make_policy("greedy"), seed=0)  # type: ignore[arg-type]
