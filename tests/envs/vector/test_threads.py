"""Threads: they give what one thread gives, end with the environment, and survive signals and forks."""

from __future__ import annotations

import gc
import threading

import gymnasium
import numpy as np
import pytest

from gpusched_env import GpuClusterVectorEnv
from gpusched_env.child_processes import usable_cores
from gpusched_env.envs.vector import threads as threads_module
from gpusched_env.envs.vector.kernels import CHUNK, TAKEN
from gpusched_env.envs.vector.threads import ThreadTrial
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


def test_by_default_small_vectors_have_one_thread_and_large_ones_no_more_than_cores():
    assert GpuClusterVectorEnv(4, few_jobs())._pool.threads == 1
    assert GpuClusterVectorEnv(200, few_jobs())._pool.threads <= usable_cores()
    assert GpuClusterVectorEnv(2, few_jobs(), threads=8)._pool.threads == 2


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


@pytest.mark.parametrize("first", ["caller", "worker"])
def test_one_thread_may_step_all_environments_before_the_other_comes(first, monkeypatch):
    monkeypatch.setattr(ThreadTrial, "took", lambda *_: None)
    one, two = (GpuClusterVectorEnv(5 * CHUNK, few_jobs(), threads=t) for t in (1, 2))
    own, workers_came = threads_module.work, []
    assert_same(one.reset(seed=1), two.reset(seed=1))

    def late(taken: np.ndarray, *rest: object) -> int:
        is_worker = threading.current_thread().name == "gpusched-vector"
        if is_worker == (first == "caller"):
            eventually(lambda: taken[TAKEN] >= 5 * CHUNK, every_s=0.0)
        workers_came.extend([int(taken[TAKEN])] if is_worker else [])
        return own(taken, *rest)

    actions = np.ones(5 * CHUNK, np.int64)
    expected = [one.step(actions) for _ in range(5)]
    with monkeypatch.context() as patched:
        patched.setattr(threads_module, "work", late)
        for step in expected:
            assert_same(step, two.step(actions))
        two.close()
    assert [came > 0 for came in workers_came] == [first == "caller"] * 5


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
def test_an_error_of_the_calling_thread_ends_the_step_and_the_workers(stepped, before, monkeypatch):
    own, calling = threads_module.work, threading.current_thread()

    def failing(*arguments: object) -> int:
        done = 0 if threading.current_thread() is calling and before else own(*arguments)
        if threading.current_thread() is calling:
            raise Broken
        return done

    with monkeypatch.context() as patch:
        patch.setattr(threads_module, "work", failing)
        with pytest.raises(Broken):
            stepped[1].step(np.zeros(64, np.int64))
    goes_on(*stepped)


def test_an_error_of_a_worker_is_raised_by_the_step(stepped, monkeypatch):
    own, calling = threads_module.work, threading.current_thread()
    monkeypatch.setattr(ThreadTrial, "took", lambda *_: None)

    def failing(*arguments: object) -> int:
        if threading.current_thread() is not calling:
            raise Broken
        return own(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(threads_module, "work", failing)
        with pytest.raises(Broken):
            eventually(lambda: stepped[1].step(np.zeros(64, np.int64)) is None, every_s=0.001)
    goes_on(*stepped)


@pytest.mark.parametrize("where", ["put", "start"])
def test_a_worker_that_cannot_be_given_work_or_started_is_replaced(stepped, where, monkeypatch):
    def fail(*_: object) -> None:
        raise Broken

    class NoWorkList:
        put = fail

    if where == "start":
        stepped[1]._pool.close()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        patched.setattr(stepped[1]._pool, "_work_list", NoWorkList())
        with pytest.raises(Broken):
            stepped[1].step(np.zeros(64, np.int64))
    goes_on(*stepped)


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
