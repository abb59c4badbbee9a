"""`info["discount"]` is exp(-rate times the seconds that the step moved the clock), in both environments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from checkpoints import play
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv
from refusals import refused
from vector_twins import Twins, assert_same, few_jobs

RATE = 1e-5


def test_a_step_is_discounted_by_the_time_that_it_takes_and_not_within_a_round():
    env = GpuClusterEnv(few_jobs(6), discount_rate=RATE)
    _, info = env.reset(seed=0)
    first, product, rng = info["time_s"], info["discount"], np.random.default_rng(0)
    seen, over = set(), False
    while not over:
        before = info["time_s"]
        _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        assert info["discount"] == pytest.approx(math.exp(-RATE * (info["time_s"] - before)), rel=1e-15)
        seen.add(info["discount"] == 1.0)
        product *= info["discount"]
    assert seen == {True, False}
    assert product == pytest.approx(math.exp(-RATE * (info["time_s"] - first)), rel=1e-12)


def test_it_is_1_unless_a_rate_is_given():
    env = GpuClusterEnv(few_jobs(2))
    discounts = {env.reset(seed=0)[1]["discount"]}
    over = False
    while not over:
        _, _, over, _, info = env.step(int(np.flatnonzero(env.action_masks())[-1]))
        discounts.add(info["discount"])
    assert discounts == {1.0}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_compiled_vector_environment_discounts_as_single_ones_do(mode):
    twins = Twins([few_jobs(3)], 3, mode, discount_rate=RATE)
    infos = twins.reset(seed=4)
    assert infos["discount"].tolist() == [1.0] * 3
    rng, least = np.random.default_rng(1), 1.0
    for _ in range(60):
        infos = twins.play(1, rng, infos)
        least = min(least, infos["discount"].min())
    assert twins.episodes > 2
    assert 0.0 < least < 1.0


def test_a_vector_environment_that_goes_on_from_a_checkpoint_discounts_the_same():
    one, other = (GpuClusterVectorEnv(2, few_jobs(4), discount_rate=RATE) for _ in range(2))
    one.reset(seed=1)
    play(one, 5, 0)
    other.set_state(one.get_state())
    assert_same(play(other, 10, 1), play(one, 10, 1))


@pytest.mark.parametrize("make", [GpuClusterEnv, lambda **rest: GpuClusterVectorEnv(2, **rest)])
@pytest.mark.parametrize("rate", [-1e-9, float("nan"), float("inf"), "fast", None])
def test_a_rate_out_of_its_range_is_named(make, rate):
    with refused("discount_rate", rate):
        make(scenario="tiny", discount_rate=rate)
