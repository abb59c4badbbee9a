"""The workloads of evolution strategies: scenarios in turn, drawn scenarios, and the work of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_env import Instance, View, make_instance
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.sharing_slowdown import planned_slowdown
from gpusched_env.simulator.state import cheapest_in_full_nodes
from gpusched_env.workload import draw_scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    """Return the workloads `first` to `first + count - 1` of a run; the scenarios take turns.

    Args:
        config: The settings of the run.
        randomised: Part of them that are randomised, 0 to 1.
        first: Number of the first, ≥ 0.
        count: Number of workloads, ≥ 1.
    """
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
    """Make the instance of a workload, with all its jobs."""
    if place.scenario == RANDOMISED:
        return _randomised(place.seed, MOST_RANDOMISED)
    return make_instance(config.loaded_scenario(place.scenario), place.seed)


def instance_at(config: TrainingConfig, place: TrainingPlace, most_jobs: int) -> Instance:
    """Make the instance of a workload, with its first `most_jobs` jobs at most."""
    if place.scenario == RANDOMISED:
        return _randomised(place.seed, most_jobs)
    scenario = config.loaded_scenario(place.scenario)
    return make_instance(scenario.replace({"jobs.count": min(most_jobs, scenario.jobs.count)}), place.seed)


def _randomised(seed: int, most_jobs: int) -> Instance:
    return make_instance(draw_scenario(seed, 0, min(most_jobs, MOST_RANDOMISED)), seed)


def randomised_instance(number: int, seed: int) -> Instance:
    """Make a workload of a drawn scenario of training, by its number, ≥ 0, and with a seed."""
    return make_instance(draw_scenario(TRAINING_SEEDS[0], number, MOST_RANDOMISED), seed)


class WorkMeter:
    """A meter of the least energy cost of the work done, in many environments at once.

    The least cost of an epoch is that in the cheapest configuration, in a full node. Its sum over an episode is the
    same for every policy. So a reward to which it is added ranks policies in the same order, and measures only the cost
    above the least.

    Args:
        views: The present states of the environments.
        instances: Their instances.
    """

    def __init__(self, views: Sequence[View], instances: Sequence[Instance]) -> None:
        self._done = np.array([work_eur(view) for view in views])
        self._whole = np.array([whole_work_eur(*pair) for pair in zip(views, instances, strict=True)])

    def change(
        self,
        views: Sequence[View],
        instances: Sequence[Instance],
        ended: NDArray[np.bool_],
        stalled: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Return the least cost of the work of the last step [€], (N,).

        Args:
            views: The states after the step; where an episode ended, at the beginning of the next one.
            instances: Their instances.
            ended: Where an episode ended, (N,).
            stalled: Where it ended because no job ran, so that its last step did no work, (N,); by default nowhere.
        """
        done = np.array([work_eur(view) for view in views])
        change = np.where(ended, self._whole, done) - self._done
        if stalled is not None:
            change[stalled] = 0.0
        for i in np.flatnonzero(ended).tolist():
            self._whole[i] = whole_work_eur(views[i], instances[i])
        self._done = done
        return change


def work_eur(view: View) -> float:
    """Return the least energy cost of the epochs done so far [€]."""
    jobs = view.jobs[: view.count[at.SUBMITTED]]
    rates = view.least_rate[jobs[:, at.CHEAPEST].astype(np.int64)]
    return float(np.sum(jobs[:, at.EPOCHS] * jobs[:, at.CHEAPEST_TAU] * rates))


def whole_work_eur(view: View, instance: Instance) -> float:
    """Return the least energy cost of all the epochs that the jobs of an episode need [€]."""
    table = instance.jobs
    seconds = table.seconds_per_epoch * planned_slowdown(instance)[table.application]
    cheapest, least_s = cheapest_in_full_nodes(seconds, view.least_rate)
    return float(np.sum(table.epochs_needed * least_s * view.least_rate[cheapest]))
