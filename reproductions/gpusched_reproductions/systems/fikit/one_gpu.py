"""Two jobs on one GPU in the simulator: by default, each slowed as measured, and with priorities that fill gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import Fill, Pack
from gpusched_env import Configuration, Duty, EpochDistribution, GpuType, Instance, Interference, Job, Node, simulate

if TYPE_CHECKING:
    from gpusched_reproductions.systems.fikit.measured import Pair

OVERHEAD = 0.03
_CERTAIN = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]))
_GPU = GpuType("GPU", gpu_power_w=250.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=1)
_LATE_S = 1e9


def by_default(pair: Pair, submissions_s: tuple[float, ...], first_s: float, other_s: float) -> tuple[float, float]:
    """Run jobs of the first kind beside one of the other, without priorities.

    Args:
        pair: What was measured of them.
        submissions_s: When jobs of the first kind are submitted; the other is at 0.
        first_s: How long each of them takes alone [s].
        other_s: How long the other takes alone [s].

    Returns:
        Mean time from submission to completion of the first kind, and of the other job [s].
    """
    slowdown = np.ones((1, 2, 2))
    slowdown[0, 0, 1], slowdown[0, 1, 0] = pair.slowdown, pair.other_slowdown
    halves = (Configuration("GPU", 1, share=0.5), Configuration("GPU", 1))
    return _run(Pack(most=4), _instance(halves, submissions_s, first_s, other_s, Interference(slowdown)))


def filling(pair: Pair, submissions_s: tuple[float, ...], first_s: float, other_s: float) -> tuple[float, float]:
    """Run the same jobs with priorities: those of the first kind are hosts, the other fills their gaps."""
    shares = (Configuration("GPU", 1, share=0.6, priority=1), Configuration("GPU", 1, share=0.4))
    duty = Duty(np.array([[pair.duty, pair.other_duty]]), overhead=OVERHEAD)
    return _run(Fill(most_busy=2.0), _instance(shares, submissions_s, first_s, other_s, duty))


def _instance(
    configurations: tuple[Configuration, ...],
    submissions_s: tuple[float, ...],
    first_s: float,
    other_s: float,
    interference: Interference | Duty,
) -> Instance:
    seconds = dict.fromkeys(configurations, 1.0)
    other = Job(0.0, _LATE_S, 0.0001, other_s, _CERTAIN, other_s, seconds, application="other")
    firsts = [Job(at_s, _LATE_S, 0.001, first_s, _CERTAIN, first_s, seconds, application="first")
              for at_s in submissions_s]  # fmt: skip
    jobs = sorted([*firsts, other], key=lambda job: job.submission_s)
    return Instance.from_jobs([_GPU], [Node("GPU", 1)], jobs, configurations, interference=interference)


def _run(policy: Fill | Pack, instance: Instance) -> tuple[float, float]:
    result = simulate(instance, policy, record=False)
    took = result.completion_s - instance.jobs.submission_s
    first = instance.jobs.application == instance.jobs.applications.index("first")
    return float(took[first].mean()), float(took[~first][0])
