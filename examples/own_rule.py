"""Write your own dispatch rule in one line, and compare it with EDF and STS.

Run `python examples/own_rule.py --scenario default --seeds 10`.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpusched_baselines import DispatchPolicy, Sts, edf
from gpusched_env import InputError, load_scenario, make_instance, simulate

# A rule returns a number for every active job; the smallest goes first. `gpusched_env.ActiveJobs` lists its inputs.
# This one is the classic for weighted tardiness: jobs with large weight and short expected time first.
weighted_shortest = DispatchPolicy(
    "weighted shortest",
    lambda jobs: jobs.expected_epochs_left / jobs.epochs_left * jobs.min_execution_s / jobs.tardiness_weight_eur_per_s,
)


def main() -> None:
    """Print the mean costs of each policy over the same workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", default="default", help="name of a built-in scenario, or a .toml file")
    parser.add_argument("--seeds", type=int, default=10, help="number of workloads")
    args = parser.parse_args()
    if args.seeds < 1:
        raise InputError("--seeds", args.seeds, "a whole number >= 1")
    scenario = load_scenario(args.scenario)
    instances = [make_instance(scenario, seed) for seed in range(args.seeds)]
    print(f"Scenario {scenario.name}, means over {args.seeds} workloads\n")
    print(f"{'policy':20}{'energy €':>12}{'tardiness €':>14}{'late jobs':>12}{'mean completion h':>20}")
    for policy in (edf(), weighted_shortest, Sts()):
        results = [simulate(instance, policy) for instance in instances]
        energy = np.mean([r.energy_eur for r in results])
        tardiness = np.mean([r.tardiness_eur for r in results])
        late = np.mean([r.late_jobs for r in results])
        hours = np.mean([r.mean_completion_s for r in results]) / 3600.0
        print(f"{policy.name:20}{energy:12.2f}{tardiness:14.2f}{late:12.1f}{hours:20.1f}")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
