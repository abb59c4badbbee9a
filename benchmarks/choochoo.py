"""`gpu-choochoo` from PyPI, another Gymnasium environment for GPU scheduling, for comparison."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

NODES, JOBS, GPUS_PER_NODE = 8, 800, 8
TYPES = {"V100": 32.0, "A100-40GB": 40.0, "A100-80GB": 80.0, "H100": 80.0}  # its own catalogue: GiB per GPU
DAY_S = 86_400.0


def installed() -> bool:
    """Return whether it can be imported."""
    return find_spec("gpu_choochoo") is not None


def make_env() -> gymnasium.Env[Any, Any]:
    """Make its environment with 8 nodes of 8 GPUs and 800 jobs over two days.

    Its own makers of clusters fail (version 0.1.0: a variable without a value), so the nodes are listed here; the jobs
    come from its generator. It is not wrapped; ours has the two wrappers that `gymnasium.make` adds.
    """
    package, node = import_module("gpu_choochoo"), import_module("gpu_choochoo.core.node").Node
    nodes = [
        node(f"node-{i}", gpu_type, GPUS_PER_NODE, GPUS_PER_NODE * gib)
        for i, (gpu_type, gib) in zip(range(NODES), list(TYPES.items()) * NODES, strict=False)
    ]
    generator = package.RealisticWorkloadGenerator(seed=0)
    jobs = generator.generate_job_trace(duration_sec=2 * DAY_S, base_arrival_rate=0.006, max_gpus=GPUS_PER_NODE)
    env: gymnasium.Env[Any, Any] = package.GPUSchedulerEnv(nodes, jobs[:JOBS], max_nodes=NODES)
    return env
