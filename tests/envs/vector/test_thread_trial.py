"""Trials measure now and then whether workers make steps faster."""

from __future__ import annotations

import pytest

from gpusched_env.envs.vector.threads import BETWEEN, TRIAL, ThreadTrial


def shares(trial: ThreadTrial, steps: int, with_helpers: float, alone: float) -> float:
    """Take so many steps of these lengths [s]; return the share of them in which workers took part."""
    helped = 0
    for _ in range(steps):
        helped += trial.helped
        trial.took(with_helpers if trial.helped else alone)
    return helped / steps


@pytest.mark.parametrize(("with_helpers", "alone", "least", "most"), [(1.0, 1.7, 0.95, 1.0), (1.4, 1.0, 0.0, 0.05)])
def test_helpers_take_part_where_steps_are_faster_with_them(with_helpers, alone, least, most):
    assert least <= shares(ThreadTrial(), 20 * (BETWEEN + 2 * TRIAL), with_helpers, alone) <= most


def test_what_is_worth_having_may_change():
    trial = ThreadTrial()
    shares(trial, 3 * BETWEEN, 1.0, 1.7)
    shares(trial, BETWEEN + 2 * TRIAL, 1.4, 1.0)
    assert shares(trial, BETWEEN, 1.4, 1.0) < 0.05
    shares(trial, BETWEEN + 2 * TRIAL, 1.0, 1.7)
    assert shares(trial, BETWEEN, 1.0, 1.7) > 0.95


def test_one_slow_step_decides_nothing():
    trial = ThreadTrial()
    trial.took(1000.0)
    assert shares(trial, BETWEEN, 1.0, 1.7) > 0.9
