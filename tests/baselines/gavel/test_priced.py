"""The elastic program with priced tardiness, by hand: one GPU has speed 1 for 1 €/s, two have 1.8 for 2 €/s."""

import numpy as np
import pytest

from gavel_demands import demand
from gpusched_baselines.gavel.cost import LEAST, priced


def elastic(due_in_s, weight=10.0, jobs=1, capacity=2.0):
    return demand(
        [[1, 1.8]] * jobs,
        [[1, 2]] * jobs,
        (capacity,),
        kind=[0, 0],
        rate=[[1, 2]] * jobs,
        left=[10.0] * jobs,
        due_in_s=[due_in_s] * jobs if np.isscalar(due_in_s) else due_in_s,
        tardiness=[weight] * jobs if np.isscalar(weight) else weight,
    )


def test_a_job_with_time_runs_as_slowly_as_it_may_where_it_is_cheapest():
    np.testing.assert_allclose(priced(elastic(20.0), 0.0), [[0.5, 0.0]], atol=1e-6)
    np.testing.assert_allclose(priced(elastic(30.0), 10.0), [[0.5, 0.0]], atol=1e-6)


def test_a_job_that_needs_more_speed_mixes():
    """x + y = 1 and x + 1.8 y = 10 / 8."""
    np.testing.assert_allclose(priced(elastic(8.0), 0.0), [[0.6875, 0.3125]], atol=1e-6)


@pytest.mark.parametrize(("weight", "expected"), [(1.0, [0.0, 1.0]), (0.1, [1.0, 0.0])])
def test_a_job_that_must_be_late_runs_faster_only_if_that_is_worth_its_energy(weight, expected):
    """An epoch more costs 1 / 0.8 €; left for later it costs 1 € and ω / 1.8 €."""
    np.testing.assert_allclose(priced(elastic(-5.0, weight), 0.0), [expected], atol=1e-6)


def test_where_gpus_are_short_the_job_whose_tardiness_costs_least_gives_way_and_the_other_keeps_its_due_date():
    x = priced(elastic([10.0, 10.0], [1.0, 5.0], jobs=2, capacity=1.0), 0.0)
    np.testing.assert_allclose(x, [[0, 0], [1, 0]], atol=1e-6)


def test_even_a_job_that_is_due_in_ages_and_weighs_nothing_gets_a_little():
    x = priced(elastic(1e12, 0.0), 0.0)
    assert x[0] @ [1, 1.8] == pytest.approx(LEAST * 1.8, rel=1e-4)
    free = elastic(1e12, 0.0)
    free.rate[:] = 0.0
    assert priced(free, 0.0)[0] @ [1, 1.8] > 0.0
