"""The vector environment returns the results of its single environments, with any number of threads."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gpusched_baselines.adaptation_env import GpuAdaptationEnv, GpuAdaptationVectorEnv
from refusals import refused

SMALL = {"settings": {"jobs.count": 12}, "rounds": 6}


@pytest.mark.parametrize("mode", list(AutoresetMode)[:2])
@pytest.mark.parametrize("threads", [1, 3])
def test_it_steps_as_gymnasiums_own_does(mode, threads):
    own = GpuAdaptationVectorEnv(3, threads=threads, autoreset_mode=mode, **SMALL)
    plain = SyncVectorEnv([lambda: GpuAdaptationEnv(**SMALL)] * 3, autoreset_mode=mode)
    rng = np.random.default_rng(0)
    for _ in range(2):
        firsts = own.reset(seed=4), plain.reset(seed=4)
        np.testing.assert_array_equal(firsts[0][0], firsts[1][0])
        ended = 0
        for _ in range(25):
            actions = rng.uniform(-1, 1, own.action_space.shape)
            a, b = own.step(actions), plain.step(actions)
            for left, right in zip(a[:4], b[:4], strict=True):
                np.testing.assert_array_equal(left, right)
            assert a[4].keys() == b[4].keys()
            np.testing.assert_array_equal(a[4]["workload"], b[4]["workload"])
            ended += a[2].sum()
        assert ended > 3
    own.close()


def test_make_vec_makes_it_and_takes_its_settings():
    env = gymnasium.make_vec("gpusched_env/SlackAdaptation-v0", num_envs=2, threads=1, max_episode_steps=2, **SMALL)
    assert isinstance(env.unwrapped, GpuAdaptationVectorEnv)
    env.reset(seed=0)
    still = np.zeros(env.action_space.shape)
    env.step(still)
    assert env.step(still)[3].all()
    env.close()


def test_an_error_in_a_thread_is_raised_and_what_comes_after_is_right():
    env = GpuAdaptationVectorEnv(2, **SMALL)
    env.reset(seed=1)
    bad = np.zeros(env.action_space.shape)
    bad[1, 0] = np.nan
    before = [inner.unwrapped._run.state.board.clock[0] for inner in env.envs]
    with refused("action"):
        env.step(bad)
    assert [inner.unwrapped._run.state.board.clock[0] for inner in env.envs] == before  # no environment has stepped
    with refused("actions", "1 of them"):
        env.step(bad[:1])
    with refused("num_envs", 0):
        GpuAdaptationVectorEnv(0)
    first = env.reset(seed=1)[0]
    np.testing.assert_array_equal(first, env.reset(seed=1)[0])
    env.close()
