"""Sorting by keys gives what NumPy's stable sorts give."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.simulator.sorting import ranked, ranked_in_groups

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
