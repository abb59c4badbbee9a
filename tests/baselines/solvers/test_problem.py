"""What the solvers are given, and how their answers become plans."""

import numpy as np
import pytest

from gpusched_baselines.solvers.problem import SingleJobProblem, undominated
from gpusched_baselines.solvers.repair import repaired
from single_job import two_speeds

HOUR = 3600.0


def test_dominated_configurations_are_left_out_and_the_rest_goes_from_slow_to_fast():
    tau = np.array([5.0, 10.0, 7.0, np.inf, 7.0, 12.0, 6.0])
    price = np.array([4.0, 1.0, 3.5, 0.0, 2.0, 1.0, 3.9])  # 2 costs more than 4, and 5 is slower than 1 for as much
    assert undominated(tau, price).tolist() == [1, 4, 6, 0]


def test_of_equal_configurations_the_first_is_kept():
    assert undominated(np.array([3.0, 3.0]), np.array([1.0, 1.0])).tolist() == [0]


def problem(time_left: float) -> SingleJobProblem:
    return SingleJobProblem.of(*two_speeds(time_left).arguments)


def test_without_a_choice_there_is_nothing_to_solve():
    assert problem(4.0 * HOUR).plan_without_choice().status == "slack"
    assert problem(2.6 * HOUR).plan_without_choice().status == "late"
    assert problem(3.5 * HOUR).plan_without_choice() is None


def test_a_plan_costs_what_its_breakpoints_say():
    """2 epochs for 1 € each, then, half as likely, ½ for 1 € and 1½ for 19/15 €."""
    plan = problem(3.5 * HOUR).plan_at(np.array([0.0, 2.5, 4.0]))
    assert plan.expected_cost_eur == pytest.approx(2.0 + 0.5 * (0.5 + 1.5 * 19 / 15))
    assert plan.worst_case_s == pytest.approx(3.5 * HOUR)
    assert [(s.configuration, s.start_epoch, s.end_epoch) for s in plan.segments] == [(0, 0.0, 2.5), (1, 2.5, 4.0)]


def test_a_plan_in_time_is_left_as_it_is():
    assert repaired(problem(3.5 * HOUR), [2.0]).tolist() == [0.0, 2.0, 4.0]


def test_a_plan_that_is_too_slow_speeds_up_until_it_is_in_time():
    """At most 2.5 epochs can be slow."""
    assert repaired(problem(3.5 * HOUR), [3.7]) == pytest.approx([0.0, 2.5, 4.0])
    assert repaired(problem(3.5 * HOUR), [99.0]) == pytest.approx([0.0, 2.5, 4.0])


def test_breakpoints_out_of_place_are_clipped_and_sorted():
    job = two_speeds(3.9 * HOUR)
    three = SingleJobProblem.of([3600.0, 3000.0, 2400.0], [1.0, 1.1, 1.3], job.distribution, 4.0, 3.9 * HOUR, 0.0)
    assert repaired(three, [2.0, -1.0]).tolist() == [0.0, 0.0, 2.0, 4.0]


def test_if_only_the_fastest_is_in_time_it_runs_throughout():
    only = problem(4.0 * 2400.0)
    assert repaired(only, [3.0]) == pytest.approx([0.0, 0.0, 4.0])
