"""A tiny run of every policy, so that compilation is never counted as scheduling."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import simulate
from gpusched_env.simulator.policy import can_decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import Policy


def tiny_instance() -> Instance:
    """Make an instance of two GPU types, two nodes and six jobs that have to wait for one another, as they once did."""
    types = (GpuType("slow", 100.0, 100.0, 16.0), GpuType("fast", 300.0, 200.0, 16.0))
    distribution = EpochDistribution.from_masses([3.0, 2.0, 1.0])
    one_gpu_s = {"slow": 30.0, "fast": 10.0}
    seconds = {Configuration(name, gpus): one_gpu_s[name] / gpus**0.8 for name in one_gpu_s for gpus in (1, 2)}
    jobs = [Job(5.0 * i, 5.0 * i + 400.0, 0.03, 10.0, distribution, 10.0 * (1 + i % 3) / 3, seconds) for i in range(6)]
    made = Instance.from_jobs(types, (Node("slow", 2), Node("fast", 2)), jobs, name="warm-up")
    ran = np.argmin(made.jobs.seconds_per_epoch, axis=1)
    return replace(made, jobs=replace(made.jobs, traced_start_s=made.jobs.submission_s + 1.0, traced_config=ran))


def warm_up(policies: Sequence[Policy]) -> None:
    """Run every policy once on a tiny instance; those that cannot decide on it are left out."""
    instance = tiny_instance()
    for policy in policies:
        if can_decide(policy, instance):
            simulate(instance, policy, record=False)
