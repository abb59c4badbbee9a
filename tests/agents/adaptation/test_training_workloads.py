"""The workloads of evolution strategies: their order, and drawn scenarios."""

import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.workloads import (
    MOST_RANDOMISED,
    RANDOMISED,
    TRAINING_SEEDS,
    TrainingPlace,
    instance_at,
    places,
    validation_instance,
    validation_places,
)
from gpusched_env import load_scenario, make_instance
from gpusched_env.workload import draw_scenario, list_tracks, load_track

SCENARIOS = ("tiny", "default", "high", "low", "burst")
CONFIG = TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS)


def test_every_scenario_comes_once_before_one_comes_again_with_seeds_of_training_however_they_are_asked_for():
    chosen = [place.scenario for place in places(CONFIG, 0.0, 0, 40)]
    turns = [chosen[k : k + len(SCENARIOS)] for k in range(0, 40, len(SCENARIOS))]
    assert all(sorted(turn) == list(range(len(SCENARIOS))) for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1
    # So a run that is resumed goes on with the same workloads.
    whole = places(CONFIG, 0.5, 0, 30)
    assert places(CONFIG, 0.5, 0, 7) + places(CONFIG, 0.5, 7, 23) == whole
    assert places(TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS, seed=1), 0.5, 0, 30) != whole
    seeds = {place.seed for place in places(CONFIG, 0.5, 0, 300)}
    assert len(seeds) > 290
    assert set(range(*TRAINING_SEEDS)) >= seeds
    for name in list_tracks():
        assert set(range(*TRAINING_SEEDS)) <= set(load_track(name).seeds("training"))


@pytest.mark.parametrize(("part", "fewest", "most"), [(0.0, 0, 0), (0.3, 60, 120), (1.0, 300, 300)])
def test_a_part_of_them_are_randomised(part, fewest, most):
    randomised = sum(place.scenario == RANDOMISED for place in places(CONFIG, part, 0, 300))
    assert fewest <= randomised <= most


def test_a_workload_is_that_of_its_scenario_and_seed_with_its_first_jobs_or_all_for_validation():
    config = TrainingConfig(agent=EsConfig(), scenarios=SCENARIOS, scenario_settings={"prices.pue": 1.5})
    scenario = load_scenario("tiny").replace({"prices.pue": 1.5})
    assert instance_at(config, TrainingPlace(0, 100_007), 10_000) == make_instance(scenario, 100_007)
    few = instance_at(config, TrainingPlace(0, 100_007), 4)
    assert few == make_instance(scenario.replace({"jobs.count": 4}), 100_007)
    assert instance_at(config, TrainingPlace(RANDOMISED, 100_007), 5) == make_instance(
        draw_scenario(100_007, 0, 5), 100_007
    )
    config = TrainingConfig(agent=EsConfig(most_jobs=2), scenarios=("tiny",))
    assert validation_instance(config, TrainingPlace(0, 500)) == make_instance(load_scenario("tiny"), 500)
    assert validation_instance(config, TrainingPlace(RANDOMISED, 20_000)) == make_instance(
        draw_scenario(20_000, 0, MOST_RANDOMISED), 20_000
    )


def test_an_agent_is_chosen_by_randomised_workloads_where_it_learns_on_some():
    listed = [TrainingPlace(index, seed) for index in range(len(SCENARIOS)) for seed in CONFIG.validation_seeds]
    assert validation_places(CONFIG) == listed
    randomised = validation_places(TrainingConfig(agent=EsConfig(randomised=0.5), scenarios=SCENARIOS))
    assert randomised[: len(listed)] == listed
    assert {place.scenario for place in randomised[len(listed) :]} == {RANDOMISED}
    assert not {place.seed for place in randomised} & set(range(*TRAINING_SEEDS))
