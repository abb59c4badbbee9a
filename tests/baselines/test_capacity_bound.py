"""The bound with capacity holds on every run, rises on a full cluster, and is no weaker than the clairvoyant one."""

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
    priced_bound,
    usual_policy_names,
)
from gpusched_env import Configuration, Instance, load_scenario, make_instance, simulate
from gpusched_env.mechanisms.prices.model import PriceSeries
from instances import HOUR, random_instance
from refusals import refused
from small_instances import hours_job, kilowatt_cluster, small_random_instance

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
HALF = Configuration("V", 1, share=0.5)
CHEAP = ("edf", "edf:preemptive", "fifo", "greedy", "sts")
ROUNDING = 1.0 - 1e-9


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Draw an instance with any kind of configuration, restarts, interference; all at once or not."""
    return random_instance(
        draw(st.integers(0, 10_000)),
        jobs=draw(st.integers(1, 25)),
        nodes=draw(st.integers(1, 4)),
        types=draw(st.integers(1, 2)),
        span_s=draw(st.sampled_from([0.0, 300.0, 4000.0])),
        restart_s=draw(st.sampled_from([0.0, 20.0])),
        kinds=draw(st.booleans()),
        interference=draw(st.booleans()),
    )


def drawn_prices(instance: Instance, seed: int, periods: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Draw a grid and prices, some of them 0, of the size of the cost of GPUs."""
    rng = np.random.default_rng(seed)
    grid_s = np.append(0.0, np.cumsum(rng.exponential(rng.choice([20.0, 200.0, 2000.0]), periods)))
    prices = rng.exponential(10.0 ** rng.uniform(-7.0, -3.0), (len(instance.gpu_types), periods))
    return grid_s, prices * (rng.random(prices.shape) < 0.7)


def full_cluster(jobs: int = 60) -> Instance:
    changes = {"cluster.nodes": 3, "jobs.count": jobs, "arrivals.lambda_s": 1500}
    return make_instance(load_scenario("default").replace(changes), 0)


def test_the_second_of_two_jobs_on_one_gpu_waits_for_the_first():
    """Each takes 1 h for 1 € and is due at once; an hour late costs 10 €.

    One ends after 1 h, the other after 2: 2 + 10 + 20 €. The clairvoyant bound lacks the hour in which the second one
    waits. If the GPU costs 20 €/h at first and 10 €/h less every hour, every hour in the first two is as good as any
    other: 1 + 25 € for each job, less 20 € for two hours of the GPU. What is missing is the length of a period.
    """
    two = kilowatt_cluster([hours_job(0.0, {ONE: 1.0}, 10.0) for _ in range(2)], [1], [ONE])
    assert clairvoyant_bound(two) == pytest.approx(22.0)
    assert 31.9 < capacity_bound(two) <= 32.0
    grid_s = np.linspace(0.0, 2.0 * HOUR, 201)
    falling = 20.0 * (1.0 - grid_s[:-1] / (2.0 * HOUR)) / HOUR
    assert priced_bound(two, grid_s, [falling]) == pytest.approx(32.0, abs=0.11)


def test_three_jobs_on_one_gpu_go_by_weight_over_length():
    """Smith's rule: 1 h at 9 €/h, 2 h at 10, 3 h at 6. Energy 6 €, tardiness 9 + 3 · 10 + 6 · 6 €."""
    jobs = [hours_job(0.0, {ONE: hours}, weight) for hours, weight in ((3.0, 6.0), (1.0, 9.0), (2.0, 10.0))]
    three = kilowatt_cluster(jobs, [1], [ONE])
    assert 80.0 < capacity_bound(three) <= 81.0


def test_a_job_on_a_shared_gpu_holds_a_part_of_it():
    """Two halves of one GPU fit at once; a third job must wait for its hour."""
    jobs = [hours_job(1.0, {HALF: 1.0}, 10.0) for _ in range(3)]
    assert capacity_bound(kilowatt_cluster(jobs[:2], [1], [HALF])) == pytest.approx(1.0)
    assert (
        capacity_bound(kilowatt_cluster(jobs, [1], [HALF]))
        > clairvoyant_bound(kilowatt_cluster(jobs, [1], [HALF])) + 2.0
    )


def test_jobs_give_way_on_efficient_configurations():
    """1 h on one GPU, 0.6 h on two, due at once. Alone each takes two; side by side both take one."""
    jobs = [hours_job(0.0, {ONE: 1.0, TWO: 0.6}, 10.0) for _ in range(2)]
    both = kilowatt_cluster(jobs, [2], [ONE, TWO])
    assert clairvoyant_bound(both) == pytest.approx(2.0 * (1.2 + 6.0))
    assert capacity_bound(both) > clairvoyant_bound(both) + 2.0


@settings(max_examples=30, deadline=None)
@given(instance=instances(), name=st.sampled_from(CHEAP), seed=st.integers(0, 3))
def test_no_policy_costs_less_than_the_bound(instance, name, seed):
    bound = capacity_bound(instance)
    assert simulate(instance, make_policy(name), seed=seed).total_eur >= bound * ROUNDING
    assert bound >= clairvoyant_bound(instance)


@pytest.mark.parametrize("name", usual_policy_names())
def test_no_policy_of_the_registry_costs_less_than_the_bound(name):
    for seed in range(4):
        instance = random_instance(seed, jobs=10, kinds=seed % 2 == 1, span_s=500.0)
        assert simulate(instance, make_policy(name), seed=seed).total_eur >= capacity_bound(instance) * ROUNDING
        prices = PriceSeries(np.arange(9) * 200.0, np.random.default_rng(seed).exponential(0.2, 9))
        priced = instance.with_mechanisms(prices)
        assert simulate(priced, make_policy(name), seed=seed).total_eur >= capacity_bound(priced) * ROUNDING


@settings(max_examples=60, deadline=None)
@given(instance=instances(), prices_seed=st.integers(0, 10_000), name=st.sampled_from(CHEAP))
def test_any_prices_give_a_bound(instance, prices_seed, name):
    total = simulate(instance, make_policy(name)).total_eur
    assert total >= priced_bound(instance, *drawn_prices(instance, prices_seed)) - 1e-9 * total


@settings(max_examples=60, deadline=None)
@given(instance=instances(), grid_seed=st.integers(0, 10_000))
def test_without_prices_it_is_the_clairvoyant_bound_on_any_grid(instance, grid_seed):
    grid_s, prices = drawn_prices(instance, grid_seed)
    assert priced_bound(instance, grid_s, 0.0 * prices) == pytest.approx(clairvoyant_bound(instance), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(instance=instances(), prices_seed=st.integers(0, 10_000), cut=st.floats(0.01, 0.99), period=st.integers(0, 11))
def test_a_period_cut_in_two_of_the_same_price_changes_nothing(instance, prices_seed, cut, period):
    grid_s, prices = drawn_prices(instance, prices_seed)
    finer_s = np.insert(grid_s, period + 1, grid_s[period] + cut * (grid_s[period + 1] - grid_s[period]))
    finer = np.insert(prices, period, prices[:, period], axis=1)
    before = priced_bound(instance, grid_s, prices)
    spent = np.abs(prices).max() * grid_s[-1] * 20.0
    assert priced_bound(instance, finer_s, finer) == pytest.approx(before, rel=1e-9, abs=1e-12 * spent)


def test_in_a_full_cluster_it_is_tighter_than_the_clairvoyant_bound_by_prices_of_what_is_scarce():
    instance = full_cluster()
    assert capacity_bound(instance) > 1.02 * clairvoyant_bound(instance)
    found = capacity_prices(instance)
    assert found.bound_eur == priced_bound(instance, found.grid_s, found.eur_per_gpu_s)
    assert found.bound_eur == capacity_bound(instance)
    assert np.all(found.eur_per_gpu_s >= 0.0)
    assert found.eur_per_gpu_s.max() > 0.0
    assert not np.any(found.eur_per_gpu_s[:, -1])


def test_tardiness_is_seen_where_energy_costs_nothing():
    two = kilowatt_cluster([hours_job(1.0, {ONE: 1.0}, 10.0) for _ in range(2)], [1], [ONE])
    free = replace(two, energy_price_eur_per_kwh=0.0)
    assert clairvoyant_bound(free) == pytest.approx(0.0, abs=1e-9)
    assert capacity_bound(free) > 4.0


def crowded(seed: int) -> Instance:
    """Make four jobs on one or two small nodes without base power, due before they can end."""
    instance = small_random_instance(seed, jobs=4, nodes=1 + seed % 2, kinds=seed % 4 > 1)
    types = tuple(replace(v, node_base_power_w=0.0) for v in instance.gpu_types)
    return replace(instance, gpu_types=types, jobs=replace(instance.jobs, due_s=0.3 * instance.jobs.due_s))


@pytest.mark.parametrize(("make", "near"), [(small_random_instance, 0.85), (crowded, 0.9)])
def test_it_is_below_the_optimum_of_small_static_instances(make, near):
    """It has no base power, which is much of the cost in the first kind of instance, and none in the second."""
    certify = pytest.importorskip("gpusched_reproductions.certify", reason="Pyomo is not installed")
    pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")
    ratios = []
    for seed in range(6):
        instance = make(seed)
        certificate = certify.certify_static(instance, limit_s=20.0)
        best = certificate.best_eur
        assert best <= certificate.bound_eur * (1.0 + 1e-3)  # the optimum is known
        bound = capacity_bound(instance)
        assert bound <= best * (1.0 + 1e-6)
        ratios.append(bound / best)
    assert np.mean(ratios) > near


@pytest.mark.parametrize(
    ("grid_s", "prices", "field"),
    [
        ([0.0], [[]], "grid_s"),
        ([0.0, 5.0, 5.0], [[0.0, 0.0]], "grid_s"),
        ([0.0, np.inf], [[0.0]], "grid_s"),
        ([1.0, 2.0], [[0.0]], "grid_s[0]"),
        ([0.0, 2.0], [[0.0, 0.0]], "prices"),
        ([0.0, 2.0], [[-1.0]], "prices"),
        ([0.0, 2.0], [[np.nan]], "prices"),
    ],
)
def test_prices_must_fit_the_instance(grid_s, prices, field):
    one = kilowatt_cluster([hours_job(1.0, {ONE: 1.0})], [1], [ONE])
    with refused(field):
        priced_bound(one, grid_s, prices)
