"""STS-X where the price of energy changes: when jobs wait, which of two takes the cheap hour, and what it knows."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import capacity_bound
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env import Configuration, EpochDistribution, Instance, Node, Result, simulate
from gpusched_env.mechanisms.prices.model import PriceSeries
from instances import HOUR, random_instance
from small_instances import KILOWATT, hours_job, kilowatt_cluster

ONE = Configuration("V", 1)
BLIND = StsX(by_price=False)


def hourly(*eur_per_kwh: float, known_h: float = np.inf) -> PriceSeries:
    """Make hourly prices, those of the next hours published so long before."""
    start_s = np.arange(len(eur_per_kwh)) * HOUR
    return PriceSeries(start_s, np.array(eur_per_kwh), published_s=start_s - known_h * HOUR)


def one_gpu(due_h: tuple[float, ...], prices: PriceSeries, hours: float = 1.0, weight: float = 10.0) -> Instance:
    """Make jobs of so many hours at 1 kW on one GPU."""
    jobs = [hours_job(due, {ONE: hours}, weight) for due in due_h]
    return kilowatt_cluster(jobs, [1], [ONE]).with_mechanisms(prices)


def run(instance: Instance, policy: StsX | None = None) -> Result:
    return simulate(instance, StsX() if policy is None else policy)


def test_a_job_with_time_waits_for_the_cheap_hour_and_one_that_is_due_soon_does_not():
    """Prices 3, 1 and 5 €/kWh, due after three hours: it runs in the second hour for 1 €."""
    instance = one_gpu((3.0,), hourly(3.0, 1.0, 5.0))
    assert run(instance).completion_s.tolist() == [2.0 * HOUR]
    assert run(instance).total_eur == pytest.approx(1.0) == pytest.approx(capacity_bound(instance))
    assert run(one_gpu((1.01,), hourly(3.0, 1.0, 5.0))).completion_s.tolist() == [HOUR]


def test_two_jobs_on_one_gpu_take_the_two_cheap_hours_the_cheaper_for_the_one_without_time():
    """Prices 3, 1, 2 and 5: 1 + 2 €. Alone, both would take the second hour."""
    instance = one_gpu((3.2, 3.2), hourly(3.0, 1.0, 2.0, 5.0))
    result = run(instance)
    assert sorted(result.completion_s.tolist()) == [2.0 * HOUR, 3.0 * HOUR]
    assert result.total_eur == pytest.approx(3.0)
    # One is due after two hours, the other after four: the first takes the hour at 1 €, the other that at 2 €.
    result = run(one_gpu((4.5, 2.1), hourly(9.0, 1.0, 2.0, 5.0, 5.0)))
    assert result.completion_s.tolist() == [3.0 * HOUR, 2.0 * HOUR]


def test_a_job_of_two_hours_pauses_in_the_costly_hour_between_unless_a_restart_costs_more():
    instance = one_gpu((3.5,), hourly(1.0, 9.0, 1.0, 9.0), hours=2.0)
    assert run(instance).total_eur == pytest.approx(2.0)
    # Prices 1.0, 1.2 and 1.0: a pause saves 0.2 € and costs half an hour of restart, 0.5 €.
    instance = one_gpu((4.0,), hourly(1.0, 1.2, 1.0, 9.0), hours=2.0)
    slow = replace(instance, jobs=replace(instance.jobs, restart_s=np.full(1, 0.5 * HOUR)))
    assert run(slow).completion_s.tolist() == [2.0 * HOUR]


def test_a_job_that_may_stop_early_does_not_leave_its_epochs_to_later_costlier_hours():
    """Four hours at most, each eighth as likely to be enough; prices rise by 2 % an hour: the first four cost 4.12 €.

    Weighed by the probability that the job still runs, later hours would look cheaper: it would begin after six.
    """
    instance = one_gpu((11.5,), hourly(*(1.0 + 0.02 * h for h in range(12))), hours=4.0)
    eighths = EpochDistribution.from_masses([1.0 / 8.0] * 8)
    result = run(replace(instance, jobs=replace(instance.jobs, distributions=(eighths,))))
    assert result.start_s.tolist() == [0.0]
    assert result.total_eur == pytest.approx(4.12)


@pytest.mark.parametrize(("due_h", "start_h"), [(9.0, 2.0), (3.5, 1.0)])
def test_a_job_with_time_powers_on_no_node_alone_and_runs_once_one_is_on(due_h, start_h):
    """A node of two GPUs draws 10 kW more while it is on: a job of 1 h and a second one that must run in hour 2.

    The first one, if it is due after 9 h, waits for the node; with 3.5 h it powers it on in the hour that is cheapest.
    """
    prices = hourly(3.0, 1.0, 1.5, *(3.0,) * 9)
    jobs = [hours_job(due_h, {ONE: 1.0}), replace(hours_job(3.01, {ONE: 1.0}), submission_s=2.0 * HOUR)]
    result = run(kilowatt_cluster(jobs, [2], [ONE], base_w=10_000.0).with_mechanisms(prices))
    assert result.start_s.tolist() == [start_h * HOUR, 2.0 * HOUR]


def test_a_job_that_waits_for_a_node_powers_one_on_before_the_period_ends_if_it_is_due():
    """Six minutes of work, due after 50 in an hour without other events: the node is on when a slack of 18 is left.

    It would be late if it waited for the next period.
    """
    instance = kilowatt_cluster([hours_job(50.0 / 60.0, {ONE: 0.1})], [2], [ONE], base_w=10_000.0)
    result = run(instance.with_mechanisms(hourly(1.0, 2.0, 3.0)))
    assert result.start_s[0] == pytest.approx((50.0 - 6.0 - 0.999 * 18.0) * 60.0)
    assert result.tardiness_eur == 0.0


def test_plans_expect_a_job_to_use_what_it_probably_needs():
    """One V of 1 kW and one W of 1.5 kW, two cheap hours; the first job runs on V alone, for two hours with 1 %.

    The second one, of an hour, waits for V, which is then free with 99 %: by the worst case it would run on W.
    """
    types, two = [KILOWATT, replace(KILOWATT, name="W", gpu_power_w=1500.0)], Configuration("W", 1)
    rare = EpochDistribution.from_masses([0.99, 0.01])
    first = replace(hours_job(2.3, {ONE: 2.0}), distribution=rare, epochs_needed=0.5)
    jobs = [first, hours_job(3.4, {ONE: 1.0, two: 1.0})]
    nodes = [Node("V", 1), Node("W", 1)]
    instance = Instance.from_jobs(types, nodes, jobs, [ONE, two], energy_price_eur_per_kwh=1.0, pue=1.0)
    result = run(instance.with_mechanisms(hourly(1.0, 1.0, 9.0, 9.0)))
    assert result.completion_s.tolist() == [HOUR, 2.0 * HOUR]
    assert result.total_eur == pytest.approx(2.0)


def test_what_a_job_is_expected_to_use_of_a_period_is_the_mean_over_its_epochs():
    """Two jobs of an hour that half an hour is likely to be enough for; V has room for what both are expected to use.

    Three hours at 1, 9 and 9 €: the third job, of 0.9 h, runs on W at 1.5 kW, since V is used for an hour. By the
    probability that the others run in the middle of their hour V would be free, and it would wait there.
    """
    types, two = [KILOWATT, replace(KILOWATT, name="W", gpu_power_w=1500.0)], Configuration("W", 1)
    rare = EpochDistribution.from_masses([0.99, 0.01])
    jobs = [replace(hours_job(due, {ONE: 1.0}), distribution=rare, epochs_needed=0.5) for due in (2.3, 2.5)]
    jobs.append(hours_job(3.4, {ONE: 0.9, two: 0.9}))
    nodes = [Node("V", 1), Node("W", 1)]
    instance = Instance.from_jobs(types, nodes, jobs, [ONE, two], energy_price_eur_per_kwh=1.0, pue=1.0)
    assert run(instance.with_mechanisms(hourly(1.0, 9.0, 9.0, 9.0))).total_eur == pytest.approx(2.35)


def test_a_job_that_runs_alone_on_a_node_goes_on_where_changes_are_free():
    """A job of an hour that began in the hour at 1 €, and one with time that comes after a quarter: 11 € and 5.6 €.

    A node of two GPUs draws 10 kW more while it is on; the second job runs at 0.5 €, after nine hours at 3 €.
    """
    late = replace(hours_job(14.0, {ONE: 1.0}), submission_s=0.25 * HOUR)
    instance = kilowatt_cluster([hours_job(3.5, {ONE: 1.0}), late], [2], [ONE], base_w=10_000.0)
    result = run(instance.with_mechanisms(hourly(1.0, *(3.0,) * 9, 0.5, *(3.0,) * 9)))
    assert result.completion_s[0] == HOUR
    assert result.total_eur < 17.0


def test_prices_that_are_not_published_do_not_change_what_it_does():
    """Only the present hour is known; then two series that differ later give the same first hour."""
    series = [hourly(1.0, *later, known_h=0.0) for later in ((9.0,) * 6, (0.1,) * 6)]
    first, second = (run(one_gpu((6.0, 6.0), each, hours=2.0)) for each in series)
    assert min(first.start_s) == min(second.start_s)
    assert first.log[0, :4].tolist() == second.log[0, :4].tolist()


@pytest.mark.parametrize("seed", range(2))
def test_without_a_series_it_is_the_policy_that_does_not_see_prices(seed):
    instance = random_instance(seed, jobs=15, span_s=500.0)
    ours, theirs = run(instance), run(instance, BLIND)
    assert ours.total_eur.hex() == theirs.total_eur.hex()
    assert ours.completion_s.tolist() == theirs.completion_s.tolist()


def test_on_changing_prices_it_costs_less_than_the_policy_that_does_not_see_them():
    """Four hours of work on one GPU, due after a day of two price levels: 4 € instead of 12 €."""
    instance = one_gpu((24.0,) * 4, hourly(*(3.0,) * 12, *(1.0,) * 12), weight=100.0)
    assert run(instance).total_eur == pytest.approx(4.0)
    assert run(instance, BLIND).total_eur > run(instance).total_eur
