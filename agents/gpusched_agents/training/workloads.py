"""The workloads of evolution strategies: scenarios in turn, and drawn scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_env import Instance, make_instance
from gpusched_env.workload import draw_scenario

if TYPE_CHECKING:
    from gpusched_agents.training.config import TrainingConfig

TRAINING_SEEDS = (100_000, 110_000)  # those of tracks: first, and last + 1
RANDOMISED_VALIDATION = range(20_000, 20_040)
RANDOMISED = -1  # in place of a scenario's index: a randomised workload
MOST_RANDOMISED = 200  # jobs of a randomised workload
TURNS, DRAWS = 2, 3  # streams of random numbers


class TrainingPlace(NamedTuple):
    """A workload: the index of its scenario, or `RANDOMISED`, and its seed."""

    scenario: int
    seed: int


def places(config: TrainingConfig, randomised: float, first: int, count: int) -> list[TrainingPlace]:
    """Return the workloads `first` to `first + count - 1`, a part of them randomised; the scenarios take turns."""
    total, chosen = len(config.scenarios), []
    for number in range(first, first + count):
        rng = np.random.default_rng([config.seed, DRAWS, number])
        turn = np.random.default_rng([config.seed, TURNS, number // total]).permutation(total)
        scenario = RANDOMISED if rng.random() < randomised else int(turn[number % total])
        chosen.append(TrainingPlace(scenario, int(rng.integers(*TRAINING_SEEDS))))
    return chosen


def validation_places(config: TrainingConfig) -> list[TrainingPlace]:
    """Return the validation workloads: of every scenario, seed by seed; and randomised ones, if it learns on some."""
    chosen = [TrainingPlace(index, seed) for index in range(len(config.scenarios)) for seed in config.validation_seeds]
    randomised = isinstance(config.agent, EsConfig) and config.agent.randomised > 0.0
    return chosen + [TrainingPlace(RANDOMISED, seed) for seed in RANDOMISED_VALIDATION if randomised]


def validation_instance(config: TrainingConfig, place: TrainingPlace) -> Instance:
    if place.scenario == RANDOMISED:
        return _randomised(place.seed, MOST_RANDOMISED)
    return make_instance(config.validation_scenario(place.scenario), place.seed)


def instance_at(config: TrainingConfig, place: TrainingPlace, most_jobs: int) -> Instance:
    if place.scenario == RANDOMISED:
        return _randomised(place.seed, most_jobs)
    scenario = config.loaded_scenario(place.scenario)
    return make_instance(scenario.replace({"jobs.count": min(most_jobs, scenario.jobs.count)}), place.seed)


def _randomised(seed: int, most_jobs: int) -> Instance:
    return make_instance(draw_scenario(seed, 0, min(most_jobs, MOST_RANDOMISED)), seed)


def randomised_instance(number: int, seed: int) -> Instance:
    """Make a workload of a drawn scenario of training, by its number, ≥ 0, and with a seed."""
    return make_instance(draw_scenario(TRAINING_SEEDS[0], number, MOST_RANDOMISED), seed)
