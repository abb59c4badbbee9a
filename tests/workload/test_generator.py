from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload import (
    InstanceMaker,
    Scenario,
    builtin_applications,
    builtin_gpu_types,
    load_scenario,
    make_instance,
)
from refusals import refused


@pytest.mark.parametrize("name", ["tiny", "sharing", "multi-node"])
def test_a_maker_of_many_instances_makes_each_as_if_it_were_the_only_one(name):
    scenario = load_scenario(name).replace({"jobs.count": 12})
    maker = InstanceMaker(scenario)
    made = [maker.make(seed) for seed in (3, 5, 3)]
    assert made == [make_instance(scenario, seed) for seed in (3, 5, 3)]
    assert made[0] != made[1]


def test_a_seed_keeps_its_meaning_when_rules_are_added():
    """New randomness must come from new streams, at the end; times of submission are those of the corrected rule."""
    scenario = load_scenario("tiny").replace({"arrivals.kind": "mixed"})
    jobs = make_instance(scenario, 7).jobs
    sums = [c.sum() for c in (jobs.submission_s, jobs.due_s, jobs.epochs_needed, jobs.tardiness_weight_eur_per_s)]
    assert sums == pytest.approx([57674.62668146715, 2152530.1687125373, 840.04, 0.003707301794834503])
    assert jobs.application.tolist() == [4, 11, 2, 0, 11, 8, 8, 12, 12, 10]


def test_a_share_of_the_jobs_is_opportunistic_and_all_else_stays_the_same():
    scenario = load_scenario("default")
    jobs = make_instance(scenario, 3).jobs
    assert not jobs.opportunistic.any()
    labelled = make_instance(scenario.replace({"jobs.opportunistic": 0.5}), 3).jobs
    assert 30 < labelled.opportunistic.sum() < 70
    assert replace(labelled, opportunistic=jobs.opportunistic) == jobs
    assert make_instance(scenario.replace({"jobs.opportunistic": 1.0}), 3).jobs.opportunistic.all()


def test_policies_see_the_label_once_a_job_is_submitted():
    state = State(make_instance(load_scenario("default").replace({"jobs.opportunistic": 0.5}), 3))
    state.advance()
    seen = state.view.jobs[:, at.OPPORTUNISTIC]
    assert seen[0] == state.instance.jobs.opportunistic[0]
    assert np.isnan(seen[-1])


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_different_seeds_give_different_instances(one, other):
    scenario = load_scenario("tiny")
    first, second = make_instance(scenario, one).jobs, make_instance(scenario, other).jobs
    assert (first == second) == (one == other)


def test_node_i_has_type_i_mod_v_and_its_types_most_gpus():
    instance = make_instance(Scenario(cluster={"nodes": 5}, jobs={"count": 2}), 0)
    assert [(n.gpu_type, n.gpus) for n in instance.nodes] == [
        ("V100", 8),
        ("A100", 8),
        ("T4", 4),
        ("V100", 8),
        ("A100", 8),
    ]
    assert [c.name for c in instance.configurations[-5:]] == ["A100x8", "T4x1", "T4x2", "T4x3", "T4x4"]


def test_jobs_are_offered_the_gpu_counts_of_the_scenario_where_a_node_has_them():
    instance = make_instance(Scenario(cluster={"nodes": 3}, jobs={"count": 2, "gpu_counts": [1, 8]}), 0)
    assert [c.name for c in instance.configurations] == ["V100x1", "V100x8", "A100x1", "A100x8", "T4x1"]


def test_a_type_without_a_node_offers_nothing():
    instance = make_instance(Scenario(cluster={"nodes": 1}, jobs={"count": 2}), 0)
    assert {c.gpu_type for c in instance.configurations} == {"V100"}
    assert len(instance.gpu_types) == 3


def test_overrides_win_over_the_clusters_base_power_and_that_over_the_built_in_one():
    known = builtin_gpu_types()
    overrides = {"T4": {"node_base_power_w": 5.0, "gpu_power_w": 33.0}, "A100": {"memory_gib": 80.0}}
    plain = {v.name: v for v in make_instance(Scenario(jobs={"count": 1}), 0).gpu_types}
    assert plain == {name: known[name] for name in ("V100", "A100", "T4")}
    scenario = Scenario(jobs={"count": 1}, cluster={"node_base_power_w": 0, "overrides": overrides})
    made = {v.name: v for v in make_instance(scenario, 0).gpu_types}
    assert [made[name].node_base_power_w for name in ("V100", "A100", "T4")] == [0.0, 0.0, 5.0]
    assert (made["T4"].gpu_power_w, made["A100"].memory_gib) == (33.0, 80.0)


def test_prices_restart_name_and_seed_reach_the_instance():
    prices = {"energy_price_eur_per_kwh": 0.3, "pue": 1.2}
    instance = make_instance(Scenario(name="mine", restart_s=12.0, prices=prices, jobs={"count": 1}), 5)
    assert (instance.energy_price_eur_per_kwh, instance.pue, instance.jobs.restart_s.tolist()) == (0.3, 1.2, [12.0])
    assert (instance.name, instance.seed) == ("mine", 5)


def test_an_application_may_have_a_restart_overhead_of_its_own():
    own = {"restart_s": 12.0, "restart_by_application": {"vgg16-imagenet-global256": 90, "lm-wikitext2-bs5": 0.0}}
    jobs = make_instance(load_scenario("default").replace(own), 0).jobs
    expected = {"vgg16-imagenet-global256": 90.0, "lm-wikitext2-bs5": 0.0}
    names = [jobs.applications[a] for a in jobs.application]
    assert set(expected) < set(names)
    assert jobs.restart_s.tolist() == [expected.get(name, 12.0) for name in names]


def test_a_jobs_times_and_epochs_are_its_applications():
    instance = make_instance(load_scenario("default"), 3)
    jobs = instance.jobs
    for job in range(len(jobs)):
        application = builtin_applications()[jobs.applications[jobs.application[job]]]
        assert jobs.max_epochs[job] == application.max_epochs
        assert jobs.memory_gib[job] == application.memory_gib
        for column, c in enumerate(instance.configurations):
            expected = application.seconds_per_epoch[c.gpu_type, c.gpus_per_node]
            assert jobs.seconds_per_epoch[job, column] == expected


def test_due_dates_lie_between_the_least_and_the_greatest_full_time_and_fill_that_range():
    jobs = make_instance(Scenario(jobs={"count": 4_000}), 0).jobs
    full = jobs.seconds_per_epoch * jobs.max_epochs[:, None]
    share = (jobs.due_s - jobs.submission_s - full.min(1)) / (full.max(1) - full.min(1))
    assert 0.0 <= share.min() < 0.01
    assert 0.99 < share.max() <= 1.0
    assert share.mean() == pytest.approx(0.5, abs=0.02)


def test_slack_scales_the_time_to_the_due_date_and_changes_nothing_else():
    loose = make_instance(Scenario(due_dates={"slack": 3.0}), 0).jobs
    plain = make_instance(Scenario(), 0).jobs
    np.testing.assert_allclose(loose.due_s - loose.submission_s, 3.0 * (plain.due_s - plain.submission_s))
    for column in ("submission_s", "epochs_needed", "tardiness_weight_eur_per_s", "application", "distribution"):
        assert np.array_equal(getattr(loose, column), getattr(plain, column))


def test_due_dates_may_follow_from_the_times_of_types_that_the_cluster_lacks_too():
    pools = [{"gpu_type": "A100", "nodes": 2}, {"gpu_type": "T4", "nodes": 1}]
    whole = Scenario(cluster={"pools": pools}, arrivals={"kind": "exponential", "mean_gap_s": 100.0})
    fast = whole.replace({"cluster.pools": pools[:1], "due_dates.gpu_types": ["T4", "A100"]})
    assert {c.gpu_type for c in make_instance(fast, 0).configurations} == {"A100"}
    assert np.array_equal(make_instance(fast, 0).jobs.due_s, make_instance(whole, 0).jobs.due_s)
    alone = fast.replace({"due_dates.gpu_types": None})
    assert np.all(make_instance(alone, 0).jobs.due_s < make_instance(whole, 0).jobs.due_s)


def test_types_from_which_due_dates_follow_are_known_and_need_pools():
    pools = {"cluster.pools": [{"gpu_type": "A100", "nodes": 2}]}
    with refused("due_dates.gpu_types[0]", "X9", "one of the GPU types"):
        Scenario().replace(pools | {"due_dates.gpu_types": ["X9"]})
    with refused("due_dates.gpu_types", ["T4"], "none with a trace, or without cluster.pools"):
        Scenario().replace({"due_dates.gpu_types": ["T4"]})


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        ({"epochs.family": "two-point"}, ("submission_s", "due_s", "tardiness_weight_eur_per_s")),
        ({"weights.max_eur_per_s": 1.0}, ("submission_s", "due_s", "epochs_needed")),
        ({"epochs.library_size": 50}, ("submission_s", "due_s", "tardiness_weight_eur_per_s", "application")),
    ],
)
def test_each_rule_draws_from_its_own_stream(change, unchanged):
    before, after = make_instance(Scenario(), 0).jobs, make_instance(Scenario().replace(change), 0).jobs
    assert before != after
    for column in unchanged:
        assert np.array_equal(getattr(before, column), getattr(after, column)), column


def test_other_arrivals_leave_the_jobs_themselves_as_they_were():
    """All at once keeps the order in which jobs were drawn; so does one stream of gaps."""
    at_once = make_instance(Scenario(arrivals={"kind": "simultaneous"}), 0).jobs
    in_a_row = make_instance(Scenario(arrivals={"kind": "exponential", "mean_gap_s": 9.0}), 0).jobs
    assert np.array_equal(at_once.epochs_needed, in_a_row.epochs_needed)
    np.testing.assert_allclose(at_once.due_s, in_a_row.due_s - in_a_row.submission_s)


def test_weights_and_applications_fill_the_ranges_of_the_scenario():
    names = ["lm-wikitext2-bs80", "yolov3-voc-global64"]
    scenario = Scenario(jobs={"count": 4_000, "applications": names}, weights={"min_eur_per_s": 2, "max_eur_per_s": 4})
    jobs = make_instance(scenario, 0).jobs
    weight = jobs.tardiness_weight_eur_per_s
    assert (weight.min(), weight.mean(), weight.max()) == pytest.approx((2.0, 3.0, 4.0), abs=0.02)
    assert jobs.applications == tuple(names)
    assert jobs.application.mean() == pytest.approx(0.5, abs=0.03)
    assert np.bincount(jobs.distribution, minlength=20) == pytest.approx(np.full(20, 200), abs=60)


def test_realised_needs_come_from_the_distribution_that_policies_see():
    jobs = make_instance(Scenario(jobs={"count": 20_000}, epochs={"library_size": 3}), 0).jobs
    fraction = jobs.epochs_needed / jobs.max_epochs
    for index, distribution in enumerate(jobs.distributions):
        assert fraction[jobs.distribution == index].mean() == pytest.approx(distribution.mean, abs=0.015)


def test_the_first_arrivals_have_the_rate_of_the_clusters_least_one_gpu_time():
    """One application: λ = 20 GPUs / (E · τ on one A100, its fastest), gaps have the mean 2.5/λ."""
    name = "resnet18-cifar10-bs128"
    scenario = Scenario(cluster={"nodes": 3}, jobs={"count": 20_000, "applications": [name]}, arrivals={"kind": "high"})
    application = builtin_applications()[name]
    one_gpu_s = application.max_epochs * min(application.seconds_per_epoch[v, 1] for v in ("V100", "A100", "T4"))
    jobs = make_instance(scenario, 0).jobs
    # Clusters of ten come one after the other: 19,999 gaps up to the last job. The three nodes have 20 GPUs.
    assert jobs.submission_s[-1] == pytest.approx(19_999 * 2.5 * one_gpu_s / 20, rel=0.02)


def test_an_application_that_fits_no_gpu_is_named():
    overrides = {name: {"memory_gib": 2.0} for name in ("V100", "A100", "T4")}
    scenario = Scenario(
        cluster={"overrides": overrides}, jobs={"applications": ["lm-wikitext2-bs5", "lm-wikitext2-bs80"]}
    )
    with refused("jobs.applications", "lm-wikitext2-bs80", r"2\.35534 GiB.* V100 2, A100 2, T4 2$"):
        make_instance(scenario, 0)


def test_a_gpu_too_small_for_an_application_is_closed_to_it():
    scenario = Scenario(
        cluster={"overrides": {"T4": {"memory_gib": 2.0}}}, jobs={"applications": ["lm-wikitext2-bs80"]}
    )
    instance = make_instance(scenario, 0)
    seconds = instance.jobs.seconds_per_epoch
    t4 = np.array([c.gpu_type == "T4" for c in instance.configurations])
    assert np.all(np.isinf(seconds[:, t4]))
    assert np.all(np.isfinite(seconds[:, ~t4]))
    full = (seconds * instance.jobs.max_epochs[:, None])[:, ~t4]
    assert np.all(instance.jobs.due_s <= instance.jobs.submission_s + full.max(1))


def test_gpu_counts_that_no_node_has_are_refused():
    scenario = Scenario(cluster={"gpu_types": ["T4"]}, jobs={"gpu_counts": [8]})
    with refused("jobs.gpu_counts", [8], "1 to 4"):
        make_instance(scenario, 0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0", None, 2**63, 10**30])
def test_a_seed_that_is_no_whole_number_from_zero_is_refused(seed):
    with refused("seed", seed):
        make_instance(load_scenario("tiny"), seed)


def test_a_name_is_no_scenario():
    with refused("scenario", "tiny", "load_scenario"):
        make_instance("tiny", seed=0)


@pytest.mark.parametrize("slack", [1e9, 1e15, 1e308])
def test_a_slack_by_which_a_job_would_be_due_too_late_is_named(slack):
    scenario = load_scenario("tiny").replace({"due_dates.slack": slack})
    with refused("due_dates.slack", slack, "later than 1e12 s$"):
        make_instance(scenario, 9000)
