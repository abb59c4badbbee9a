"""The single-job plan, by hand: three points of 1 h, 36 min and 24 min, and 1.00, 1.20 and 1.60 € per epoch.

An hour saved from the first to the second point costs 0.5 €, from the second to the third 2 €. The job has at most two
epochs; S is 1 on the first and 0 on the second: by its distribution it ends when it has done one.
"""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.planning.cheapest import cheapest_fitting
from gpusched_baselines.planning.plan import LATE, SLACK, TIGHT, solve
from gpusched_baselines.sts_x.plan import price_out
from gpusched_env import Configuration
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import Curve
from instances import HOUR
from small_instances import hours_job, kilowatt_cluster

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


ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def test_a_configuration_that_a_job_may_not_use_is_never_free():
    """Even where running costs nothing: 0 € times a time without end is no number."""
    jobs = [hours_job(1.0, {ONE: 1.0}), hours_job(1.0, {TWO: 0.5})]
    board = begin_run(kilowatt_cluster(jobs, [2], [ONE, TWO])).board
    seconds, price = np.empty(2), np.empty(2)
    price_out(board, np.zeros(2), 0, 1.0, seconds, price)
    assert (seconds.tolist(), price.tolist()) == ([HOUR, np.inf], [0.0, np.inf])


@pytest.mark.parametrize(("done", "best"), [(0.0, TWO), (0.5, ONE)])
def test_only_the_epochs_that_are_left_must_end_by_the_due_date(done, best):
    """An epoch takes 2 h on a GPU, which is cheaper, or 1.2 h on two; the job is due in 1.3 h."""
    instance = kilowatt_cluster([hours_job(1.3, {ONE: 2.0, TWO: 1.2})], [2], [ONE, TWO])
    board = begin_run(instance).board
    board.jobs[0, at.EPOCHS] = done
    assert instance.configurations[cheapest_fitting(board, board.planning_rate, 0)] == best
