"""The last step of `greedy-fill`: which job gets the idle GPUs of a node. Without base power fewer are cheaper."""

import numpy as np

from first_rounds import begin_run
from gpusched_baselines import make_policy
from gpusched_env import Configuration, GpuType, Instance, Job, Node
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR


def gpus_held(nodes: tuple[int, ...], *seconds: tuple[float, ...]) -> list[int]:
    """Return the GPUs that it gives each job, whose seconds per epoch on 1, 2, ... GPUs are given; none is critical."""
    configurations = [Configuration("V", g + 1) for g in range(len(seconds[0]))]
    jobs = [
        Job(0.0, 100 * HOUR, 0.01, 10.0, CERTAIN, 10.0, dict(zip(configurations, row, strict=True))) for row in seconds
    ]
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    state = begin_run(Instance.from_jobs([gpu], [Node("V", gpus) for gpus in nodes], jobs, configurations))
    make_policy("greedy-fill").decide(state.view, np.random.default_rng(0))
    return [int(config) + 1 for config in state.view.jobs[:, at.CONFIG]]


def test_the_idle_gpu_goes_to_the_job_with_the_largest_ratio_of_speeds_not_of_seconds_saved():
    """One of three GPUs is idle. 100 s to 60 s saves 40 s, a ratio of 1.67; 19 s to 10 s saves 9 s, a ratio of 1.9."""
    assert gpus_held((3,), (100.0, 60.0), (19.0, 10.0)) == [1, 2]
    assert gpus_held((3,), (19.0, 10.0), (100.0, 60.0)) == [2, 1]


def test_idle_gpus_are_given_again_and_again():
    """Two of four GPUs are idle. From 19 s to 9.9 s with both, a ratio of 1.92, or from 100 s to 52 s with one, 1.923.

    So one goes to the latter. A third one would slow that job down: the other goes to the former, for 14 s.
    """
    assert gpus_held((4,), (19.0, 14.0, 9.9), (100.0, 52.0, 53.0)) == [2, 2]


def test_no_job_takes_gpus_that_make_it_no_faster():
    assert gpus_held((2,), (10.0, 10.0)) == [1]
    assert gpus_held((2,), (10.0, 12.0)) == [1]


def test_idle_gpus_of_another_node_are_out_of_reach():
    """Best fit puts the job on the node with one GPU, where none is idle."""
    assert gpus_held((3, 1), (100.0, 60.0)) == [1]
