"""Copies of a vector environment, in memory or by way of bytes: they are live, and go on by themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from checkpoints import check_costs, play
from gpusched_baselines import make_policy
from gpusched_env import GpuClusterVectorEnv
from vector_twins import all_kinds, assert_same, few_jobs, random_actions

COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}  # noqa: S301 - our own


@pytest.fixture(params=COPIES)
def copied(request):
    return COPIES[request.param]


@pytest.mark.parametrize("steps", [None, 0, 1, 40])
def test_a_copy_and_its_original_go_on_alike_and_leave_each_other_alone(copied, steps):
    """Also one of an environment that has not begun: `steps` is None."""
    env = GpuClusterVectorEnv(5, [few_jobs(4), few_jobs(6, 4)])
    if steps is not None:
        env.reset(seed=3)
        play(env, steps, 0)
    other = copied(env)
    if steps is None:
        assert_same(other.reset(seed=3), env.reset(seed=3))
    before = env.get_state()
    assert_same(other.get_state(), before)
    went = play(other, 80, 1)
    assert_same(env.get_state(), before)
    assert_same(play(env, 80, 1), went)
    assert_same(env.get_state(), other.get_state())
    check_costs(other)
    env.close()
    third = copied(other)
    assert_same(play(other, 5, 2), play(third, 5, 2))


@pytest.mark.parametrize("steps", [0, 7])
def test_views_of_a_copy_show_where_it_is(copied, steps):
    env = GpuClusterVectorEnv(2, all_kinds(5))
    env.reset(seed=1)
    play(env, steps, 0)
    other, views = copied(env), env.views
    rng = np.random.default_rng(0)
    for _ in range(20):
        shown = other.step(random_actions(other.action_masks(), rng))[4]
        assert [view.now_s for view in other.views] == shown["time_s"].tolist()
        for view in other.views:
            assert np.shares_memory(view.jobs, view.board.jobs)
    assert env.views == views
    assert not any(np.shares_memory(a.board.jobs, b.board.jobs) for a, b in zip(views, other.views, strict=True))


def test_what_is_done_through_a_view_of_a_copy_has_effect_there_alone(copied):
    env = GpuClusterVectorEnv(2, few_jobs(4), milestones=0)
    env.reset(seed=0)
    other = copied(env)
    before, start = env.get_state(), other.views[1].now_s
    job = int(other.jobs[1])
    config = int(np.flatnonzero(other.action_masks()[1])[1]) - 1
    assert other.views[1].place(job, config)
    assert other.action_masks()[1].sum() >= 1
    other.views[1].release(job)
    other.views[1].set_timer(job, start + 1.5)
    assert_same(env.get_state(), before)
    now = start
    while now == start:
        now = other.step([0, 0])[4]["time_s"][1]
    assert now == pytest.approx(start + 1.5)
    assert env.views[1].now_s == start


@pytest.mark.parametrize("name", ["sts", "sts-x"])
def test_a_policy_pays_in_a_copy_what_it_pays_in_the_original(copied, name):
    policy = make_policy(name)

    def finish(env: GpuClusterVectorEnv) -> float:
        over = False
        while not over:
            job = int(env.jobs[0])
            choice = policy.choose(env.views[0], job)
            env.views[0].apply(job, choice)
            _, _, (over,), _, infos = env.step([choice.config + 1])
        return float(infos["total_energy_eur"][0] + infos["total_tardiness_eur"][0])

    env = GpuClusterVectorEnv(1, "tiny", milestones=0, job_order=policy.job_order, preemption=policy.preemption)
    env.reset(seed=9000)
    play(env, 5, 0)
    assert finish(copied(env)) == finish(env)
