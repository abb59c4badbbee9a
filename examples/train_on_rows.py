"""Train MaskablePPO without rows of other jobs, with flattened ones and with attention over them, on equal terms.

Run `python examples/train_on_rows.py`; it needs the extra `agents`. Every training has the same number of decisions.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from gpusched_agents import evaluate, job_set_policy, make_sb3_vec_env
from gpusched_baselines import StsX, edf
from gpusched_env import GpuClusterEnv, load_scenario, make_instance, simulate

TRAINING, VALIDATION = 100_000, 20_000  # where the seeds of tracks begin
SETTINGS = {"n_steps": 256, "batch_size": 256, "gamma": 0.999, "device": "cpu"}
NUMBERS = {"jobs": 60, "rows": 8, "steps": 100_000, "trainings": 3, "seeds": 10}


def main() -> None:
    """Print the mean cost [€] of EDF, of STS-X and of every training on the same held-out workloads."""
    parser = argparse.ArgumentParser()
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    if min(vars(args).values()) < 1:
        parser.error("all numbers must be 1 or more")
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    scenario = load_scenario("slack").replace({"jobs.count": args.jobs})
    seeds = range(VALIDATION, VALIDATION + args.seeds)
    for policy in (edf(), StsX()):
        costs = [simulate(make_instance(scenario, seed), policy).total_eur for seed in seeds]
        print(f"{policy.name:28}{np.mean(costs):8.2f}", flush=True)
    flattened, attention = ("flattened", args.rows, {}), ("attention", args.rows, job_set_policy(args.rows))
    for name, rows, kwargs in (("without", 0, {}), flattened, attention):
        env = {"scenario": scenario, "reward_scale": 33.2, "job_features": rows}  # that of the track
        for k in range(args.trainings):
            more = {"seed": TRAINING + 1000 * k, "policy_kwargs": kwargs, **SETTINGS}
            model = MaskablePPO("MultiInputPolicy", make_sb3_vec_env(n_envs=8, **env), **more)
            runs = evaluate(model.learn(args.steps), GpuClusterEnv(**env), seeds)
            cost, forced = np.mean([(run.result.total_eur, run.forced) for run in runs], axis=0)
            print(f"rows: {name:10}training {k:3}{cost:8.2f}   {forced:.1f} decisions forced", flush=True)


if __name__ == "__main__":
    main()
