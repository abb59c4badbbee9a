"""Discounts by simulated time: returns by hand, and the same ones in the rollout buffers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer

from gpusched_agents.training.discounting import Discounting, MaskableTimedRolloutBuffer, TimedRolloutBuffer

HALF_S = 1.0 / np.log(2.0)
"""With this time constant a second has the factor ½."""
CLOSE = {"rtol": 1e-6}


def rows(*values: float) -> np.ndarray:
    """Return the numbers of one environment, (T, 1)."""
    return np.array(values, np.float32)[:, None]


def test_decisions_of_a_round_have_no_discount_between_them():
    """Three decisions, two in one round: the second takes a second, with γ = λ = ½, the others no time.

    The third: 4 + 8 = 12. The second: 2 + ½ (½ · 6 + ½ · 12) = 6.5. The first, in its round: 1 + 6.5 = 7.5, without the
    critic's 3 in between.
    """
    found = Discounting(HALF_S, HALF_S).returns(
        rows(1.0, 2.0, 4.0), rows(5.0, 3.0, 6.0, 8.0), np.zeros((3, 1), bool), rows(0.0, 1.0, 0.0)
    )
    np.testing.assert_allclose(found, rows(7.5, 6.5, 12.0), **CLOSE)


def test_the_discount_does_not_depend_on_the_number_of_decisions_in_a_round():
    """A second with the reward 1, then nothing: ½ · 4 + 1, whether the round has one decision or five."""
    for decisions in (1, 5):
        rewards, passed_s = np.zeros((decisions, 1), np.float32), np.zeros((decisions, 1))
        rewards[-1], passed_s[-1] = 1.0, 1.0
        values = np.full((decisions + 1, 1), 4.0, np.float32)
        found = Discounting(HALF_S, HALF_S).returns(rewards, values, np.zeros((decisions, 1), bool), passed_s)
        np.testing.assert_allclose(found, np.full((decisions, 1), 3.0), **CLOSE)


def test_returns_by_hand():
    """G = r + γ ((1 - λ) V' + λ G'), and r alone where an episode ends: γ = λ = ½; 2 environments, 3 steps of a second.

    The first goes on, with the value 2 after the last step: 4 + ½ · 2 = 5, 2 + ½ (½ · 4 + ½ · 5) = 4.25 and
    1 + ½ (½ · 6 + ½ · 4.25) = 3.5625. The second one ends with its second step: 5, 2 and 1 + ½ (½ · 6 + ½ · 2) = 3.
    """
    values = np.repeat(rows(8.0, 6.0, 4.0, 2.0), 2, axis=1)
    ended = np.array([[False, False], [False, True], [False, False]])
    found = Discounting(HALF_S, HALF_S).returns(
        np.repeat(rows(1.0, 2.0, 4.0), 2, axis=1), values, ended, np.ones((3, 2))
    )
    np.testing.assert_allclose(found, [[3.5625, 3.0], [4.25, 2.0], [5.0, 5.0]], **CLOSE)


@pytest.mark.parametrize("kind", [TimedRolloutBuffer, MaskableTimedRolloutBuffer])
def test_a_rollout_buffer_holds_those_returns(kind: Any):
    """With steps of a second each they are those of Stable-Baselines3 with constants."""
    rng, space = np.random.default_rng(0), spaces.Dict({"x": spaces.Box(-1.0, 1.0, (2,), np.float32)})
    buffers: list[Any] = [
        kind(4, space, spaces.Discrete(2), "cpu", n_envs=3, discounting=Discounting(HALF_S, 2.0 * HALF_S)),
        DictRolloutBuffer(4, space, spaces.Discrete(2), "cpu", gamma=0.5, gae_lambda=np.sqrt(0.5), n_envs=3),
    ]
    buffers[0].last_passed_s = lambda: np.ones(3)
    for _ in range(4):
        step = {"x": rng.random((3, 2), np.float32)}, np.zeros((3, 1)), rng.random(3), rng.random(3) < 0.3
        values, chances = torch.from_numpy(rng.random((3, 1))), torch.zeros(3)
        for buffer in buffers:
            buffer.add(*step, values, chances)
    for buffer in buffers:
        buffer.compute_returns_and_advantage(torch.ones(3, 1), np.array([True, False, False]))
    for name in ("returns", "advantages"):
        np.testing.assert_allclose(getattr(buffers[0], name), getattr(buffers[1], name), atol=1e-6)
