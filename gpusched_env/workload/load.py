"""How much the jobs of an instance ask of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpusched_env.model import Instance


def offered_load(instance: Instance) -> float:
    """Give the load that the jobs offer: the time that the cluster would need for them, over that in which they come.

    The cluster's time for a job is what all its GPUs together need for the epochs that the job turns out to need, each
    GPU working alone at its own speed, those aside on which the job may not run: X_j / Σ_v (GPUs of v / τ_{j,v}). So a
    load of 1 keeps every GPU busy if every job runs on one GPU; more GPUs for a job are less efficient, and bind more.

    Returns:
        The load; inf if all jobs come at once or there is one job.
    """
    jobs = instance.jobs
    speed = np.zeros(len(jobs.submission_s))
    for c, configuration in enumerate(instance.configurations):
        if configuration.gpus == 1.0 and configuration.kind == "single-node":
            gpus = sum(node.gpus for node in instance.nodes if node.gpu_type == configuration.gpu_type)
            speed += gpus / jobs.seconds_per_epoch[:, c]
    span = float(jobs.submission_s[-1] - jobs.submission_s[0])
    with np.errstate(divide="ignore"):
        needed = float(np.sum(jobs.epochs_needed / speed))
    return needed / span if span > 0.0 else np.inf
