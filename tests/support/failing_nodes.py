"""Instances of nodes of one GPU that fail."""

from __future__ import annotations

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.mechanisms.failures.model import Failures

HOUR, DAY = 3600.0, 86_400.0
ONE, TWO = Configuration("A", 1), Configuration("A", 1, 2)
GPU = GpuType("A", gpu_power_w=100.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=1)


def cluster(outages=(), *jobs, nodes=2, per_day=0.0, writing_s=360.0, interval_s=HOUR, **failures) -> Instance:
    """Return nodes of one GPU with outages [h]; jobs (submission [h], epochs of an hour, configuration)."""
    made = [
        Job(start * HOUR, 1e6 * HOUR, 1.0 / HOUR, epochs, EpochDistribution.certain(), epochs, {config: HOUR},
            restart_s=300.0)
        for start, epochs, config in jobs or [(0.0, 10.0, ONE)]
    ]  # fmt: skip
    plain = Instance.from_jobs([GPU], [Node("A", 1)] * nodes, made, [ONE, TWO], energy_price_eur_per_kwh=1.0, pue=1.0)
    rows = tuple((node, *(time * HOUR for time in times)) for node, *times in outages)
    return plain.with_mechanisms(Failures(rows, (per_day,), writing_s, interval_s, **failures))
