"""Tiresias: queues by GPU-seconds; worked out on one node."""

from dataclasses import replace

import pytest

from gpusched_baselines import Tiresias
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from refusals import refused

CERTAIN = EpochDistribution.certain()
GPU = GpuType("V", gpu_power_w=250.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=2)
ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def completed(jobs: list[tuple[float, float, Configuration]], limits: tuple[float, ...]) -> list[float]:
    """Run jobs (submission, seconds, configuration) on a node of two GPUs; return when they are complete."""
    made = [Job(at, 1e6, 0.001, long_s, CERTAIN, long_s, {config: 1.0}) for at, long_s, config in jobs]
    instance = Instance.from_jobs([GPU], [Node("V", 2)], made, (ONE, TWO))
    return simulate(instance, Tiresias(limits_gpu_s=limits)).completion_s.tolist()


def test_a_new_job_preempts_one_that_has_had_more_gpu_time_than_the_limit():
    """The first has had 200 GPU-s at 100 s; the second comes at 150 s, takes 100 s, and the first goes on."""
    assert completed([(0.0, 300.0, TWO), (150.0, 100.0, TWO)], (200.0,)) == pytest.approx([400.0, 250.0])


def test_in_a_queue_jobs_that_run_go_first():
    """Below the limit the second waits; else it runs from 100 s on, and stays when both are beyond it, at 200 s."""
    assert completed([(0.0, 300.0, TWO), (50.0, 300.0, TWO)], (1e9,)) == pytest.approx([300.0, 600.0])
    assert completed([(0.0, 300.0, TWO), (50.0, 300.0, TWO)], (200.0,)) == pytest.approx([600.0, 400.0])


def test_a_job_that_was_preempted_waits_behind_those_that_wait_longer():
    """Job 0 waits from 100 s on, 1 from 250 s, behind 2; 0 runs at 300 s, and waits behind 1 when 3 preempts it."""
    jobs = [(0.0, 200.0, TWO), (90.0, 200.0, TWO), (250.0, 50.0, TWO), (310.0, 50.0, TWO)]
    assert completed(jobs, (200.0,)) == pytest.approx([500.0, 410.0, 300.0, 360.0])


def test_limits_must_rise():
    with refused("limits_gpu_s", [2.0, 1.0], "rising"):
        Tiresias(limits_gpu_s=(2.0, 1.0))
    assert replace(Tiresias(), limits_gpu_s=()).limits_gpu_s == ()
