"""The live environment shows and pays what the simulated one does, where a simulated run is the cluster."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines import Sts, edf
from gpusched_env import (
    ENVIRONMENT_ID,
    GpuClusterEnv,
    Tenant,
    Tenants,
    load_scenario,
    make_instance,
    rollout,
    simulate,
)
from gpusched_env.envs.rollout import asking_of
from gpusched_env.simulator import layout as at
from gpusched_env.workload import load_track
from gpusched_operations import LIVE_ID
from gpusched_operations.live.env import LiveSlurmEnv
from instances import by_utilisation, random_instance, with_switching
from limited import with_power_limits
from refusals import refused
from simulated_cluster import SimulatedCluster

if TYPE_CHECKING:
    from gpusched_env import Instance

ROOT = Path(__file__).parents[3]


def assert_alike(one: Any, other: Any, said: str) -> None:
    """Compare observations: float32 numbers, which both computed from times that may differ in the last bit."""
    if not isinstance(one, dict):
        one, other = {"flat": one}, {"flat": other}
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_allclose(other[name], one[name], rtol=0.0, atol=1e-6, err_msg=f"{said}: {name}")


def live_env(instance: Instance, **way: Any) -> LiveSlurmEnv:
    """Make the environment on a cluster that plays a simulated run of the instance."""
    idle_review_s = way.get("idle_review_s", 3600.0)
    return LiveSlurmEnv(conf=SimulatedCluster(idle_review_s), instance=instance, **way)


def run_both(instance: Instance, seed: int, waits: float = 0.0, **way: Any) -> tuple[GpuClusterEnv, LiveSlurmEnv]:
    """Take the same steps in both, a part of them `waits`; every observation, mask, reward and info is the same."""
    simulated = GpuClusterEnv(instance=instance, **way)
    live = live_env(instance, **way)
    assert (simulated.observation_space, simulated.action_space) == (live.observation_space, live.action_space)
    rng = np.random.default_rng(seed)
    (seen, info), (seen_live, info_live) = simulated.reset(seed=0), live.reset(seed=0)
    over, steps = False, 0
    while True:
        said = f"step {steps}"
        assert_alike(seen, seen_live, said)
        assert info.keys() <= info_live.keys()
        for name, value in info.items():
            np.testing.assert_allclose(info_live[name], value, rtol=1e-9, atol=1e-9, err_msg=f"{said}: {name}")
        np.testing.assert_array_equal(live.action_masks(), simulated.action_masks())
        if over:
            return simulated, live
        allowed = np.flatnonzero(info["action_mask"])
        action = int(rng.choice(allowed) if rng.random() < 0.9 else rng.integers(simulated.action_space.n))
        action = 0 if rng.random() < waits else action
        seen, reward, terminated, truncated, info = simulated.step(action)
        seen_live, reward_live, *ends, info_live = live.step(action)
        steps += 1
        assert steps < 2_000, "it does not end"
        assert reward_live == pytest.approx(reward, rel=1e-9, abs=1e-9), said
        assert ends == [terminated, truncated], said
        over = terminated or truncated


WAYS = [
    {},
    {"milestones": 0, "job_order": "due"},
    {"preemption": False},
    {"due_date_timers": True, "consolidation": True, "milestones": 3},
]


@pytest.mark.parametrize("way", [{"shared_features": True, "job_features": 3}, {"flat": True, "milestones": 2}])
def test_shares_several_nodes_and_spread_gpus_are_the_same_too(way):
    run_both(random_instance(3, jobs=8, nodes=5, span_s=800.0, kinds=True, equal=True, spread=True), 3, **way)


def test_costs_of_switching_utilisations_and_power_limits_are_the_same_too():
    run_both(with_switching(random_instance(5, jobs=7, restart_s=9.0), 5), 5, due_date_timers=True)
    run_both(by_utilisation(random_instance(6, jobs=7, span_s=500.0, kinds=True, equal=True)), 6)
    run_both(with_power_limits(random_instance(7, jobs=7, restart_s=4.0), 7), 7, limit_features=True)


def test_names_of_tenants_are_told_too():
    instance = random_instance(8, jobs=6)
    jobs = replace(instance.jobs, tenant=np.arange(6) % 2)
    run_both(replace(instance, jobs=jobs).with_mechanisms(Tenants((Tenant("a"), Tenant("b")))), 8)


@pytest.mark.parametrize("way", [{"max_idle_reviews": 3}, {"due_date_timers": True, "max_idle_reviews": 40}])
def test_an_agent_that_always_waits_is_asked_again_and_cut_off_as_in_the_simulator(way):
    simulated, live = run_both(random_instance(8, jobs=4), 8, waits=1.0, idle_review_s=500.0, **way)
    assert simulated.view.count[at.IDLE] == live.view.count[at.IDLE] == way["max_idle_reviews"]
    with pytest.raises(gymnasium.error.ResetNeeded):
        live.result()


def test_idle_reviews_in_between_are_the_same():
    run_both(random_instance(8, jobs=5), 8, waits=0.8, idle_review_s=500.0, max_idle_reviews=None)


def test_prices_that_are_published_day_by_day_are_paid_and_seen_as_in_the_simulator():
    scenario = load_scenario("de-lu").replace(
        {"jobs.count": 10, "cluster.nodes": 2, "prices.published_at": "06:00", "restart_s": 60.0}
    )
    instance = make_instance(scenario, 1)
    simulated, live = run_both(instance, 9, price_features=True, milestones=0, reward="vector")
    assert simulated.view.clock[at.DEMAND_EUR] == pytest.approx(live.view.clock[at.DEMAND_EUR])


@pytest.mark.parametrize("policy", [edf(), Sts(), make_any_policy("agent:default")], ids=lambda p: p.name)
def test_a_policy_makes_the_run_that_simulate_makes(policy):
    instance = random_instance(2, jobs=9, span_s=900.0, restart_s=15.0)
    wanted, asking = simulate(instance, policy), asking_of(policy)
    live = live_env(instance, max_idle_reviews=None, **asdict(asking))
    found, rewards = rollout(live, policy)
    assert rewards == pytest.approx(-wanted.total_eur, rel=1e-9)
    for name in ("completion_s", "start_s", "job_energy_eur", "job_tardiness_eur"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(found.switches, wanted.switches)
    assert (found.rounds, found.total_eur) == (wanted.rounds, pytest.approx(wanted.total_eur, rel=1e-9))
    columns = [at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG, at.LOG_START, at.LOG_END]
    rows = (sorted(map(tuple, np.round(log[:, columns], 6).tolist())) for log in (found.log, wanted.log))
    assert next(rows) == next(rows)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), way=st.sampled_from(WAYS), waits=st.sampled_from([0.0, 0.5]))
def test_every_step_is_the_same_on_any_instance(seed: int, way: dict[str, Any], waits: float):
    instance = random_instance(seed, jobs=6, span_s=1000.0, restart_s=float(seed % 40))
    simulated, live = run_both(instance, seed, waits, max_idle_reviews=None, **way)
    assert simulated.view.now_s > 0.0
    assert live.cluster.answers


def test_the_checker_of_gymnasium_is_silent():
    check_env(live_env(random_instance(1, jobs=4)), skip_render_check=True)


def test_close_and_a_new_episode_leave_the_cluster_to_itself():
    env = live_env(random_instance(1, jobs=4))
    first, info = env.reset(seed=0)
    env.step(0)
    again, same = env.reset(seed=0)
    assert_alike(first, again, "reset")
    assert info["time_s"] == same["time_s"]
    assert info["events"] == []
    env.close()
    assert env.cluster.closed


@pytest.mark.parametrize(
    ("field", "arguments", "allowed"),
    [
        ("workload", {"workload": "mine"}, "scenario, own"),
        ("rules", {"rules": "jobs.toml"}, "None"),
        ("every_s", {"every_s": 0.0}, "a number > 0"),
        ("speed", {"speed": -1.0}, "a number > 0"),
        ("scenario", {"scenario": "cap"}, "one without a cap"),
    ],
)
def test_arguments_out_of_range_are_refused(field, arguments, allowed):
    with refused(field, allowed=allowed):
        LiveSlurmEnv(conf=SimulatedCluster(), **arguments)


def test_the_id_makes_it():
    assert LIVE_ID == "gpusched_env/LiveSlurm-v0"
    env = gymnasium.make(LIVE_ID, conf=SimulatedCluster(), scenario="few-jobs")
    assert isinstance(env.unwrapped, LiveSlurmEnv)
    assert (env.unwrapped.reward_scale, env.unwrapped.step_limit) == (load_track("few-jobs").reward_scale_eur, None)
    assert env.observation_space == gymnasium.make(ENVIRONMENT_ID, scenario="few-jobs").observation_space


def test_without_slurm_it_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("gpusched_operations.live.slurm_cluster.missing_programs", lambda: ("slurmctld",))
    with refused("conf", str(tmp_path), "a machine with Slurm: slurmctld not found"):
        gymnasium.make("gpusched_env/LiveSlurm-v0", scenario="tiny", conf=tmp_path)


def test_the_page_shows_lines_of_the_example():
    page, example = (
        (ROOT / path).read_text("utf-8") for path in ("docs/environment.md", "examples/evaluate_on_slurm.py")
    )
    block = re.search(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert block[1] in example
