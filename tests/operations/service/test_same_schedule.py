"""A run whose every decision comes from a service is the run that `simulate` makes, to the last bit."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_agents.any_policy import known_policies, make_any_policy
from gpusched_env import Instance, Result, Tenant, Tenants, load_scenario, make_instance, simulate
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import can_decide
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.cluster import ClusterNames
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import DecideRequest
from gpusched_operations.service.openapi import EXAMPLE
from gpusched_operations.service.present import present_state
from gpusched_operations.service.problem import Problem
from instances import by_utilisation, random_instance, with_host_memory, with_switching
from limited import with_power_limits
from mixed import mixed_instance
from refusals import refused

KEY = b"a key"
ALL = PolicyCatalogue.of("all")
DECIDER = Decider(ALL, KEY)
# Solvers and a thousand constructions a round take long here; their memory and randomness are those of others.
# What really ran once (`as-traced`) no request tells, nor the jobs that are done, from which `rollout` draws others.
SOLVERS = ("sts:ipopt", "random-greedy:mean", "random-greedy:conditional-mean", "path-relinking")
LEFT_OUT = (*SOLVERS, "as-traced", "rollout", "gandiva")


def over_requests(instance: Instance, name: str, seed: int = 0, decider: Decider = DECIDER) -> Result:
    """Run a policy through requests and answers, without HTTP."""
    asking = ServicePolicy("", name, instance, post=lambda _, body: decider(body))
    return simulate(instance, asking, seed=seed)


def assert_same(one: Result, other: Result) -> None:
    for name in ("completion_s", "start_s", "job_energy_eur", "job_tardiness_eur", "switches", "log"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.energy_eur, one.tardiness_eur, one.rounds) == (other.energy_eur, other.tardiness_eur, other.rounds)


@pytest.mark.parametrize("name", [name for name in known_policies() if name not in LEFT_OUT and "gavel" not in name])
def test_every_policy_makes_the_same_schedule_through_a_service(name: str):
    instance = random_instance(3, jobs=8, span_s=1500.0, restart_s=20.0)
    assert_same(over_requests(instance, name, seed=5), simulate(instance, make_any_policy(name), seed=5))


def test_a_service_is_told_the_prices_that_are_published_and_no_others():
    settings_ = {"jobs.count": 12, "cluster.nodes": 2, "prices.published_at": "06:00"}
    instance = make_instance(load_scenario("de-lu").replace(settings_), 1)
    bodies: list[dict[str, Any]] = []

    def post(_: str, body: bytes) -> bytes:
        bodies.append(json.loads(body))
        return DECIDER(body)

    there = simulate(instance, ServicePolicy("", "sts", instance, post=post))
    assert_same(there, simulate(instance, make_any_policy("sts")))
    series = instance.find("prices")
    assert series is not None
    numbers = set()
    for body in bodies:
        told, known = body["prices"]["series"], series.published_s <= body["now_s"]
        numbers.add(int(known.sum()))
        assert told["eur_per_kwh"] == np.where(known, series.eur_per_kwh, 0.0).tolist()
    assert numbers == {28 * 24 + 24, 28 * 24 + 48}


def test_a_service_publishes_the_prices_of_a_request():
    request = json.loads(json.dumps(EXAMPLE)) | {"now_s": 5_000.0}
    series = {"start_s": [0.0, 3600.0, 7200.0], "eur_per_kwh": [1.0, 2.0, 0.0], "published_s": [None, 0.0, 6000.0]}
    request["prices"] = {"energy_eur_per_kwh": 1.0, "pue": 1.0, "series": series, "peak_kw": 3.0}
    parsed = DecideRequest.model_validate(request)
    names = ClusterNames.of(parsed)
    instance = Problem(parsed, names, [0]).instance(np.array([0]))
    state = present_state(parsed, names, [0], np.array([0]), instance, 40)
    assert state.view.price(3600.0, 7200.0) == 2.0
    assert state.view.known_until_s == 7200.0
    assert state.view.clock[at.PEAK_KW] == 3.0


def test_policies_that_number_jobs_by_the_run_are_refused():
    with refused("--policies", "gandiva"):
        PolicyCatalogue.of("gandiva")


@pytest.mark.parametrize(
    ("scenario", "jobs"),
    [("tiny", 90), ("default", 20), ("sharing", 20), ("multi-node", 15), ("guaranteed-and-opportunistic", 80)],
)
def test_an_agent_sees_the_latest_submissions_through_a_service_too(scenario: str, jobs: int):
    """It judges the load by 64 submissions: of jobs that are done too, and of no others."""
    settings = {"jobs.count": jobs, "cluster.nodes": 4}
    instance = make_instance(load_scenario(scenario).replace(settings), 9001)
    assert_same(over_requests(instance, "agent:default", seed=3), simulate(instance, make_any_policy("agent:default")))


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000), at_once=st.booleans(), name=st.sampled_from(["agent:default", "fill"]))
def test_many_jobs_that_are_done_leave_what_was_known_of_them(seed: int, at_once: bool, name: str):
    instance = random_instance(seed, jobs=80, nodes=4, kinds=True, restart_s=10.0)
    jobs = instance.jobs
    if at_once:  # some are submitted at one time
        jobs = replace(jobs, submission_s=np.floor(jobs.submission_s / 400.0) * 400.0)
    instance = replace(instance, jobs=jobs)
    assert_same(over_requests(instance, name), simulate(instance, make_any_policy(name)))


@pytest.mark.parametrize("name", ["gavel:cost", "gavel:las", "gavel:fifo-agnostic"])
def test_rounds_that_go_on_between_events_are_remembered(name: str):
    instance = random_instance(4, jobs=4, span_s=300.0)
    assert_same(over_requests(instance, name, seed=2), simulate(instance, make_any_policy(name), seed=2))


@pytest.mark.parametrize("name", ["edf", "edf:preemptive", "sts", "sts-x", "fill", "antman"])
@pytest.mark.parametrize("seed", [0, 1])
def test_shares_several_nodes_and_spread_gpus_come_back_to_where_they_were(name: str, seed: int):
    spread = seed > 0
    instance = random_instance(
        seed, jobs=10, nodes=5, span_s=800.0, restart_s=15.0, kinds=True, equal=True, spread=spread
    )
    assert_same(over_requests(instance, name), simulate(instance, make_any_policy(name)))


def test_tenants_that_are_names_only_are_told():
    instance = random_instance(5, jobs=6)
    jobs = replace(instance.jobs, tenant=np.arange(6) % 2)
    instance = replace(instance, jobs=jobs).with_mechanisms(Tenants((Tenant("a"), Tenant("b"))))
    assert_same(over_requests(instance, "edf"), simulate(instance, make_any_policy("edf")))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["edf", "sts", "sts-x", "edf:preemptive", "antman", "fill"]))
def test_utilisations_quotas_and_switching_by_distance_are_told_whole(seed: int, name: str):
    instance, policy = mixed_instance(seed), make_any_policy(name)
    if can_decide(policy, instance):
        assert_same(over_requests(instance, name), simulate(instance, policy))


@pytest.mark.parametrize("seed", range(3))
def test_the_power_of_a_busy_gpu_is_told_beside_that_of_its_node(seed: int):
    """A shared GPU spares a part of its own power, whatever the table of its node says."""
    instance = by_utilisation(random_instance(seed, jobs=12, kinds=True, equal=True))
    types = [replace(v, node_power_w=tuple(1.7 * v.power_w(busy) for busy in range(1, 5))) for v in instance.gpu_types]
    instance = replace(instance, gpu_types=tuple(types))
    assert_same(over_requests(instance, "sts-x"), simulate(instance, make_any_policy("sts-x")))


def test_an_instance_with_host_memory_is_refused():
    instance = with_host_memory(with_switching(random_instance(3, jobs=8), 3), 3)
    with refused("host_memory", "..."):
        over_requests(instance, "edf")


def test_a_decision_hangs_on_the_request_alone():
    asked: list[tuple[bytes, bytes]] = []

    def post(_: str, body: bytes) -> bytes:
        asked.append((body, DECIDER(body)))
        return asked[-1][1]

    instance = random_instance(3, jobs=8)
    simulate(instance, ServicePolicy("", "sts-x", instance, post=post))
    another = Decider(PolicyCatalogue.of("sts-x"), KEY)
    for body, answer in reversed(asked):  # by another service, in another order
        assert without_times(another(body)) == without_times(answer)


def without_times(answer: bytes) -> dict[str, Any]:
    """Return an answer without what it took to make it."""
    return {name: value for name, value in json.loads(answer).items() if name != "milliseconds"}


def test_one_object_serves_runs_that_go_on_at_the_same_time():
    instance = random_instance(6, jobs=8)
    asking = ServicePolicy("", "sts-x", instance, post=lambda _, body: DECIDER(body))
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda _: simulate(instance, asking), range(4)))
    for run in runs:
        assert_same(run, simulate(instance, make_any_policy("sts-x")))


def test_a_run_of_another_instance_is_refused():
    one, other = random_instance(1), random_instance(2)
    with refused("edf: instance", "random", "the instance that the policy was made with"):
        simulate(other, ServicePolicy("", "edf", one))


@pytest.mark.parametrize("name", ["antman", "sts-x", "tiresias"])
def test_shares_of_several_gpus_and_memory_that_moves_are_told_whole(name: str):
    settings = {
        "cluster.nodes": 3, "jobs.count": 12, "arrivals.lambda_s": 30.0, "restart_s": 20.0, "sharing.memory": "moves",
        "sharing.gpu_counts": [1, 2, 4],
    }  # fmt: skip
    instance = make_instance(load_scenario("guaranteed-and-opportunistic").replace(settings), seed=1)
    shared = tuple(c for c in instance.configurations if c.kind == "shared")
    columns = [c.kind == "shared" for c in instance.configurations]
    jobs = replace(instance.jobs, seconds_per_epoch=instance.jobs.seconds_per_epoch[:, columns])
    instance = replace(instance, configurations=shared, jobs=jobs)
    run = simulate(instance, make_any_policy(name))
    assert any(row.gpus_per_node > 1 for row in (shared[int(c)] for c in run.log[:, at.LOG_CONFIG]))
    assert_same(over_requests(instance, name), run)


@pytest.mark.parametrize("seed", range(3))
def test_power_limits_and_what_applications_save_are_told(seed: int):
    instance = with_power_limits(random_instance(seed, restart_s=4.0), seed)
    assert_same(over_requests(instance, "edf:preemptive"), simulate(instance, make_any_policy("edf:preemptive")))
