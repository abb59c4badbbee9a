"""The adaptation of STS-X: the effect of every factor, by hand on clusters whose busy GPUs cost 1 €/h."""

from dataclasses import replace

import numpy as np
import pytest

from adapted import Given
from gpusched_baselines import StsX
from gpusched_baselines.sts_x.plan import MARGIN, ORDER, PRICE, RESTART, WEIGHT, unadapted
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Result, simulate
from instances import HOUR, random_instance
from small_instances import CERTAIN, KILOWATT, hours_job, kilowatt_cluster

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
OTHER = Configuration("W", 1)


def starts_h(result: Result) -> list[float]:
    return (result.start_s / HOUR).round(3).tolist()


def held(result: Result) -> list[str]:
    return result.intervals()["configuration"].to_list()


def late_pair() -> Instance:
    """Make a GPU, and two late jobs: ten hours of 7.2 €/h, or one of 3.6; the second one's time is worth more."""
    return kilowatt_cluster([hours_job(0.5, {ONE: 10.0}, 7.2), hours_job(0.5, {ONE: 1.0}, 3.6)], [1], [ONE])


def two_types(due_h: float) -> Instance:
    """Make a job of an hour, on a V at 1 €/h or a W at 1.5."""
    types = KILOWATT, GpuType("W", 1500.0, 0.0, 16.0, 8)
    job = hours_job(due_h, {ONE: 1.0, OTHER: 1.0})
    nodes = [Node("V", 1), Node("W", 1)]
    return Instance.from_jobs(types, nodes, [job], [ONE, OTHER], energy_price_eur_per_kwh=1.0, pue=1.0)


def test_factors_of_1_change_nothing():
    found = unadapted(3, np.array([[1.0, 2.0]]))
    assert not found.jobs.any()
    assert found.jobs.shape == (3, 5)
    assert (found.rate.tolist(), found.deferrable_rate.tolist(), found.same, found.delay) == (
        [[1, 2]],
        [[1, 2]],
        True,
        0.0,
    )


@pytest.mark.parametrize("more", [{}, {"restart_s": 30.0}, {"kinds": True}])
def test_an_adaptation_of_0_changes_nothing(more):
    """Also where the cheapest configuration of deferrable jobs is not kept."""
    instance = random_instance(5, jobs=25, nodes=4, span_s=2000.0, **more)
    expected = simulate(instance, StsX()).log.tobytes()
    assert simulate(instance, Given()).log.tobytes() == expected
    assert simulate(instance, Given(deferrable={0: 1.0})).log.tobytes() == expected


def test_a_job_leaves_a_type_with_a_higher_price_for_jobs_like_it_which_costs_what_it_costs():
    instance = two_types(1.0)
    assert held(simulate(instance, StsX())) == ["Vx1"]
    assert held(simulate(instance, Given(critical={0: 1.6}))) == ["Wx1"]
    assert held(simulate(instance, Given(critical={0: 1.4}))) == ["Vx1"]
    assert held(simulate(instance, Given(deferrable={0: 1.6}))) == ["Vx1"]
    instance = two_types(9.0)
    assert held(simulate(instance, StsX())) == ["Vx1"]
    assert held(simulate(instance, Given(deferrable={0: 1.6}))) == ["Wx1"]
    assert held(simulate(instance, Given(deferrable={0: 1.4}))) == ["Vx1"]
    assert held(simulate(instance, Given(critical={0: 1.6}))) == ["Vx1"]
    assert simulate(two_types(1.0), Given(critical={0: 1.6})).energy_eur == pytest.approx(1.5)


def test_a_job_that_waits_follows_later_prices():
    """It waits for another job on V; when that arrives, V is costly, and both fill a node of W."""
    types = KILOWATT, GpuType("W", 1500.0, 0.0, 16.0, 8)
    jobs = [replace(hours_job(50.0, {ONE: 1.0, OTHER: 1.0}), submission_s=at_h * HOUR) for at_h in (0.0, 1.0)]
    nodes = [Node("V", 2), Node("W", 2)]
    instance = Instance.from_jobs(types, nodes, jobs, [ONE, OTHER], energy_price_eur_per_kwh=1.0, pue=1.0)
    assert held(simulate(instance, StsX())) == ["Vx1", "Vx1"]
    result = simulate(instance, Given(deferrable={0: 1.6}, from_s=1.0))
    assert (held(result), starts_h(result)) == (["Wx1", "Wx1"], [1.0, 1.0])


FOUR = Configuration("V", 4)


def test_a_job_with_more_weight_pays_for_the_best_of_what_fits():
    """It wants four GPUs, but two are taken. One costs 1 €, two 1.4 €, for 0.3 h less at 1 €/h, or 2 €/h."""
    jobs = [hours_job(0.0, {TWO: 10.0}, 1000.0), hours_job(0.0, {ONE: 1.0, TWO: 0.7, FOUR: 0.3}, 1.0)]
    instance = kilowatt_cluster(jobs, [4], [ONE, TWO, FOUR])
    free = {PRICE: -20.0}
    assert held(simulate(instance, Given(logs=free))) == ["Vx2", "Vx1"]
    assert held(simulate(instance, Given(logs=free | {(1, WEIGHT): np.log(2.0)}))) == ["Vx2", "Vx2"]


def test_a_running_job_with_a_higher_restart_penalty_stays_if_what_fits_is_not_worth_one():
    """After 0.1 h on one GPU it wants four, but gets two, for 0.27 h less at 2 €/h; that is worth 36 s, but not 0.1 h.

    On one GPU 0.9 + 1.8 €; on two (0.63 + 0.01) · (2 + 2) = 2.56 €, or 2.92; on four (0.27 + 0.1) · (4 + 2) = 2.22.
    """
    three = Configuration("V", 3)
    jobs = [
        hours_job(0.0, {three: 0.1}, 1000.0),
        hours_job(0.0, {ONE: 1.0, TWO: 0.7, FOUR: 0.3}, 2.0),
        replace(hours_job(0.2, {TWO: 10.0}, 1000.0), submission_s=0.1 * HOUR),
    ]
    instance = kilowatt_cluster(jobs, [4], [ONE, TWO, three, FOUR])
    instance = replace(instance, jobs=replace(instance.jobs, restart_s=np.full(3, 36.0)))
    free = {PRICE: -20.0}
    stays = free | {(1, RESTART): np.log(10.0)}
    assert held_by(simulate(instance, Given(waits=False, logs=free)), 1)[:2] == ["Vx1", "Vx2"]
    assert held_by(simulate(instance, Given(waits=False, logs=stays)), 1) == ["Vx1"]


def held_by(result: Result, job: int) -> list[str]:
    intervals = result.intervals()
    return intervals.filter(intervals["job"] == job).sort("start_s")["configuration"].to_list()


@pytest.mark.parametrize("control", [ORDER, WEIGHT])
def test_a_late_job_with_a_large_order_factor_comes_first(control):
    """A second is worth 0.72 €/h an hour to the first and 3.6 to the second: a factor of 5."""
    instance = late_pair()
    assert starts_h(simulate(instance, StsX())) == [1.0, 0.0]
    assert starts_h(simulate(instance, Given(logs={(0, control): np.log(4.9)}))) == [1.0, 0.0]
    assert starts_h(simulate(instance, Given(logs={(0, control): np.log(5.1)}))) == [0.0, 10.0]
    assert starts_h(simulate(instance, Given(logs={(1, control): -np.log(5.1)}))) == [0.0, 10.0]
    assert starts_h(simulate(instance, Given(logs={control: 1.0}))) == [1.0, 0.0]


def test_a_critical_job_in_time_with_a_large_order_factor_comes_first():
    """Both start within 1 % of their hour; the first one's slack is 0.002 h, the second one's 0.004."""
    instance = kilowatt_cluster([hours_job(1.002, {ONE: 1.0}), hours_job(1.004, {ONE: 1.0})], [1], [ONE])
    assert starts_h(simulate(instance, StsX())) == [0.0, 1.0]
    assert starts_h(simulate(instance, Given(logs={(1, ORDER): np.log(1.9)}))) == [0.0, 1.0]
    assert starts_h(simulate(instance, Given(logs={(1, ORDER): np.log(2.1)}))) == [1.0, 0.0]


@pytest.mark.parametrize(("factor", "start_h"), [(1.0, 2.99), (10.0, 2.9), (0.1, 2.999)])
def test_a_job_that_waits_is_critical_at_the_adapted_slack(factor, start_h):
    """It does not fill a node of two GPUs alone, so it waits until 1 % of its hour before its latest start, 3 h."""
    instance = kilowatt_cluster([hours_job(4.0, {ONE: 1.0})], [2], [ONE])
    result = simulate(instance, Given(logs={MARGIN: np.log(factor)}))
    assert starts_h(result) == [pytest.approx(start_h, abs=2e-3 * factor)]
    assert result.late_jobs == 0


def test_a_job_with_more_weight_pays_for_being_in_time():
    """Two GPUs for 0.9 h cost 1.8 €, one for an hour 1 € and 0.1 h late at 3.6 €/h: 1.36 €. From 2.23 times that on it
    pays."""
    instance = kilowatt_cluster([hours_job(0.9, {ONE: 1.0, TWO: 0.9}, 3.6)], [2], [ONE, TWO])
    assert held(simulate(instance, StsX())) == ["Vx1"]
    assert held(simulate(instance, Given(logs={WEIGHT: np.log(2.1)}))) == ["Vx1"]
    assert held(simulate(instance, Given(logs={WEIGHT: np.log(2.3)}))) == ["Vx2"]


def test_a_job_with_a_lower_price_of_short_gpus_takes_more_of_them():
    """On two GPUs a job is in time, at 0.4 € more for 0.3 h, which are worth 1.08 €; but eight jobs have eight GPUs."""
    jobs = [hours_job(0.7, {ONE: 1.0, TWO: 0.7}, 3.6)] * 8
    instance = kilowatt_cluster(jobs, [2] * 4, [ONE, TWO])
    assert set(held(simulate(instance, StsX()))) == {"Vx1"}
    assert set(held(simulate(instance, Given(logs={PRICE: -20.0})))) == {"Vx2"}
    assert set(held(simulate(instance, StsX(priced=False)))) == {"Vx2"}


def test_a_running_job_with_a_higher_restart_penalty_stays():
    """When the short job ends, the long one would be 1.6 h faster on both GPUs, for a minute's restart."""
    jobs = [hours_job(0.0, {ONE: 4.0, TWO: 2.2}, 10.0), hours_job(0.0, {ONE: 0.5}, 1000.0)]
    instance = kilowatt_cluster(jobs, [2], [ONE, TWO])
    instance = replace(instance, jobs=replace(instance.jobs, restart_s=np.full(2, 60.0)))
    assert simulate(instance, StsX()).switches.tolist() == [1, 0]
    assert simulate(instance, Given(logs={RESTART: 5.0})).switches.tolist() == [0, 0]
    assert simulate(instance, Given(logs={(1, RESTART): 5.0})).switches.tolist() == [1, 0]


def test_with_a_longer_delay_the_value_of_time_is_that_after_a_longer_wait():
    """One GPU. Half of the first kind of job end after an hour, in time; the others take two, from 1.5 h on late.

    After a wait of 0.3 h a second is worth half of its weight, over 1.5 h: 2.88 €/h an hour, less than the second job's
    3.6. After 2.5 h the first half is late, too: 5.18.
    """
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    perhaps = Job(0.0, 1.5 * HOUR, 0.0024, 2.0, halves, 2.0, seconds_per_epoch={ONE: HOUR})
    certain = Job(0.0, 0.6 * HOUR, 0.001, 1.0, CERTAIN, 1.0, seconds_per_epoch={ONE: HOUR})
    instance = kilowatt_cluster([perhaps, certain], [1], [ONE])
    assert starts_h(simulate(instance, StsX())) == [1.0, 0.0]
    assert starts_h(simulate(instance, Given(delay=np.log(8.0)))) == [0.0, 2.0]
