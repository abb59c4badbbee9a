"""STS under prices: by hand on one job, without prices as STS, and with prices that are published on the way.

One GPU type without base power: 500 W a GPU. An epoch takes 1 h on one GPU and 36 min on two, 0.5 and 0.6 kWh.
"""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import Sts, StsPriced, make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import Result, simulate
from instances import HOUR, random_instance

CONFIGURATIONS = [Configuration("V", g) for g in (1, 2)]


def run(prices: list[float], due_h: float, epochs: float = 2.0, restart_h: float = 0.0, **series: object) -> Result:
    """Run one job under hourly prices; the last one goes on."""
    seconds = {CONFIGURATIONS[0]: HOUR, CONFIGURATIONS[1]: 0.6 * HOUR}
    job = Job(0.0, due_h * HOUR, 0.01, epochs, EpochDistribution.certain(), epochs, seconds)
    types, nodes = [GpuType("V", 500.0, 0.0, 16.0)], [Node("V", 2)]
    of = Instance.from_jobs(types, nodes, [job], CONFIGURATIONS, restart_s=restart_h * HOUR)
    start = np.arange(len(prices)) * HOUR
    known = PriceSeries(start, np.array(prices), **series)  # type: ignore[arg-type]
    return simulate(replace(of, energy_price_eur_per_kwh=1.0, pue=1.0).with_mechanisms(known), StsPriced())


def held(result: Result) -> list[tuple[float, float]]:
    """Return when the job ran [h]."""
    rows = result.intervals().iter_rows(named=True)
    return [(round(row["start_s"] / HOUR, 3), round(row["end_s"] / HOUR, 3)) for row in rows]


def test_a_job_waits_for_the_cheapest_hours_and_pauses_in_a_costly_one_if_that_pays_for_the_restart():
    """Two GPUs do 5/3 of two epochs in the hour at 1 €, since speed costs 0.75 € an epoch; one does the rest at 2 €."""
    result = run([3.0, 1.0, 2.0, 9.0], 3.0)
    assert result.energy_eur == pytest.approx(1.0 + 0.5 * 2.0 / 3.0)
    assert held(result)[0] == (1.0, 2.0)
    result = run([1.0, 9.0, 1.0, 9.0], 4.0)
    assert result.energy_eur == pytest.approx(1.0)
    assert held(result)[-1] == (2.0, 3.0)
    # A pause saves 0.5 kWh · 0.1 €, and a restart of half an hour costs 0.25 kWh.
    result = run([1.0, 1.1, 1.0, 9.0], 4.0, restart_h=0.5)
    assert result.energy_eur == pytest.approx(0.5 * 1.0 + 0.5 * 1.1, rel=0.02)
    # 2.2 epochs until 2 h: two GPUs for 5/3 epochs in the hour at 1 €, the rest on one at 3 €.
    result = run([1.0, 3.0, 9.0], 2.0, epochs=2.2)
    assert result.tardiness_eur == 0.0
    assert result.energy_eur == pytest.approx(1.0 + 0.5 * 3.0 * (2.2 - 1.0 / 0.6), rel=0.02)


def test_a_price_that_is_published_later_changes_the_plan():
    """Until 1 h the third hour is expected at the reference price, 1 €; then 0.1 € is published, or 5 €."""
    published = np.array([-np.inf, -np.inf, HOUR, HOUR, HOUR])
    cheap = run([3.0, 1.5, 0.1, 0.1, 9.0], 4.0, published_s=published)
    costly = run([3.0, 1.5, 5.0, 5.0, 9.0], 4.0, published_s=published)
    assert held(cheap)[0][0] == 2.0
    assert held(costly)[0][0] == 1.0
    assert cheap.energy_eur == pytest.approx(0.1)


@pytest.mark.parametrize("seed", range(6))
def test_without_prices_it_is_sts(seed):
    instance = random_instance(seed)
    plain, priced = simulate(instance, Sts()), simulate(instance, StsPriced())
    assert priced.completion_s.tolist() == plain.completion_s.tolist()
    assert priced.energy_eur == plain.energy_eur


def test_it_costs_less_than_sts_where_prices_change_and_is_not_late():
    saved = []
    for seed in range(5):
        instance = random_instance(seed)
        hours = np.arange(-24, 400) * HOUR
        prices = PriceSeries(hours, 0.2 + 0.15 * np.sin(hours / HOUR * np.pi / 12.0))
        instance = instance.with_mechanisms(prices)
        costs = [r.energy_eur + r.tardiness_eur for r in (simulate(instance, p) for p in (Sts(), StsPriced()))]
        saved.append(1.0 - costs[1] / costs[0])
    assert np.mean(saved) > 0.0


@pytest.mark.parametrize("before_s", [1.0, 1e-9])
def test_a_round_an_instant_before_a_due_date_that_cannot_be_met(before_s):
    """50 epochs of an hour, due at 30 h; the submission of a second job makes a round just before that."""
    seconds = {CONFIGURATIONS[0]: HOUR}
    jobs = [
        Job(begin, due, 0.01, epochs, EpochDistribution.certain(), epochs, seconds)
        for begin, due, epochs in ((0.0, 30 * HOUR, 50.0), (30 * HOUR - before_s, 90 * HOUR, 1.0))
    ]
    types, nodes = [GpuType("V", 500.0, 0.0, 16.0)], [Node("V", 2)]
    prices = PriceSeries(np.array([0.0, 60.0]) * HOUR, np.array([1.0, 3.0]))
    of = Instance.from_jobs(
        types, nodes, jobs, CONFIGURATIONS, energy_price_eur_per_kwh=1.0, pue=1.0, mechanisms=[prices]
    )
    result = simulate(of, StsPriced())
    assert result.completion_s[0] == pytest.approx(50 * HOUR)
    assert result.energy_eur == pytest.approx(0.5 * 51.0)


@pytest.mark.parametrize("name", ["sts:priced", "ecovisor", "carbon-time", "sts-x"])
def test_a_period_that_ends_by_rounding_after_a_timer_is_over(name):
    """A job that comes an instant before a price falls is planned as one that comes at the fall; it does not pause."""
    now_s = np.nextafter(HOUR, 0.0)
    prices = PriceSeries(np.arange(4) * HOUR, np.array([3.0, 1.0, 2.0, 9.0]))
    seconds = {CONFIGURATIONS[0]: HOUR, CONFIGURATIONS[1]: 0.6 * HOUR}
    runs = []
    for submission_s in (now_s, HOUR):
        job = Job(submission_s, 5.0 * HOUR, 0.01, 2.0, EpochDistribution.certain(), 2.0, seconds)
        types, nodes = [GpuType("V", 500.0, 0.0, 16.0)], [Node("V", 2)]
        of = Instance.from_jobs(types, nodes, [job], CONFIGURATIONS, energy_price_eur_per_kwh=1.0, pue=1.0)
        runs.append(simulate(of.with_mechanisms(prices), make_policy(name)))
    assert held(runs[0]) == held(runs[1])
    assert runs[0].log.shape == runs[1].log.shape
