"""The order of jobs: their pressure, by hand, and sorting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from first_rounds import begin_run
from gpusched_env import ActiveJobs, Configuration, GpuType, Instance, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.sorting import pressures, ranked, ranked_in_groups
from instances import CERTAIN, HOUR


def opened(*jobs: tuple[float, float]) -> State:
    """Open the first round of jobs of two epochs, each with its due date [h] and its weight [€/h]."""
    one = Configuration("V", 1)
    made = [Job(0.0, due * HOUR, weight / HOUR, 2.0, CERTAIN, 2.0, {one: HOUR}) for due, weight in jobs]
    return begin_run(Instance.from_jobs([GpuType("V", 1000.0, 0.0, 16.0)], [Node("V", 1)], made))


def test_slack_counts_in_seconds_and_tardiness_in_what_it_costs_and_less_of_it_with_fewer_epochs_left():
    """Due at 3 h a job has an hour to spare. Due at 0.5 h it must be 1.5 h late, at 4 €/h for 6 €."""
    view = opened((3.0, 4.0), (0.5, 4.0)).view
    assert ActiveJobs(view, view.active).pressure == pytest.approx([-HOUR, 6.0])
    # One epoch left: 2 h to spare, and half an hour late for 2 €.
    assert pressures(view.board, view.active, np.ones(2)) == pytest.approx([-2 * HOUR, 2.0])


def test_of_jobs_that_must_be_late_the_costliest_tardiness_is_asked_first_and_one_without_weight_before_the_others():
    """1 h late at 3 €/h, 1.5 h late at 1 €/h, 2 h late for nothing; and two that have time."""
    view = opened((5.0, 9.0), (0.0, 0.0), (0.5, 1.0), (3.0, 0.1), (1.0, 3.0)).view
    assert ask_order(view, "pressure", waiting_only=False).tolist() == [4, 2, 1, 3, 0]


# Few different ones, so that many are equal, and any others.
numbers = st.one_of(st.sampled_from([-1.0, -0.0, 0.0, 2.0, np.inf, -np.inf]), st.floats(allow_nan=False))


@settings(max_examples=300, deadline=None)
@given(keys=st.lists(numbers, max_size=70), left_out=st.integers(0, 10))
def test_keys_are_ranked_as_by_a_stable_sort(keys, left_out):
    array, size = np.array(keys, dtype=np.float64), max(0, len(keys) - left_out)
    before = array.copy()
    order = ranked(array, size)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, np.argsort(array[:size], kind="stable"))
    np.testing.assert_array_equal(array, before)


@settings(max_examples=300, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(-2, 3), numbers), max_size=70))
def test_rows_are_ranked_by_group_and_then_by_key(rows):
    groups = np.array([group for group, _ in rows], dtype=np.int64)
    keys = np.array([key for _, key in rows], dtype=np.float64)
    np.testing.assert_array_equal(ranked_in_groups(groups, keys), np.lexsort((keys, groups)))
