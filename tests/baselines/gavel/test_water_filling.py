"""Water filling, by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gavel_demands import demand, random_demand
from gpusched_baselines.gavel.hierarchical import quantile_entities, water_filling
from gpusched_baselines.gavel.objectives import las

ONE_TWO = np.array([1.0, 2.0])


def test_entities_share_by_weight_and_their_jobs_share_what_they_get():
    of = demand([[1]] * 3, capacity=(1,), entity=[0, 1, 1])
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fairness")[:, 0], 1 / 3, atol=1e-6)
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fifo")[:, 0], [1 / 3, 2 / 3, 0], atol=1e-6)


def test_what_a_job_cannot_take_goes_to_the_others():
    """Two GPUs: the first of entity 1 has a whole one at level 1/2; of the half that is left its next one gets 2/3."""
    of = demand([[1]] * 3, capacity=(2,), entity=[0, 1, 1])
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fifo")[:, 0], [2 / 3, 1, 1 / 3], atol=1e-6)


def test_jobs_above_the_least_level_rise_too():
    """Job 0 can use the slow type only; plain max-min fairness may stop at its level, water filling does not."""
    of = demand([[1, 0], [1, 1], [1, 1]], capacity=(1, 1))
    x = water_filling(of, np.ones(1), "fairness")
    assert x.sum() == pytest.approx(2.0, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 8))
def test_the_worst_off_has_as_much_as_with_max_min_fairness(seed, jobs):
    of = random_demand(seed, jobs)

    def least(x):
        return (of.size / of.weight * of.thr(x) / of.proportional).min()

    x = water_filling(of, np.ones(1), "fairness")
    assert least(x) == pytest.approx(least(las(of)), rel=1e-5)
    assert np.all(of.used(x) <= of.capacity + 1e-6)


def test_entities_are_quantiles_of_the_weights():
    assert quantile_entities(np.array([5.0, 1, 3, 2, 4, 6]), 3).tolist() == [2, 0, 1, 0, 1, 2]
    assert quantile_entities(np.array([1.0, 1, 1]), 3).tolist() == [0, 0, 0]
    assert quantile_entities(np.array([1.0, 2]), 1).tolist() == [0, 0]
