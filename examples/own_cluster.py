"""Describe your own cluster: its hardware, its costs, and the applications. Then compare policies on it.

Run `python examples/own_cluster.py --seeds 5`. A file can hold the same: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpusched_baselines import Sts, edf, fifo
from gpusched_env import Scenario, make_instance, simulate
from gpusched_env.workload import offered_load

CLUSTER = Scenario(
    name="mine",
    gpu_types=[
        {"name": "B200", "memory_gib": 180, "gpu_power_w": 900, "idle_gpu_power_w": 140, "node_base_power_w": 1800},
        {"name": "rented", "memory_gib": 24, "node_eur_per_h": [0.6, 1.0, 1.4, 1.8]},  # with 1, 2, … busy GPUs
    ],
    cluster={"pools": [{"gpu_type": "B200", "nodes": 1}, {"gpu_type": "rented", "nodes": 4}]}, prices={"pue": 1.2},
    applications=[
        {"name": "llama-8b-sft", "max_epochs": 4, "memory_gib": 70, "restart_s": 90,
         "seconds_per_epoch": {"B200": [9000, 4700, 3300, 2500]}},  # on 1, 2, … GPUs
        {"name": "resnet-50", "max_epochs": 60, "memory_gib": 12, "restart_s": 20,
         "seconds_per_epoch": {"B200": [70, 38], "rented": [310, 165, 118, 95]}},
    ],
    epochs={"masses": [[1, 0, 2, 4, 6, 3, 1, 1, 0, 2]]},  # past runs that needed up to 10 %, 20 %, … of their epochs
    jobs={"count": 60}, arrivals={"kind": "exponential", "mean_gap_s": 1800},
)  # fmt: skip


def main() -> None:
    """Print the mean costs of each policy over the same workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5, help="number of workloads")
    seeds = range(parser.parse_args().seeds)
    if not seeds:
        parser.error("--seeds must be 1 or more")
    instances = [make_instance(CLUSTER, seed) for seed in seeds]
    print(f"{instances[0]}\nload {np.mean([offered_load(i) for i in instances]):.2f}, {len(seeds)} workloads\n")
    for policy in (fifo(), edf(), Sts()):
        runs = [simulate(instance, policy) for instance in instances]
        energy, tardiness, late = np.mean([(r.energy_eur, r.tardiness_eur, r.late_jobs) for r in runs], axis=0)
        print(f"{policy.name:6}{energy:10.2f} € energy{tardiness:10.2f} € tardiness{late:8.1f} late jobs")


if __name__ == "__main__":
    main()
