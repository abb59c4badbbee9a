"""The single-job plan, by hand: three points of 1 h, 36 min and 24 min, and 1.00, 1.20 and 1.60 € per epoch.

An hour saved from the first to the second point costs 0.5 €, from the second to the third 2 €. The job has at most two
epochs; S is 1 on the first and 0 on the second: by its distribution it ends when it has done one.
"""

import numpy as np
import pytest

from gpusched_baselines.planning.plan import LATE, SLACK, TIGHT, solve
from gpusched_env.simulator.survival import Curve
from instances import HOUR

SECONDS = HOUR * np.array([1.0, 0.6, 0.4])
PRICE = np.array([1.0, 1.2, 1.6])
SLOPE = np.array([0.5, 2.0]) / HOUR
CURVE = Curve(edges=np.array([0.0, 0.5, 1.0]), survival=np.array([1.0, 0.0]), tail=np.array([0.5, 0.0, 0.0]))
EPOCHS = 2.0


def plan(done: float, hours_left: float) -> tuple[int, float, list[float]]:
    starts = np.empty(len(SECONDS) + 1)
    status, cost = solve(SECONDS, PRICE, SLOPE, CURVE, done, EPOCHS, hours_left * HOUR, starts)
    return status, cost, starts.tolist()


def test_before_its_last_possible_epoch_a_job_speeds_up_where_it_is_sure_not_to_be():
    """1.6 h for two epochs: 0.4 h to save, by the second point in the whole second epoch, which costs nothing."""
    status, cost, starts = plan(0.0, 1.6)
    assert (status, cost) == (TIGHT, pytest.approx(1.0))
    assert starts == pytest.approx([0.0, 1.0, 2.0, 2.0])


def test_a_job_that_should_have_ended_by_now_is_planned_as_if_it_needed_all_its_epochs():
    """1.2 epochs are done, 0.8 are left, in 0.64 h: 0.16 h to save, by the second point in the last 0.4 epochs.

    0.4 epochs at 1.00 € and 0.4 at 1.20 €.
    """
    status, cost, starts = plan(1.2, 0.64)
    assert (status, cost) == (TIGHT, pytest.approx(0.88))
    assert starts == pytest.approx([1.2, 1.6, 2.0, 2.0])


def test_such_a_job_takes_the_fastest_point_once_the_second_saves_too_little():
    """0.8 epochs in 0.4 h: the second point takes 0.48 h, so 0.08 h are saved by the third in the last 0.4 epochs."""
    status, cost, starts = plan(1.2, 0.4)
    assert (status, cost) == (TIGHT, pytest.approx(0.4 * 1.2 + 0.4 * 1.6))
    assert starts == pytest.approx([1.2, 1.2, 1.6, 2.0])


def test_such_a_job_with_time_runs_slowly_throughout_and_one_without_runs_fast_throughout():
    assert plan(1.2, 1.0) == (SLACK, pytest.approx(0.8 * 1.0), [1.2, 2.0, 2.0, 2.0])
    assert plan(1.2, 0.3) == (LATE, pytest.approx(0.8 * 1.6), [1.2, 1.2, 1.2, 2.0])
