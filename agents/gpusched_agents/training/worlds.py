"""The workloads of evolution strategies: the scenarios in turn, and clusters that nobody listed, drawn at random."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env import make_instance
from gpusched_env.workload import Scenario, offered_load

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_env import Instance

TRAINING_SEEDS = (100_000, 110_000)  # those of tracks: from, and up to but without
DRAWN = -1  # in the place of a scenario's index: one that is drawn
POOLS = ("K80", "P100", "V100", "T4", "A100", "H100", "A10", "L4", "L40S")
LOADS, SLACKS, WEIGHTS, RESTARTS = (0.4, 1.2), (0.05, 2.0), (3e-6, 3e-3), (0.0, 60.0, 600.0, "measured")
HALVED = 0.5  # probability that nodes of a type have 4 GPUs, whatever they have usually
GAP_S = 1_000.0  # between two submissions, before the load is known
FAMILIES = ("histogram", "two-point", "lognormal")
TURNS, DRAWS = 2, 3  # streams of random numbers


class Place(NamedTuple):
    """A workload: the index of its scenario, or `DRAWN`, and its seed."""

    scenario: int
    seed: int


def places(config: TrainingConfig, drawn: float, first: int, count: int) -> list[Place]:
    """Give the workloads `first` to `first + count - 1` of a run: every scenario once before one comes again.

    Args:
        config: The settings of the run.
        drawn: Part of them that are drawn, 0 to 1.
        first: Number of the first, ≥ 0.
        count: How many, ≥ 1.
    """
    total, chosen = len(config.scenarios), []
    for number in range(first, first + count):
        rng = np.random.default_rng([config.seed, DRAWS, number])
        turn = np.random.default_rng([config.seed, TURNS, number // total]).permutation(total)
        scenario = DRAWN if rng.random() < drawn else int(turn[number % total])
        chosen.append(Place(scenario, int(rng.integers(*TRAINING_SEEDS))))
    return chosen


@lru_cache(maxsize=4)
def instance_at(config: TrainingConfig, place: Place, most_jobs: int) -> Instance:
    """Make the instance of a workload, of its first `most_jobs` jobs at most."""
    if place.scenario == DRAWN:
        return drawn_instance(place.seed, min(most_jobs, 200))
    scenario = config.loaded_scenario(place.scenario)
    return make_instance(scenario.replace({"jobs.count": min(most_jobs, scenario.jobs.count)}), place.seed)


def drawn_instance(seed: int, jobs: int) -> Instance:
    """Draw a cluster, its applications, load, due dates and weights, and make an instance of so many jobs."""
    rng = np.random.default_rng([DRAWS, seed])
    scenario = _drawn_scenario(rng, jobs)
    load = offered_load(make_instance(scenario, seed))
    gap = GAP_S * load / rng.uniform(*LOADS)
    return make_instance(scenario.replace({"arrivals.mean_gap_s": float(gap)}), seed)


def _drawn_scenario(rng: Generator, jobs: int) -> Scenario:
    """Draw everything but the arrivals' rate."""
    types = [str(name) for name in rng.choice(POOLS, size=rng.integers(1, 5), replace=False)]
    pools = [{"gpu_type": name, "nodes": int(rng.integers(1, 5))} for name in types]
    for pool in pools:
        if rng.random() < HALVED:
            pool["gpus_per_node"] = 4
    lowest = float(_log_uniform(rng, *WEIGHTS))
    restart = RESTARTS[rng.integers(len(RESTARTS))]
    settings = {
        "cluster.pools": pools,
        "jobs.count": jobs,
        "restart_s": restart,
        "arrivals.kind": "exponential",
        "arrivals.mean_gap_s": GAP_S,
        "epochs.family": str(rng.choice(FAMILIES)),
        "due_dates.slack": float(_log_uniform(rng, *SLACKS)),
        "weights.min_eur_per_s": lowest,
        "weights.max_eur_per_s": lowest * float(rng.uniform(1.0, 10.0)),
    }
    return Scenario().replace(settings)


def _log_uniform(rng: Generator, lowest: float, highest: float) -> float:
    return float(np.exp(rng.uniform(np.log(lowest), np.log(highest))))
