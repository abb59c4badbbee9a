"""Time slicing by hand: jobs that need one GPU each, on nodes of one GPU."""

from itertools import pairwise

import numpy as np
import pytest

from gpusched_baselines import TimeSlice
from gpusched_env import Configuration, GpuType, Instance, Job, Node, Result, simulate
from gpusched_env.simulator import layout as at
from instances import random_instance, with_switching
from run_files import audited
from small_instances import CERTAIN

ONE, OTHER = Configuration("V", 1), Configuration("W", 1)
CRITICAL = 1.0


def job(seconds: float, at_s: float = 0.0, weight: float = 0.01, due_s: float = 1e6, **costs: float | None) -> Job:
    return Job(at_s, due_s, weight, 1.0, CERTAIN, 1.0, {ONE: seconds, OTHER: seconds}, **costs)


def run(policy: TimeSlice, *jobs: Job, nodes: str = "V", restart_s: float = 0.0) -> Result:
    """Run jobs on nodes of one GPU each, of the types whose letters are given; W draws a tenth of the power."""
    types = [GpuType("V", 1000.0, 0.0, 16.0, 1), GpuType("W", 100.0, 0.0, 16.0, 1)]
    cluster = [Node(letter, 1) for letter in nodes]
    return simulate(Instance.from_jobs(types, cluster, jobs, (ONE, OTHER), restart_s=restart_s), policy)


def test_two_jobs_take_turns():
    """A from 0 s, B from 10 s, A from 20 s, B from 30 s, A from 40 to 45 s, B from 45 to 50 s."""
    result = run(TimeSlice(quantum_s=10.0), job(25.0), job(25.0))
    assert result.completion_s == pytest.approx([45.0, 50.0])
    assert result.switches.tolist() == [4, 4]


def test_twice_the_weight_is_twice_the_turns():
    """By weight A has 5 s a turn, B 10 s; of equals the one that has had less goes first, so B at 30 and at 60 s."""
    result = run(TimeSlice(quantum_s=10.0), job(100.0, weight=0.02), job(100.0, weight=0.01))
    held = [(int(row[at.LOG_JOB]), row[at.LOG_START], row[at.LOG_END]) for row in result.log[:6]]
    ends = [0.0, 10.0, 20.0, 30.0, 40.0, 60.0, 70.0]
    assert held == [(i % 2, start, end) for i, (start, end) in enumerate(pairwise(ends))]


def test_switches_are_paid_and_a_quantum_that_does_not_earn_its_switch_is_not_used():
    """A works from 1 to 20 s, B from 21 to 40 s; A goes on at 42 s with 6 s to do, B at 50 s with 6 s."""
    costs = {"start_s": 1.0, "resume_s": 2.0}
    result = run(TimeSlice(quantum_s=20.0), job(25.0, **costs), job(25.0, **costs), restart_s=50.0)
    assert result.completion_s == pytest.approx([48.0, 56.0])
    costs = {"start_s": 1.0, "resume_s": 2.1}
    jobs = job(25.0, **costs), job(25.0, **costs)
    assert run(TimeSlice(quantum_s=20.0), *jobs).completion_s == pytest.approx([26.0, 52.0])
    assert run(TimeSlice(quantum_s=20.0, efficiency=0.0), *jobs).switches.sum() > 0


def test_a_critical_job_takes_a_gpu_at_once_and_gives_it_back():
    """It comes at 7 s and works from 7.5 to 12.5 s; the other one, not sliced, goes on at 17.5 s with 93 s to do."""
    policy = TimeSlice(critical_eur_per_s=0.5, quantum_s=10.0)
    result = run(policy, job(100.0, resume_s=5.0), job(5.0, 7.0, CRITICAL, 14.5, start_s=0.5, resume_s=0.5))
    assert result.completion_s == pytest.approx([110.5, 12.5])


@pytest.mark.parametrize(
    ("resumes", "weights", "victim"), [((3.0, 2.0), (0.01, 0.01), 1), ((3.0, 2.0), (0.01, 0.02), 0)]
)
def test_the_job_that_loses_least_is_preempted(resumes, weights, victim):
    first = [job(100.0, weight=w, resume_s=r) for r, w in zip(resumes, weights, strict=True)]
    result = run(TimeSlice(critical_eur_per_s=0.5), *first, job(5.0, 7.0, CRITICAL, 14.5), nodes="VV", restart_s=50.0)
    assert [result.switches[0] > 0, result.switches[1] > 0] == [victim == 0, victim == 1]


def test_a_critical_job_takes_free_gpus_first_and_none_of_a_critical_one_and_without_waiting_no_timer_is_set():
    result = run(TimeSlice(critical_eur_per_s=0.5), job(100.0), job(5.0, 7.0, CRITICAL, 14.5), nodes="WV")
    assert result.switches.sum() == 0
    result = run(TimeSlice(quantum_s=1.0), job(100.0), job(100.0), nodes="VV")
    assert result.rounds <= 3
    policy = TimeSlice(critical_eur_per_s=0.5)
    result = run(policy, job(10.0, 0.0, CRITICAL), job(1.0, 2.0, CRITICAL, 3.5))
    assert result.completion_s == pytest.approx([10.0, 11.0])


def test_a_job_comes_back_to_the_node_where_it_was():
    """Three jobs take turns on two nodes; after its first turn none has to restart, which would take 50 s."""
    costs = {"resume_s": 0.1}
    result = run(TimeSlice(quantum_s=10.0), *[job(60.0, **costs) for _ in range(3)], nodes="VV", restart_s=50.0)
    waits = result.log[:, at.LOG_READY] - result.log[:, at.LOG_START]
    assert (waits < 1.0).mean() > 0.5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("switching", [False, True])
def test_any_run_is_in_order(tmp_path, seed, switching):
    instance = random_instance(seed, jobs=20, nodes=4, span_s=500.0, kinds=True, restart_s=3.0)
    instance = with_switching(instance, seed) if switching else instance
    weight = np.median(instance.jobs.tardiness_weight_eur_per_s).item()
    result = simulate(instance, TimeSlice(quantum_s=15.0, critical_eur_per_s=weight, efficiency=2.0), seed=seed)
    assert audited(result, tmp_path / "run") == []
