"""Instances with power limits: every configuration again, on less power, and what applications save."""

from dataclasses import replace

import numpy as np

from gpusched_env import Instance


def with_power_limits(instance: Instance, seed: int, limits: tuple[float, ...] = (0.8, 0.6)) -> Instance:
    """Let jobs use each configuration on less power, up to 1.5 times as slowly; applications draw less, too."""
    rng, jobs, base = np.random.default_rng(seed), instance.jobs, instance.configurations
    configurations = (*base, *(replace(c, power_limit=r) for r in limits for c in base))
    slower = rng.uniform(1.0, 1.5, (len(jobs.applications), len(limits) * len(base)))
    at_limits = np.tile(jobs.seconds_per_epoch, len(limits)) * slower[jobs.application]
    seconds = np.hstack([jobs.seconds_per_epoch, at_limits])
    power = {v.name: v.gpu_power_w for v in instance.gpu_types}
    most = [power[c.gpu_type] / 1000.0 * c.gpus_per_node * c.nodes for c in configurations]
    saved = most * rng.uniform(0.0, 0.8, (len(jobs.applications), len(configurations)))
    rows = tuple(tuple(row) for row in saved.tolist())
    return replace(
        instance, configurations=configurations, jobs=replace(jobs, seconds_per_epoch=seconds), saved_kw=rows
    )
