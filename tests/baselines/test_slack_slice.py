"""Time slicing by slack by hand: jobs that need one GPU each, on nodes of one GPU."""

import numpy as np
import pytest

from gpusched_baselines import SlackSlice, TimeSlice
from gpusched_env import Configuration, GpuType, HostMemory, Instance, Job, Node, Result, simulate
from instances import random_instance, with_switching
from run_files import audited
from small_instances import CERTAIN

ONE = Configuration("V", 1)


def job(seconds: float, at_s: float = 0.0, weight: float = 0.01, due_s: float = 1e6, **costs: float) -> Job:
    return Job(at_s, due_s, weight, 1.0, CERTAIN, 1.0, {ONE: seconds}, **costs)


def run(*jobs: Job, gpus: int = 1, policy: SlackSlice | TimeSlice | None = None, **own: object) -> Result:
    """Run jobs on nodes of one GPU; a restart takes 50 s."""
    gpu_type = GpuType("V", 1000.0, 0.0, 16.0, 1)
    instance = Instance.from_jobs([gpu_type], [Node("V", 1)] * gpus, jobs, (ONE,), restart_s=50.0, **own)  # type: ignore[arg-type]
    return simulate(instance, policy or SlackSlice(least_quantum_s=1000.0))


CHEAP, DEAR = {"start_s": 0.0, "resume_s": 1.0}, {"start_s": 0.0, "resume_s": 5.0}


def test_a_burst_preempts_at_its_latest_start():
    """5 s of work, due at 20 s: with a margin of 5 % it must start at 14.75 s; training goes on 1 s after 19.75 s."""
    result = run(job(100.0, **CHEAP), job(5.0, 7.0, due_s=20.0, **CHEAP))
    assert result.start_s[1] == pytest.approx(14.75)
    assert result.completion_s == pytest.approx([106.0, 19.75])


def test_a_burst_need_not_wait_where_a_pause_is_cheap_unless_its_latest_start_is_beyond_the_quantum():
    """0.2 s are less than 5 % of 5 s; 0.3 s are more."""
    for resume_s, start_s in ((0.2, 7.0), (0.3, 14.75)):
        result = run(job(100.0, start_s=0.0, resume_s=resume_s), job(5.0, 7.0, due_s=20.0, **CHEAP))
        assert result.start_s[1] == pytest.approx(start_s)
    result = run(job(100.0, start_s=0.0, resume_s=0.2), job(5.0, 7.0, due_s=95.0, **CHEAP), policy=SlackSlice())
    assert result.start_s[1] == pytest.approx(60.0)  # when the quantum is over


def test_a_burst_takes_what_becomes_free_before_and_nobody_is_preempted():
    """The second job ends at 10 s; a fixed quantum would have preempted one of them at 7 s."""
    jobs = (job(100.0, **CHEAP), job(10.0, **CHEAP), job(5.0, 7.0, 1.0, 20.0, **CHEAP))
    result = run(*jobs, gpus=2)
    assert result.start_s[2] == 10.0
    assert result.switches.tolist() == [0, 0, 0]
    at_once = run(*jobs, gpus=2, policy=TimeSlice(critical_eur_per_s=0.5))
    assert at_once.start_s[2] == 7.0
    assert at_once.switches.sum() > 0


def test_the_job_with_the_cheaper_switch_is_preempted_unless_it_would_miss_its_due_date():
    result = run(job(100.0, **DEAR), job(100.0, **CHEAP), job(5.0, 7.0, due_s=20.0, **CHEAP), gpus=2)
    assert result.completion_s == pytest.approx([100.0, 106.0, 19.75])
    # The second job may lose 3 s, the burst would cost it 6 s.
    result = run(job(100.0, **DEAR), job(100.0, due_s=103.0, **CHEAP), job(5.0, 7.0, due_s=20.0, **CHEAP), gpus=2)
    assert result.completion_s == pytest.approx([110.0, 100.0, 19.75])
    # The second job's state needs 2 GiB of 1; 50 s are more than the 5 s of the first.
    jobs = job(100.0, **DEAR), job(100.0, state_gib=2.0, **CHEAP), job(5.0, 7.0, due_s=20.0, **CHEAP)
    result = run(*jobs, gpus=2, mechanisms=(HostMemory(1.0),))
    assert result.completion_s == pytest.approx([110.0, 100.0, 19.75])


def test_the_quantum_follows_from_the_cost_of_a_pause():
    """2 s are 10 % of 20 s: A works from 1 to 20 s, B from 21 to 40 s; 6 s are left from 42 and from 50 s."""
    costs = {"start_s": 1.0, "resume_s": 2.0}
    policy = SlackSlice(switching_share=0.1, least_quantum_s=1.0)
    result = run(job(25.0, **costs), job(25.0, **costs), policy=policy)
    assert result.completion_s == pytest.approx([48.0, 56.0])


def test_a_job_that_is_late_anyway_preempts_only_lighter_ones():
    first = job(100.0, weight=0.5, **CHEAP)
    assert run(first, job(5.0, 7.0, 0.1, 8.0, **CHEAP)).start_s[1] == 100.0
    assert run(first, job(5.0, 7.0, 1.0, 8.0, **CHEAP)).start_s[1] == 7.0


@pytest.mark.parametrize("seed", range(4))
def test_runs_pass_the_audit(tmp_path, seed):
    instance = with_switching(random_instance(seed, jobs=15, nodes=4, span_s=300.0, kinds=True), seed)
    result = simulate(instance, SlackSlice(least_quantum_s=15.0), seed=seed)
    assert audited(result, tmp_path / "run") == []
    assert np.isfinite(result.completion_s).all()
