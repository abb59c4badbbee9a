"""The bound with capacity: its time, and how much tighter it is."""

from __future__ import annotations

import time

from benchmarks.figure import Figure, at_most
from gpusched_baselines import capacity_bound, clairvoyant_bound, make_policy
from gpusched_env import load_scenario, make_instance, simulate

POLICIES = ("edf", "greedy", "sts-x")
CONTENDED = {"arrivals.lambda_s": 4_500.0, "weights.min_eur_per_s": 1.1e-5, "weights.max_eur_per_s": 1.1e-4}
"""Cheap tardiness, and more jobs than three nodes can finish in time."""


def measure(nodes: int = 3, jobs: int = 300, repetitions: int = 3) -> list[Figure]:
    """Bound the cost of the scenario `default` on a small cluster, by seed.

    Args:
        nodes: Number of nodes.
        jobs: Number of jobs.
        repetitions: Number of seeds.
    """
    scenario = load_scenario("default").replace({"cluster.nodes": nodes, "jobs.count": jobs, **CONTENDED})
    capacity_bound(make_instance(scenario, 0))
    seconds, to_clairvoyant, to_best, names = [], [], [], []
    for seed in range(repetitions):
        instance = make_instance(scenario, seed)
        begin = time.perf_counter()
        bound = capacity_bound(instance)
        seconds.append(time.perf_counter() - begin)
        costs = {name: simulate(instance, make_policy(name), seed=seed, record=False).total_eur for name in POLICIES}
        best = min(costs, key=costs.__getitem__)
        to_clairvoyant.append(bound / clairvoyant_bound(instance))
        to_best.append(bound / costs[best])
        names.append(best)
    note = f"the best of {', '.join(POLICIES)} by seed: {', '.join(names)}"
    return [
        Figure(f"capacity bound, {jobs:,} jobs on {nodes} nodes", tuple(seconds), "s", at_most(5.0)),
        Figure("  over the clairvoyant bound", tuple(to_clairvoyant), "times"),
        Figure("  over the best policy", tuple(to_best), "times", note=note),
    ]
