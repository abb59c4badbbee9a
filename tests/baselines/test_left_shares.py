"""The free parts of shared GPUs, by hand: which job gets them, and that they do not count later.

One type of GPU, in thirds and in whole; nothing is critical, and a third is cheapest. Seconds per epoch are given on a
third, two thirds and a whole GPU.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import Greedy, RandomGreedy, Sts, make_policy
from gpusched_env import Configuration, GpuType, Instance, Job, Node, Policy
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR, random_instance

THIRD, TWO_THIRDS, WHOLE = range(3)
CONFIGURATIONS = [Configuration("V", 1, share=0.33), Configuration("V", 1, share=0.66), Configuration("V", 1)]
SLOW_GAIN, FAST_GAIN = (100.0, 80.0, 70.0), (100.0, 70.0, 50.0)


def job(seconds: tuple[float, ...], epochs: float = 10.0, submission_h: float = 0.0) -> Job:
    allowed = {c: s for c, s in zip(CONFIGURATIONS, seconds, strict=False) if s > 0.0}
    return Job(submission_h * HOUR, 1000.0 * HOUR, 0.01, epochs, CERTAIN, epochs, allowed)


def opened(*jobs: Job, gpus: int = 1) -> State:
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    return begin_run(Instance.from_jobs([gpu], [Node("V", gpus)], jobs, CONFIGURATIONS))


def held(state: State) -> list[int]:
    return np.nan_to_num(state.view.jobs[:, at.CONFIG], nan=-1).astype(int).tolist()


def decided(state: State, policy: Policy) -> list[int]:
    policy.decide(state.view, np.random.default_rng(0))
    check_books(state.view)
    return held(state)


BOTH = pytest.mark.parametrize("policy", [Greedy(), Sts(), RandomGreedy(0)], ids=lambda policy: policy.name)


@BOTH
def test_a_job_alone_on_a_shared_gpu_gets_the_whole(policy):
    assert decided(opened(job(SLOW_GAIN)), policy) == [WHOLE]


@BOTH
def test_one_that_may_not_have_the_whole_gets_the_largest_share(policy):
    assert decided(opened(job((100.0, 80.0))), policy) == [TWO_THIRDS]
    assert decided(opened(job((100.0,))), policy) == [THIRD]


@BOTH
def test_what_is_left_goes_to_the_job_that_gains_most_time(policy):
    """Ten epochs: 200 s for one, 300 s for the other. With twenty epochs the former gains 400 s."""
    assert decided(opened(job(SLOW_GAIN), job(FAST_GAIN)), policy) == [THIRD, TWO_THIRDS]
    assert decided(opened(job(SLOW_GAIN, epochs=20.0), job(FAST_GAIN)), policy) == [TWO_THIRDS, THIRD]


@BOTH
def test_a_full_gpu_leaves_nothing_and_no_job_takes_what_makes_it_slower(policy):
    assert decided(opened(*[job(SLOW_GAIN)] * 3), policy) == [THIRD] * 3
    assert decided(opened(job((100.0, 100.0, 100.0))), policy) == [THIRD]


def test_without_the_step_a_share_stays_a_share():
    assert decided(opened(job(SLOW_GAIN)), Sts(postprocess=False)) == [THIRD]


def test_the_gpu_is_one_busy_gpu_before_and_after():
    state = opened(job(SLOW_GAIN), gpus=2)
    assert decided(state, Greedy()) == [WHOLE]
    assert state.view.nodes[0, at.FREE] == 1
    assert state.view.jobs[0, [at.NODE, at.SLOT]].tolist() == [0.0, -1.0]


@BOTH
def test_what_was_given_is_given_back_when_others_come(policy):
    """Alone a job has the GPU for itself; when two more come, each has a third of it."""
    state = opened(job(SLOW_GAIN, 1000.0), job(SLOW_GAIN, 1000.0, 1.0), job(SLOW_GAIN, 1000.0, 1.0))
    assert decided(state, policy) == [WHOLE, -1, -1]
    state.commit_round()
    state.advance()
    state.begin_round(preemption=True)
    assert decided(state, policy) == [THIRD] * 3


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    jobs=st.integers(1, 15),
    nodes=st.integers(2, 5),
    interference=st.booleans(),
    name=st.sampled_from(["greedy", "greedy-fill", "sts", "sts-published"]),
)
def test_nothing_is_given_twice_in_any_round(seed, jobs, nodes, interference, name):
    state = State(random_instance(seed, jobs=jobs, nodes=nodes, kinds=True, interference=interference))
    while state.advance():
        state.begin_round(preemption=True)
        make_policy(name).decide(state.view, np.random.default_rng(seed))
        check_books(state.view)
        state.commit_round()
