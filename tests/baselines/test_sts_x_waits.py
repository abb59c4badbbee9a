"""STS-X: critical jobs that wait for the GPU type of their plan, and the load of arrivals; by hand."""

import numpy as np
import polars as pl
import pytest

from gpusched_baselines import StsX
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_baselines.sts_x.capacity_price import MOST_LOAD, capacity_price, load_of_arrivals
from gpusched_baselines.sts_x.placements import FIRST, JOBS, add_ending
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Interference,
    Job,
    Node,
    Tenant,
    UtilisationModel,
    simulate,
)
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR

# A busy fast GPU costs 1 €/h, and an epoch takes an hour there; a slow one costs 2 €/h, and an epoch takes three hours.
FAST = GpuType("F", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
SLOW = GpuType("S", gpu_power_w=2000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
ON_FAST, ON_SLOW = Configuration("F", 1), Configuration("S", 1)


def two_jobs(weight_eur_per_h: float) -> Instance:
    """Two jobs of two epochs that are due at once: the first one on the fast GPU ends after two hours."""
    seconds = {ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR}
    weights = (10.0 * weight_eur_per_h / HOUR, weight_eur_per_h / HOUR)
    jobs = [Job(0.0, 1.0, weight, 2.0, CERTAIN, 2.0, seconds) for weight in weights]
    nodes = [Node("F", 1), Node("S", 1), Node("S", 1)]
    return Instance.from_jobs([FAST, SLOW], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0)


def second_starts_h(instance: Instance, policy: StsX) -> float:
    return float(simulate(instance, policy).start_s[1]) / HOUR


def test_a_late_job_waits_for_the_cheap_type_where_that_costs_less_than_what_is_free():
    """On the slow GPU it costs 12 € and ends after 6 h; after a wait of 2 h it costs 2 € and ends after 4 h."""
    assert second_starts_h(two_jobs(0.1), StsX()) == pytest.approx(2.0)


@pytest.mark.parametrize("policy", [StsX(waits=False), StsX(guarantees=True)], ids=["no waits", "guarantees"])
def test_it_takes_what_is_free_where_no_job_may_wait_and_where_due_dates_are_guaranteed(policy):
    assert second_starts_h(two_jobs(0.1), policy) == 0.0


def test_a_job_whose_time_is_dear_takes_the_slower_type_where_the_wait_is_longer():
    """Here an epoch takes 1.2 h on the slow GPU: 2.4 h and 4.8 € for a wait of 2 h, 2 h of work and 2 €."""
    seconds = {ON_FAST: HOUR, ON_SLOW: 1.2 * HOUR}
    for weight, start_h in ((0.1, 2.0), (20.0, 0.0)):
        jobs = [Job(0.0, 1.0, w / HOUR, 2.0, CERTAIN, 2.0, seconds) for w in (10.0 * weight, weight)]
        instance = Instance.from_jobs(
            [FAST, SLOW], [Node("F", 1), Node("S", 1)], jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0
        )
        assert second_starts_h(instance, StsX()) == pytest.approx(start_h)


@pytest.mark.parametrize(("restart_h", "start_h", "end_h"), [(0.0, 0.0, 10.0 / 3.0), (1.0, 2.0, 4.0)])
def test_a_job_runs_on_what_is_free_until_its_type_is_unless_changes_take_long(restart_h, start_h, end_h):
    """An hour on the slow GPU costs 0.1 €, and a job 3 € an hour: 18.6 € to the end there, 14 € after a wait of 2 h.

    With 2/3 of an epoch done meanwhile it costs 0.2 + 4/3 + 3 * 10/3 = 11.5 €. Where a change takes an hour it counts
    two: 19.5 €.
    """
    slow = GpuType("S", gpu_power_w=100.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
    seconds = {ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR}
    jobs = [Job(0.0, 1.0, w / HOUR, 2.0, CERTAIN, 2.0, seconds, restart_s=restart_h * HOUR) for w in (30.0, 3.0)]
    nodes = [Node("F", 1), Node("S", 1), Node("S", 1)]
    instance = Instance.from_jobs([FAST, slow], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0)
    result = simulate(instance, StsX())
    assert result.start_s[1] / HOUR == pytest.approx(start_h)
    assert result.completion_s[1] / HOUR == pytest.approx(end_h)


@pytest.mark.parametrize(("weight_eur_per_h", "next_on"), [(0.3, "F"), (0.8, "S")])
def test_a_job_that_loses_its_gpus_counts_the_restart_after_its_wait(weight_eur_per_h, next_on):
    """At 1 h another job takes the fast GPU for 2 h. An epoch is left: 1 h there, 1.2 h on a slow one; restart 0.5 h.

    The load of arrivals is 2.377 / 21, 2.377 GPU-hours the harmonic mean of one at 2 and twenty at 2.4: the wait
    counts 2.26 h. With weight w: 3.4 + 1.7 w € on a slow one; 1.5 + 3.76 w € after the wait, or 1 + 3.26 w without that
    restart. It waits below 0.85 of the first: up to w = 0.60; without the restart up to 1.04.
    """
    seconds = {ON_FAST: HOUR, ON_SLOW: 1.2 * HOUR}
    jobs = [
        Job(at_h * HOUR, at_h * HOUR + 1.0, weight / HOUR, 2.0, CERTAIN, 2.0, seconds)
        for at_h, weight in ((0.0, weight_eur_per_h), (1.0, 1000.0))
    ]
    nodes = [Node("F", 1), *[Node("S", 1)] * 20]
    instance = Instance.from_jobs([FAST, SLOW], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=HOUR / 2)
    held = simulate(instance, StsX()).intervals().filter(pl.col("job") == 0).sort("start_s")
    assert held["configuration"].to_list() == ["Fx1", f"{next_on}x1"]


def test_no_job_waits_for_gpus_of_others_where_tenants_have_quotas():
    tenants = Tenants((Tenant("a", (Cells("F", 1, 1), Cells("S", 1, 2))),), "quota")
    assert second_starts_h(two_jobs(0.1).with_mechanisms(tenants), StsX()) == 0.0


def test_no_job_waits_where_co_runners_slow_jobs_down_by_utilisation():
    """The same cluster, whose slow GPUs could be shared: without co-runners or with pairs of them that changes nothing.

    Where jobs divide the time of a GPU it is not known when they end.
    """
    quarter = Configuration("S", 1, share=0.25)
    seconds = {ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR, quarter: 50.0 * HOUR}
    jobs = [Job(0.0, 1.0, weight / HOUR, 2.0, CERTAIN, 2.0, seconds) for weight in (1.0, 0.1)]
    nodes = [Node("F", 1), Node("S", 1), Node("S", 1)]
    shared = Instance.from_jobs([FAST, SLOW], nodes, jobs, tuple(seconds), energy_price_eur_per_kwh=1.0, pue=1.0)
    assert second_starts_h(shared, StsX()) == pytest.approx(2.0)
    assert second_starts_h(shared.with_mechanisms(Interference(np.full((2, 1, 1), 1.5))), StsX()) == pytest.approx(2.0)
    assert second_starts_h(shared.with_mechanisms(UtilisationModel(np.full((2, 1), 0.9))), StsX()) == 0.0


@pytest.mark.parametrize(
    ("before", "epochs", "first_h", "rest_h"), [(ON_SLOW, 0, 2.5, 3.0), (ON_FAST, 0, 2.0, 2.0), (ON_FAST, 1, 1.0, 1.0)]
)
def test_a_change_counts_once_for_the_first_possible_end_and_twice_for_the_expected_rest(
    before, epochs, first_h, rest_h
):
    """Two certain epochs of an hour on the fast GPU; a change from the slow one takes half an hour."""
    instance = two_jobs(0.1)
    state = State(instance)
    state.advance()
    rows = state.board.jobs.copy()
    rows[0, [at.CONFIG, at.OLD_CONFIG]] = [instance.configurations.index(c) for c in (ON_FAST, before)]
    rows[0, [at.NODE, at.OLD_NODE, at.SLOT, at.OLD_SLOT]] = 0
    rows[0, [at.RESTART_S, at.RESUMING_S]] = HOUR / 2
    rows[0, at.EPOCHS] = epochs
    ending = np.zeros((3, 2))
    add_ending(state.board.replaced(jobs=rows), 0, ending)
    assert (1.0 / ending[[FIRST, JOBS], 0] / HOUR).tolist() == pytest.approx([first_h, rest_h])


def five_jobs() -> Instance:
    """Jobs of two epochs that are not late: two at 0 h, and one at 1, 2 and 4 h each."""
    seconds = {ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR}
    jobs = [Job(at_h * HOUR, 100.0 * HOUR, 0.001, 2.0, CERTAIN, 2.0, seconds) for at_h in (0.0, 0.0, 1.0, 2.0, 4.0)]
    nodes = [Node("F", 1), Node("S", 1), Node("S", 1)]
    return Instance.from_jobs([FAST, SLOW], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0)


def test_the_load_of_arrivals_counts_jobs_after_the_first_ones_over_the_time_since():
    """Two jobs at 0 h are a stock; three come at 1, 2 and 4 h. A job needs 3 / (1/2 + 2/6) GPU-hours."""
    loads = {}

    def look(state: State) -> None:
        loads[state.board.clock[at.NOW] / HOUR] = load_of_arrivals(state.board, 3.0)

    simulate(five_jobs(), StsX(), on_round=look)
    fills_h = 1.0 / (1.0 / 2.0 + 2.0 / 6.0)
    assert (loads[0.0], loads[1.0], loads[2.0], loads[4.0]) == pytest.approx(
        (0.0, fills_h, 2.0 * fills_h / 2.0, 3.0 * fills_h / 4.0)
    )


def test_a_job_that_may_use_one_type_needs_its_gpu_seconds_there():
    """At 2 h two jobs have come since the first one: 2 GPU-hours of the fast type, and 6 of the slow one."""
    kinds = ({ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR}, {ON_FAST: HOUR}, {ON_SLOW: 3.0 * HOUR})
    jobs = [Job(k * HOUR, 100.0 * HOUR, 0.001, 2.0, CERTAIN, 2.0, seconds) for k, seconds in enumerate(kinds)]
    nodes = [Node("F", 1), Node("S", 1)]
    instance = Instance.from_jobs([FAST, SLOW], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0)
    loads = {}

    def look(state: State) -> None:
        loads[state.board.clock[at.NOW] / HOUR] = load_of_arrivals(state.board, 2.0)

    simulate(instance, StsX(), on_round=look)
    assert loads[2.0] == pytest.approx((2.0 + 6.0) / (2.0 * 2.0))


def test_a_load_of_arrivals_above_one_multiplies_the_price_of_gpu_time_up_to_three_times():
    """At 1 h the load is 1.2 and at 4 h 0.9. Three busy GPUs cost 5 €/h, so ten €/h of values are 2 of it."""
    prices = {}

    def look(state: State) -> None:
        prices[state.board.clock[at.NOW] / HOUR] = capacity_price(state.board, np.full(2, 5.0 / HOUR), FREE_RATE)

    simulate(five_jobs(), StsX(), on_round=look)
    assert (prices[1.0], prices[4.0]) == pytest.approx((2.0 * 1.2, 2.0))
    many = Instance.from_jobs(
        [FAST, SLOW],
        [Node("F", 1)],
        [Job(k * HOUR / 100.0, 100.0 * HOUR, 0.001, 2.0, CERTAIN, 2.0, {ON_FAST: HOUR}) for k in range(9)],
        energy_price_eur_per_kwh=1.0,
        pue=1.0,
        restart_s=0.0,
    )
    state = State(many)
    while state.board.count[at.SUBMITTED] < 9:
        state.advance()
    assert capacity_price(state.board, np.full(2, 5.0 / HOUR), FREE_RATE) == pytest.approx(10.0 * MOST_LOAD)


@pytest.mark.parametrize(
    ("ends", "most", "waits"), [(CERTAIN, 4.0, False), (EpochDistribution([0.0, 0.125, 1.0], [1.0, 3 / 7]), 8.0, True)]
)
def test_a_wait_is_not_shorter_than_the_time_until_a_job_can_end(ends, most, waits):
    """Two jobs of 4 h in the mean hold the fast GPUs; at random one ends after 2 h, certain ones not before 4 h.

    The third job has an epoch: 1 h on a fast GPU, 3 h on a slow one. With 2 € for an hour late it costs 12 € there,
    7 € after a wait of 2 h, and 11 € after 4 h: more than 0.85 of 12 €.
    """
    seconds = {ON_FAST: HOUR, ON_SLOW: 3.0 * HOUR}
    long = [Job(0.0, 1.0, 100.0 / HOUR, most, ends, most, seconds) for _ in range(2)]
    jobs = [*long, Job(0.0, 1.0, 2.0 / HOUR, 1.0, CERTAIN, 1.0, seconds)]
    nodes = [Node("F", 1), Node("F", 1), Node("S", 1)]
    instance = Instance.from_jobs([FAST, SLOW], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0)
    starts = simulate(instance, StsX()).start_s / HOUR
    assert starts[:2].tolist() == [0.0, 0.0]
    assert (starts[2] > 0.0) == waits
