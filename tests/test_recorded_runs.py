"""Runs that were recorded come out the same, to the last bit."""

import pytest

import recorded_runs as recorded
from gpusched_baselines import clairvoyant_bound, non_clairvoyant_bound

NAMES = sorted(path.name.removesuffix(".json.gz") for path in recorded.FOLDER.glob("*.json.gz"))


@pytest.mark.parametrize("name", NAMES)
def test_costs_intervals_observations_and_bounds_are_the_recorded_ones(name, tmp_path):
    instance, before = recorded.load(name, tmp_path)
    for policy, run in before["policies"].items():
        assert (policy, recorded.of_policy(instance, policy)) == (policy, run)
    for episode, settings in recorded.SETTINGS.items():
        assert (episode, recorded.of_episode(instance, settings)) == (episode, before["episodes"][episode])
    assert [clairvoyant_bound(instance).hex(), non_clairvoyant_bound(instance).hex()] == before["bounds"]
