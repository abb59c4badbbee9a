"""Train PPO and MaskablePPO for a few thousand steps, and compare them with EDF and STS on held-out workloads.

Run `python examples/train_agents.py --steps 8192 --seeds 20`; it needs the extra `agents`.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from gpusched_agents import evaluate
from gpusched_baselines import Sts, edf
from gpusched_env import GpuClusterEnv, Result, load_scenario, make_instance, simulate

SETTINGS = {"learning_rate": 1e-3, "n_steps": 256, "batch_size": 64, "gamma": 1.0}  # gamma 1: a euro is a euro


def show(name: str, results: list[Result], forced: int = 0) -> None:
    """Print mean costs, and the number of decisions that a rule took because all jobs waited (`forced`)."""
    energy, tardiness, late = np.mean([(r.energy_eur, r.tardiness_eur, r.late_jobs) for r in results], axis=0)
    print(f"{name:24}{energy:10.2f}{tardiness:14.2f}{energy + tardiness:12.2f}{late:12.1f}{forced:10d}", flush=True)


def main() -> None:
    """Print a line per policy and agent, all on the same held-out workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8192, help="steps of training")
    parser.add_argument("--seeds", type=int, default=20, help="number of held-out workloads")
    args = parser.parse_args()
    if min(args.steps, args.seeds) < 1:
        parser.error("--steps and --seeds must be 1 or more")
    seeds = range(args.seeds)  # training draws the seeds of its workloads from 1,000 on
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    print(f"{'policy':24}{'energy €':>10}{'tardiness €':>14}{'total €':>12}{'late jobs':>12}{'forced':>10}")
    for policy in (edf(), Sts()):
        show(policy.name, [simulate(make_instance(load_scenario("tiny"), seed), policy) for seed in seeds])
    for algorithm in (PPO, MaskablePPO):
        env, test_env = GpuClusterEnv("tiny"), GpuClusterEnv("tiny")
        model = algorithm("MultiInputPolicy", env, seed=0, device="cpu", **SETTINGS)
        for steps in (0, args.steps):
            runs = evaluate(model.learn(steps), test_env, seeds)
            show(f"{algorithm.__name__} {steps} steps", [run.result for run in runs], sum(run.forced for run in runs))


if __name__ == "__main__":
    main()
