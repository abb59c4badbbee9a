"""Bounds: by hand, below every policy, and of shares of GPUs."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed import Fixed
from gpusched_baselines import (
    capacity_bound,
    clairvoyant_bound,
    clairvoyant_bounds,
    make_policy,
    non_clairvoyant_bound,
    non_clairvoyant_bounds,
)
from gpusched_baselines.bounds import options
from gpusched_baselines.bounds.options import Options
from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Interference,
    Job,
    Node,
    Synchronisation,
    UtilisationModel,
    load_scenario,
    make_instance,
    simulate,
)
from helpers import helped_instance
from instances import CERTAIN, HOUR, by_utilisation, random_instance
from mixed import mixed_instance
from small_instances import EARLY_COMPLETIONS, early_completion, hours_job, kilowatt_cluster


def small(seed: int) -> Instance:
    """Make two jobs with three outcomes each, due dates that the fastest configuration just meets or more."""
    instance = random_instance(seed, jobs=2, nodes=4, span_s=300.0)
    rng = np.random.default_rng(seed)
    distribution = EpochDistribution.from_masses(rng.integers(1, 5, 3))
    jobs = instance.jobs
    fastest = jobs.seconds_per_epoch.min(axis=1) * jobs.max_epochs
    return replace(
        instance,
        jobs=replace(
            jobs,
            due_s=jobs.submission_s + fastest * rng.uniform(1.3, 5.0, 2),
            distributions=(distribution,),
            distribution=np.zeros(2, dtype=int),
            epochs_needed=jobs.max_epochs,
        ),
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["sts", "edf", "greedy"]))
def test_the_expected_cost_of_a_policy_that_keeps_due_dates_is_not_below_the_non_clairvoyant_bound(seed, name):
    instance = small(seed)
    distribution = instance.jobs.distributions[0]
    expected, clairvoyant, always_in_time = 0.0, 0.0, True
    for outcome in product(range(3), repeat=2):
        needed = distribution.edges[np.array(outcome) + 1] * instance.jobs.max_epochs
        drawn = replace(instance, jobs=replace(instance.jobs, epochs_needed=needed))
        result = simulate(drawn, make_policy(name))
        probability = float(np.prod(distribution.masses[list(outcome)]))
        expected += probability * result.total_eur
        clairvoyant += probability * clairvoyant_bound(drawn)
        always_in_time &= result.late_jobs == 0
    if always_in_time:
        assert expected >= non_clairvoyant_bound(instance) * (1 - 1e-9)
    assert expected >= clairvoyant * (1 - 1e-9)
    assert non_clairvoyant_bound(instance) >= clairvoyant * (1 - 1e-9)


def test_a_job_that_cannot_be_in_time_counts_with_the_expected_clairvoyant_bound():
    instance = small(1)
    jobs = instance.jobs
    hopeless = replace(instance, jobs=replace(jobs, due_s=jobs.submission_s))
    expected = np.zeros(2)
    for b, mass in enumerate(jobs.distributions[0].masses):
        needed = jobs.distributions[0].edges[b + 1] * jobs.max_epochs
        drawn = replace(hopeless, jobs=replace(hopeless.jobs, epochs_needed=needed))
        expected += mass * clairvoyant_bounds(drawn)
    assert non_clairvoyant_bounds(hopeless) == pytest.approx(expected)


def test_one_job_alone_on_a_one_gpu_node_is_as_cheap_as_its_bound():
    instance = small(3)
    jobs = instance.jobs
    only = np.full_like(jobs.seconds_per_epoch, np.inf)
    only[:, 0] = jobs.seconds_per_epoch[:, 0]
    alone = replace(
        instance,
        nodes=tuple(replace(node, gpus=1) for node in instance.nodes),
        jobs=replace(jobs, seconds_per_epoch=only, due_s=jobs.due_s + 1e7),
    )
    assert simulate(alone, make_policy("edf")).total_eur == pytest.approx(clairvoyant_bound(alone))


@pytest.mark.parametrize("case", EARLY_COMPLETIONS)
def test_a_completion_that_an_event_takes_early_does_not_undercut_the_bounds(case):
    instance = early_completion(*case)
    total = simulate(instance, make_policy("fifo")).total_eur
    assert total >= clairvoyant_bound(instance) * (1 - 1e-14)
    assert total >= max(non_clairvoyant_bound(instance), capacity_bound(instance)) * (1 - 1e-14)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["edf", "sts-x", "fifo"]))
def test_policies_whose_jobs_are_helped_cost_no_less_than_the_bound(seed, name):
    instance = helped_instance(seed, types=1, jobs=10)
    assert simulate(instance, make_policy(name)).total_eur >= clairvoyant_bound(instance) * (1 - 1e-12)


def test_the_bound_of_a_job_on_four_nodes_is_that_with_all_help():
    """An hour at 4 €/h without help; with four CPU machines 1/2 + 1 of 1/2 + 3/2 s an iteration."""
    four = Configuration("V", 1, nodes=4)
    instance = kilowatt_cluster([hours_job(1.0, {four: 1.0}, 9 * HOUR)], [1] * 4, [four])
    assert clairvoyant_bound(instance) == pytest.approx(4.0)
    helped = instance.with_mechanisms(Synchronisation([[2.0]], [[1.0]], 4))
    assert clairvoyant_bound(helped) == non_clairvoyant_bound(helped) == pytest.approx(3.0)
    assert simulate(helped, make_policy("fifo")).total_eur == pytest.approx(3.0)


def test_a_completion_may_be_early_by_a_nanosecond_and_a_little_of_the_time_and_bounds_lack_no_more_than_that():
    """An hour at 1 €/h, due after two; a job 1 s late costs more than 1 €. 1e-9 s + 1e-15 · 7201 s may be missing."""
    one = Configuration("V", 1)
    of = kilowatt_cluster([hours_job(2.0, {one: 1.0}, HOUR)], [1], [one])
    assert (1.0 - clairvoyant_bound(of)) * HOUR == pytest.approx(1.0072e-9, rel=1e-3)
    assert (1.0 - non_clairvoyant_bound(of)) * HOUR == pytest.approx(1.0072e-9, rel=1e-3)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["edf", "sts", "sts-x", "greedy"]), power=st.booleans())
def test_no_policy_undercuts_the_bounds_where_gpus_draw_power_by_utilisation(seed, name, power):
    instance = by_utilisation(random_instance(seed, jobs=8, kinds=True, span_s=300.0), power=power)
    total = simulate(instance, make_policy(name)).total_eur
    assert total >= clairvoyant_bound(instance) * (1 - 1e-9)
    assert total >= capacity_bound(instance) * (1 - 1e-9)


def test_an_idle_gpu_that_draws_nothing_leaves_the_base_power_and_the_work():
    """A node of one GPU, 1 kW base and 1 kW busy: an hour of utilisation 0.25 costs 1 + 0.25 at a price of 1 €/kWh."""
    instance = kilowatt_cluster([hours_job(1.0, {Configuration("V", 1): 1.0}, 10.0)], [1], [Configuration("V", 1)])
    gpu = replace(instance.gpu_types[0], gpu_power_w=1000.0, node_base_power_w=1000.0)
    model = UtilisationModel(np.array([[0.25]]), idle_power_w=np.zeros(1))
    work = replace(instance, gpu_types=(gpu,)).with_mechanisms(model)
    assert clairvoyant_bound(work) == pytest.approx(1.25, rel=1e-6)
    assert simulate(work, make_policy("edf")).energy_eur == pytest.approx(1.25)


CONFIGURATIONS = [Configuration("V", g) for g in (1, 2, 4)]


def instance(weight_eur_per_h: float, due_h: float = 1.0) -> Instance:
    seconds = dict(zip(CONFIGURATIONS, (HOUR, 0.6 * HOUR, 0.4 * HOUR), strict=True))
    job = Job(0.0, due_h * HOUR, weight_eur_per_h / HOUR, 2.0, CERTAIN, 2.0, seconds)
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    return Instance.from_jobs([gpu], [Node("V", 4)], [job], CONFIGURATIONS, energy_price_eur_per_kwh=1.0, pue=1.0)


@pytest.mark.parametrize(
    ("weight_eur_per_h", "due_h", "by_hand"),
    [
        (0.25, 1.0, 2.0 + 1.0 * 0.25),  # late by 1 h: cheaper than any second saved
        (1.0, 1.0, 2.0 + 0.4 + 0.2 * 1.0),  # two GPUs, late by 0.2 h
        (3.0, 1.0, 2.0 + 0.4 + 0.4),  # in time
        (3.0, 2.0, 2.0),  # with time: the cheapest
        (3.0, 0.5, 3.2 + 0.3 * 3.0),  # four GPUs throughout take 0.8 h: 0.3 h late
    ],
)
def test_the_clairvoyant_bound_speeds_up_only_while_a_second_saved_costs_less_than_one_of_tardiness(
    weight_eur_per_h, due_h, by_hand
):
    assert clairvoyant_bounds(instance(weight_eur_per_h, due_h)) == pytest.approx([by_hand])


@pytest.mark.parametrize(("config", "weight_eur_per_h"), [(0, 0.25), (1, 1.0)])
def test_a_policy_that_is_late_on_purpose_attains_the_clairvoyant_bound_and_does_not_undercut_it(
    config, weight_eur_per_h
):
    of = instance(weight_eur_per_h)
    assert simulate(of, Fixed((config,))).total_eur == pytest.approx(clairvoyant_bound(of), rel=1e-12)


HALF, QUARTER = Configuration("V", 1, share=0.5), Configuration("V", 1, share=0.25)

ROUNDING = 1.0 - 1e-9


def sharing(slowdown: list[list[float]], jobs: int = 2) -> Instance:
    """Make jobs of an hour on halves of a GPU that costs 1 €/h, each of an application of its own, due late."""
    of = [replace(hours_job(9.0, {HALF: 1.0}, 1.0), application=f"a{i % len(slowdown)}") for i in range(jobs)]
    return kilowatt_cluster(of, [1], [HALF]).with_mechanisms(Interference(np.array([slowdown])))


def test_jobs_hold_the_time_that_they_take_together_or_apart_where_that_is_less():
    """Together each takes 1.5 h: the GPU is busy for 1.5 h, 1.5 €."""
    instance = sharing([[1.5]])
    assert clairvoyant_bound(instance) == pytest.approx(1.5, rel=1e-6)
    assert capacity_bound(instance) == pytest.approx(1.5, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(1.5)
    # 2.5 h each together, 2 h one after the other; the simulator puts them together.
    instance = sharing([[2.5]])
    assert clairvoyant_bound(instance) == pytest.approx(2.0, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(2.5)
    # a0 takes 1.2 h beside a1, which has done 0.6 of its work by then and needs 0.4 h more: 1.6 €.
    instance = sharing([[1.0, 1.2], [2.0, 1.0]])
    assert clairvoyant_bound(instance) == pytest.approx(1.6, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(1.6)


def test_an_application_of_one_job_has_no_co_runner_of_its_own():
    """One job alone pays for the whole GPU: an hour, 1 €."""
    assert clairvoyant_bound(sharing([[1.0]], jobs=1)) == pytest.approx(1.0, rel=1e-6)
    assert clairvoyant_bound(sharing([[1.0]], jobs=2)) == pytest.approx(1.0, rel=1e-6)
    assert clairvoyant_bound(sharing([[1.0]], jobs=3)) == pytest.approx(1.5, rel=1e-6)


def test_jobs_that_divide_the_time_of_a_gpu_hold_their_utilisation():
    """Two of 0.8 take 1.6 h together; four of 0.1 do not slow each other."""
    two = kilowatt_cluster([hours_job(9.0, {HALF: 1.0}, 1.0)] * 2, [1], [HALF])
    assert clairvoyant_bound(two.with_mechanisms(UtilisationModel(np.array([[0.8]])))) == pytest.approx(1.6)
    many = kilowatt_cluster([hours_job(9.0, {QUARTER: 1.0}, 1.0)] * 4, [1], [QUARTER])
    instance = many.with_mechanisms(UtilisationModel(np.array([[0.1]])))
    assert clairvoyant_bound(instance) == pytest.approx(1.0, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur >= clairvoyant_bound(instance) * ROUNDING


def test_where_sets_are_too_many_a_job_holds_its_least_share(monkeypatch):
    instance = sharing([[1.5]])
    monkeypatch.setattr(options, "MOST_SETS", 1)
    assert clairvoyant_bound(instance) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("name", ["edf", "sts", "sts-x", "atc:co-located", "antman", "pack", "sts-x:no-waiting"])
def test_no_policy_costs_less_where_everything_is_shared(name):
    for seed in range(12):
        instance = mixed_instance(seed)
        assert simulate(instance, make_policy(name), seed=seed).total_eur >= capacity_bound(instance) * ROUNDING


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    worst=st.floats(1.0, 3.0),
    jobs=st.integers(1, 6),
    name=st.sampled_from(["edf", "sts-x"]),
)
def test_no_policy_costs_less_with_any_slowdowns(seed, worst, jobs, name):
    rng = np.random.default_rng(seed)
    instance = sharing(rng.uniform(1.0, worst, (min(3, jobs),) * 2).tolist(), jobs)
    assert simulate(instance, make_policy(name), seed=seed).total_eur >= capacity_bound(instance) * ROUNDING


@pytest.mark.parametrize("track", ["pairs", "hosts"])
def test_a_job_of_a_track_holds_more_than_its_least_share_and_no_more_than_a_gpu(track):
    instance = make_instance(load_scenario(track), 20000)
    found = Options.of(instance)
    shared = [c.kind == "shared" for c in instance.configurations].count(False)
    part = found.gpus[np.unique(instance.jobs.application)][:, shared:]
    assert part.max() <= 1.0
    assert part.mean() > 0.3
    assert 0.55 < capacity_bound(instance) / simulate(instance, make_policy("sts-x"), seed=20000).total_eur < 1.0
