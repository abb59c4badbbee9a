"""Instances with few jobs, all there at the beginning: small enough to be solved whole."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpusched_env import Configuration, GpuType, Instance, Job, Node
from instances import CERTAIN, HOUR, random_instance

KILOWATT = GpuType("V", 1000.0, 0.0, 16.0, 8)  # a busy GPU costs 1 €/h

EARLY_COMPLETIONS = [
    (0.0, 1.0, 0.9e-9), (0.0, 0.5, 0.9e-9), (0.0, 1e-3, 0.9e-9), (0.0, 1e-9, 0.9e-9),
    (1e9, 100.0, 9e-7), (9e11, 1.0, 5e-4),
]  # fmt: skip
"""Start, length, and how long before the end another job comes [s]: arguments of `early_completion`."""


def early_completion(start_s: float, job_s: float, gap_s: float) -> Instance:
    """Make a job that completes early: another one comes so shortly before its end that both are one event."""
    one = Configuration("V", 1)
    times = (start_s, start_s + job_s - gap_s)
    jobs = [Job(time, 1e12, 0.0, 1.0, CERTAIN, 1.0, {one: job_s}) for time in times]
    return Instance.from_jobs([KILOWATT], [Node("V", 1)], jobs, [one])


def hours_job(due_h: float, hours: Mapping[Configuration, float], weight_eur_per_h: float = 100.0) -> Job:
    """Make a job of one epoch, which takes `hours`."""
    seconds = {c: h * HOUR for c, h in hours.items()}
    return Job(0.0, due_h * HOUR, weight_eur_per_h / HOUR, 1.0, CERTAIN, 1.0, seconds)


def kilowatt_cluster(
    jobs: Sequence[Job], nodes: Sequence[int], configurations: Sequence[Configuration], base_w: float = 0.0
) -> Instance:
    """Make a cluster of nodes with so many GPUs, each of which costs 1 €/h while it is busy."""
    gpu_type = replace(KILOWATT, node_base_power_w=base_w)
    return Instance.from_jobs(
        [gpu_type], [Node("V", g) for g in nodes], jobs, configurations, energy_price_eur_per_kwh=1.0, pue=1.0
    )


def small_random_instance(seed: int, *, jobs: int = 3, nodes: int = 2, kinds: bool = False) -> Instance:
    """Make a small instance of unequal nodes in which some jobs cannot help being late."""
    return random_instance(seed, jobs=jobs, nodes=nodes, types=1 + seed % 2, span_s=0.0, kinds=kinds)
