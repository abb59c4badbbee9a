"""Bad input to the vector environment is named, and changes nothing."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env import GpuClusterVectorEnv, load_scenario, make_instance
from refusals import ANY, refused
from vector_twins import assert_same, few_jobs, random_actions

SMALL = few_jobs()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_envs": 0}, ("num_envs", 0)),
        ({"num_envs": 2.0}, ("num_envs", 2.0)),
        ({"scenario": "no-such"}, ("scenario", "no-such")),
        ({"scenario": []}, ("scenario", [])),
        ({"scenario": [SMALL, "high"]}, ("scenario[1]", "high")),
        ({"job_order": "random"}, ("job_order", "random")),
        ({"preemption": "no"}, ("preemption", "no")),
        ({"due_date_timers": 1}, ("due_date_timers", 1)),
        ({"milestones": -1}, ("milestones", -1)),
        ({"idle_review_s": 0.0}, ("idle_review_s", 0.0)),
        ({"reward_scale": 0.0}, ("reward_scale", 0.0)),
        ({"reward": 3}, ("reward", 3)),
        ({"autoreset_mode": "Sometimes"}, ("autoreset_mode", "Sometimes", "NextStep, SameStep, Disabled")),
    ],
)
def test_a_wrong_parameter_is_named(arguments, error):
    with refused(*error):
        GpuClusterVectorEnv(**({"num_envs": 2, "scenario": SMALL} | arguments))


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([0], ("actions", [0])),
        ([0, 0, 0], ("actions", [0, 0, 0])),
        ([[0], [0]], ("actions", [[0], [0]])),
        ([[0], [0, 1]], ("actions", [[0], [0, 1]])),
        (0, ("actions", 0)),
        (None, ("actions", None)),
        ([0.0, 1.0], ("actions", [0.0, 1.0])),
        ([True, False], ("actions", [True, False])),
        (["a", "b"], ("actions", ["a", "b"])),
        ([0, 1000], ("actions[1]", 1000, "a whole number from 0 to 12")),
        ([-1, 0], ("actions[0]", -1)),
        (np.array([0, 2**64 - 1], dtype=np.uint64), ("actions[1]", 2**64 - 1)),
    ],
)
def test_actions_outside_the_space_are_refused_before_anything_happens(actions, said):
    env = GpuClusterVectorEnv(2, SMALL)
    env.reset(seed=0)
    before = env.get_state()
    with refused(*said):
        env.step(actions)
    assert_same(env.get_state(), before)


@pytest.mark.parametrize("actions", [[1, 0], (1, 0), np.array([1, 0], np.int8), np.array([1, 0], np.uint64)])
def test_actions_may_come_as_any_whole_numbers(actions):
    env, twin = GpuClusterVectorEnv(2, SMALL), GpuClusterVectorEnv(2, SMALL)
    env.reset(seed=0)
    twin.reset(seed=0)
    assert_same(env.step(actions), twin.step(np.array([1, 0])))


def test_the_action_of_an_environment_that_begins_again_is_not_looked_at():
    env = GpuClusterVectorEnv(3, SMALL)
    _, infos = env.reset(seed=0)
    rng, ended = np.random.default_rng(0), np.zeros(3, dtype=bool)
    while not ended.any():
        _, _, ended, _, infos = env.step(random_actions(infos["action_mask"], rng))
    actions = np.where(ended, 1000, 0)
    _, rewards, after, _, infos = env.step(actions)
    assert not after[ended].any()
    assert np.all(rewards[ended] == 0.0)
    assert np.all(infos["total_energy_eur"][ended] == 0.0)
    with refused("actions[1]", 1000):
        env.step(actions)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seed": -1}, ("seed", -1)),
        ({"seed": 1.5}, ("seed", 1.5)),
        ({"seed": "1"}, ("seed", "1")),
        ({"seed": 2**63 - 1}, ("seed", 2**63)),
        ({"seed": [1]}, ("seed", [1], "2 seeds")),
        ({"seed": [1, "x"]}, ("seed[1]", "x")),
        ({"options": {"instances": 1}}, ("options", "instances")),
        ({"options": {"instance": "tiny"}}, ("options['instance']", "str")),
        (
            {"options": {"instance": make_instance(load_scenario("high"), 0)}},
            ("options['instance']", "high", "V100, T4"),
        ),
        ({"options": {"instance": [None]}}, ("options['instance']", "1 instances", "2")),
        ({"options": {"instance": [None, 3]}}, ("options['instance'][1]", "int")),
        ({"options": {"reset_mask": [True, False]}}, ("options['reset_mask']", [True, False])),
        ({"options": {"reset_mask": np.zeros(2, dtype=bool)}}, ("options['reset_mask']", ANY, "at least one of them")),
        ({"options": {"reset_mask": np.ones(3, dtype=bool)}}, ("options['reset_mask']", ANY, "2 booleans")),
        ({"options": {"reset_mask": np.ones(2)}}, ("options['reset_mask']", ANY, "2 booleans")),
    ],
)
def test_a_wrong_reset_is_named_and_changes_nothing(arguments, said):
    env = GpuClusterVectorEnv(2, SMALL)
    env.reset(seed=0)
    before = env.get_state()
    with refused(*said):
        env.reset(**arguments)
    assert_same(env.get_state(), before)


@pytest.mark.parametrize(
    "use",
    [
        lambda env: env.step([0, 0]),
        lambda env: env.action_masks(),
        lambda env: env.jobs,
        lambda env: env.views,
        lambda env: env.instances,
        lambda env: env.observations(),
        lambda env: env.get_state(),
        lambda env: env.reset(options={"reset_mask": np.array([True, False])}),
    ],
)
def test_before_the_first_reset_there_is_nothing_to_use(use):
    with pytest.raises(gymnasium.error.ResetNeeded):
        use(GpuClusterVectorEnv(2, SMALL))


def test_without_autoreset_an_episode_that_is_over_must_be_reset():
    env = GpuClusterVectorEnv(3, SMALL, autoreset_mode=AutoresetMode.DISABLED)
    _, infos = env.reset(seed=0)
    rng, ended = np.random.default_rng(0), np.zeros(3, dtype=bool)
    while not ended.any():
        _, _, ended, _, infos = env.step(random_actions(infos["action_mask"], rng))
    over = int(np.flatnonzero(ended)[0])
    assert (env.jobs == -1).tolist() == ended.tolist()
    assert env.action_masks()[over].tolist() == [True] + [False] * len(env.configurations)
    with pytest.raises(gymnasium.error.ResetNeeded, match=str(over)):
        env.step([0, 0, 0])
    env.reset(options={"reset_mask": ended})
    env.step([0, 0, 0])


def test_a_closed_environment_says_so():
    env = GpuClusterVectorEnv(2, SMALL)
    env.reset(seed=0)
    env.close()
    env.close()
    for use in (lambda: env.step([0, 0]), env.reset, env.action_masks):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            use()
