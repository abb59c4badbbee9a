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
def test_what_is_left_goes_to_the_job_that_gains_most_time(policy):
    """Ten epochs: 200 s for one, 300 s for the other. With twenty epochs the former gains 400 s."""
    assert decided(opened(job(SLOW_GAIN)), policy) == [WHOLE], "alone"
    assert decided(opened(job((100.0, 80.0))), policy) == [TWO_THIRDS], "the largest share that it may have"
    assert decided(opened(job((100.0,))), policy) == [THIRD]
    assert decided(opened(job(SLOW_GAIN), job(FAST_GAIN)), policy) == [THIRD, TWO_THIRDS]
    assert decided(opened(job(SLOW_GAIN, epochs=20.0), job(FAST_GAIN)), policy) == [TWO_THIRDS, THIRD]
    assert decided(opened(*[job(SLOW_GAIN)] * 3), policy) == [THIRD] * 3, "a full GPU"
    assert decided(opened(job((100.0, 100.0, 100.0))), policy) == [THIRD], "no job takes what makes it slower"


def test_the_gpu_is_one_busy_gpu_before_and_after_and_without_the_step_a_share_stays_a_share():
    assert decided(opened(job(SLOW_GAIN)), Sts(postprocess=False)) == [THIRD]
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
    name=st.sampled_from(["greedy", "greedy:fill", "sts", "sts:published"]),
)
def test_nothing_is_given_twice_in_any_round(seed, jobs, nodes, interference, name):
    state = State(random_instance(seed, jobs=jobs, nodes=nodes, kinds=True, interference=interference))
    while state.advance():
        state.begin_round(preemption=True)
        make_policy(name).decide(state.view, np.random.default_rng(seed))
        check_books(state.view)
        state.commit_round()


def gpus_held(nodes: tuple[int, ...], *seconds: tuple[float, ...]) -> list[int]:
    """Return the GPUs that it gives each job, whose seconds per epoch on 1, 2, ... GPUs are given; none is critical."""
    configurations = [Configuration("V", g + 1) for g in range(len(seconds[0]))]
    jobs = [
        Job(0.0, 100 * HOUR, 0.01, 10.0, CERTAIN, 10.0, dict(zip(configurations, row, strict=True))) for row in seconds
    ]
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    state = begin_run(Instance.from_jobs([gpu], [Node("V", gpus) for gpus in nodes], jobs, configurations))
    make_policy("greedy:fill").decide(state.view, np.random.default_rng(0))
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


def test_no_job_takes_gpus_that_make_it_no_faster_or_of_another_node():
    assert gpus_held((2,), (10.0, 10.0)) == [1]
    assert gpus_held((2,), (10.0, 12.0)) == [1]
    # Best fit puts the job on the node with one GPU, where none is idle.
    assert gpus_held((3, 1), (100.0, 60.0)) == [1]
