"""The rules that choose hours by a price, on four hours that can be checked by hand, and on random ones."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_baselines.price_rules import rules
from gpusched_baselines.price_rules.signal import Signal
from gpusched_env.errors import InputError

HOUR = 3600.0
STARTS = (rules.lowest_slot, rules.lowest_window, rules.carbon_time)


def hourly(*values: float) -> Signal:
    return Signal(HOUR * np.arange(len(values)), np.array(values))


def in_hours(pieces):
    return [(begin / HOUR, end / HOUR) for begin, end in pieces]


def test_the_integral_is_that_of_the_steps_and_the_last_value_goes_on():
    signal = hourly(4.0, 1.0)
    assert signal.integral(0.5 * HOUR, 3.0 * HOUR) == pytest.approx((0.5 * 4.0 + 2.0 * 1.0) * HOUR)
    assert [signal.at(t * HOUR) for t in (0.0, 0.99, 1.0, 9.0)] == [4.0, 4.0, 1.0, 1.0]
    edges, values = signal.steps(0.5 * HOUR, 1.5 * HOUR)
    assert (edges.tolist(), values.tolist()) == ([1800.0, 3600.0, 5400.0], [4.0, 1.0])


@pytest.mark.parametrize(
    ("start", "value", "field"),
    [
        ([], [], "start_s"),
        ([0.0, 0.0], [1.0, 1.0], "start_s"),
        ([0.0], [1.0, 2.0], "value"),
        ([0.0], [np.nan], "value"),
    ],
)
def test_what_is_no_signal_is_refused(start, value, field):
    with pytest.raises(InputError, match=field):
        Signal(np.array(start), np.array(value))


def test_lowest_slot_starts_with_the_cheapest_hour_that_it_may_wait_for():
    signal = hourly(4.0, 2.0, 1.0, 3.0)
    assert rules.lowest_slot(signal, 0.0, np.nan, 3 * HOUR) == 2 * HOUR
    assert rules.lowest_slot(signal, 0.0, np.nan, 1.5 * HOUR) == HOUR
    assert rules.lowest_slot(signal, 1.5 * HOUR, np.nan, 0.2 * HOUR) == 1.5 * HOUR
    assert rules.lowest_slot(signal, 0.0, np.nan, 2 * HOUR) == 2 * HOUR  # the hour that begins when the limit ends


def test_lowest_window_counts_the_whole_length_from_now_in_whole_hours():
    """Two hours of 4, 1, 3, 2, 2, ... from hours 0 to 3 sum to 5, 4, 5, 4: the first of equals.

    Of 4, 3, 1, 2, 2, ... from half past they sum to 5.5, 3.5, 3.5, 4.
    """
    signal = hourly(4.0, 1.0, 3.0, 2.0)
    assert rules.lowest_window(signal, 0.0, 2 * HOUR, 3 * HOUR) == HOUR
    assert rules.lowest_window(signal, 0.0, 2 * HOUR, 0.9 * HOUR) == 0.0
    assert rules.lowest_window(hourly(4.0, 3.0, 1.0, 2.0), 0.5 * HOUR, 2 * HOUR, 3 * HOUR) == 1.5 * HOUR


def test_carbon_time_waits_for_an_hour_only_if_it_saves_enough_by_then():
    """One hour of 4, 1, 0.9: the second saves 3 in 2 h, the third 3.1 in 3 h."""
    signal = hourly(4.0, 1.0, 0.9)
    assert rules.lowest_window(signal, 0.0, HOUR, 2 * HOUR) == 2 * HOUR
    assert rules.carbon_time(signal, 0.0, HOUR, 2 * HOUR) == HOUR


def test_ecovisor_runs_below_the_quantile_of_the_next_day_and_after_its_waiting():
    """Of 23, 22, ..., 0 the 30 % quantile of 24 values, the 7.2th, is 7; from hour 17 on they are less."""
    signal = hourly(*range(23, -1, -1), 50.0)
    assert rules.threshold(signal, 0.0) == 7.0
    assert in_hours(rules.below_threshold_pieces(signal, 0.0, 2 * HOUR, 24 * HOUR)) == [(17.0, 19.0)]
    assert in_hours(rules.below_threshold_pieces(signal, 0.0, 2 * HOUR, 6 * HOUR)) == [(6.0, 8.0)]
    assert in_hours(rules.below_threshold_pieces(signal, 0.0, 8 * HOUR, 18 * HOUR)) == [(17.0, 24.0), (25.0, 26.0)]


def test_wait_awhile_takes_the_cheapest_hours_until_its_end():
    signal = hourly(4.0, 1.0, 3.0, 2.0)
    assert in_hours(rules.cheapest_hours(signal, 0.0, 2 * HOUR, 4 * HOUR)) == [(1.0, 2.0), (3.0, 4.0)]
    assert in_hours(rules.cheapest_hours(signal, 0.0, 2.5 * HOUR, 4 * HOUR)) == [(1.0, 2.5), (3.0, 4.0)]
    assert in_hours(rules.cheapest_hours(signal, 0.5 * HOUR, 2 * HOUR, 3 * HOUR)) == [(1.0, 3.0)]
    assert in_hours(rules.cheapest_hours(signal, 0.0, 5 * HOUR, 4 * HOUR)) == [(0.0, 5.0)]


def test_at_a_constant_price_jobs_start_at_once_but_ecovisor_waits_as_long_as_it_may():
    """Nothing is below the quantile of equal values: so it is published."""
    signal = hourly(*[2.0] * 24)
    for rule in STARTS:
        assert rule(signal, 1000.0, 5 * HOUR, 24 * HOUR) == 1000.0
    assert rules.cheapest_hours(signal, 1000.0, 5 * HOUR, 29 * HOUR) == [(1000.0, 1000.0 + 5 * HOUR)]
    assert rules.below_threshold_pieces(signal, 0.0, HOUR, 6 * HOUR) == [(6 * HOUR, 7 * HOUR)]


def test_a_job_starts_early_only_on_reserved_machines():
    assert rules.may_start(5.0, 5.0, 9, 0)
    assert rules.may_start(4.0, 5.0, 2, 2)
    assert not rules.may_start(4.0, 5.0, 2, 1)


signals = st.lists(st.integers(-3, 9), min_size=1, max_size=60).map(lambda values: hourly(*map(float, values)))
times = st.integers(0, 40 * 720).map(lambda ticks: 5.0 * ticks)


@given(signals, times, times, times)
def test_no_rule_waits_beyond_the_limit_or_runs_less_than_the_length(signal, now, length, limit):
    for rule in STARTS:
        assert now <= rule(signal, now, length, limit) <= now + limit
    for pieces in (
        rules.below_threshold_pieces(signal, now, length, limit),
        rules.cheapest_hours(signal, now, length, now + length + limit),
    ):
        assert sum(end - begin for begin, end in pieces) == pytest.approx(length)
        assert all(now <= begin < end <= now + length + limit + 1e-6 for begin, end in pieces)
        assert all(end < later for (_, end), (later, _) in pairwise(pieces))


@given(signals, times, times.filter(lambda length: length > 0.0), times)
def test_pausing_is_never_worse_than_one_window_and_that_not_than_starting_now(signal, now, length, limit):
    def cost(pieces):
        return sum(float(signal.integral(begin, end)) for begin, end in pieces)

    paused = cost(rules.cheapest_hours(signal, now, length, now + length + limit))
    start = rules.lowest_window(signal, now, length, limit)
    assert paused <= cost([(start, start + length)]) + 1e-6
    assert cost([(start, start + length)]) <= cost([(now, now + length)]) + 1e-6


@given(signals, times, times, times)
def test_what_is_after_the_window_does_not_matter(signal, now, length, limit):
    """The rules may read prices until the end of the window; Ecovisor those of the next day and of its window."""
    end = max(now + length + limit, now + rules.DAY)
    later = signal.start_s >= end
    other = Signal(signal.start_s, np.where(later, 100.0, signal.value)) if later.any() else signal
    for rule in STARTS:
        assert rule(signal, now, length, limit) == rule(other, now, length, limit)
    assert rules.below_threshold_pieces(signal, now, length, limit) == rules.below_threshold_pieces(
        other, now, length, limit
    )
