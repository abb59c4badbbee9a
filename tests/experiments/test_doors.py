"""One instance has one run through every door: with each optional mechanism on, and with it off."""

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from commands import succeeds
from gpusched_agents.any_policy import make_any_policy
from gpusched_env import (
    GpuClusterEnv,
    GpuClusterVectorEnv,
    Instance,
    Result,
    Scenario,
    load_scenario,
    make_instance,
    rollout,
    simulate,
)
from gpusched_env.envs.rollout import asking_of
from gpusched_env.formats import read_run, save_instance
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import memory_columns
from gpusched_experiments import compare
from gpusched_operations.forecast import ForecastSettings, forecast
from gpusched_operations.live.asking import decider_of
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.rules_file import ORIGIN_S
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.slurm_state import read_cluster
from gpusched_operations.live.snapshot import take_snapshot
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from made_up_drives import ELASTIC, MOVABLE, RIGID, driver, kinds
from made_up_slurm import MadeUpJob, MadeUpSlurm
from refusals import refused

SMALL = {"jobs.count": 14, "cluster.nodes": 3, "arrivals.rate": 10.0, "due_dates.slack": 0.3}
QUOTAS = [{"name": name, "share": 1, "cells": {"V100": [4], "A100": [4], "T4": [2]}} for name in ("one", "two")]
LARGE = {
    "jobs.applications": ["resnet50-imagenet-global256", "vgg16-imagenet-global256"],
    "sharing.fractions": [0.5, 0.5],
    "sharing.priorities": [1, 0],
}
PRICES = {"prices.series": "de-lu-2024", "prices.known": "all", "prices.demand_charge_eur_per_kw": 5.0}
LIMITS = {"jobs.power_limits": [1.0, 0.7]}
PIPELINED = {"switching.model": "pipelined"}
GUARANTEED = "guaranteed-and-opportunistic"
MECHANISMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "prices": ("default", PRICES, {}),
    "cap": ("default", {"site.cap_part": 0.3, **LIMITS}, LIMITS),
    "power-limits": ("default", {"jobs.power_limits": [1.0, 0.85, 0.6]}, {}),
    "measured-power": ("default", {**LIMITS, "jobs.application_power": "measured"}, LIMITS),
    "gpu-hours": ("default", {"site.gpu_hour_eur": 2.0}, {}),
    "quotas": ("default", {"tenancy": "quota", "tenants": QUOTAS}, {}),
    "cells": ("cells", {"cluster.nodes": 10}, {"cluster.nodes": 10, "tenancy": "none", "tenants": []}),
    "shares": ("sharing", {}, {"sharing.fractions": []}),
    "utilisation": (GUARANTEED, {}, {"sharing.power": "busy"}),
    "moving-memory": (GUARANTEED, {**LARGE, "sharing.memory": "moves"}, LARGE),
    "profiling": (GUARANTEED, {"sharing.profile_s": 300.0}, {}),
    "whole-nodes": ("multi-node", {}, {"jobs.node_counts": [1]}),
    "spread": ("default", {"jobs.gpu_counts": [1], "jobs.spread_counts": [2, 4]}, {"jobs.gpu_counts": [1]}),
    "network": ("byteps", {}, {"interconnect.backend": "all-reduce", "interconnect.cpu_machines": 0}),
    "switching": ("default", PIPELINED, {}),
    "host-memory": ("default", {**PIPELINED, "switching.pool_gib": 4.0}, {}),
    "interval": ("default", {"decision_interval_s": 600.0}, {}),
}
"""Of each a scenario, and the settings with which it is on, and off."""

CASES = [(name, on) for name in MECHANISMS for on in (True, False)]
POLICY = "sts"
DECIDER = Decider(PolicyCatalogue.of("all"), b"a key of the doors")
NOT_IN_REQUESTS = {
    ("cells", True): "tenancy",
    ("host-memory", True): "host_memory",
    ("profiling", True): "interference.profile_s",
}
"""What a request cannot contain, and the field of the error."""

each_mechanism = pytest.mark.parametrize(("name", "on"), CASES, ids=[f"{n}-{'on' if on else 'off'}" for n, on in CASES])


def scenario_of(name: str, on: bool) -> Scenario:
    scenario, with_it, without = MECHANISMS[name]
    return load_scenario(scenario).replace({**SMALL, **(with_it if on else without)})


def instance_of(name: str, on: bool) -> Instance:
    return make_instance(scenario_of(name, on), 3)


def run_of(instance: Instance) -> Result:
    return simulate(instance, make_any_policy(POLICY), seed=3)


def assert_same_cost(one: Any, other: Any) -> None:
    assert (one.energy_eur, one.tardiness_eur) == (other.energy_eur, other.tardiness_eur)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_of_this_page_matters(name):
    on, off = (run_of(instance_of(name, each)) for each in (True, False))
    assert on.total_eur != off.total_eur


@each_mechanism
def test_the_environment(name, on):
    """With EDF, which decides job by job in both: STS gives what is left of shared GPUs away at the end of a round."""
    instance, policy = instance_of(name, on), make_any_policy("edf")
    settings = {key: value for key, value in asdict(asking_of(policy)).items() if key != "idle_review_s"}
    result, rewards = rollout(GpuClusterEnv(instance=instance, **settings), policy)
    expected = simulate(instance, policy)
    assert_same_cost(result, expected)
    assert np.array_equal(result.completion_s, expected.completion_s)
    assert -rewards == pytest.approx(expected.total_eur, rel=1e-9)


@each_mechanism
def test_the_vector_environment(name, on):
    """Both environments with the same random actions: rewards, observations and costs to the last bit."""
    instance, rng = instance_of(name, on), np.random.default_rng(5)
    one, many = GpuClusterEnv(instance=instance), GpuClusterVectorEnv(2, instance=instance)
    seen, _ = one.reset(seed=0)
    many.reset(seed=0)
    over, rewards = False, 0.0
    while not over:
        action = int(rng.choice(np.flatnonzero(one.action_masks())))
        seen, reward, over, stalled, info = one.step(action)
        in_many, both, ended, _, infos = many.step(np.array([action, action]))
        over = over or stalled
        assert both.tolist() == [reward, reward]
        assert ended[1] == (over and not stalled)
        assert all(np.array_equal(seen[part], in_many[part][1]) for part in seen)
        rewards += reward
    cost = info["total_energy_eur"] + info["total_tardiness_eur"]
    assert infos["total_energy_eur"][0] + infos["total_tardiness_eur"][0] == cost
    assert -rewards == pytest.approx(cost, rel=1e-9)


@each_mechanism
def test_simulate_of_a_saved_instance(name, on, tmp_path):
    instance, path = instance_of(name, on), tmp_path / "instance.json"
    save_instance(instance, path)
    succeeds("simulate", "--instance", path, "--policy", POLICY, "--seed", "3", "--out", tmp_path / "run")
    totals, expected = read_run(tmp_path / "run").facts, run_of(instance)
    assert totals["energy_eur"] == expected.energy_eur
    assert totals["tardiness_eur"] == expected.tardiness_eur


@each_mechanism
def test_compare(name, on):
    (run,) = compare([POLICY], scenario_of(name, on), seeds=[3])
    assert_same_cost(run, run_of(instance_of(name, on)))


@each_mechanism
def test_serve(name, on):
    instance = instance_of(name, on)
    field = NOT_IN_REQUESTS.get((name, on))
    with nullcontext() if field is None else refused(field):
        asking = ServicePolicy("", POLICY, instance, post=lambda _, body: DECIDER(body))
        assert_same_cost(simulate(instance, asking, seed=3), run_of(instance))


@each_mechanism
def test_a_forecast_of_what_is_certain(name, on):
    """Jobs that are all there, and need all their epochs, cost what is forecast."""
    plain = instance_of(name, on)
    jobs, policy = plain.jobs, make_any_policy(POLICY)
    table = replace(
        jobs,
        submission_s=np.zeros(len(jobs)),
        epochs_needed=jobs.max_epochs,
        distributions=(EpochDistribution.certain(),),
        distribution=np.zeros(len(jobs), dtype=np.int64),
    )
    instance = replace(plain, jobs=table)
    state = State(instance, asking_of(policy), record=False, memory_columns=memory_columns(policy, instance))
    state.advance()
    found = forecast(state, policy, np.random.default_rng(0), ForecastSettings(samples=2)).outcomes
    expected = run_of(instance)
    assert np.ptp(found.energy_eur, axis=0).max() == 0.0
    assert found.end_s[0] == pytest.approx(expected.completion_s, rel=1e-9)
    assert found.energy_eur.sum(axis=1)[0] == pytest.approx(expected.energy_eur, rel=1e-9)
    assert found.tardiness_eur.sum(axis=1)[0] == pytest.approx(expected.tardiness_eur, rel=1e-9)


HOUR = 3600.0
NOW_S = MadeUpSlurm().now_s
CHEAP_LATER = {"start_s": [0.0, NOW_S - ORIGIN_S + HOUR], "eur_per_kwh": [2.0, 0.02]}
LIVE_MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {},
    "prices": {"prices": {"series": CHEAP_LATER}},
    "gpu-hours": {"prices": {"gpu_hour_eur": 3.0}},
    "restarts": {"defaults": {"checkpoint": True}},
}
"""What the rules of live clusters may contain of optional mechanisms."""


def made_up(reason: str = "JobHeldUser") -> MadeUpSlurm:
    """Queue more jobs than there are GPUs for; none starts by itself."""
    slurm, held = MadeUpSlurm(), reason == "JobHeldUser"
    slurm.broken |= set() if held else slurm.nodes.keys()
    words = (ELASTIC, RIGID, MOVABLE, f"{ELASTIC} weight=0.01", f"{RIGID} weight=0.002")
    for number, each in enumerate(words * 3, 1):
        slurm.submit(MadeUpJob(number, each), held=held).reason = reason
    return slurm


def first_starts(instance: Instance, nodes: list[str], policy: str) -> dict[str, tuple[str, list[str]]]:
    """Return what the jobs get at time 0 in a run of an instance."""
    log = simulate(instance, make_any_policy(policy), seed=0).log
    return {
        str(int(row[at.LOG_JOB]) + 1): (
            instance.configurations[int(row[at.LOG_CONFIG])].name,
            [nodes[int(row[at.LOG_NODE])]],
        )
        for row in log[log[:, at.LOG_START] == 0.0]
    }


def starts_of(answer: dict[str, Any]) -> dict[str, tuple[str, list[str]]]:
    return {
        each["id"]: (each["configuration"], list(each["nodes"])) for each in answer["jobs"] if each["action"] == "start"
    }


@pytest.mark.parametrize("policy", ["edf", "sts", "sts-x", "sts:priced"])
@pytest.mark.parametrize("name", LIVE_MECHANISMS)
def test_snapshot_and_the_decision_of_drive(name, policy, tmp_path):
    """What is started now is the same in a run of what is left, by the service, in a snapshot, and by `drive`."""
    rules, decider = JobRules.of(LIVE_MECHANISMS[name]), decider_of(policy, b"a key of the doors")
    slurm = made_up("Priority")
    cluster = read_cluster(SlurmControl(slurm.run, limit_s=3.0, pause=slurm.pause), slurm.clock())
    snapshot = take_snapshot(cluster, rules, [policy], decider)
    expected = first_starts(
        snapshot.instance, [node["name"] for node in snapshot.request.fields["cluster"]["nodes"]], policy
    )
    shown = snapshot.answers[1]
    assert starts_of(shown.answer) == expected
    assert starts_of(json.loads(DECIDER(json.dumps(shown.request.fields).encode()))) == expected
    slurm = made_up()
    made, events = driver(slurm, tmp_path, decider.ask, rules=rules, policy=policy)
    made.round()
    assert {each["job"]: (each["configuration"], list(each["nodes"])) for each in kinds(events, "start")} == expected
    assert {str(number): job.runs[0][1:] for number, job in slurm.jobs.items() if job.runs} == {
        job: (nodes[0], int(configuration.rpartition("x")[2])) for job, (configuration, nodes) in expected.items()
    }


def test_prices_by_period_change_the_decision_of_drive(tmp_path):
    """STS-X starts fewer jobs now where energy is cheap in an hour."""
    started = []
    for name in ("none", "prices"):
        made, events = driver(
            made_up(), tmp_path / name, decider_of("sts-x", b"a key of the doors").ask,
            rules=JobRules.of(LIVE_MECHANISMS[name]), policy="sts-x",
        )  # fmt: skip
        made.round()
        started.append(len(kinds(events, "start")))
    assert started[1] < started[0]
