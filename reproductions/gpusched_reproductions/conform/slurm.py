"""Slurm's own starts beside those of our policies, on drawn queues that ran on real daemons (`slurm_runs`).

Files: a table of runs that have ended: a queue that is not in it runs first. Each queue runs under each of `RULES`.
Ours schedules the same jobs with the submission times and lengths of Slurm's log, and looks when Slurm looked: at every
start of Slurm, and `INTERVAL_S` after an event that none follows within `CYCLE_S`. They agree if each job starts
within `CYCLE_S` of Slurm's start, and in the same order.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.multifactor import Multifactor
from gpusched_baselines.backfill.slurm import SlurmBackfill
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.files import write_atomically
from gpusched_env.simulator.policy import memory_columns
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.conform.slurm_runs import CLUSTERS, QUEUES, read_runs, run_all, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.simulator import Policy
    from gpusched_env.simulator.kernels import View
    from gpusched_reproductions.conform.slurm_runs import SlurmJob

CYCLE_S = 3.0
"""Longest time from an event to Slurm's next decision [s]: both of its schedulers look every second or two."""

INTERVAL_S = 1.0
"""Time between two looks of the test cluster's backfill plugin [s] (bf_interval)."""

RULES: dict[str, Policy] = {
    "slurm-backfill": SlurmBackfill(),
    "one-reservation": SlurmBackfill(reservations=1),
    "multifactor": Multifactor(age=0.0, fair_share=0.0),
}
"""Our policies for Slurm's settings of the same names. A fair share needs its accounting database."""

SAME_S = 5e-4
"""Slurm's log has milliseconds [s]."""

COMPLETING_S = 0.001
"""Least time from the end of a job until Slurm can use its node: a message of the node has to come [s]."""


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield one answer for each queue and rule; what has not run yet runs first, and is written to the file."""
    for path in paths:
        runs = read_runs(path) if path.exists() else {}
        for case, jobs in runs.items():
            yield compare(case, jobs)
        missing = [case for case in itertools.product(range(QUEUES), RULES) if case not in runs]
        for case, jobs in run_all(missing):
            runs[case] = jobs
            write_atomically(path, table_of(job for each in sorted(runs) for job in runs[each]))
            yield compare(case, jobs)


def compare(
    case: tuple[int, str], jobs: Sequence[SlurmJob], within_s: float = CYCLE_S, policy: Policy | None = None
) -> Answer:
    """Compare Slurm's starts of a queue with ours.

    Args:
        case: Number of the queue, and rule.
        jobs: Its jobs, in the order in which they were submitted.
        within_s: Longest time between Slurm's start and ours, and from an event to our decision [s].
        policy: Ours; by default that of the rule.
    """
    queue, rule = case
    looks = {job.start_s: bool(job.backfilled) for job in jobs}
    looking = WhenSlurmLooked(policy or RULES[rule], looks, within_s)
    ours = simulate(instance_of(jobs, *CLUSTERS[queue % 2]), looking, record=False).start_s
    theirs = np.array([job.start_s for job in jobs])
    near, swapped = int(np.count_nonzero(np.abs(theirs - ours) <= within_s)), _swapped(ours, theirs, within_s)
    return Answer(
        f"queue {queue}, {rule}",
        f"starts [s] {', '.join(f'{each:.0f}' for each in theirs)}",
        f"{', '.join(f'{each:.0f}' for each in ours)}; {near} of {len(jobs)} in time, {swapped} pairs in another order",
        near == len(jobs) and not swapped,
    )


class WhenSlurmLooked:
    """A policy that decides at the times at which Slurm started jobs, and after other submissions and ends.

    Args:
        policy: The policy.
        looks: Slurm's starts [s], and whether it was the backfill plugin; at others only the main scheduler looks.
        within_s: Longest time from an event to such a start; if there is none, it decides `INTERVAL_S` after it [s].
    """

    def __init__(self, policy: Policy, looks: dict[float, bool], within_s: float) -> None:
        self.name, self.preemption = policy.name, policy.preemption
        self._policy = policy
        self._main = replace(policy, plugin=False) if isinstance(policy, SlurmBackfill | Multifactor) else policy
        self._looks, self._within_s, self._by_s = dict(sorted(looks.items())), within_s, math.inf

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory of the policy."""
        return memory_columns(self._policy, instance)

    def decide(self, view: View, rng: Generator) -> None:
        """Start waiting jobs if Slurm looked now."""
        now = view.now_s
        plugin = next((each for look_s, each in self._looks.items() if abs(look_s - now) < SAME_S), None)
        if plugin or now > self._by_s - SAME_S:
            self._policy.decide(view, rng)
            self._by_s = math.inf
        elif plugin is not None:
            self._main.decide(view, rng)
        elif not any(plugin and now < look_s <= now + self._within_s for look_s, plugin in self._looks.items()):
            self._by_s = min(self._by_s, now + INTERVAL_S)
        next_s = min([self._by_s, *(look_s for look_s in self._looks if look_s > now + SAME_S)])
        for job in view.active.tolist():
            view.set_timer(job, next_s)


def _swapped(ours: NDArray[np.float64], theirs: NDArray[np.float64], within_s: float) -> int:
    """Count the pairs that start in another order and, by ours, more than `within_s` apart."""
    first = ours[:, None] < ours[None, :] - within_s
    return int(np.count_nonzero(first & (theirs[:, None] > theirs[None, :])))


def instance_of(jobs: Sequence[SlurmJob], nodes: int, gpus: int) -> Instance:
    """Make the same queue, with the submission times and the lengths of jobs that Slurm recorded."""
    asked = [Configuration("A100", min(job.gpus, gpus), -(-job.gpus // gpus)) for job in jobs]
    lengths_s = [job.end_s + COMPLETING_S - job.start_s for job in jobs]
    even = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]))
    made = [
        Job(job.submission_s, 1e6, 1e-3, 1.0, even, length_s / job.limit_s, {one: job.limit_s})
        for job, one, length_s in zip(jobs, asked, lengths_s, strict=True)
    ]
    gpu_type = GpuType("A100", 400.0, 0.0, 40.0, gpus)
    return Instance.from_jobs([gpu_type], [Node("A100", gpus)] * nodes, made, list(dict.fromkeys(asked)))
