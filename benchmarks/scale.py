"""Growth: one round of every policy up to 1,000 nodes and 4,000 jobs, and a run of 100,000 jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst
from benchmarks.figure import Figure
from benchmarks.rounds import Round
from benchmarks.runs import one_run
from gpusched_baselines import make_policy, policy_names
from gpusched_baselines.registry import POLICIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env import Instance

JOBS_PER_NODE = 4
SLOW_S = 20.0  # a policy whose round takes longer is not measured at larger sizes


def measure(
    nodes: Sequence[int] = (250, 500, 1000),
    policies: Sequence[str] | None = None,
    run_jobs: int = 100_000,
    run_policies: Sequence[str] = ("edf", "sts"),
    fleet: tuple[int, float] = (10_000, 60.0),
    fleet_policies: Sequence[str] = ("edf", "sts", "sts-x"),
) -> list[Figure]:
    """Time one round of every policy, all jobs at t = 0 on five GPU types, and whole runs.

    Args:
        nodes: Numbers of nodes, growing, with 4 jobs a node.
        policies: Names of policies; by default those whose rounds are compiled: others take minutes (see `solvers`).
        run_jobs: Jobs of the whole runs, on 100 nodes.
        run_policies: Policies of the whole runs.
        fleet: Number of nodes of further runs of as many jobs, and their interval of decision rounds [s].
        fleet_policies: Policies of these.
    """
    instances = {count: burst(count, JOBS_PER_NODE) for count in nodes}
    names = [name for name in policy_names() if POLICIES[name].compiled] if policies is None else policies
    figures = [figure for name in names for figure in _growth(name, instances)]
    runs = [_run(name, run_jobs) for name in run_policies if name in policy_names()]
    return [*figures, *runs, *(_run_of_fleet(name, run_jobs, fleet) for name in fleet_policies)]


def _growth(name: str, instances: dict[int, Instance]) -> list[Figure]:
    """Time a policy's round at every size, and return its growth for twice the nodes and jobs."""
    figures, sizes, medians = [], [], []
    policy = make_policy(name)
    for count, instance in instances.items():
        first_round = Round(instance, policy)
        begin = time.perf_counter()
        first_round()
        quick = time.perf_counter() - begin < SLOW_S / 10
        values = tuple(first_round() for _ in range(5 if quick else 1))
        figures.append(Figure(f"{name}, {count:,} nodes, {JOBS_PER_NODE * count:,} jobs", values, "ms"))
        sizes.append(count)
        medians.append(float(np.median(values)))
        if medians[-1] > 1000.0 * SLOW_S:
            break
    if len(sizes) > 1:
        slope = float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])
        figures.append(Figure("  twice the nodes and jobs (linear: 2)", (2.0**slope,), "times"))
    return figures


def _run(name: str, jobs: int) -> Figure:
    answer = one_run(name, jobs, recorded=True)
    note = f"{answer['rounds']:,} rounds, load {100.0 * answer['load']:.0f} %, {jobs / answer['jobs_per_s']:.0f} s"
    return Figure(f"run of {jobs:,} jobs on 100 nodes, {name}", (answer["jobs_per_s"],), "jobs/s", note=note)


def _run_of_fleet(name: str, jobs: int, fleet: tuple[int, float]) -> Figure:
    answer = one_run(name, jobs, recorded=False, fleet=fleet)
    note = f"{answer['rounds']:,} rounds, {jobs / answer['jobs_per_s']:.0f} s, {answer['memory_kib'] / 2**10:.0f} MiB"
    title = f"run of {jobs:,} jobs on {fleet[0]:,} nodes, a round every {fleet[1]:g} s, {name}"
    return Figure(title, (answer["jobs_per_s"],), "jobs/s", note=note)
