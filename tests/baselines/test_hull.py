"""The lower hull holds exactly the configurations that some price of time makes best."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines.planning.plan import lower_hull


def hull_of(tau: list[float], price: list[float]) -> list[int]:
    capacity = np.empty(len(tau), dtype=np.int64)
    points = lower_hull(np.array(tau), np.array(price), capacity)
    return capacity[:points].tolist()


def test_a_configuration_that_is_not_allowed_is_left_out():
    assert hull_of([np.inf, 3.0], [0.0, 2.0]) == [1]
    assert hull_of([np.inf], [0.0]) == []


@settings(max_examples=300, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12, unique=True),
    price_of_time=st.floats(0.001, 50.0),
)
def test_for_every_price_of_time_a_hull_point_is_best(points, price_of_time):
    tau, price = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    hull = hull_of(tau.tolist(), price.tolist())
    value = price + price_of_time * tau
    assert value[hull].min() == value.min()
    slopes = [(price[b] - price[a]) / (tau[a] - tau[b]) for a, b in itertools.pairwise(hull)]
    assert np.all(np.diff(slopes) > 0)
