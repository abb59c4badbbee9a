"""Bursts: instances whose jobs are all submitted at t = 0, for the largest possible rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import solve_single_job
from gpusched_env import load_scenario, make_instance
from gpusched_env.model import planning_rate_eur_per_s

if TYPE_CHECKING:
    from gpusched_env import Instance


def burst(nodes: int, jobs_per_node: int) -> Instance:
    """Make the scenario `burst` with other numbers: five GPU types, all jobs at t = 0."""
    scenario = load_scenario("burst").replace({"cluster.nodes": nodes, "jobs.count": nodes * jobs_per_node})
    return make_instance(scenario, 0)


def hardest_burst(nodes: int, jobs_per_node: int) -> Instance:
    """Make a burst in which every problem needs a plan with many speed-ups.

    In an ordinary burst most problems need no solver: the cheapest configuration is in time, or none is. Here
    all GPU types are equally fast, times fall as GPUs^-0.4, and nodes draw no base power, so every number of GPUs is
    on the hull; due dates leave a tenth more than the fastest configuration takes.
    """
    instance = burst(nodes, jobs_per_node)
    gpus = np.array([c.gpus_per_node for c in instance.configurations])
    seconds = np.tile(100.0 * gpus**-0.4, (len(instance.jobs), 1))
    due = 1.1 * seconds.min() * instance.jobs.max_epochs
    jobs = replace(instance.jobs, seconds_per_epoch=seconds, due_s=due, memory_gib=np.zeros(len(due)))
    return replace(instance, gpu_types=tuple(replace(v, node_base_power_w=0.0) for v in instance.gpu_types), jobs=jobs)


def tight_share(instance: Instance) -> float:
    """Return the share of the jobs' problems, one for each GPU type, that are tight at t = 0."""
    rate, jobs, types = planning_rate_eur_per_s(instance), instance.jobs, instance.type_of_configuration
    problems = [(j, types == v) for j in range(len(jobs)) for v in range(len(instance.gpu_types))]
    solvable = [(j, of_type) for j, of_type in problems if np.isfinite(jobs.seconds_per_epoch[j, of_type]).any()]
    plans = (
        solve_single_job(
            jobs.seconds_per_epoch[j, of_type],
            jobs.seconds_per_epoch[j, of_type] * rate[jobs.application[j], of_type],
            jobs.distributions[jobs.distribution[j]],
            jobs.max_epochs[j],
            jobs.due_s[j],
        )
        for j, of_type in solvable
    )
    return sum(plan.status == "tight" for plan in plans) / len(solvable)
