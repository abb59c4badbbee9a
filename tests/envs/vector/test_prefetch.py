"""Runs that are made ahead are those that would be made when they are needed."""

from __future__ import annotations

import copy
import threading
import time

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env import GpuClusterVectorEnv
from gpusched_env.envs.source import draw_seed
from gpusched_env.envs.vector import threads as threads_module
from gpusched_env.envs.vector.episodes import Episodes
from gpusched_env.envs.vector.prefetch import LOOK_AGAIN, MOST, Prefetch
from gpusched_env.envs.vector.threads import ThreadPool, ThreadTrial
from gpusched_env.errors import InputError
from vector_twins import assert_same, few_jobs, random_actions


def episodes_of(size: int) -> Episodes:
    """Make episodes that have begun, environment i with seed i."""
    episodes = Episodes(size, {}, few_jobs())
    for i in range(size):
        episodes.begin(i, seed=i)
    return episodes


def make(prefetched: Prefetch, episodes: Episodes, left: list[float], parts: int = 60) -> None:
    for _ in range(parts):
        prefetched.part(episodes, lambda: np.array(left))


def test_the_nearest_to_their_ends_are_made_first_and_those_far_from_it_not_at_all():
    episodes, prefetched = episodes_of(4), Prefetch()
    make(prefetched, episodes, [0.2, 0.9, 0.0, 0.31], parts=10)
    assert list(prefetched._ready) == [2]
    make(prefetched, episodes, [0.2, 0.9, 0.0, 0.31])
    assert list(prefetched._ready) == [2, 0]


def test_no_more_than_so_many_wait():
    episodes, prefetched = episodes_of(MOST + 5), Prefetch()
    make(prefetched, episodes, [0.0] * (MOST + 5), parts=12 * MOST)
    assert len(prefetched) == MOST


def test_a_run_is_that_of_the_seed_that_is_drawn_next_and_drawing_it_stays_to_be_done():
    episodes, prefetched = episodes_of(2), Prefetch()
    before = copy.deepcopy([episodes.generator(i).bit_generator.state for i in range(2)])
    make(prefetched, episodes, [0.0, 0.0])
    assert [episodes.generator(i).bit_generator.state for i in range(2)] == before
    seed = draw_seed(episodes.generator(1))
    state = prefetched.take(1, seed)
    assert state is not None
    assert state.instance == episodes.instance(1, seed)
    np.testing.assert_array_equal(state.hidden.outcome, episodes.state(episodes.instance(1, seed)).hidden.outcome)
    assert prefetched.take(1, seed) is None  # it is given once


def test_a_run_of_another_seed_is_not_given_and_one_that_was_begun_is_finished():
    episodes, prefetched = episodes_of(2), Prefetch()
    make(prefetched, episodes, [0.0, 0.9], parts=3)
    seed = draw_seed(episodes.generator(0))
    assert prefetched.take(0, seed + 1) is None
    assert prefetched.take(0, seed).instance == episodes.instance(0, seed)
    make(prefetched, episodes, [0.0, 0.9])
    assert prefetched.take(0, seed) is None
    assert len(prefetched) == 0


def test_what_cannot_be_made_is_left_to_the_moment_when_it_is_needed(monkeypatch):
    episodes, prefetched = episodes_of(1), Prefetch()

    def fails(_i: int, _seed: int):
        raise InputError("jobs", 0, "at least one job")
        yield

    monkeypatch.setattr(episodes, "building", fails)
    make(prefetched, episodes, [0.0], parts=3 * LOOK_AGAIN)
    assert len(prefetched) == 0


def test_runs_made_ahead_give_the_steps_of_those_made_when_they_are_needed(monkeypatch):
    own, take, taken = ThreadPool.step, Prefetch.take, []

    def step(self, actions, seen, stable, meanwhile=None):
        for _ in range(4 if meanwhile else 0):
            meanwhile()
        own(self, actions, seen, stable)

    monkeypatch.setattr(Prefetch, "take", lambda self, *which: taken.append(take(self, *which)) or taken[-1])
    scenarios = [few_jobs(3), few_jobs(4, 3)]
    plain, other = (
        GpuClusterVectorEnv(6, scenarios, threads=1, autoreset_mode=AutoresetMode.SAME_STEP) for _ in range(2)
    )
    assert_same(plain.reset(seed=0), other.reset(seed=0))
    rng = np.random.default_rng(0)
    for k in range(300):
        if k == 150:
            both = [env.reset(seed=9, options={"reset_mask": np.arange(6) < 3}) for env in (plain, other)]
            assert_same(*both)
        if k == 200:
            other = copy.deepcopy(other)
            generators = [[g.bit_generator.state for g in env.np_random] for env in (plain, other)]
            assert generators[0] == generators[1]
        actions = random_actions(plain.action_masks(), rng)
        expected = plain.step(actions)
        with monkeypatch.context() as patch:
            patch.setattr(ThreadPool, "step", step)
            assert_same(expected, other.step(actions))
    assert sum(state is not None for state in taken) > 10


@pytest.mark.skipif(threads_module.PLAIN, reason="NUMBA_DISABLE_JIT is set: one thread does everything")
@pytest.mark.parametrize("fails", [False, True])
def test_helpers_do_the_step_while_the_calling_thread_does_other_work(fails: bool, monkeypatch):
    monkeypatch.setattr(ThreadTrial, "settled", True)
    monkeypatch.setattr(ThreadTrial, "took", lambda *_: None)
    one, two = (GpuClusterVectorEnv(64, few_jobs(), threads=threads) for threads in (1, 2))
    for env in (one, two):
        env.reset(seed=0)
    done: list[int] = []

    def other() -> None:
        done.append(threading.get_ident())
        if fails:
            raise KeyboardInterrupt

    monkeypatch.setattr(two._episodes, "prefetch", lambda _: other())
    monkeypatch.setattr(one._episodes, "prefetch", lambda _: pytest.fail("no worker helps"))
    end = time.monotonic() + 300.0
    while not done and time.monotonic() < end:
        actions = np.zeros(64, np.int64)
        expected = one.step(actions)
        try:
            assert_same(expected, two.step(actions))
        except KeyboardInterrupt:
            assert fails
    assert done == [threading.get_ident()]
    assert_same(one.reset(seed=1), two.reset(seed=1))
    assert_same(one.step(np.zeros(64, np.int64)), two.step(np.zeros(64, np.int64))) if not fails else None
