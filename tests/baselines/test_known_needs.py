"""STS-X costs no more where it knows the epochs that every job needs."""

import pytest

from gpusched_baselines import StsX
from gpusched_baselines.hindsight import with_known_needs
from gpusched_env import make_instance, simulate
from gpusched_env.workload import load_track


@pytest.mark.parametrize("track", ["lognormal", "restarts-600", "pairs"])
def test_with_known_needs_it_costs_no_more(track):
    scenario = load_track(track).scenario.replace({"jobs.count": 40})
    instances = [make_instance(scenario, seed) for seed in (20_000, 20_001)]
    before = sum(simulate(instance, StsX(), record=False).total_eur for instance in instances)
    after = sum(simulate(with_known_needs(instance), StsX(), record=False).total_eur for instance in instances)
    assert after <= before
