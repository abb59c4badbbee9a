"""A guaranteed job and an opportunistic job on one GPU, whose run can be worked out by hand."""

import numpy as np

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, UtilisationModel

HOST, GUEST = Configuration("V", 1, share=0.6, priority=1), Configuration("V", 1, share=0.4)
CERTAIN = EpochDistribution.certain()


def guaranteed_and_opportunistic() -> Instance:
    """Make a job of utilisation 0.5 and an opportunistic one of 0.8, 1,000 s each alone, and a node of two GPUs."""
    gpu = GpuType("V", gpu_power_w=100.0, node_base_power_w=100.0, memory_gib=20.0, max_gpus_per_node=1)
    seconds = {HOST: 1.0, GUEST: 1.0}
    jobs = [
        Job(0.0, 1e6, 0.001, 1000.0, CERTAIN, 1000.0, seconds, 10.0, "a"),
        Job(0.0, 1e6, 0.001, 1000.0, CERTAIN, 1000.0, seconds, 5.0, "b", opportunistic=True),
    ]
    return Instance.from_jobs(
        [gpu], [Node("V", 1)], jobs, (HOST, GUEST), interference=UtilisationModel(np.array([[0.5, 0.8]]))
    )
