"""Threads: they give what one thread gives, end with the environment, and survive errors, signals and forks."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

from gpusched_env import GpuClusterVectorEnv
from gpusched_env.vector.threads import Crew, usable_cores
from vector_twins import assert_same, few_jobs, random_actions


def helpers() -> int:
    return sum(thread.name == "gpusched-vector" for thread in threading.enumerate())


def wait_for(condition) -> bool:
    end = time.monotonic() + 5.0
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_gives_the_same(threads):
    one, many = (GpuClusterVectorEnv(7, few_jobs(2), threads=t) for t in (1, threads))
    assert_same(one.reset(seed=0), many.reset(seed=0))
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = random_actions(one.action_masks(), rng)
        assert_same(one.step(actions), many.step(actions))


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (5, 2), (7, 3), (3, 3), (2, 5)])
def test_the_shares_are_contiguous_and_cover_everything_once(count, threads):
    shares = []
    Crew(threads).run(lambda first, last: shares.append((first, last)), count)
    covered = sorted(i for first, last in shares for i in range(first, last))
    assert covered == list(range(count))
    assert len(shares) == threads
    assert max(b - a for a, b in shares) - min(b - a for a, b in shares) <= 1


def test_by_default_small_vectors_have_one_thread_and_large_ones_no_more_than_cores():
    assert GpuClusterVectorEnv(4, few_jobs())._crew._helpers == 0
    assert GpuClusterVectorEnv(200, few_jobs())._crew._helpers <= usable_cores() - 1
    assert GpuClusterVectorEnv(2, few_jobs(), threads=8)._crew._helpers == 1


def test_closing_ends_the_threads():
    before = helpers()
    env = GpuClusterVectorEnv(4, few_jobs(), threads=3)
    env.reset(seed=0)
    assert helpers() == before + 2
    env.close()
    assert wait_for(lambda: helpers() == before)


def test_dropping_the_environment_ends_the_threads():
    before = helpers()
    env = GpuClusterVectorEnv(4, few_jobs(), threads=3)
    env.reset(seed=0)
    assert helpers() == before + 2
    del env
    gc.collect()
    assert wait_for(lambda: helpers() == before)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_in_any_thread_is_raised_and_the_crew_goes_on(failing):
    crew, done = Crew(3), []

    def task(first: int, last: int) -> None:
        if first == failing:
            raise ValueError("broken")
        done.append((first, last))

    with pytest.raises(ValueError, match="broken"):
        crew.run(task, 3)
    assert len(done) == 2
    crew.run(lambda *share: done.append(share), 3)
    assert len(done) == 5
    crew.close()


def test_a_signal_is_raised_only_when_no_thread_works_any_more():
    crew, finished = Crew(2), threading.Event()

    def task(first: int, _: int) -> None:
        if first > 0:
            time.sleep(0.3)
            finished.set()

    def alarm(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            crew.run(task, 2)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert finished.is_set()
    crew.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    crew, done = Crew(2), []
    crew.run(lambda *share: done.append(share), 2)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        crew.run(lambda *share: done.append(share), 2)
        os._exit(0 if len(done) == 4 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    crew.close()
