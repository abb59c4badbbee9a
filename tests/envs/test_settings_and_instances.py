"""Environments of a scenario with other settings, and of an instance that no scenario makes."""

from __future__ import annotations

import copy

import gymnasium
import numpy as np
import pytest

from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, GpuClusterVectorEnv, load_scenario, make_instance
from instances import random_instance
from refusals import ANY, refused
from vector_twins import assert_same, random_actions

NAME = f"gpusched_env:{ENVIRONMENT_ID}"
SETTINGS = {"cluster.nodes": 4, "jobs.count": 6, "prices.pue": 1.1}
OWN = random_instance(5)
MODES = ("vector_entry_point", "sync")


def tiny(seed: int, **settings: object):
    return make_instance(load_scenario("tiny").replace(settings), seed)


def steps(env: GpuClusterVectorEnv, count: int, seed: int) -> list[object]:
    """Take steps at random; give what came back."""
    rng, seen = np.random.default_rng(seed), []
    masks = env.action_masks()
    for _ in range(count):
        seen.append(env.step(random_actions(masks, rng)))
        masks = env.action_masks()
    return seen


def test_settings_change_the_scenario_of_an_environment():
    env = gymnasium.make(NAME, scenario="tiny", settings=SETTINGS)
    env.reset(seed=3)
    assert env.unwrapped.instance == make_instance(load_scenario("tiny").replace(SETTINGS), 3)
    assert env.unwrapped.scenario == load_scenario("tiny").replace(SETTINGS)


def test_settings_go_to_every_scenario_of_a_vector_environment():
    env = GpuClusterVectorEnv(3, ["tiny", "low"], settings=SETTINGS)
    env.reset(seed=3)
    expected = [make_instance(load_scenario(n).replace(SETTINGS), 3 + i) for i, n in enumerate(("tiny", "low", "tiny"))]
    assert list(env.instances) == expected


@pytest.mark.parametrize("mode", MODES)
def test_many_environments_with_settings_are_made_in_every_mode(mode: str):
    env = gymnasium.make_vec(NAME, 2, mode, scenario="tiny", settings=SETTINGS)
    other = GpuClusterVectorEnv(2, load_scenario("tiny").replace(SETTINGS))
    assert_same(env.reset(seed=1), other.reset(seed=1))


@pytest.mark.parametrize("make", [GpuClusterEnv, lambda **rest: GpuClusterVectorEnv(2, **rest)])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"settings": {"cluster.nodes": 0}}, ("cluster.nodes", 0)),
        ({"settings": {"cluster.colour": 1}}, ("cluster.colour", 1)),
        ({"settings": [("cluster.nodes", 3)]}, ("settings", ANY, "a mapping of dotted names")),
        ({"settings": {3: 4}}, ("settings", ANY, "a mapping of dotted names")),
        ({"instance": "tiny"}, ("instance", "str")),
        ({"instance": OWN, "scenario": "tiny"}, ("scenario", "tiny")),
        ({"instance": OWN, "scenario": load_scenario("tiny")}, ("scenario", "tiny")),
        ({"instance": OWN, "settings": SETTINGS}, ("settings", ANY, "none together with an instance")),
    ],
)
def test_bad_settings_and_instances_are_one_error(make, arguments, said):
    with refused(*said):
        make(**arguments)


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        ([], ("instance", [])),
        ([OWN, "tiny"], ("instance[1]", "str")),
        ([OWN, tiny(0)], ("instance[1]", "tiny", r"the GPU types and configurations of instance\[0\]")),
    ],
)
def test_bad_sequences_of_instances_are_one_error(instances, said):
    with refused(*said):
        GpuClusterVectorEnv(2, instance=instances)


def test_every_episode_replays_the_instance_whatever_the_seed():
    env = gymnasium.make(NAME, instance=OWN)
    for seed in (0, 7, None):
        env.reset(seed=seed)
        assert env.unwrapped.instance == OWN
    assert env.unwrapped.scenario is None
    assert env.unwrapped.configurations == OWN.configurations


def test_an_environment_of_an_instance_still_replays_others_of_its_shape():
    env = GpuClusterEnv(instance=tiny(3))
    env.reset(options={"instance": tiny(4)})
    assert env.instance == tiny(4)
    env.reset()
    assert env.instance == tiny(3)
    with refused("options['instance']", "random", "the GPU types"):
        env.reset(options={"instance": OWN})


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_of_one_instance_is_that_of_single_environments(mode: str):
    env = gymnasium.make_vec(NAME, 3, mode, instance=OWN)
    single = GpuClusterEnv(instance=OWN)
    first, _ = single.reset(seed=0)
    observations, _ = env.reset(seed=0)
    for name, rows in observations.items():
        for row in rows:
            np.testing.assert_array_equal(row, first[name])


def test_environment_i_replays_instance_i_mod_their_number_again_and_again():
    instances = [tiny(seed) for seed in (3, 4)]
    env = GpuClusterVectorEnv(3, instance=instances)
    env.reset()
    for _ in range(2):
        assert list(env.instances) == [instances[0], instances[1], instances[0]]
        steps(env, 150, 0)


def test_a_vector_of_instances_goes_on_from_a_checkpoint():
    instances = [tiny(seed) for seed in (3, 4)]
    env = GpuClusterVectorEnv(3, instance=instances)
    env.reset(seed=1)
    steps(env, 20, 0)
    state = copy.deepcopy(env.get_state())
    ahead = steps(env, 150, 1)
    later = GpuClusterVectorEnv(3, instance=[tiny(seed) for seed in (3, 4)])
    later.set_state(state)
    assert_same(steps(later, 150, 1), ahead)


@pytest.mark.parametrize(
    "other",
    [
        {"instance": [tiny(4), tiny(3)]},
        {"instance": [tiny(3)]},
        {"instance": [tiny(3), tiny(4, **{"prices.pue": 2.0})]},
        {"scenario": "tiny"},
    ],
)
def test_a_checkpoint_of_other_instances_is_refused(other):
    env = GpuClusterVectorEnv(2, instance=[tiny(3), tiny(4)])
    env.reset(seed=1)
    with refused("state", "a state with other arguments"):
        GpuClusterVectorEnv(2, **other).set_state(env.get_state())
