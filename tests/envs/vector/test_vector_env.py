"""The vector environment's contract beside what its steps return: how it is made, its views, and policies in it."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import gpusched_env
from gpusched_baselines import Sts, make_policy
from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, GpuClusterVectorEnv, make_instance, simulate
from gpusched_env.simulator import layout as at
from vector_twins import all_kinds, assert_same, few_jobs, random_actions

SMALL = few_jobs()


@pytest.mark.parametrize("mode", [None, "vector_entry_point"])
def test_gymnasium_makes_it_with_its_settings(mode):
    env = gymnasium.make_vec(
        f"gpusched_env:{ENVIRONMENT_ID}", 3, mode, scenario=SMALL, job_order="due", autoreset_mode="SameStep"
    )
    assert type(env) is GpuClusterVectorEnv
    assert (env.num_envs, env.asking.job_order) == (3, "due")
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.spec.id == ENVIRONMENT_ID
    single = GpuClusterEnv(SMALL)
    assert env.single_action_space == single.action_space
    assert env.single_observation_space == single.observation_space
    assert env.configurations == single.configurations
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    assert env.action_space.sample().shape == (3,)
    env.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vectorisation_gives_the_same(mode):
    native = GpuClusterVectorEnv(2, SMALL)
    other = gymnasium.make_vec(f"gpusched_env:{ENVIRONMENT_ID}", 2, mode, scenario=SMALL)
    mine, theirs = native.reset(seed=4), other.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(15):
        assert_same(mine, theirs)
        actions = random_actions(native.action_masks(), rng)
        mine, theirs = native.step(actions), other.step(actions)
    other.close()


def test_gymnasiums_wrappers_take_it():
    env = RecordEpisodeStatistics(GpuClusterVectorEnv(3, SMALL))
    _, infos = env.reset(seed=0)
    rng, total = np.random.default_rng(0), np.zeros(3)
    ended = np.zeros(3, dtype=bool)
    while not ended.any():
        _, rewards, ended, _, infos = env.step(random_actions(infos["action_mask"], rng))
        total += rewards
    np.testing.assert_allclose(infos["episode"]["r"][ended], total[ended])


@pytest.mark.parametrize(
    "policy", [make_policy("edf"), Sts(postprocess=False), make_policy("sts-x")], ids=lambda policy: policy.name
)
def test_a_policy_that_decides_job_by_job_costs_the_same_as_in_simulate(policy):
    """It reads the views, keeps its plans in their memory and sets its timers through them.

    An environment knows no end of a round: STS is without its last step of shared GPUs.
    """
    scenarios = [all_kinds(5), all_kinds(3, 6)]
    env = GpuClusterVectorEnv(
        4,
        scenarios,
        job_order=policy.job_order,
        preemption=policy.preemption,
        milestones=0,
        autoreset_mode=AutoresetMode.DISABLED,
    )
    env.reset(seed=20)
    instances, cost, over = env.instances, np.zeros(4), np.zeros(4, dtype=bool)
    while not over.all():
        if over.any():  # they begin again, and do not count
            env.reset(options={"reset_mask": over})
        actions = []
        for view, job in zip(env.views, env.jobs.tolist(), strict=True):
            choice = policy.choose(view, job)
            view.apply(job, choice)
            actions.append(choice.config + 1)
        _, _, ended, _, infos = env.step(actions)
        total = infos["total_energy_eur"] + infos["total_tardiness_eur"]
        cost = np.where(ended & (cost == 0.0), total, cost)
        over = cost > 0.0 if (cost > 0.0).all() else ended
    for instance, paid in zip(instances, cost, strict=True):
        assert paid == pytest.approx(simulate(instance, policy).total_eur, rel=1e-9)


def test_views_are_live_and_a_wake_up_set_through_one_brings_a_round():
    env = GpuClusterVectorEnv(2, SMALL, milestones=0)
    _, infos = env.reset(seed=0)
    view, start = env.views[1], infos["time_s"].copy()
    assert view.jobs.base is not None
    assert view.now_s == start[1]
    view.set_timer(int(env.jobs[1]), start[1] + 1.5)
    while infos["time_s"][1] == start[1]:
        _, _, _, _, infos = env.step([0, 0])
    assert infos["time_s"][1] == pytest.approx(start[1] + 1.5)
    assert view.now_s == infos["time_s"][1]


def test_what_is_placed_through_a_view_is_observed():
    """Sums over a round's jobs are kept from step to step: they must be made again after that."""
    env, single = GpuClusterVectorEnv(1, few_jobs(8, arrivals={"kind": "poisson", "lambda_s": 1.0})), None
    single = GpuClusterEnv(env._episodes.singles[0].scenario)
    env.reset(seed=5)
    single.reset(seed=5)
    while env.views[0].count[at.TO_ASK] - env.views[0].count[at.ASKED] < 3:
        env.step([0])
        single.step(0)
    env.step([0])
    single.step(0)
    for view in (env.views[0], single.view):
        first, last = (int(view.board.order[k]) for k in (view.count[at.ASKED] - 1, view.count[at.TO_ASK] - 1))
        placed = next(c for c in range(len(view.configs)) if view.place(first, c))
        assert placed >= 0
        assert view.place(last, placed) or True
    mine, theirs = env.step([0]), single.step(0)
    assert_same({key: rows[0] for key, rows in mine[0].items()}, theirs[0])


@pytest.mark.parametrize("scenario", [few_jobs(8), all_kinds(8)], ids=["plain", "all kinds"])
@pytest.mark.parametrize("preemption", [True, False])
def test_views_that_were_kept_change_what_is_observed_as_that_of_a_single_environment_does(scenario, preemption):
    """Also where they place, release or move jobs other than the current one, or have not been asked yet."""
    env, single = (
        GpuClusterVectorEnv(1, scenario, preemption=preemption),
        GpuClusterEnv(scenario, preemption=preemption),
    )
    assert_same({key: rows[0] for key, rows in env.reset(seed=5)[0].items()}, single.reset(seed=5)[0])
    views, rng, over = (env.views[0], single.view), np.random.default_rng(0), False
    while not over:
        for job in views[0].active.tolist():
            act = rng.random()
            config = int(rng.choice(np.flatnonzero(np.isfinite(views[0].tau[job]))))
            for view in views if act < 0.3 else ():
                (view.release if act < 0.1 else view.clear_preferred_node)(job)
            for view in views if 0.2 < act < 0.5 else ():
                view.place(job, config)
        action = int(random_actions(env.action_masks(), rng)[0])
        seen, _, over, _, _ = single.step(action)
        assert_same({key: rows[0] for key, rows in env.step([action])[0].items()}, seen)


def test_arrays_have_the_shapes_of_their_instance_and_stay_where_they_are_when_a_larger_one_comes():
    env = GpuClusterVectorEnv(2, few_jobs(3, 2), autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    board, before = env.views[0].board, env.views[0].board.jobs.copy()
    larger = make_instance(few_jobs(9, 7), 0)
    env.reset(options={"instance": larger, "reset_mask": np.array([False, True])})
    assert env.views[0].board is board
    np.testing.assert_array_equal(board.jobs, before)
    assert [(len(view.jobs), len(view.nodes), len(view.memory)) for view in env.views] == [(3, 2, 3), (9, 7, 9)]


@pytest.mark.parametrize("reward", [None, gpusched_env.CostReward(3.0)])
def test_rewards_of_an_episode_sum_to_minus_its_cost(reward):
    env = GpuClusterVectorEnv(2, SMALL, reward=reward)
    _, infos = env.reset(seed=2)
    rng, sums, ended = np.random.default_rng(0), np.zeros(2), np.zeros(2, dtype=bool)
    while not ended.any():
        _, rewards, ended, _, infos = env.step(random_actions(infos["action_mask"], rng))
        sums += rewards
    i = int(np.flatnonzero(ended)[0])
    total = infos["total_energy_eur"][i] + infos["total_tardiness_eur"][i]
    assert -sums[i] * (1.0 if reward is None else 3.0) == pytest.approx(total, rel=1e-12)


def test_a_scenario_may_come_by_name_or_one_for_each():
    names = GpuClusterVectorEnv(3, ["tiny", few_jobs(4, 3, **{"cluster.gpu_types": ["V100", "A100", "T4"]})])
    names.reset(seed=0)
    assert [len(instance.jobs) for instance in names.instances] == [10, 4, 10]
