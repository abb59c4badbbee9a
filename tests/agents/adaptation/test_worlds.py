"""The workloads of evolution strategies: their order, and randomised clusters."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.worlds import (
    LOADS,
    MOST_RANDOMISED,
    POOLS,
    RANDOMISED,
    TRAINING_SEEDS,
    TrainingPlace,
    instance_at,
    places,
    randomised_instance,
    validation_instance,
    validation_places,
)
from gpusched_env import load_scenario, make_instance
from gpusched_env.workload import list_tracks, load_track, offered_load

KINDS_OF_PLACES = {"single-node", "multi-node", "shared"}
SCENARIOS = ("tiny", "default", "high", "low", "burst")
CONFIG = TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS)


def test_every_scenario_comes_once_before_one_comes_again():
    chosen = [place.scenario for place in places(CONFIG, 0.0, 0, 40)]
    turns = [chosen[k : k + len(SCENARIOS)] for k in range(0, 40, len(SCENARIOS))]
    assert all(sorted(turn) == list(range(len(SCENARIOS))) for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1


def test_workloads_are_the_same_however_they_are_asked_for():
    """So a run that is resumed goes on with the same workloads."""
    whole = places(CONFIG, 0.5, 0, 30)
    assert places(CONFIG, 0.5, 0, 7) + places(CONFIG, 0.5, 7, 23) == whole
    assert places(TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS, seed=1), 0.5, 0, 30) != whole


def test_seeds_are_those_that_all_tracks_leave_to_training():
    seeds = {place.seed for place in places(CONFIG, 0.5, 0, 300)}
    assert len(seeds) > 290
    assert set(range(*TRAINING_SEEDS)) >= seeds
    for name in list_tracks():
        assert set(range(*TRAINING_SEEDS)) <= set(load_track(name).seeds("training"))


@pytest.mark.parametrize(("part", "fewest", "most"), [(0.0, 0, 0), (0.3, 60, 120), (1.0, 300, 300)])
def test_a_part_of_them_are_randomised(part: float, fewest: int, most: int):
    randomised = sum(place.scenario == RANDOMISED for place in places(CONFIG, part, 0, 300))
    assert fewest <= randomised <= most


def test_a_workload_is_that_of_its_scenario_and_seed_with_its_first_jobs():
    config = TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS, scenario_settings={"prices.pue": 1.5})
    scenario = load_scenario("tiny").replace({"prices.pue": 1.5})
    assert instance_at(config, TrainingPlace(0, 100_007), 10_000) == make_instance(scenario, 100_007)
    few = instance_at(config, TrainingPlace(0, 100_007), 4)
    assert few == make_instance(scenario.replace({"jobs.count": 4}), 100_007)
    assert len(instance_at(config, TrainingPlace(RANDOMISED, 100_007), 5).jobs.submission_s) == 5
    assert instance_at(config, TrainingPlace(RANDOMISED, 100_007), 5) == randomised_instance(100_007, 5)


def test_a_randomised_cluster_is_the_same_every_time_and_another_one_for_another_seed():
    assert randomised_instance(3, 6) == randomised_instance(3, 6)
    assert randomised_instance(3, 6) != randomised_instance(4, 6)


@pytest.mark.slow
def test_whatever_is_drawn_is_a_workload():
    """Every kind with every possible cluster: not all applications run on all of them."""
    assert all(len(randomised_instance(seed, 1).jobs.submission_s) == 1 for seed in range(250))


def test_randomised_clusters_differ_and_have_the_documented_load():
    instances = [randomised_instance(seed, 60) for seed in range(40)]
    types = {tuple(gpu_type.name for gpu_type in instance.gpu_types) for instance in instances}
    assert len(types) > 20
    assert {name for names in types for name in names} <= {*POOLS, "M60"}
    loads = np.array([offered_load(instance) for instance in instances])
    together = ~np.isfinite(loads)  # jobs that are submitted all at once
    assert 0 < together.sum() < 10
    assert loads[~together].min() > LOADS[0] / 2.0  # hastened days have another rhythm
    assert loads[~together].max() < LOADS[1] * 2.0
    within = (loads > LOADS[0] * 0.999) & (loads < LOADS[1] * 1.001)
    assert within[~together].mean() > 0.9
    assert loads[~together].min() < 0.06
    assert loads[~together].max() > 0.6
    assert len({float(instance.jobs.restart_s[0]) for instance in instances}) > 2
    assert {configuration.kind for each in instances for configuration in each.configurations} == KINDS_OF_PLACES


def test_randomised_clusters_are_small_with_few_jobs_and_larger_with_many():
    instances = [randomised_instance(seed, 60) for seed in range(40)]
    nodes = [len(instance.nodes) for instance in instances]
    assert min(nodes) == 1
    assert max(nodes) > 12
    jobs = [len(instance.jobs.submission_s) for instance in instances]
    assert min(jobs) >= 10
    assert max(jobs) <= 60
    assert len(set(jobs)) > 10


def test_an_agent_is_chosen_by_randomised_workloads_where_it_learns_on_some():
    listed = [TrainingPlace(index, seed) for index in range(len(SCENARIOS)) for seed in CONFIG.validation_seeds]
    assert validation_places(CONFIG) == listed
    randomised = validation_places(TrainingConfig(agent=EsConfig(randomised=0.5), scenarios=SCENARIOS))
    assert randomised[: len(listed)] == listed
    assert {place.scenario for place in randomised[len(listed) :]} == {RANDOMISED}
    assert not {place.seed for place in randomised} & set(range(*TRAINING_SEEDS))


def test_a_validation_workload_has_all_its_jobs():
    config = TrainingConfig(agent=EsConfig(most_jobs=2), scenarios=("tiny",))
    assert validation_instance(config, TrainingPlace(0, 500)) == make_instance(load_scenario("tiny"), 500)
    assert validation_instance(config, TrainingPlace(RANDOMISED, 20_000)) == randomised_instance(
        20_000, MOST_RANDOMISED
    )
