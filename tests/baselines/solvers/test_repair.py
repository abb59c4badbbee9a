"""Results of solvers are repaired to plans that meet the due date."""

import pytest

from gpusched_baselines import SingleJobProblem
from gpusched_baselines.solvers.bin_program import repaired
from single_job import two_speeds

HOUR = 3600.0


def test_a_plan_in_time_is_left_as_it_is():
    assert repaired(two_speeds(3.5 * HOUR).problem, [2.0]).tolist() == [0.0, 2.0, 4.0]


def test_a_plan_that_is_too_slow_speeds_up_until_it_is_in_time():
    """At most 2.5 epochs can be slow."""
    assert repaired(two_speeds(3.5 * HOUR).problem, [3.7]) == pytest.approx([0.0, 2.5, 4.0])
    assert repaired(two_speeds(3.5 * HOUR).problem, [99.0]) == pytest.approx([0.0, 2.5, 4.0])


def test_breakpoints_out_of_place_are_clipped_and_sorted():
    job = two_speeds(3.9 * HOUR)
    three = SingleJobProblem([3600.0, 3000.0, 2400.0], [1.0, 1.1, 1.3], job.distribution, 4.0, 3.9 * HOUR, 0.0)
    assert repaired(three, [2.0, -1.0]).tolist() == [0.0, 0.0, 2.0, 4.0]


def test_if_only_the_fastest_is_in_time_it_runs_throughout():
    only = two_speeds(4.0 * 2400.0).problem
    assert repaired(only, [3.0]) == pytest.approx([0.0, 0.0, 4.0])
