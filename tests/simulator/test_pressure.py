"""The pressure of jobs, by hand: one GPU, an hour an epoch."""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_env import ActiveJobs, Configuration, GpuType, Instance, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.sorting import pressures
from instances import CERTAIN, HOUR


def opened(*jobs: tuple[float, float]) -> State:
    """Open the first round of jobs of two epochs, each with its due date [h] and its weight [€/h]."""
    one = Configuration("V", 1)
    made = [Job(0.0, due * HOUR, weight / HOUR, 2.0, CERTAIN, 2.0, {one: HOUR}) for due, weight in jobs]
    return begin_run(Instance.from_jobs([GpuType("V", 1000.0, 0.0, 16.0)], [Node("V", 1)], made))


def test_slack_counts_in_seconds_and_tardiness_in_what_it_costs():
    """Due at 3 h a job has an hour to spare. Due at 0.5 h it must be 1.5 h late, at 4 €/h for 6 €."""
    view = opened((3.0, 4.0), (0.5, 4.0)).view
    assert ActiveJobs(view, view.active).pressure == pytest.approx([-HOUR, 6.0])


def test_with_fewer_epochs_left_there_is_less_of_it():
    """One epoch left: 2 h to spare, and half an hour late for 2 €."""
    view = opened((3.0, 4.0), (0.5, 4.0)).view
    assert pressures(view.board, view.active, np.ones(2)) == pytest.approx([-2 * HOUR, 2.0])


def test_of_jobs_that_must_be_late_the_costliest_tardiness_is_asked_first_and_one_without_weight_before_the_others():
    """1 h late at 3 €/h, 1.5 h late at 1 €/h, 2 h late for nothing; and two that have time."""
    view = opened((5.0, 9.0), (0.0, 0.0), (0.5, 1.0), (3.0, 0.1), (1.0, 3.0)).view
    assert ask_order(view, "pressure", waiting_only=False).tolist() == [4, 2, 1, 3, 0]
