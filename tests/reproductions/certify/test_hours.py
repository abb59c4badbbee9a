"""Optima of small instances where the price of energy or the cap of the site changes, by hand and against bounds."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import capacity_bound, make_policy
from gpusched_env import Configuration, Instance, Rent, simulate
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_reproductions.certify.certified_run import static_instance
from instances import HOUR
from refusals import refused
from small_instances import hours_job, kilowatt_cluster, small_random_instance

pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")
certify = pytest.importorskip("gpusched_reproductions.certify", reason="Pyomo is not installed")

ONE = Configuration("V", 1)


def hourly(*eur_per_kwh: float) -> PriceSeries:
    return PriceSeries(np.arange(len(eur_per_kwh)) * HOUR, np.array(eur_per_kwh))


def optimum(instance: Instance) -> float:
    """Return the optimum, which bound and schedule must agree on [€]."""
    found = certify.certify_static(instance)
    assert found.best_eur == pytest.approx(found.bound_eur, rel=1e-4)
    return found.best_eur


def test_the_optimum_is_in_the_cheap_hours_and_under_the_cap():
    """Prices 3 and 1: an hour each, both due after two."""
    two = kilowatt_cluster([hours_job(2.0, {ONE: 1.0}, 10.0) for _ in range(2)], [1], [ONE])
    assert optimum(two.with_mechanisms(hourly(3.0, 1.0, 5.0))) == pytest.approx(4.0)
    one = kilowatt_cluster([hours_job(4.0, {ONE: 2.0}, 10.0)], [1], [ONE])
    priced = one.with_mechanisms(hourly(1.0, 9.0, 1.0, 9.0))
    assert optimum(priced) == pytest.approx(2.0)
    schedule = certify.certify_static(priced).schedule
    assert [(stay.start_s / HOUR, stay.seconds / HOUR) for stay in schedule.stays] == [(0.0, 1.0), (2.0, 1.0)]
    # 1 kW each for an hour; from 0.5 h on only one may run: it ends late by 0.5 h, at 10 €/h, at 1 €/kWh.
    two = kilowatt_cluster([hours_job(1.0, {ONE: 1.0}, 10.0) for _ in range(2)], [2], [ONE])
    assert optimum(two.with_mechanisms(PowerCap((0.0, 0.5 * HOUR), (2.0, 1.0)))) == pytest.approx(2.0 + 5.0, rel=1e-3)


def priced(seed: int) -> Instance:
    """Make three jobs with time to spare at prices that change every few minutes."""
    instance = small_random_instance(seed, kinds=False)
    rng = np.random.default_rng(seed)
    jobs = replace(instance.jobs, due_s=2.0 * instance.jobs.due_s)
    step_s = float(jobs.due_s.max()) / 6.0
    return replace(instance, jobs=jobs).with_mechanisms(PriceSeries(np.arange(7) * step_s, rng.exponential(0.2, 7)))


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_optimum_and_policies_above_it(seed):
    instance = static_instance(priced(seed), known=True)
    found = certify.certify_static(instance, limit_s=20.0)
    assert capacity_bound(instance) <= found.best_eur * (1.0 + 1e-6)
    for name in ("edf", "sts", "sts-x"):
        assert simulate(instance, make_policy(name)).total_eur >= found.bound_eur * (1.0 - 1e-6)


def test_a_soft_cap_and_a_price_of_gpus_are_refused():
    one = kilowatt_cluster([hours_job(4.0, {ONE: 2.0}, 10.0)], [1], [ONE])
    with refused("site.soft_eur_per_kwh"):
        certify.certify_static(one.with_mechanisms(PowerCap((0.0,), (1.0,), soft_eur_per_kwh=1.0)))
    with refused("gpu_hour_eur"):
        certify.certify_static(one.with_mechanisms(Rent(1.0), hourly(1.0)))
