"""The shipped agents: what they save on the tracks of their training, and that `agent:default` is STS-X elsewhere."""

import pytest

from gpusched_agents import load_policy
from gpusched_agents.files.storage import track_agents
from gpusched_baselines import StsX
from gpusched_env import make_instance, simulate
from gpusched_env.workload import load_scenario, load_track

SEEDS = tuple(range(20_008, 20_018))


def ratio(name: str, scenario: str) -> float:
    loaded = load_scenario(scenario)
    instances = [make_instance(loaded, seed) for seed in SEEDS]
    costs = [[simulate(one, policy).total_eur for one in instances] for policy in (load_policy(name), StsX())]
    return sum(costs[0]) / sum(costs[1])


@pytest.mark.parametrize("scenario", ["drawn-10-16", "drawn-10-23"])
def test_far_from_its_training_the_default_agent_is_sts_x(scenario):
    instance = make_instance(load_scenario(scenario), 1)
    assert simulate(instance, load_policy("agent:default")).log.tobytes() == simulate(instance, StsX()).log.tobytes()


def test_the_default_agent_saves_where_it_was_trained_and_there_are_four_of_single_tracks():
    assert ratio("agent:default", "track:tenants") < 0.95
    assert len(track_agents()) == 4


@pytest.mark.parametrize("name", track_agents())
def test_an_agent_of_a_track_saves_on_it(name):
    track = name.partition("-")[0]
    assert load_track(track).name == track
    assert ratio(f"agent:{name}", f"track:{track}") < 0.99
