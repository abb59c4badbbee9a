"""Prices by period, worked out by hand on the three-job instance: what is billed, emitted and known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import make_policy
from gpusched_env.model import DemandCharge, Instance, PriceSeries
from gpusched_env.simulator import Result, View, simulate
from gpusched_env.simulator.events import next_multiple
from instances import HOUR, random_instance, three_jobs
from refusals import refused

EDGES = np.array([0.0, 1.0, 3.0]) * HOUR
SERIES = PriceSeries(EDGES, np.array([1.0, 3.0, 0.5]), g_per_kwh=np.array([100.0, 200.0, 1000.0]))


class OneAfterTheOther:
    """Job 0 on one GPU of node 0 (1 kW) from 0 h to 2 h; then job 1 to 4 h, then job 2 to 6 h, in the same place."""

    name, preemption = "one-after-the-other", False

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, float]] = []

    def decide(self, view: View, rng: np.random.Generator) -> None:
        """Place the first job that waits, if node 0 is free."""
        self.seen.append((view.now_s / HOUR, view.known_until_s / HOUR, view.price(0.5 * HOUR, 2.0 * HOUR)))
        if len(view.waiting) == len(view.active):
            view.place(int(view.waiting[0]), 0)


def priced(instance: Instance | None = None, **changes: Any) -> Instance:
    """Make an instance with the series of this page, or one that differs from it."""
    return replace(three_jobs() if instance is None else instance, prices=replace(SERIES, **changes))


def run(**changes: Any) -> Result:
    return simulate(priced(**changes), OneAfterTheOther())


def test_energy_is_billed_at_the_price_of_each_period_and_kwh_and_kg_are_metered_by_the_same_integral():
    """1 kW: 1 h at 1 €, 2 h at 3 €, 3 h at 0.50 €; job 0 has 1 h of the first and 1 h of the second, and so on."""
    result = run()
    assert result.completion_s.tolist() == [2 * HOUR, 4 * HOUR, 6 * HOUR]
    assert result.energy_eur == pytest.approx(1.0 + 6.0 + 1.5)
    assert result.job_energy_eur == pytest.approx([1.0 + 3.0, 3.0 + 0.5, 1.0])
    assert result.energy_kwh == pytest.approx(6.0)
    assert result.co2_kg == pytest.approx(0.1 + 2 * 0.2 + 3 * 1.0)


def test_a_pue_by_period_multiplies_price_energy_and_emissions():
    result = run(pue=np.array([2.0, 1.0, 1.5]))
    assert result.energy_eur == pytest.approx(2.0 * 1.0 + 6.0 + 1.5 * 1.5)
    assert result.energy_kwh == pytest.approx(2.0 + 2.0 + 4.5)
    assert result.co2_kg == pytest.approx(2.0 * 0.1 + 2 * 0.2 + 4.5 * 1.0)


def test_without_a_carbon_intensity_kg_are_not_known_and_without_a_series_kwh_follow_from_the_bill():
    assert np.isnan(run(g_per_kwh=None).co2_kg)
    plain = simulate(replace(three_jobs(), energy_price_eur_per_kwh=0.5), OneAfterTheOther())
    assert plain.energy_kwh == pytest.approx(6.0)
    assert np.isnan(plain.co2_kg)


def test_the_demand_charge_is_for_the_largest_mean_of_an_interval_in_each_month():
    """1 kW from 0 h to 6 h; a new month at 3 h: twice 10 € for 1 kW, though intervals of 4 h are half over at 6 h."""
    result = run(demand=DemandCharge(10.0, interval_s=HOUR, months_s=(3 * HOUR,)))
    assert (result.demand_eur, result.energy_eur) == pytest.approx((20.0, 8.5 + 20.0))
    assert result.job_energy_eur.sum() == pytest.approx(28.5)
    assert run(demand=DemandCharge(10.0, interval_s=8 * HOUR)).demand_eur == pytest.approx(10.0 * 6 / 8)


def test_the_reference_price_changes_neither_the_bill_nor_the_meter():
    other = simulate(replace(priced(), energy_price_eur_per_kwh=0.2, pue=1.0), OneAfterTheOther())
    assert (other.energy_eur, other.energy_kwh) == pytest.approx((8.5, 6.0))


def test_a_policy_sees_the_prices_that_are_published():
    policy = OneAfterTheOther()
    simulate(priced(published_s=np.array([-np.inf, 0.0, 2.0 * HOUR])), policy)
    first, second = policy.seen[:2]
    assert first[:2] == (0.0, 3.0)
    assert first[2] == pytest.approx((0.5 * 1.0 + 1.0 * 3.0) / 1.5)
    assert second[:2] == (2.0, np.inf)


def test_what_is_not_published_is_not_on_the_board():
    seen = []

    class Policy(OneAfterTheOther):
        def decide(self, view: View, rng: np.random.Generator) -> None:
            seen.append((view.price(0.0, 4.0 * HOUR), np.isnan(view.prices[:, 1]).sum()))
            super().decide(view, rng)

    simulate(priced(published_s=EDGES), Policy())
    assert [nans for _, nans in seen] == [2, 1, 0, 0][: len(seen)]
    assert np.isnan(seen[0][0])


@pytest.mark.parametrize("name", ["edf", "sts", "sts-x"])
def test_a_constant_series_costs_what_the_constant_price_costs(name):
    instance = random_instance(3, jobs=20)
    flat = PriceSeries(np.arange(-3.0, 60.0) * 700.0, np.full(63, instance.energy_price_eur_per_kwh))
    ours = simulate(replace(instance, prices=flat), make_policy(name))
    theirs = simulate(instance, make_policy(name))
    np.testing.assert_array_equal(ours.completion_s, theirs.completion_s)
    assert ours.energy_eur == pytest.approx(theirs.energy_eur, rel=1e-9)
    assert ours.energy_kwh == pytest.approx(theirs.energy_kwh, rel=1e-9)
    np.testing.assert_allclose(ours.job_energy_eur, theirs.job_energy_eur, rtol=1e-9)


@given(at=st.floats(0.01, 5.0), period=st.integers(0, 2))
@settings(max_examples=30, deadline=None)
def test_splitting_a_period_changes_nothing(at, period):
    starts = np.sort(np.append(EDGES, EDGES[period] + at * HOUR if period == 2 else EDGES[period] + at / 6 * HOUR))
    of = np.searchsorted(EDGES, starts, side="right") - 1
    split = run(start_s=starts, eur_per_kwh=SERIES.eur_per_kwh[of], g_per_kwh=SERIES.g_per_kwh[of])
    whole = run()
    assert split.energy_eur == pytest.approx(whole.energy_eur, rel=1e-12)
    assert split.co2_kg == pytest.approx(whole.co2_kg, rel=1e-12)


@pytest.mark.parametrize("interval_s", [300.3, 900.7, 0.1 * 36_001])
def test_intervals_of_a_demand_charge_need_not_be_whole_seconds(interval_s):
    """1 kW throughout, but for the last interval: 7 · 300.3 / 300.3 is below 7 by rounding."""
    demand = DemandCharge(10.0, interval_s)
    assert run(demand=demand).demand_eur == pytest.approx(10.0)


@given(interval_s=st.floats(1.0, 1e5), number=st.integers(0, 10**6))
def test_an_interval_ends_at_the_first_multiple_after_a_time(interval_s, number):
    for time in (number * interval_s, np.nextafter(number * interval_s, np.inf)):
        end = next_multiple(time, interval_s)
        assert time < end <= (number + 1) * interval_s
    before = np.nextafter(number * interval_s, 0.0)
    assert number == 0 or next_multiple(before, interval_s) == number * interval_s


def test_a_demand_charge_is_refused_for_intervals_below_a_second():
    with refused("prices.demand.interval_s", 0.5, "at least 1 s"):
        DemandCharge(10.0, 0.5)
