"""Make the environment, and run policies through it: with `rollout`, and with the plain loop of Gymnasium.

Run `python examples/run_a_policy.py --scenario tiny --seed 0`.
"""

from __future__ import annotations

import argparse

import gymnasium

from gpusched_baselines import Sts, edf
from gpusched_env import InputError, Result, rollout


def random_agent(env: gymnasium.Env, seed: int) -> Result:
    """Choose at random among the actions that can be placed now; with action 0 the current job waits."""
    env.action_space.seed(seed)
    _, info = env.reset(seed=seed)  # the seed makes the workload: the same for every agent and policy
    done = False
    while not done:
        action = env.action_space.sample(mask=info["action_mask"])
        _, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    return env.unwrapped.result("random")


def main() -> None:
    """Compare a random agent with two reference policies on one workload."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", default="tiny", help="name of a built-in scenario, or a .toml file")
    parser.add_argument("--seed", type=int, default=0, help="seed of the workload")
    args = parser.parse_args()
    name = "gpusched_env:gpusched_env/GpuCluster-v0"
    results = [random_agent(gymnasium.make(name, scenario=args.scenario), args.seed)]
    for policy in (edf(), Sts()):
        # The environment asks a policy in its own order; with `milestones=0` only the policy sets timers.
        own_way = {"job_order": policy.job_order, "preemption": policy.preemption, "milestones": 0}
        result, _ = rollout(gymnasium.make(name, scenario=args.scenario, **own_way), policy, seed=args.seed)
        results.append(result)
    print(f"{'policy':10}{'energy €':>12}{'tardiness €':>14}{'total €':>12}{'late jobs':>12}")
    for r in results:
        print(f"{r.policy:10}{r.energy_eur:12.2f}{r.tardiness_eur:14.2f}{r.total_eur:12.2f}{r.late_jobs:12d}")


if __name__ == "__main__":
    try:
        main()
    except (InputError, gymnasium.error.Error) as error:
        raise SystemExit(f"error: {error}") from None
