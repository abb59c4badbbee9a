"""Small static instances, made from any workload, whose optimum a solver can find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusched_env.model import EpochDistribution, Instance


def static_instance(instance: Instance, *, known: bool) -> Instance:
    """Put all jobs of an instance at time 0, with as much time to their due dates as before, and no restart overhead.

    Args:
        instance: An instance.
        known: Whether every job needs all its epochs, and policies know it: what they then cost too much is not for
            want of knowledge.
    """
    jobs = instance.jobs
    due_s = jobs.due_s - jobs.submission_s
    jobs = replace(jobs, submission_s=np.zeros(len(jobs)), due_s=due_s, restart_s=np.zeros(len(jobs)))
    if known:
        certain = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]), family="known")
        index = np.zeros(len(jobs), dtype=np.int64)
        jobs = replace(jobs, epochs_needed=jobs.max_epochs, distribution=index, distributions=(certain,))
    return replace(instance, jobs=jobs)
