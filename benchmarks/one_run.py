"""One whole simulation, in a process of its own so that its peak memory is its own."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.machine import peak_memory_mib
from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_env.workload import offered_load

if TYPE_CHECKING:
    from gpusched_env import Result, Scenario


FLEET_LOAD = 0.8


def run(
    jobs: int, policy_name: str, *, record: bool, nodes: int | None = None, interval_s: float = 0.0
) -> dict[str, float]:
    """Simulate the scenario `large` with a given number of jobs.

    Args:
        jobs: Number of jobs.
        policy_name: The policy.
        record: Whether intervals are recorded.
        nodes: Nodes, of `default`, at a load of 0.8; None for `large` as it is.
        interval_s: Interval of decision rounds [s].

    Returns:
        `jobs_per_s`, `rounds`, `load` (see `load`; 0 if intervals are not recorded), and `memory_kib`: the increase of
        the peak memory by the instance and its run.
    """
    policy = make_policy(policy_name)
    simulate(make_instance(load_scenario("tiny"), 0), policy)  # compiled code is loaded before anything is measured
    before = peak_memory_mib()
    scenario = load_scenario("large") if nodes is None else _fleet(jobs, nodes)
    instance = make_instance(scenario.replace({"jobs.count": jobs, "decision_interval_s": interval_s}), 0)
    begin = time.perf_counter()
    result = simulate(instance, policy, record=record)
    seconds = time.perf_counter() - begin
    memory_kib = 1024.0 * (peak_memory_mib() - before)
    return {
        "jobs_per_s": jobs / seconds,
        "rounds": result.rounds,
        "load": load(result) if record else 0.0,
        "memory_kib": memory_kib,
    }


def _fleet(jobs: int, nodes: int) -> Scenario:
    """Make the scenario `default` with so many nodes and jobs, at a load of `FLEET_LOAD`."""
    settings = {"cluster.nodes": nodes, "jobs.count": jobs, "arrivals.lambda_s": None, "arrivals.mean_gap_s": 1000.0}
    scenario = load_scenario("default").replace(settings)
    offered = offered_load(make_instance(scenario, 0))
    return scenario.replace({"arrivals.mean_gap_s": 1000.0 * offered / FLEET_LOAD})


def load(result: Result) -> float:
    """Return the share of the cluster's GPU time that was held, from the first submission to the last."""
    held = result.intervals()
    first, last = result.instance.jobs.submission_s[[0, -1]]
    if last == first:
        return 0.0
    seconds = np.clip(held["end_s"].to_numpy(), first, last) - np.clip(held["start_s"].to_numpy(), first, last)
    gpus = sum(node.gpus for node in result.instance.nodes)
    return float((held["gpus"].to_numpy() * seconds).sum() / (gpus * (last - first)))


if __name__ == "__main__":
    count, name, mode, *fleet = sys.argv[1:]
    nodes, interval_s = (int(fleet[0]), float(fleet[1])) if fleet else (None, 0.0)
    print(json.dumps(run(int(count), name, record=mode == "recorded", nodes=nodes, interval_s=interval_s)))
