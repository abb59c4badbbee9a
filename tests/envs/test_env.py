"""The environment's contract: checkers, rewards, masks, rounds, observations, rendering, bad input."""

from __future__ import annotations

import copy
import itertools
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, Instance, load_scenario, make_instance
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.rounds import decide
from refusals import refused
from run_files import audited

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = [
    {},
    {"preemption": False},
    {"job_order": "due", "milestones": 0, "due_date_timers": True},
    {"scenario": "default", "milestones": 2},
    {"job_features": 3},
]


def make(**settings: object) -> gymnasium.Env:
    return gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", **({"scenario": "tiny"} | settings))


def play(env: gymnasium.Env, seed: int = 0, *, masked: bool = True, steps: int = 100_000) -> list[tuple]:
    """Play an episode at random; list every step as (observation, reward, terminated, info)."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    rows = []
    for _ in range(steps):
        allowed = np.flatnonzero(info["action_mask"]) if masked else np.arange(env.action_space.n)
        observation, reward, terminated, truncated, info = env.step(int(rng.choice(allowed)))
        rows.append((observation, reward, terminated, info))
        assert not truncated
        if terminated:
            break
    return rows


@pytest.mark.parametrize("gpu_counts", [(1,), (1, 2), (2, 8), (8,)])
def test_observations_lie_in_the_space_whatever_gpu_counts_are_offered(gpu_counts):
    env = make(scenario=load_scenario("tiny").replace({"jobs.gpu_counts": gpu_counts, "cluster.gpu_types": ["V100"]}))
    assert all(env.observation_space.contains(row[0]) for row in play(env))


def test_a_copy_of_the_environment_goes_on_alone():
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    env.step(1)
    twin = copy.deepcopy(env)
    signatures = len(getattr(decide, "signatures", []))
    actions = [int(np.flatnonzero(env.action_masks())[-1])]
    first, second = env.step(actions[0]), twin.step(actions[0])
    assert first[1] == second[1]
    assert all(np.array_equal(first[0][k], second[0][k]) for k in first[0])
    assert len(getattr(decide, "signatures", [])) == signatures


@pytest.mark.parametrize("settings_", SETTINGS)
def test_both_checkers_have_nothing_to_say(settings_):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**settings_).unwrapped, skip_render_check=True)
        checker.check_env(make(**settings_).unwrapped, warn=True)


@pytest.mark.parametrize("settings_", SETTINGS)
def test_rewards_sum_to_minus_the_cost_exactly(settings_):
    env = make(**settings_)
    rows = play(env)
    result = env.unwrapped.result()
    info = rows[-1][3]
    assert rows[-1][2]
    assert -sum(row[1] for row in rows) == pytest.approx(result.total_eur, rel=1e-12)
    assert sum(row[3]["energy_eur"] for row in rows) == pytest.approx(result.energy_eur, rel=1e-12)
    assert sum(row[3]["tardiness_eur"] for row in rows) == pytest.approx(result.tardiness_eur, rel=1e-12, abs=1e-12)
    assert info["total_energy_eur"] == result.energy_eur
    assert info["total_tardiness_eur"] == result.tardiness_eur
    assert info["job"] == -1


def test_rewards_sum_to_minus_the_bill_with_prices_and_a_demand_charge():
    prices = {"series": "caiso-2022", "demand_charge_eur_per_kw": 5.0}
    env = GpuClusterEnv("tiny", settings={f"prices.{name}": value for name, value in prices.items()})
    rows, result = play(env), env.unwrapped.result()
    assert -sum(row[1] for row in rows) * env.unwrapped.reward_scale == pytest.approx(result.total_eur, rel=1e-12)
    assert result.demand_eur > 0.0
    assert result.co2_kg > 0.0


def test_the_reward_scale_divides_the_cost():
    plain, scaled = play(make()), play(make(reward_scale=50.0))
    assert sum(r[1] for r in scaled) == pytest.approx(sum(r[1] for r in plain) / 50.0)


def test_a_reward_of_your_own_takes_its_place():
    env = make(reward=lambda energy_eur, tardiness_eur: -energy_eur - 0.0 * tardiness_eur)
    rows = play(env)
    assert -sum(r[1] for r in rows) == pytest.approx(env.unwrapped.result().energy_eur)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "much", None, True, np.zeros(2)])
def test_a_reward_that_returns_no_finite_number_is_named_at_that_step(value):
    env = make(reward=lambda energy_eur, tardiness_eur: value)  # noqa: ARG005
    env.reset(seed=0)
    with refused("reward", value):
        env.step(0)


@pytest.mark.parametrize("value", [np.float32(-2.0), -2, np.int64(-2)])
def test_a_reward_may_return_any_kind_of_number(value):
    env = make(reward=lambda energy_eur, tardiness_eur: value)  # noqa: ARG005
    env.reset(seed=0)
    reward = env.step(0)[1]
    assert (reward, type(reward)) == (-2.0, float)


@pytest.mark.parametrize("settings_", SETTINGS)
def test_observations_lie_in_the_space_and_are_fresh(settings_):
    env = make(**settings_)
    rows = play(env, steps=400)
    copies = [{k: v.copy() for k, v in row[0].items()} for row in rows]
    for (observation, _, _, info), copied in zip(rows, copies, strict=True):
        assert env.observation_space.contains(observation)
        assert all(np.array_equal(observation[k], copied[k]) for k in copied)
        assert info["action_mask"].dtype == np.int8
    for before, after in itertools.pairwise(rows):
        assert before[3] is not after[3]
        assert not np.shares_memory(before[3]["action_mask"], after[3]["action_mask"])
        assert not any(np.shares_memory(before[0][k], after[0][k]) for k in before[0])


def test_the_features_are_named():
    shapes = {k: v.shape for k, v in make().unwrapped.observation_space.spaces.items()}
    assert shapes["job"] == (len(JOB_FEATURES),)
    assert shapes["options"] == (len(make().unwrapped.configurations) * len(OPTION_FEATURES),)
    assert shapes["cluster"] == (len(make().unwrapped.instance.gpu_types) * len(CLUSTER_FEATURES),)
    assert shapes["queue"] == (len(QUEUE_FEATURES),)


def test_the_spaces_do_not_depend_on_jobs_or_nodes():
    base = load_scenario("default")
    small = GpuClusterEnv(base)
    large = GpuClusterEnv(base.replace({"cluster.nodes": 30, "jobs.count": 37}))
    assert small.observation_space == large.observation_space
    assert small.action_space == large.action_space


@pytest.mark.parametrize("preemption", [True, False])
def test_no_observation_depends_on_what_is_known_only_later(preemption):
    """Later means after a third of the jobs are done: the epochs that the others need, and the jobs submitted then."""
    env = GpuClusterEnv("tiny", preemption=preemption, job_features=3)

    def episode(instance: Instance) -> list[tuple[float, np.ndarray]]:
        rng, over, rows = np.random.default_rng(0), False, []
        observation, info = env.reset(options={"instance": instance})
        while not over:
            rows.append((info["time_s"], np.concatenate(list(observation.values()))))
            observation, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        return rows

    instance = make_instance(env.scenario.replace({"jobs.count": 20, "arrivals.lambda_s": 1000.0}), 2)
    first, jobs, done_s = episode(instance), instance.jobs, env.result().completion_s
    time_s = float(np.quantile(done_s, 1 / 3))
    open_, to_come = done_s > time_s, jobs.submission_s > time_s
    assert (open_ & ~to_come).sum() > 3
    needed = np.where(open_, jobs.max_epochs, jobs.epochs_needed)
    other = replace(instance, jobs=replace(jobs, epochs_needed=needed, due_s=jobs.due_s + 1e5 * to_come))
    second = episode(other)
    before = sum(now <= time_s for now, _ in first)
    assert before > 15
    assert before == sum(now <= time_s for now, _ in second)
    same = [np.array_equal(one[1], two[1]) for one, two in zip(first, second, strict=False)]
    assert all(same[:before])
    assert not all(same)


def test_masked_actions_are_always_placed_and_others_wait():
    env = make(preemption=False)
    assert play(env)[-1][3]["invalid_actions"] == 0
    rows = play(env, masked=False, steps=2000)
    assert rows[-1][3]["invalid_actions"] > 0


def test_an_action_that_cannot_be_placed_means_wait():
    env = GpuClusterEnv("tiny", preemption=False)
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    while info["action_mask"].all():
        _, _, _, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
    blocked = int(np.flatnonzero(info["action_mask"] == 0)[0])
    job = env.job
    twin = copy.deepcopy(env)
    assert twin.job == job
    seen, reward, _, _, info = env.step(blocked)
    waited, waited_reward, _, _, _ = twin.step(0)
    assert reward == waited_reward
    assert all(np.array_equal(seen[k], waited[k]) for k in seen)
    assert info["invalid_actions"] == 1


def test_the_mask_agrees_with_the_method_that_maskable_ppo_calls():
    env = make()
    _, info = env.reset(seed=1)
    assert env.unwrapped.action_masks().dtype == np.bool_
    assert np.array_equal(env.unwrapped.action_masks(), info["action_mask"].astype(bool))
    assert info["action_mask"][0] == 1


def test_masks_are_computed_without_an_observation_and_are_those_of_one(monkeypatch):
    kinds = {"cluster.nodes": 6, "jobs.node_counts": (1, 2), "sharing.fractions": (0.5, 0.25), "due_dates.slack": 0.1}
    env, rng, over = GpuClusterEnv(load_scenario("tiny").replace(kinds)), np.random.default_rng(0), False
    _, info = env.reset(seed=0)
    while not over:
        with monkeypatch.context() as patched:
            patched.delattr("gpusched_env.envs.env.act_and_look")
            mask = env.action_masks()
        np.testing.assert_array_equal(mask, info["action_mask"].astype(bool))
        _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(mask))))
    assert env.action_masks().tolist() == [True] + [False] * len(env.configurations)
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"].astype(bool))


def test_a_mask_sees_what_was_placed_through_the_view():
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    before = env.action_masks()
    while len(env.view.waiting) < 3:
        env.step(0)
    others = [job for job in env.view.waiting.tolist() if job != env.job]
    assert any(env.view.place(job, int(c)) for job in others for c in np.argsort(-env.view.configs[:, at.CONFIG_GPUS]))
    after = env.action_masks()
    np.testing.assert_array_equal(after, env._observe()[1].astype(bool))
    assert after.dtype == before.dtype == np.bool_


def test_spread_gpus_may_be_chosen_where_no_node_has_as_many():
    """Two nodes of four GPUs with three in use on each: two GPUs are free, on different nodes."""
    settings = {"cluster.pools": [{"gpu_type": "V100", "nodes": 2, "gpus_per_node": 4}], "jobs.gpu_counts": [2, 3]}
    settings |= {"jobs.spread_counts": [2], "jobs.applications": ["lm-wikitext2-bs5"], "jobs.count": 3}
    settings |= {"arrivals.kind": "simultaneous", "arrivals.lambda_s": None}
    env = GpuClusterEnv(load_scenario("tiny").replace(settings))
    env.reset(seed=0)
    assert [configuration.name for configuration in env.configurations] == ["V100x2", "V100x3", "V100~2"]
    for job in (job for job in env.view.waiting.tolist() if job != env.job):
        assert env.view.place(job, 1)
    assert env.action_masks().tolist() == [True, False, False, True]
    job = env.job
    env.step(3)
    assert int(env.view.jobs[job, at.CONFIG]) == 2
    assert env.view.nodes[:, at.FREE].tolist() == [0, 0]


def test_reset_with_a_seed_makes_the_instance_that_compare_uses():
    env = GpuClusterEnv("tiny")
    env.reset(seed=7)
    assert env.instance == make_instance(load_scenario("tiny"), 7)
    env.reset()
    first = env.instance
    env.reset()
    assert env.instance != first


@pytest.mark.parametrize("seed", [-1, 1.5, np.float64(3.0), True, "0", 2**63])
def test_a_seed_that_is_none_is_an_input_error_and_the_episode_goes_on(seed):
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    with refused("seed", seed) as caught:
        env.reset(seed=seed)
    assert caught.value.field == "seed"
    env.step(0)


def test_a_seed_may_be_a_whole_number_of_numpy():
    env = GpuClusterEnv("tiny")
    one, _ = env.reset(seed=np.int64(9000))
    other, _ = env.reset(seed=9000)
    assert all(np.array_equal(one[name], other[name]) for name in other)
    assert env.instance.seed == 9000


def test_seeded_episodes_repeat():
    one, two = play(make(), seed=5), play(make(), seed=5)
    assert [r[1] for r in one] == [r[1] for r in two]
    assert all(np.array_equal(a[0]["options"], b[0]["options"]) for a, b in zip(one, two, strict=True))


def test_with_preemption_every_active_job_is_asked_without_it_only_waiting_ones():
    asked = {}
    for preemption in (True, False):
        env = GpuClusterEnv("tiny", preemption=preemption, milestones=0)
        env.reset(seed=0)
        done = False
        asked[preemption] = 0
        while not done:
            running = env.view.jobs[env.job, at.OLD_CONFIG] >= 0
            asked[preemption] += int(running)
            mask = env.action_masks()
            _, _, done, _, _ = env.step(int(np.flatnonzero(mask)[-1]))
    assert asked[True] > 0
    assert asked[False] == 0


def test_when_nothing_runs_and_nothing_is_pending_time_moves_by_the_idle_review():
    base = load_scenario("tiny").replace({"jobs.count": 1})
    env = GpuClusterEnv(base, idle_review_s=123.0)
    env.reset(seed=0)
    times = [env.step(0)[4]["time_s"] for _ in range(3)]
    assert times == [123.0, 246.0, 369.0]


def test_a_finished_episode_must_be_reset():
    env = GpuClusterEnv("tiny")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.result()
    play(env)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("action", [-1, 1_000, 1.5, "wait", None, np.array([1, 2]), True, False, np.True_])
def test_an_action_outside_the_space_is_refused(action):
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    with refused("action", action):
        env.step(action)


@pytest.mark.parametrize("action", [np.int64(1), np.array(1), np.array([1])])
def test_actions_may_come_as_numpy_numbers(action):
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    env.step(action)


@pytest.mark.parametrize(
    ("settings_", "field"),
    [
        ({"scenario": "no-such"}, "scenario"),
        ({"scenario": 3}, "scenario"),
        ({"reward": 3}, "reward"),
        ({"reward_scale": 0.0}, "reward_scale"),
        ({"render_mode": "human"}, "render_mode"),
        ({"job_features": -1}, "job_features"),
        ({"job_features": True}, "job_features"),
        ({"reward": lambda energy_eur, tardiness_eur: energy_eur + tardiness_eur, "reward_scale": 5.0}, "reward_scale"),
    ],
)
def test_a_wrong_parameter_is_named(settings_, field):
    with refused(field, settings_[field]):
        GpuClusterEnv(**({"scenario": "tiny"} | settings_))


def test_a_wrong_reset_option_is_named():
    env = GpuClusterEnv("tiny")
    with refused("options", "instances"):
        env.reset(options={"instances": 1})
    with refused("options['instance']", "str", "an Instance"):
        env.reset(options={"instance": "tiny"})
    with refused("options['instance']", "published-high"):
        env.reset(options={"instance": make_instance(load_scenario("published-high"), 0)})


def test_rendering_as_text_tells_time_costs_and_jobs():
    env = GpuClusterEnv("tiny", render_mode="ansi")
    env.reset(seed=0)
    text = env.render()
    assert isinstance(text, str)
    assert "node" in text.lower()
    play(env)
    assert env.render() != text


def test_rendering_without_a_mode_warns_as_gymnasium_does():
    env = GpuClusterEnv("tiny")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without specifying any render mode"):
        assert env.render() is None


def test_an_environment_says_what_it_runs_and_how_large_its_spaces_are():
    env = make(settings={"jobs.count": 7})
    said = f"<GpuClusterEnv<{ENVIRONMENT_ID}>: tiny, 7 jobs, 3 nodes, {env.action_space.n - 1} configurations, "
    assert str(env.unwrapped) == repr(env.unwrapped)
    assert str(env.unwrapped) == f"{said}{len(env.unwrapped.feature_names)} features>"
    assert str(GpuClusterEnv("tiny")).startswith("<GpuClusterEnv instance: tiny, ")


@pytest.mark.parametrize("preemption", [True, False])
@pytest.mark.parametrize("restart_s", [0.0, 300.0])
def test_random_episodes_audit_clean(tmp_path: Path, preemption: bool, restart_s: float):
    scenario = load_scenario("default").replace({"restart_s": restart_s, "jobs.count": 25})
    env = make(scenario=scenario, preemption=preemption, milestones=5)
    for seed in range(2):
        play(env, seed)
        assert audited(env.unwrapped.result(), tmp_path / str(seed)) == []


def test_a_configuration_that_a_job_may_not_use_means_wait():
    env = GpuClusterEnv("tiny")
    instance = make_instance(env.scenario, 0)
    closed = instance.jobs.seconds_per_epoch.copy()
    closed[:, 3] = np.inf
    env.reset(options={"instance": replace(instance, jobs=replace(instance.jobs, seconds_per_epoch=closed))})
    assert env.action_masks()[4] == 0
    job = env.job
    _, _, _, _, info = env.step(4)
    assert info["invalid_actions"] == 1
    assert env.view.jobs[job, at.CONFIG] == -1
