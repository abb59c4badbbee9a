"""Schedules found in hindsight: above every bound, no dearer than their first policy, and runs of the simulator."""

import pytest

from gpusched_baselines import StsX, capacity_bound, hindsight_cost
from gpusched_baselines.hindsight import RULES, told
from gpusched_env import load_scenario, make_instance, simulate
from instances import random_instance
from refusals import refused


@pytest.mark.parametrize("seed", range(6))
def test_it_lies_between_the_bound_and_its_first_policy_told_the_needs(seed):
    instance = random_instance(seed, jobs=12, kinds=seed % 2 == 1, span_s=400.0)
    first = simulate(told(instance), StsX(), record=False).total_eur
    costs = [hindsight_cost(instance, evaluations) for evaluations in (1, len(RULES), 20)]
    assert costs[0] == first
    assert costs[0] >= costs[1] >= costs[2] >= capacity_bound(instance) * (1.0 - 1e-9)


def test_more_evaluations_find_more_and_the_same_seed_finds_the_same():
    instance = make_instance(load_scenario("slack").replace({"jobs.count": 40}), 3)
    assert hindsight_cost(instance, 30) < hindsight_cost(instance, 4)
    assert hindsight_cost(instance, 12, seed=5) == hindsight_cost(instance, 12, seed=5)


def test_every_job_that_is_told_its_need_needs_it_for_certain():
    instance = random_instance(2, jobs=5)
    known = told(instance)
    assert known.jobs.max_epochs.tolist() == known.jobs.epochs_needed.tolist() == instance.jobs.epochs_needed.tolist()
    assert known.seed == instance.seed


def test_no_evaluations_are_refused():
    with refused("evaluations", 0, "a whole number >= 1"):
        hindsight_cost(random_instance(0), 0)
