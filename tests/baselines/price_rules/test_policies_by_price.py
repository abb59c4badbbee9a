"""The policies by price in the simulator: four hours by hand, properties on random instances, and what they know."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import StartByPrice, make_policy
from gpusched_baselines.hindsight import with_known_needs
from gpusched_baselines.price_rules.reservations import Ladder, filled, scaled
from gpusched_baselines.price_rules.terms import Waiting
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR, random_instance, three_jobs
from refusals import refused

STARTS = ("lowest-slot", "lowest-window", "carbon-time")
NAMES = (*STARTS, "ecovisor", "wait-awhile", "all-wait", "res-first", "carbonscaler", "capacity-curve")


def one_job(*prices: float, epochs: float = 2.0, due_h: float = 4.0, restart_s: float = 0.0, gpus: int = 1) -> Instance:
    """Make one job of so many hours on one 1 kW GPU, or on two twice as fast, with a price for each hour."""
    gpu = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=gpus)
    seconds = {Configuration("V", g): HOUR / g for g in range(1, gpus + 1)}
    job = Job(0.0, due_h * HOUR, 0.01, epochs, CERTAIN, epochs, seconds, restart_s=restart_s)
    instance = Instance.from_jobs([gpu], [Node("V", gpus)], [job], energy_price_eur_per_kwh=1.0, pue=1.0)
    return instance.with_mechanisms(PriceSeries(HOUR * np.arange(len(prices)), np.array(prices)))


def priced(seed: int, price: float | None = None, **settings) -> Instance:
    """Make a random instance with two hours of slack more, and a price for each ten minutes, or one for all."""
    instance = random_instance(seed, **settings)
    values = np.random.default_rng(seed).uniform(0.05, 0.5, 200) if price is None else np.full(200, price)
    jobs = replace(instance.jobs, due_s=instance.jobs.due_s + 2 * HOUR)
    return replace(instance, jobs=jobs).with_mechanisms(PriceSeries(600.0 * np.arange(200), values))


@pytest.mark.parametrize(
    ("name", "start_h", "end_h", "cost"),
    [
        ("edf", 0.0, 2.0, 5.0),
        ("lowest-slot", 1.0, 3.0, 4.0),
        ("lowest-window", 1.0, 3.0, 4.0),
        ("carbon-time", 1.0, 3.0, 4.0),
        ("ecovisor", 1.0, 4.0, 3.0),
        ("wait-awhile", 1.0, 4.0, 3.0),
        ("carbonscaler", 1.0, 4.0, 3.0),
        ("capacity-curve", 1.0, 3.0, 4.0),
    ],
)
def test_two_hours_of_work_in_four_hours(name, start_h, end_h, cost):
    """The hours cost 4, 1, 3, 2 €: 4 + 1 at once, 1 + 3 from the second, 1 + 2 with a pause.

    Of the next 24 hours the last 20 cost 2.5, so Ecovisor's threshold is 2.5: hours 1 and 3 are below it.
    """
    result = simulate(one_job(4.0, 1.0, 3.0, 2.0, 2.5), make_policy(name))
    assert (result.start_s[0] / HOUR, result.completion_s[0] / HOUR) == pytest.approx((start_h, end_h))
    assert (result.energy_eur, result.tardiness_eur) == pytest.approx((cost, 0.0))


@pytest.mark.parametrize("name", ["ecovisor", "wait-awhile"])
def test_a_pause_costs_a_restart_and_the_due_date_is_kept(name):
    """From 2 h on an hour of work is left. A pause adds half an hour, so it ends at 2.5 h; at 4 h all is done.

    Hours 1 and 3 and the half of hour 2 cost 1 + 2 + 1.5 €. With a restart of an hour there is no time for a pause.
    """
    result = simulate(one_job(4.0, 1.0, 3.0, 2.0, 2.5, restart_s=0.5 * HOUR), make_policy(name))
    assert (result.completion_s[0] / HOUR, result.energy_eur) == pytest.approx((4.0, 4.5))
    result = simulate(one_job(4.0, 1.0, 3.0, 2.0, 2.5, restart_s=HOUR), make_policy(name))
    assert (result.completion_s[0] / HOUR, result.energy_eur, int(result.switches[0])) == pytest.approx((3.0, 4.0, 0))


def test_a_shorter_limit_of_the_queue_wins_over_the_due_date_and_without_due_dates_it_alone_counts():
    instance = one_job(4.0, 3.0, 1.0, 2.0, epochs=1.0)
    short = Waiting(limits_s=(HOUR, HOUR))
    assert simulate(instance, StartByPrice("lowest-slot", waiting=short)).start_s[0] == HOUR
    late = one_job(4.0, 3.0, 1.0, 0.5, epochs=1.0, due_h=1.0)
    assert simulate(late, StartByPrice("lowest-slot")).start_s[0] == 0.0
    assert simulate(late, StartByPrice("lowest-slot", waiting=Waiting(meets_due_dates=False))).start_s[0] == 3 * HOUR


def test_reserved_gpus_start_jobs_at_once_and_others_wait_for_their_start():
    """Of four GPUs half are reserved: jobs 0 and 1 take them, job 2 waits for job 0 or, at its limit, for any."""
    gpu = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
    jobs = [Job(0.0, 10 * HOUR, 0.0, e, CERTAIN, e, {Configuration("V", 1): HOUR}) for e in (1.5, 3.0, 1.0)]
    instance = Instance.from_jobs([gpu], [Node("V", 1)] * 4, jobs, energy_price_eur_per_kwh=1.0, pue=1.0)
    instance = instance.with_mechanisms(PriceSeries(HOUR * np.arange(4), np.array([4.0, 1.0, 3.0, 2.0])))
    assert simulate(instance, make_policy("all-wait")).start_s.tolist() == [0.0, 0.0, 1.5 * HOUR]
    assert simulate(instance, make_policy("res-first")).start_s.tolist() == [0.0, 0.0, HOUR]
    limited = StartByPrice("limit", reserved=0.5, waiting=Waiting(limits_s=(0.5 * HOUR, 0.5 * HOUR)))
    assert simulate(instance, limited).start_s.tolist() == [0.0, 0.0, 0.5 * HOUR]


def test_carbonscaler_takes_steps_by_marginal_speed_over_marginal_cost():
    """Speeds 1 and 1.5 at rates 1 and 2 give values 1 and 0.5 at price 1, a quarter of that at price 4.

    Work 3 in hours of prices 4, 1, 3: steps (1, first), (1, second), then (3, first) at 0.333: 2.5 done; (4, first).
    """
    ladder = Ladder(0, np.array([5, 6]), np.array([1.0, 2.0]), np.array([1.0, 1.5]), np.array([1.0, 2.0]))
    prices, hours = np.array([4.0, 1.0, 3.0]), np.ones(3)
    steps, undone = scaled(ladder, prices, hours, np.full(3, 2.0), 3.0)
    assert (steps.tolist(), undone) == ([1, 2, 1], 0.0)
    assert scaled(ladder, prices, hours, np.array([2.0, 1.0, 0.0]), 3.0)[0].tolist() == [2, 1, 0]
    assert scaled(ladder, prices, hours, np.full(3, 2.0), 9.0)[1] == pytest.approx(4.5)


def test_a_capacity_curve_fills_the_cheapest_periods_with_what_is_free():
    prices, hours = np.array([4.0, 1.0, 3.0]), np.full(3, HOUR)
    assert filled(prices, hours, np.array([4.0, 1.0, 4.0]), 2.0, 1.0 * HOUR).tolist() == [0.0, 1.0, 1.0]
    assert filled(prices, hours, np.full(3, 4.0), 2.0, 1.5 * HOUR).tolist() == [0.0, 2.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_without_prices_that_change_every_policy_dispatches_by_due_date_or_submission(name):
    twin = "fifo" if name in {"all-wait", "res-first"} else "edf"
    for instance in (three_jobs(), random_instance(3, jobs=20, restart_s=30.0)):
        assert np.array_equal(simulate(instance, make_policy(name)).log, simulate(instance, make_policy(twin)).log)


@pytest.mark.parametrize("name", STARTS)
def test_at_a_constant_price_a_start_is_at_once(name):
    instance = priced(5, price=0.2, jobs=20)
    assert np.array_equal(simulate(instance, make_policy(name)).log, simulate(instance, make_policy("edf")).log)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_one_job_at_a_time_keeps_its_due_date_in_the_worst_case(name, seed):
    """On an empty cluster, with needs as large as they can be."""
    instance = priced(seed, jobs=4, span_s=40_000.0, restart_s=20.0)
    jobs = replace(instance.jobs, epochs_needed=instance.jobs.max_epochs)
    result = simulate(replace(instance, jobs=jobs), make_policy(name))
    edf = simulate(replace(instance, jobs=jobs), make_policy("edf"))
    in_time = edf.completion_s <= instance.jobs.due_s
    assert np.all(result.completion_s[in_time] <= instance.jobs.due_s[in_time] + 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_no_policy_knows_what_jobs_need_or_what_is_not_published(name):
    """Needs of jobs that end later, and prices that are published later, do not change the first rounds."""
    instance = priced(4, jobs=12, restart_s=5.0)
    start_s, price = instance.find("prices").start_s, instance.find("prices").eur_per_kwh
    known = np.where(start_s < 3 * HOUR, -np.inf, start_s - 0.5 * HOUR)
    other_price = np.where(start_s < 3 * HOUR, price, price[::-1])
    needed = np.maximum(instance.jobs.epochs_needed, 0.9 * instance.jobs.max_epochs)
    runs = []
    for eur, epochs in ((price, needed), (other_price, instance.jobs.max_epochs)):
        series = replace(instance.find("prices"), eur_per_kwh=eur, published_s=known)
        jobs = replace(instance.jobs, epochs_needed=epochs)
        runs.append(simulate(replace(instance, jobs=jobs).with_mechanisms(series), make_policy(name)))
    end_s = min(float(run.completion_s.min()) for run in runs)
    first, second = ([row.tolist()[:4] for row in run.log if row[at.LOG_END] < end_s] for run in runs)
    assert first == second
    assert np.array_equal(*(np.minimum(run.start_s, end_s) for run in runs))


def test_told_the_length_wait_awhile_is_as_published_and_never_costs_more_on_one_gpu():
    instance = one_job(4.0, 1.0, 3.0, 2.0, epochs=3.0, due_h=5.0)
    jobs = replace(instance.jobs, epochs_needed=np.array([1.0]))
    blind = simulate(replace(instance, jobs=jobs), make_policy("wait-awhile"))
    oracle = simulate(with_known_needs(replace(instance, jobs=jobs)), make_policy("wait-awhile"))
    assert (blind.energy_eur, oracle.energy_eur) == pytest.approx((1.0, 1.0))
    assert oracle.start_s[0] == HOUR


def test_a_limit_out_of_range_is_refused():
    with refused("waiting.limits_s[1]", -1.0):
        Waiting(limits_s=(0.0, -1.0))
