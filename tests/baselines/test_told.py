"""STS-X knows more, and pays no more: told the epochs that every job needs, beside their distribution alone."""

import pytest

from gpusched_baselines import StsX
from gpusched_baselines.hindsight import told
from gpusched_env import make_instance, simulate
from gpusched_env.workload import load_track


@pytest.mark.parametrize("track", ["lognormal", "restarts-600", "pairs"])
def test_told_the_truth_it_costs_no_more(track):
    scenario = load_track(track).scenario.replace({"jobs.count": 40})
    instances = [make_instance(scenario, seed) for seed in (20_000, 20_001)]
    before = sum(simulate(instance, StsX(), record=False).total_eur for instance in instances)
    after = sum(simulate(told(instance), StsX(), record=False).total_eur for instance in instances)
    assert after <= before
