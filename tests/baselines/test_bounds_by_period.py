"""Bounds where the price of energy changes, held GPUs have a price, and power has a cap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import (
    capacity_bound,
    capacity_prices,
    clairvoyant_bound,
    make_policy,
    non_clairvoyant_bound,
    priced_bound,
)
from gpusched_baselines.bounds.periods import PriceFactors, least_factors, merged
from gpusched_env import Configuration, EpochDistribution, Instance, Rent, simulate
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import PriceSeries
from instances import HOUR, random_instance
from small_instances import hours_job, kilowatt_cluster

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
CHEAP = ("edf", "edf:preemptive", "fifo", "sts")
ROUNDING = 1.0 - 1e-9


def hourly(*eur_per_kwh: float) -> PriceSeries:
    return PriceSeries(np.arange(len(eur_per_kwh)) * HOUR, np.array(eur_per_kwh))


def drawn_series(seed: int, span_s: float, periods: int = 15) -> PriceSeries:
    """Draw prices for periods of any lengths, some of them far below the others."""
    rng = np.random.default_rng(seed)
    start_s = np.append(0.0, np.cumsum(rng.exponential(span_s / periods, periods - 1) + 1e-3))
    return PriceSeries(start_s, rng.exponential(0.2, periods), pue=rng.uniform(1.0, 1.6, periods))


def test_a_job_with_time_takes_the_cheap_hour_and_a_late_one_weighs_it_against_its_tardiness():
    """An hour of 1 kW at 3, 1 or 5 €/kWh, due after three hours; due after one, it pays 3 €."""
    for due_h, eur in ((3.0, 1.0), (1.0, 3.0)):
        one = kilowatt_cluster([hours_job(due_h, {ONE: 1.0})], [1], [ONE])
        assert clairvoyant_bound(one.with_mechanisms(hourly(3.0, 1.0, 5.0))) == pytest.approx(eur)
    # Due after one hour: an hour late costs 1 €, and the second hour is 2 € cheaper than the first.
    one = kilowatt_cluster([hours_job(1.0, {ONE: 1.0}, 1.0)], [1], [ONE])
    assert clairvoyant_bound(one.with_mechanisms(hourly(3.0, 1.0, 5.0))) == pytest.approx(2.0)


def test_two_jobs_on_one_gpu_share_the_cheap_hour():
    """Alone each takes the hour at 1 €. Together they take both: the GPU costs 2 € in the cheap hour."""
    two = kilowatt_cluster([hours_job(2.0, {ONE: 1.0}, 10.0) for _ in range(2)], [1], [ONE])
    two = two.with_mechanisms(hourly(3.0, 1.0, 5.0))
    assert clairvoyant_bound(two) == pytest.approx(2.0)
    assert 3.99 < capacity_bound(two) <= 4.0
    assert priced_bound(two, [0.0, HOUR, 2 * HOUR], [[0.0, 2.0 / HOUR]]) == pytest.approx(4.0)


def test_a_faster_configuration_is_used_only_in_the_cheap_hour():
    """2 h on one GPU, 1.5 h on two: at 0.1 €/kWh two do two thirds for 0.2 €, at 1 €/kWh one the rest for 2/3 €."""
    one = kilowatt_cluster([hours_job(2.0, {ONE: 2.0, TWO: 1.5}, 100.0)], [2], [ONE, TWO])
    assert clairvoyant_bound(one.with_mechanisms(hourly(1.0, 0.1))) == pytest.approx(2.0 / 3.0 + 0.2)


def test_without_knowledge_of_its_epochs_a_job_counts_with_the_expectation():
    """One or two hours, alike, due after two, at 3 and 1 €/kWh: (1 + 4) / 2 € in expectation; at 1 €/kWh 1.5 €."""
    one = kilowatt_cluster([hours_job(2.0, {ONE: 2.0})], [1], [ONE])
    jobs = replace(one.jobs, distributions=(EpochDistribution.from_masses(np.ones(2)),))
    assert non_clairvoyant_bound(replace(one, jobs=jobs).with_mechanisms(hourly(3.0, 1.0, 5.0))) == pytest.approx(2.5)


def test_one_price_for_all_time_is_the_bound_without_a_series():
    instance = random_instance(5, jobs=12, span_s=800.0)
    flat = PriceSeries(np.array([0.0, 50.0]), np.full(2, instance.energy_price_eur_per_kwh))
    grid_s, prices = np.linspace(0.0, 5000.0, 20), np.full((len(instance.gpu_types), 19), 1e-5)
    assert priced_bound(instance.with_mechanisms(flat), grid_s, prices) == priced_bound(instance, grid_s, prices)
    assert clairvoyant_bound(instance.with_mechanisms(flat)) == pytest.approx(clairvoyant_bound(instance), rel=1e-9)
    assert capacity_bound(instance.with_mechanisms(flat)) == pytest.approx(capacity_bound(instance), rel=0.02)


def test_held_gpus_have_a_price_that_does_not_follow_that_of_energy():
    """An hour of 1 kW in the cheap hour, half the price of the rates, and the GPU: 0.5 + 2 €."""
    one = kilowatt_cluster([hours_job(3.0, {ONE: 1.0})], [1], [ONE])
    one = one.with_mechanisms(Rent(2.0), hourly(3.0, 0.5, 5.0))
    assert clairvoyant_bound(one) == pytest.approx(2.5)
    assert simulate(one, make_policy("edf")).total_eur == pytest.approx(3.0 + 2.0)


def test_a_cap_of_one_gpu_is_as_if_there_were_one_and_a_soft_one_costs_no_more_than_its_excess():
    """Two jobs of 1 h due at once, an hour late costs 10 €: 2 + 10 + 20 € one after the other."""
    two = kilowatt_cluster([hours_job(0.0, {ONE: 1.0}, 10.0) for _ in range(2)], [2], [ONE])
    assert capacity_bound(two) == pytest.approx(22.0)
    capped = two.with_mechanisms(PowerCap((0.0,), (1.0,)))
    assert 31.9 < capacity_bound(capped) <= 32.0
    assert capacity_prices(capped).eur_per_kw_s.max() > 0.0
    assert simulate(capped, make_policy("edf")).total_eur >= capacity_bound(capped) * ROUNDING
    # Side by side both pay 1 € for the kWh above the cap, less than waiting.
    soft = two.with_mechanisms(PowerCap((0.0,), (1.0,), soft_eur_per_kwh=1.0))
    assert 22.9 < capacity_bound(soft) <= 23.0
    assert simulate(soft, make_policy("edf")).total_eur == pytest.approx(23.0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(CHEAP), extra=st.sampled_from(["none", "gpu", "cap", "soft"]))
def test_no_policy_costs_less_than_the_bound_at_prices_by_period(seed, name, extra):
    instance = priced_instance(seed, extra)
    total, bound = simulate(instance, make_policy(name), seed=seed).total_eur, capacity_bound(instance)
    assert total >= bound * ROUNDING
    assert bound >= clairvoyant_bound(instance)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(CHEAP))
def test_any_prices_of_gpus_and_of_power_give_a_bound_on_any_grid(seed, name):
    instance = priced_instance(seed, "cap")
    rng = np.random.default_rng(seed)
    grid_s = np.append(0.0, np.cumsum(rng.exponential(300.0, 9)))
    prices = rng.exponential(10.0 ** rng.uniform(-6.0, -4.0), (len(instance.gpu_types) + 1, 9))
    total = simulate(instance, make_policy(name)).total_eur
    assert total >= priced_bound(instance, grid_s, prices) - 1e-9 * total


def priced_instance(seed: int, extra: str) -> Instance:
    """Make an instance with prices by period, and perhaps a price of GPUs or a cap at half of the power."""
    instance = random_instance(
        seed, jobs=8, span_s=(0.0, 500.0)[seed % 2], kinds=seed % 3 == 0 and extra in {"none", "gpu"}
    )
    instance = instance.with_mechanisms(drawn_series(seed, 3000.0))
    drawn_kw = [
        instance.gpu_types[v].power_w(node.gpus) / 1000.0
        for v, node in zip(instance.type_of_node, instance.nodes, strict=True)
    ]
    kw, largest_kw = sum(drawn_kw), max(drawn_kw)
    cap_kw = max(0.5 * kw, sum(c.nodes for c in instance.configurations[-1:]) * largest_kw, largest_kw)
    if extra == "gpu":
        return instance.with_mechanisms(Rent(0.3))
    if extra == "cap":
        return instance.with_mechanisms(PowerCap((0.0, 400.0), (kw, cap_kw)))
    if extra == "soft":
        return instance.with_mechanisms(PowerCap((0.0,), (0.5 * kw,), soft_eur_per_kwh=0.2))
    return instance


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_price_of_a_period_is_the_least_in_it(seed):
    rng = np.random.default_rng(seed)
    prices = PriceFactors(np.append(0.0, np.cumsum(rng.integers(1, 4, 9)).astype(float)), rng.random(10))
    grid_s = np.unique(rng.integers(0, 30, 8)).astype(float)
    expected = []
    for begin, end in zip(grid_s, np.append(grid_s[1:], np.inf), strict=True):
        ends = np.append(prices.start_s[1:], np.inf)
        expected.append(prices.factor[(prices.start_s < end) & (ends > begin)].min())
    assert least_factors(prices, grid_s).tolist() == expected


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), most=st.integers(1, 12))
def test_merged_periods_are_some_of_the_old_ones_and_few_enough(seed, most):
    rng = np.random.default_rng(seed)
    grid_s = np.append(0.0, np.cumsum(rng.exponential(1.0, 20)))
    fewer = merged(grid_s, rng.random(20), most)
    assert len(fewer) - 1 <= most
    assert set(fewer) <= set(grid_s)
    assert (fewer[0], fewer[-1]) == (grid_s[0], grid_s[-1])


def test_alike_prices_are_merged_first():
    grid_s = np.arange(5.0)
    assert merged(grid_s, np.array([1.0, 1.01, 5.0, 5.0]), 2).tolist() == [0.0, 2.0, 4.0]
