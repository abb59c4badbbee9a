"""Threads: they give what one thread gives, end with the environment, and survive signals and forks."""

from __future__ import annotations

import gc
import threading
import time

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env import GpuClusterVectorEnv
from gpusched_env.child_processes import usable_cores
from gpusched_env.envs.vector import threads as threads_module
from gpusched_env.envs.vector.work_queue import ASLEEP, CHUNK, THREADS, chunk_end, new_queue, open_round, take
from vector_twins import assert_same, few_jobs, random_actions
from waiting import eventually


def workers() -> int:
    return sum(thread.name == "gpusched-vector" for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_gives_the_same(threads):
    one, many = (GpuClusterVectorEnv(7, few_jobs(2), threads=t) for t in (1, threads))
    assert_same(one.reset(seed=0), many.reset(seed=0))
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = random_actions(one.action_masks(), rng)
        assert_same(one.step(actions), many.step(actions))


@settings(deadline=None)
@given(st.data())
def test_every_environment_is_taken_once_whoever_comes_when(data):
    size, threads = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 5))
    queue = new_queue(threads)
    assert [take(queue, thread, size) for thread in range(threads)] == [-1] * threads
    for _ in range(2):
        open_round(queue)
        taken, left = [], list(range(threads))
        while left:
            thread = data.draw(st.sampled_from(left))
            first = take(queue, thread, size)
            if first < 0:
                left.remove(thread)
            else:
                taken += range(first, chunk_end(queue, first, size))
        assert sorted(taken) == list(range(size))


def test_a_thread_takes_its_own_share_first_and_then_helps_the_others():
    queue = new_queue(2)
    open_round(queue)
    firsts = [take(queue, 1, 4 * CHUNK) for _ in range(5)]
    assert firsts == [2 * CHUNK, 3 * CHUNK, 0, CHUNK, -1]


def test_by_default_small_vectors_have_one_thread_and_large_ones_no_more_than_cores():
    assert GpuClusterVectorEnv(4, few_jobs())._pool._threads == 1
    assert GpuClusterVectorEnv(200, few_jobs())._pool._threads <= usable_cores()
    assert GpuClusterVectorEnv(2, few_jobs(), threads=8)._pool._threads == 2


def test_closing_ends_the_threads():
    before = workers()
    env = GpuClusterVectorEnv(4, few_jobs(), threads=3)
    env.reset(seed=0)
    assert workers() == before + 2
    env.close()
    eventually(lambda: workers() == before, every_s=0.001)


def test_dropping_the_environment_ends_the_threads():
    before = workers()
    env = GpuClusterVectorEnv(4, few_jobs(), threads=3)
    env.reset(seed=0)
    assert workers() == before + 2
    del env
    gc.collect()
    eventually(lambda: workers() == before, every_s=0.001)


def test_a_helper_that_comes_before_the_first_step_begins_finds_nothing_to_do(monkeypatch):
    """The caller is slow: the helper has long looked for work when it opens the round."""
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
    one.reset(seed=0)
    own = threads_module.work

    def late(thread: int, *rest: object) -> None:
        if thread == 0:
            time.sleep(0.05)
        own(thread, *rest)

    monkeypatch.setattr(threads_module, "work", late)
    assert_same(one.reset(seed=1), two.reset(seed=1))


class Broken(BaseException):
    """Anything: an interrupt, too little memory."""


@pytest.fixture
def stepped():
    """An environment of two threads that has been stepped, and one thread's twin of it."""
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
    for env in (one, two):
        env.reset(seed=0)
        env.step(np.zeros(64, np.int64))
    yield one, two
    one.close()
    two.close()


def goes_on(one: GpuClusterVectorEnv, two: GpuClusterVectorEnv) -> None:
    """Both must be reset, and are the same then."""
    with pytest.raises(gymnasium.error.ResetNeeded):
        two.step(np.zeros(64, np.int64))
    assert_same(one.reset(seed=3), two.reset(seed=3))
    for _ in range(3):
        assert_same(one.step(np.zeros(64, np.int64)), two.step(np.zeros(64, np.int64)))


@pytest.mark.parametrize("before", [True, False])
def test_an_error_of_the_calling_thread_ends_the_step_and_the_helpers(stepped, before, monkeypatch):
    own = threads_module.work

    def failing(thread: int, *rest: object) -> None:
        if thread > 0 or not before:
            own(thread, *rest)
        if thread == 0:
            raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(threads_module, "work", failing)
        with pytest.raises(Broken):
            stepped[1].step(np.zeros(64, np.int64))
    goes_on(*stepped)


def test_an_error_of_a_helper_is_raised_by_the_step(stepped, monkeypatch):
    own = threads_module.work

    def failing(thread: int, *rest: object) -> None:
        if thread > 0:
            raise Broken
        own(thread, *rest)

    eventually(lambda: stepped[1]._pool._queue[THREADS + 1, ASLEEP] == 1)
    monkeypatch.setattr(threads_module, "work", failing)
    with pytest.raises(Broken):
        eventually(lambda: stepped[1].step(np.zeros(64, np.int64)) is None, every_s=0.001)
    monkeypatch.setattr(threads_module, "work", own)
    goes_on(*stepped)


@pytest.mark.parametrize("where", ["put", "start"])
def test_a_helper_that_cannot_be_told_or_started_is_replaced(where, monkeypatch):
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
    for env in (one, two):
        env.reset(seed=0)

    def fail(*_: object) -> None:
        raise Broken

    class NoWorkList:
        get = fail
        put = fail

    if where == "put":
        two._pool._work_lists[0].put(None)  # the thread ends
        two._pool._work_lists[0] = NoWorkList()
        with pytest.raises(Broken):
            two.step(np.zeros(64, np.int64))
    else:
        two._pool.close()
        start = threading.Thread.start
        monkeypatch.setattr(threading.Thread, "start", fail)
        with pytest.raises(Broken):
            two.step(np.zeros(64, np.int64))
        monkeypatch.setattr(threading.Thread, "start", start)
    goes_on(one, two)


def test_an_interrupt_in_the_very_first_step_leaves_an_environment_that_can_be_reset(monkeypatch):
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=t) for t in (1, 2))
    one.reset(seed=0)

    def fail(*_: object) -> None:
        raise Broken

    own = threads_module.work
    monkeypatch.setattr(threads_module, "work", fail)
    with pytest.raises(Broken):
        two.reset(seed=0)
    monkeypatch.setattr(threads_module, "work", own)
    assert_same(one.reset(seed=1), two.reset(seed=1))
