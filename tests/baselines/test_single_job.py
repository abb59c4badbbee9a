"""The single-job problem: bad input, undominated configurations, and costs of plans."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines.planning.single_job import undominated
from refusals import refused
from single_job import random_single_job, two_speeds

HOUR = 3600.0


def test_dominated_configurations_are_left_out_and_the_rest_goes_from_slow_to_fast():
    tau = np.array([5.0, 10.0, 7.0, np.inf, 7.0, 12.0, 6.0])
    price = np.array([4.0, 1.0, 3.5, 0.0, 2.0, 1.0, 3.9])  # 2 costs more than 4, and 5 is slower than 1 for as much
    assert undominated(tau, price).tolist() == [1, 4, 6, 0]


def test_of_equal_configurations_the_first_is_kept():
    assert undominated(np.array([3.0, 3.0]), np.array([1.0, 1.0])).tolist() == [0]


def test_without_a_choice_there_is_nothing_to_solve():
    assert two_speeds(4.0 * HOUR).problem.plan_without_choice().status == "slack"
    assert two_speeds(2.6 * HOUR).problem.plan_without_choice().status == "late"
    assert two_speeds(3.5 * HOUR).problem.plan_without_choice() is None


def test_a_plan_costs_what_its_breakpoints_say():
    """2 epochs for 1 € each, then, half as likely, ½ for 1 € and 1½ for 19/15 €."""
    plan = two_speeds(3.5 * HOUR).problem.plan_at(np.array([0.0, 2.5, 4.0]))
    assert plan.expected_cost_eur == pytest.approx(2.0 + 0.5 * (0.5 + 1.5 * 19 / 15))
    assert plan.worst_case_s == pytest.approx(3.5 * HOUR)
    assert [(s.configuration, s.start_epoch, s.end_epoch) for s in plan.segments] == [(0, 0.0, 2.5), (1, 2.5, 4.0)]


def test_a_problem_keeps_what_it_was_given_whatever_becomes_of_the_arrays():
    job = random_single_job(3)
    problem, tau = job.problem, job.tau.copy()
    job.tau[:] = 0.0
    for made in (problem, copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):  # noqa: S301 - our own bytes
        assert made.seconds_per_epoch.tolist() == tau.tolist()
        with pytest.raises(ValueError, match="read-only"):
            made.seconds_per_epoch[0] = 1.0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seconds_per_epoch": [0.0, 1.0]}, "seconds_per_epoch"),
        ({"seconds_per_epoch": [np.inf, np.inf]}, "seconds_per_epoch"),
        ({"cost_eur_per_epoch": [1.0]}, "cost_eur_per_epoch"),
        ({"cost_eur_per_epoch": [1.0, np.nan]}, "cost_eur_per_epoch"),
        ({"max_epochs": 0.0}, "max_epochs"),
        ({"time_left_s": np.nan}, "time_left_s"),
        ({"epochs_done": 4.0}, "epochs_done"),
    ],
)
def test_what_is_no_problem_is_refused_where_it_is_made(change, field):
    with refused(field):
        replace(two_speeds(3.5 * HOUR).problem, **change)
