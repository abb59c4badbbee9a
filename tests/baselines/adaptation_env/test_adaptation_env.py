"""The adaptation environment: STS-X at 0, rewards and controls."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_agents.network.actors import MlpActor
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_baselines.adaptation_env.controls import (
    MOST_OF_SIZE,
    MOST_OF_TYPE,
    control_count,
    control_names,
    controls_of,
)
from gpusched_baselines.adaptation_env.env import FIRST_WORKLOAD
from gpusched_baselines.adaptation_env.features import CHEAPEST_SLACK, job_features
from gpusched_baselines.adaptation_env.observation import ROW, feature_count
from gpusched_baselines.adaptation_env.run import AdaptedRun
from gpusched_baselines.sts_x import plan as of
from gpusched_env import Configuration, GpuType, Instance, Node, load_scenario, make_instance, simulate
from gpusched_env.envs.source import FIRST_SAMPLED_SEED
from gpusched_env.simulator import layout as at
from instances import HOUR
from refusals import refused
from small_instances import hours_job, kilowatt_cluster

SMALL = {"jobs.count": 12}
KINDS = (
    "default",
    "sharing",
    "guaranteed-and-opportunistic",
    "multi-node",
    "byteps",
    "tenants",
    "hosts",
    "published-high",
)
ONE = Configuration("V", 1)


def small(name: str = "default", **keywords: object) -> GpuAdaptationEnv:
    return GpuAdaptationEnv(name, settings=SMALL, **keywords)


def episode(env: GpuAdaptationEnv, act: object, seed: int = 5) -> tuple[list[float], dict]:
    """Run an episode; return its rewards and its last info."""
    observation, info = env.reset(seed=seed)
    rewards, over = [], False
    while not over:
        observation, reward, over, truncated, info = env.step(act(observation))
        assert not truncated
        rewards.append(reward)
    return rewards, info


def random_actor(env: GpuAdaptationEnv, seed: int = 0) -> MlpActor:
    rng = np.random.default_rng(seed)
    shapes = [(8, len(env.features)), (len(env.controls), 8)]
    return MlpActor(tuple((rng.normal(size=s).astype(np.float32), np.zeros(s[0], np.float32)) for s in shapes))


@pytest.mark.parametrize("name", KINDS)
def test_an_action_of_0_is_sts_x_to_the_last_bit(name):
    env = small(name)
    rewards, info = episode(env, lambda _: np.zeros(len(env.controls)))
    expected = simulate(make_instance(load_scenario(name).replace(SMALL), 5), StsX(), record=False)
    assert (info["total_energy_eur"], info["total_tardiness_eur"]) == (expected.energy_eur, expected.tardiness_eur)
    assert info["base_total_eur"] == info["total_eur"] == expected.total_eur
    assert not any(rewards)


@pytest.mark.parametrize("name", ["default", "sharing", "guaranteed-and-opportunistic"])
@pytest.mark.parametrize("controls", ["round", "jobs"])
def test_the_policy_of_an_actor_costs_what_the_episode_cost(name, controls):
    env = small(name, controls=controls, rounds=3)
    actor = random_actor(env)
    _, info = episode(env, actor.act)
    policy = ControlPolicy(name="k", actor=actor, rounds=3, controls=controls)
    result = simulate(make_instance(load_scenario(name).replace(SMALL), 5), policy, record=False)
    assert result.total_eur == info["total_eur"] != info["base_total_eur"]


def test_rewards_sum_to_what_they_promise():
    ends = {}
    for reward in ("saving", "waste", "cost"):
        for seed in (0, 1):
            env = small(reward=reward)
            rewards, info = episode(env, random_actor(env, seed).act)
            ends[reward, seed] = sum(rewards) * env.reward_scale_eur, info
    for seed in (0, 1):
        saved, info = ends["saving", seed]
        assert saved == pytest.approx(info["base_total_eur"] - info["total_eur"], abs=1e-9)
        assert ends["cost", seed][0] == pytest.approx(-info["total_eur"], rel=1e-12)
    costs = [ends["cost", seed][1]["total_eur"] for seed in (0, 1)]
    assert costs[0] != costs[1]
    assert ends["waste", 0][0] + costs[0] == pytest.approx(ends["waste", 1][0] + costs[1], rel=1e-9)


def test_waste_by_hand():
    """A GPU of 1 €/h, 1 h of work due after half an hour at 2 €/h: the tardiness is unavoidable, there is no waste."""
    job = hours_job(0.5, {ONE: 1.0}, 2.0)
    env = GpuAdaptationEnv(instance=kilowatt_cluster([job], [1], [ONE]), reward="waste")
    rewards, info = episode(env, lambda _: np.zeros(len(env.controls)))
    assert (info["total_energy_eur"], info["total_tardiness_eur"]) == pytest.approx((1.0, 1.0))
    assert sum(rewards) == pytest.approx(0.0, abs=1e-12)
    assert env.reward_scale_eur == pytest.approx(1.0)
    job = hours_job(1.0, {ONE: 1.0}, 2.0)
    env = GpuAdaptationEnv(instance=kilowatt_cluster([job, job], [1], [ONE]), reward="waste")
    rewards, info = episode(env, lambda _: np.zeros(len(env.controls)))
    assert info["time_s"] == pytest.approx(2 * HOUR)
    assert -sum(rewards) == pytest.approx(info["total_tardiness_eur"]) == pytest.approx(2.0)


def test_observations_have_named_numbers_from_minus_1_to_1_and_end_with_0():
    env = small("sharing")
    types = len(env.instance.gpu_types)
    assert len(env.features) == feature_count(types) == len(set(env.features))
    assert len(env.controls) == control_count(types) == 2 * types + 8 == len(set(env.controls))
    observation, _ = env.reset(seed=1)
    over = False
    while not over:
        assert observation in env.observation_space
        assert observation.any()
        observation, _, over, _, _ = env.step(env.action_space.sample())
    assert not observation.any()


def test_the_features_of_a_gpu_type_without_configurations_are_0():
    other = GpuType("other", 1000.0, 0.0, 16.0, 2)
    used, unused = GpuType("V", 1000.0, 0.0, 16.0, 2), Node("other", 2)
    jobs = [hours_job(1.0, {ONE: 1.0})]
    env = GpuAdaptationEnv(instance=Instance.from_jobs([other, used], [unused, Node("V", 2)], jobs, [ONE]))
    seen = dict(zip(env.features, env.reset(seed=0)[0].tolist(), strict=True))
    share = "GPUs of the type / GPUs of the cluster"
    assert seen[f"V: {share}"] == 0.5
    assert not any(value for name, value in seen.items() if name.startswith("other: "))


def test_rows_are_the_jobs_with_the_least_slack_and_the_rest_of_the_observation_stays():
    plain, rows = small(), small(job_features=4)
    types = len(plain.instance.gpu_types)
    assert len(rows.features) == feature_count(types, 4) == feature_count(types) + 4 * ROW == len(set(rows.features))
    slack = [k for k, name in enumerate(rows.features) if name.startswith("job ") and "(D - W)" in name]
    there = [k for k, name in enumerate(rows.features) if name.endswith("1 if there is such a job")]
    assert len(slack) == len(there) == 4
    seen = [env.reset(seed=1)[0] for env in (plain, rows)]
    over, counts = False, set()
    while not over:
        np.testing.assert_array_equal(seen[0], seen[1][: len(seen[0])])
        run = rows._run
        active = run.state.board.count[at.ACTIVE]
        every = np.sort(job_features(run.state.board, run._rate)[:, CHEAPEST_SLACK])
        shown = int(seen[1][there].sum())
        counts.add(shown)
        assert shown == min(4, active)
        np.testing.assert_allclose(seen[1][slack][:shown], every[:shown], rtol=1e-6)
        assert not seen[1][feature_count(types) + shown * ROW :].any()
        steps = [env.step(np.zeros(len(plain.controls))) for env in (plain, rows)]
        seen, over = [step[0] for step in steps], steps[0][2]
    assert len(counts) > 1
    with refused("job_features", -1):
        small(job_features=-1)


def test_looking_changes_nothing():
    run = AdaptedRun(make_instance(load_scenario("guaranteed-and-opportunistic").replace(SMALL), 3))
    memory, seen = run.state.board.memory, np.zeros(feature_count(len(run.state.instance.gpu_types)))
    run.observe(seen)
    assert seen.any()
    assert not memory[:, of.CHEAPEST].any()  # STS-X would keep what was found before its first round


def test_seeds_are_those_of_comparisons_and_workloads_come_again():
    env = small(workloads=3)
    _, info = env.reset(seed=7)
    assert info["workload"] == 7
    assert env.instance == make_instance(load_scenario("default").replace(SMALL), 7)
    drawn = [env.reset()[1]["workload"] for _ in range(30)]
    assert set(drawn) == set(range(FIRST_WORKLOAD, FIRST_WORKLOAD + 3))
    env.reset(seed=7)
    assert [env.reset()[1]["workload"] for _ in range(30)] == drawn
    assert env.reset(options={"workload": 30_001})[1]["workload"] == 30_001
    fresh = small(workloads=None)
    assert fresh.reset()[1]["workload"] >= FIRST_SAMPLED_SEED


def test_the_controls_are_logarithms_of_factors():
    instance = make_instance(load_scenario("default"), 0)
    board = small()
    board.reset(seed=0)
    configs, types = board._run.state.board.facts.configs, len(instance.gpu_types)
    action = np.zeros(control_count(types))
    action[0], action[types + 1], action[2 * types] = 1.0, -1.0, 1.0
    controls = controls_of(action, configs, types)
    for c, configuration in enumerate(instance.configurations):
        v = instance.type_of_configuration[c]
        critical = MOST_OF_TYPE * (v == 0) + MOST_OF_SIZE * np.log2(configuration.gpus_per_node)
        assert controls.critical[c] == pytest.approx(np.exp(critical))
        assert controls.deferrable[c] == pytest.approx(np.exp(-MOST_OF_TYPE * (v == 1)))
    assert controls.priced
    assert not controls_of(np.zeros(control_count(types)), configs, types).priced
    assert control_names(["V", "W"])[:6] == (
        "price of V, critical", "price of W, critical", "price of V, deferrable", "price of W, deferrable",
        "price by log2(GPUs), critical", "price by log2(GPUs), deferrable",
    )  # fmt: skip
    assert len(control_names(["V"], "jobs")) == control_count(1, "jobs") == 45


def test_a_type_with_a_higher_price_is_used_less():
    env = GpuAdaptationEnv("slack", settings={"jobs.count": 40}, render_mode="ansi")
    name = env.controls.index("price of V100, deferrable")
    used = []
    for price in (-1.0, 1.0):
        action = np.zeros(len(env.controls))
        action[name] = action[env.controls.index("price of V100, critical")] = price
        episode(env, lambda _, action=action: action, seed=0)
        state = env._run.state
        log = state.hidden.log[: state.board.count[3]]
        v100 = [c.gpu_type == "V100" for c in env.instance.configurations]
        used.append(np.where(np.array(v100)[log[:, 2].astype(int)], log[:, 5] - log[:, 3], 0.0).sum())
        assert "jobs" in env.render()
    assert used[0] > 1.5 * used[1]


@pytest.mark.parametrize(
    ("keywords", "field"),
    [({"rounds": 0}, "rounds"), ({"reward": "x"}, "reward"), ({"controls": "x"}, "controls"),
     ({"workloads": 0}, "workloads"),
     ({"render_mode": "human"}, "render_mode"), ({"scenario": "slak"}, "scenario")],
)  # fmt: skip
def test_bad_settings_are_refused(keywords, field):
    with refused(field):
        GpuAdaptationEnv(**keywords)


def test_bad_actions_and_options_are_refused():
    env = small()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(len(env.controls)))
    env.reset(seed=0)
    for action in (np.zeros(3), np.full(len(env.controls), np.nan), "x"):
        with refused("action", action):
            env.step(action)
    for options, field in (
        ({"seed": 1}, "options"),
        ({"workload": -1}, "options['workload']"),
        ({"instance": 3}, "options['instance']"),
        ({"workload": 1, "instance": None}, "options"),
    ):
        with refused(field):
            env.reset(options=options)


def test_numbers_beyond_1_are_clipped_and_an_instance_is_no_workload_of_a_seed():
    env = small()
    ends = [episode(env, lambda _, size=size: np.full(len(env.controls), size))[1]["total_eur"] for size in (1.0, 7.0)]
    assert ends[0] == ends[1]
    env = GpuAdaptationEnv(instance=make_instance(load_scenario("default").replace(SMALL), 3))
    observation, info = env.reset()
    assert info["workload"] == -1
    observation = env.step(np.ones(len(env.controls)))[0]
    state = env.get_state()
    env.reset(seed=9)
    env.set_state(state)
    np.testing.assert_array_equal(env._observe(), observation)


@pytest.mark.parametrize("identifier", ["gpusched_env/GpuAdaptation-v0", "gpusched_env/SlackAdaptation-v0"])
def test_the_checkers_of_stable_baselines3_and_gymnasium_find_no_error(identifier):
    env = gymnasium.make(identifier, settings=SMALL)
    check_env(env.unwrapped, skip_render_check=True)
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    sb3.check_env(env.unwrapped)


def test_savings_sum_to_what_is_saved_where_profiling_opens_shares_later():
    """The least cost of an epoch is that of all configurations, whenever a run opens them."""
    plain = make_instance(load_scenario("guaranteed-and-opportunistic").replace({"jobs.count": 12}), 10)
    instance = replace(plain, interference=replace(plain.interference, profile_s=600.0))
    env, actions = GpuAdaptationEnv(instance=instance), np.random.default_rng(10)
    rewards, info = episode(env, lambda _: actions.uniform(-1.0, 1.0, env.action_space.shape))
    saved = info["base_total_eur"] - info["total_eur"]
    assert sum(rewards) * env.reward_scale_eur == pytest.approx(saved, abs=1e-9)


def test_costs_before_the_first_decision_are_in_the_first_reward():
    instance = replace(kilowatt_cluster([replace(hours_job(0.01, {ONE: 1.0}), submission_s=10.0)], [1], [ONE]))
    instance = replace(instance, decision_interval_s=300.0)
    env = GpuAdaptationEnv(instance=instance, reward="cost")
    rewards, info = episode(env, lambda _: np.zeros(env.action_space.shape))
    assert info["total_tardiness_eur"] > 0.0
    assert -sum(rewards) * env.reward_scale_eur == pytest.approx(info["total_eur"])
