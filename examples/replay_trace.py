"""Replay a trace: arrivals, GPU demand and durations of real jobs on your own cluster.

Run `python examples/replay_trace.py my_trace.csv --jobs 500 --nodes 20`; without a file it writes a small one.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from gpusched_baselines import AsTraced, Sts, edf, fifo
from gpusched_env import InputError, make_instance, simulate
from gpusched_env.workload import replayed_trace, scenario_for_trace


def write_trace(path: Path) -> Path:
    """Write a trace in the generic format: submission times, start times, durations, and numbers of GPUs of jobs."""
    rng, submission_s, rows = random.Random(0), 0, ["submission_s,start_s,duration_s,gpus"]  # noqa: S311 - made up
    for _ in range(60):
        rows.append(f"{submission_s},{submission_s + 60},{rng.randint(600, 36_000)},{rng.choice([1, 1, 1, 2, 4, 8])}")
        submission_s += rng.randint(1, 900)
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def main() -> None:
    """Print a summary of the trace, and the costs of each policy on it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trace", type=Path, nargs="?", help="the file; docs/traces.md lists the formats")
    parser.add_argument("--jobs", type=int, help="most jobs to take")
    parser.add_argument("--nodes", type=int, default=3, help="nodes of the cluster")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.trace or write_trace(Path(folder) / "example.csv")
        scenario = scenario_for_trace(path, jobs=args.jobs, nodes=args.nodes)
        trace, instance = replayed_trace(scenario), make_instance(scenario, seed=0)
    print(f"{path.name}: {len(trace)} jobs, {trace.gpu_seconds / 3600.0:.0f} GPU-hours, on {args.nodes} nodes\n")
    print(f"{'policy':10}{'energy €':>12}{'tardiness €':>14}{'late jobs':>12}")
    today = [] if trace.start_s is None else [AsTraced()]  # the schedule of the trace
    for r in [simulate(instance, policy) for policy in (*today, fifo(), edf(), Sts())]:
        print(f"{r.policy:10}{r.energy_eur:12.2f}{r.tardiness_eur:14.2f}{r.late_jobs:12d}")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
