"""A cluster of one's own, and the published inputs, cost the same through every door."""

import json
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from commands import succeeds
from gpusched_baselines import Sts, make_policy
from gpusched_env import (
    ENVIRONMENT_ID,
    GpuClusterEnv,
    GpuClusterVectorEnv,
    Instance,
    JobPolicy,
    load_instance,
    load_scenario,
    make_instance,
    rollout,
    save_instance,
    simulate,
)
from own_cluster import write_own_cluster

POLICIES = ("fifo", "edf", "sts", "sts-x")
PUBLISHED = ("published-high", "published-sharing")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_own_cluster(tmp_path)


def asked_as(name: str) -> tuple[JobPolicy, dict[str, object]]:
    """Return a policy that decides job by job, and how an environment asks as it does."""
    policy = make_policy(name)
    assert isinstance(policy, JobPolicy)
    return policy, {"job_order": policy.job_order, "preemption": policy.preemption, "milestones": 0}


def costs_of_a_vector(env: GpuClusterVectorEnv, policy: JobPolicy, seed: int) -> list[float]:
    """Run an episode in every environment; give their costs [€]."""
    env.reset(seed=seed)
    costs = np.full(env.num_envs, np.nan)
    while np.isnan(costs).any():
        views, jobs = env.views, env.jobs
        actions = [0] * env.num_envs
        for i in np.flatnonzero(jobs >= 0).tolist():
            choice = policy.choose(views[i], int(jobs[i]))
            views[i].apply(int(jobs[i]), choice)
            actions[i] = choice.config + 1
        _, _, ended, _, infos = env.step(actions)
        total = infos["total_energy_eur"] + infos["total_tardiness_eur"]
        costs = np.where(np.isnan(costs) & ended, total, costs)
    return costs.tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_simulate_and_both_environments_agree_on_a_cluster_of_ones_own(own, tmp_path, name):
    policy, asking = asked_as(name)
    instances = [make_instance(load_scenario(own), seed) for seed in (3, 4)]
    direct = [simulate(instance, policy).total_eur for instance in instances]
    assert direct[0] > 0.0
    env = gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", scenario=own, **asking)
    stepped, rewards = rollout(env, policy, seed=3)
    assert stepped.total_eur == pytest.approx(direct[0], rel=1e-9)
    assert -rewards == pytest.approx(direct[0], rel=1e-9)
    save_instance(instances[0], tmp_path / "mine.json")
    replaying = GpuClusterEnv(instance=load_instance(tmp_path / "mine.json"), **asking)
    assert rollout(replaying, policy, seed=99)[0].total_eur == stepped.total_eur
    for many in (GpuClusterVectorEnv(2, own, **asking), GpuClusterVectorEnv(2, instance=instances, **asking)):
        assert costs_of_a_vector(many, policy, 3) == pytest.approx(direct, rel=1e-9)


def test_the_cluster_of_ones_own_is_crowded_enough_to_tell_policies_apart(own):
    instance = make_instance(load_scenario(own), 3)
    results = [simulate(instance, make_policy(name)) for name in POLICIES]
    assert len({round(result.total_eur, 6) for result in results}) > 1
    assert any(result.late_jobs for result in results)


@pytest.mark.parametrize("scenario", PUBLISHED)
@pytest.mark.parametrize("name", ["edf", "sts"])
def test_simulate_and_both_environments_agree_on_the_published_inputs(scenario, name):
    policy, asking = asked_as(name)
    if isinstance(policy, Sts):
        policy = replace(policy, postprocess=False)  # what is left of shared GPUs is given away by whole rounds alone
    settings = {"cluster.nodes": 2, "jobs.count": 15}
    instance: Instance = make_instance(load_scenario(scenario).replace(settings), 1)
    direct = simulate(instance, policy)
    stepped, _ = rollout(GpuClusterEnv(scenario, settings=settings, **asking), policy, seed=1)
    np.testing.assert_array_equal(stepped.log, direct.log)
    assert stepped.total_eur == pytest.approx(direct.total_eur, rel=1e-9)
    many = GpuClusterVectorEnv(1, scenario, settings=settings, **asking)
    assert costs_of_a_vector(many, policy, 1) == pytest.approx([direct.total_eur], rel=1e-9)


def test_a_run_of_it_is_written_and_the_audit_finds_nothing(own, tmp_path):
    run = tmp_path / "run"
    succeeds("simulate", "-p", "sts", "--scenario", own, "--seed", 3, "--out", run)
    assert "no difference" in succeeds("audit", run).stdout
    result = simulate(make_instance(load_scenario(own), 3), make_policy("sts"), seed=3)
    assert json.loads((run / "run.json").read_text())["total_eur"] == pytest.approx(result.total_eur, rel=1e-12)


def test_a_comparison_of_it_runs_and_can_be_run_again(own, tmp_path):
    compare = ("compare", "-p", "edf,sts", "--seeds", "3-4", "-w", 1)
    succeeds(*compare, "--scenario", own, "--out", tmp_path / "a")
    succeeds(*compare, "--scenario", tmp_path / "a" / "scenario.toml", "--out", tmp_path / "b")
    runs = [json.loads((tmp_path / name / "results.json").read_text())["runs"] for name in ("a", "b")]
    costs = [{(run["policy"], run["seed"]): run["total_eur"] for run in each} for each in runs]
    assert costs[0] == costs[1]
    direct = simulate(make_instance(load_scenario(own), 3), make_policy("sts"), seed=3)
    assert costs[0]["sts", 3] == pytest.approx(direct.total_eur, rel=1e-12)


def test_an_agent_is_trained_on_it_and_evaluated(own, tmp_path):
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    succeeds(
        "train", "--scenario", own, "--agent", "ppo", "--envs", 2, "--hidden", 8, "--validation-seeds", "500",
        "--steps", 32, "--set", "agent.workloads=2", "--set", "agent.n_steps=16", "--set", "agent.batch_size=32",
        "--out", tmp_path / "run",
    )  # fmt: skip
    agent = tmp_path / "run" / "agent"
    shown = succeeds("evaluate", agent, "--scenario", own, "--seeds", "3", "--against", "edf", "-w", 1).stdout
    assert "edf" in shown
    succeeds("simulate", "-p", f"agent:{agent}", "--scenario", own)
