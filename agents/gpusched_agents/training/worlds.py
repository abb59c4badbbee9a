"""The workloads of evolution strategies: scenarios in turn, randomised clusters, and the work of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_env import Instance, View, load_scenario, make_instance
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.sharing_slowdown import planned_slowdown
from gpusched_env.simulator.state import cheapest_in_full_nodes
from gpusched_env.workload import Scenario, offered_load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig

TRAINING_SEEDS = (100_000, 110_000)  # those of tracks: first, and last + 1
RANDOMISED_VALIDATION = range(20_000, 20_040)
RANDOMISED = -1  # in place of a scenario's index: a randomised workload
POOLS = ("K80", "P100", "V100", "T4", "A100", "H100", "A10", "L4", "L40S")
PUBLISHED = "published-poisson"
# Kinds of randomised workloads: a built-in scenario, GPU types for its applications, least nodes of one, probability.
KINDS = (
    ("default", POOLS, 1, 0.45),
    (PUBLISHED, ("K80", "M60"), 1, 0.1),
    ("multi-node", ("A100", "T4"), 4, 0.15),
    ("sharing", POOLS, 1, 0.2),
    ("guaranteed-and-opportunistic", POOLS, 1, 0.1),
)
GAP_S = 1_000.0  # between two submissions, before the load is known
ARRIVALS = (
    {"kind": "exponential", "mean_gap_s": GAP_S},
    {"kind": "mixed"},
    {"kind": "profile", "profile": "philly", "mean_gap_s": GAP_S},
    {"kind": "simultaneous"},
)
ARRIVAL_ODDS = (0.7, 0.1, 0.1, 0.1)
LOADS, SLACKS, WEIGHTS, RESTARTS = (0.03, 1.3), (0.05, 2.0), (3e-6, 3e-3), (0.0, 60.0, 600.0, "measured")
MOST_NODES, FEWEST_JOBS, MOST_RANDOMISED = 8, 10, 200  # nodes of a type; jobs, where there are so many
HALVED = 0.5  # probability that nodes of a type have 4 GPUs in place of their usual number, if no job takes several
FAMILIES = ("histogram", "two-point", "lognormal")
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
        return randomised_instance(place.seed, MOST_RANDOMISED)
    return make_instance(config.loaded_scenario(place.scenario), place.seed)


def instance_at(config: TrainingConfig, place: TrainingPlace, most_jobs: int) -> Instance:
    """Make the instance of a workload, with its first `most_jobs` jobs at most."""
    if place.scenario == RANDOMISED:
        return randomised_instance(place.seed, min(most_jobs, MOST_RANDOMISED))
    scenario = config.loaded_scenario(place.scenario)
    return make_instance(scenario.replace({"jobs.count": min(most_jobs, scenario.jobs.count)}), place.seed)


def randomised_instance(seed: int, jobs: int) -> Instance:
    """Draw a cluster, its applications, sharing, load, due dates and weights, and make an instance of it.

    Args:
        seed: Seed of the draw, and of the instance.
        jobs: Most jobs, ≥ 1; their number is random, too.
    """
    rng = np.random.default_rng([DRAWS, seed])
    scenario = _randomised_scenario(rng, jobs)
    load, wanted = offered_load(make_instance(scenario, seed)), _log_uniform(rng, *LOADS)
    if np.isfinite(load):
        scenario = scenario.replace({"arrivals.rate": wanted / load})
    return make_instance(scenario, seed)


def _randomised_scenario(rng: Generator, jobs: int) -> Scenario:
    """Draw everything except the arrival rate."""
    name, types, fewest, _ = KINDS[rng.choice(len(KINDS), p=[kind[-1] for kind in KINDS])]
    scenario = load_scenario(name)
    chosen = rng.choice(types, size=rng.integers(1, min(4, len(types)) + 1), replace=False)
    pools = [{"gpu_type": str(gpu_type), "nodes": round(_log_uniform(rng, fewest, MOST_NODES))} for gpu_type in chosen]
    for pool in pools:
        if fewest == 1 and rng.random() < HALVED:
            pool["gpus_per_node"] = 4
    lowest = _log_uniform(rng, *WEIGHTS)
    family = str(rng.choice(FAMILIES))
    settings = {
        "cluster.pools": pools,
        "jobs.count": round(_log_uniform(rng, min(FEWEST_JOBS, jobs), jobs)),
        "restart_s": RESTARTS[rng.integers(len(RESTARTS))],
        "due_dates.slack": _log_uniform(rng, *SLACKS),
        "weights.min_eur_per_s": lowest,
        "weights.max_eur_per_s": lowest * float(rng.uniform(1.0, 10.0)),
    }
    settings["arrivals"] = ARRIVALS[rng.choice(len(ARRIVALS), p=ARRIVAL_ODDS)]
    if name != PUBLISHED:  # it has its own histograms
        settings["epochs.family"] = family
    if name == "sharing":
        settings["sharing.interference"] = str(rng.choice(("random", "measured")))
    return scenario.replace(settings)


def _log_uniform(rng: Generator, lowest: float, highest: float) -> float:
    return float(np.exp(rng.uniform(np.log(lowest), np.log(highest))))


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
