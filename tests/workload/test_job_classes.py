"""Workloads with several classes of jobs, and arrivals in batches."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import simulate
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.workload import InstanceMaker, Scenario, load_scenario, make_instance
from gpusched_env.workload.mixture import seed_of_class
from refusals import refused

LATER = {"jobs.count": 4, "arrivals.kind": "simultaneous", "due_dates.slack": 0.5, "weights.max_eur_per_s": 1.0}


def two_classes(**values: object) -> Scenario:
    classes = [{"settings": {"jobs.count": 6}}, {"begins_s": 7200.0, "settings": LATER}]
    return load_scenario("tiny").replace({"job_classes": classes, **values})


def test_a_single_class_without_settings_changes_nothing():
    tiny = load_scenario("tiny")
    alone = make_instance(tiny.replace({"job_classes": [{}]}), 3)
    assert instance_json(alone) == instance_json(make_instance(tiny, 3))


def test_a_workload_has_the_jobs_of_all_classes_by_submission():
    scenario, seed = two_classes(), 5
    tiny = load_scenario("tiny")
    first = make_instance(tiny.replace({"jobs.count": 6}), seed).jobs
    second = make_instance(tiny.replace(LATER), seed_of_class(seed, 1)).jobs
    made = make_instance(scenario, seed)
    jobs, order = made.jobs, np.argsort(np.append(first.submission_s, second.submission_s + 7200.0), kind="stable")
    assert (made.seed, made.name, len(jobs)) == (seed, "tiny", 10)
    assert np.array_equal(jobs.submission_s, np.append(first.submission_s, second.submission_s + 7200.0)[order])
    assert np.array_equal(jobs.due_s, np.append(first.due_s, second.due_s + 7200.0)[order])
    for name in ("tardiness_weight_eur_per_s", "max_epochs", "epochs_needed", "memory_gib", "restart_s", "tenant"):
        assert np.array_equal(getattr(jobs, name), np.append(getattr(first, name), getattr(second, name))[order]), name
    seconds = np.concatenate([first.seconds_per_epoch, second.seconds_per_epoch])[order]
    assert np.array_equal(jobs.seconds_per_epoch, seconds)
    names = [table.applications[i] for table in (first, second) for i in table.application]
    assert [jobs.applications[i] for i in jobs.application] == [names[i] for i in order]
    drawn = [table.distributions[i] for table in (first, second) for i in table.distribution]
    assert [jobs.distributions[i] for i in jobs.distribution] == [drawn[i] for i in order]


def test_every_column_of_a_job_is_joined():
    scenario = two_classes()
    jobs = make_instance(scenario, 0).jobs
    columns = [f.name for f in fields(jobs) if isinstance(getattr(jobs, f.name), np.ndarray)]
    assert {len(getattr(jobs, name)) for name in columns} == {10}


def test_the_scenario_has_the_first_jobs_of_all_classes_at_most():
    whole, part = (make_instance(two_classes(**{"jobs.count": count}), 1).jobs for count in (10, 7))
    assert len(part) == 7
    assert np.array_equal(part.submission_s, whole.submission_s[:7])
    assert np.array_equal(part.epochs_needed, whole.epochs_needed[:7])


def test_classes_have_other_draws():
    classes = [{"settings": {"jobs.count": 5}}, {"settings": {"jobs.count": 5}}]
    jobs = make_instance(load_scenario("tiny").replace({"job_classes": classes}), 0).jobs
    assert len(set(jobs.submission_s)) == 9  # only the first jobs of both classes are submitted at once


def test_applications_may_differ_between_classes():
    names = make_instance(load_scenario("tiny"), 0).jobs.applications
    classes = [{"settings": {"jobs.applications": list(names[:2])}}, {"settings": {"jobs.applications": [names[2]]}}]
    jobs = make_instance(load_scenario("tiny").replace({"job_classes": classes, "jobs.count": 20}), 0).jobs
    assert jobs.applications == names[:3]
    assert set(jobs.application) == {0, 1, 2}


def test_the_maker_and_policies_take_classes():
    scenario = two_classes()
    maker = InstanceMaker(scenario)
    for seed in range(3):
        instance = make_instance(scenario, seed)
        assert instance_json(maker.make(seed)) == instance_json(instance)
    result = simulate(instance, make_policy("sts-x"))
    assert np.isfinite(result.completion_s).all()


def test_a_mixture_may_have_scenarios_with_classes():
    scenario = two_classes().replace({"mixture": [{}, {"settings": {"job_classes": []}}]})
    assert len(make_instance(scenario, 0).jobs) == 10
    alone = load_scenario("tiny").replace({"jobs.count": scenario.jobs.count})
    assert instance_json(make_instance(scenario, 1)) == instance_json(make_instance(alone, 1))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"cluster.nodes": 3}, "job_classes[0].settings.cluster.nodes"),
        ({"jobs.gpu_counts": [1]}, "job_classes[0].settings.jobs.gpu_counts"),
        ({"restart_s": 3}, "job_classes[0].settings.restart_s"),
    ],
)
def test_a_class_cannot_change_the_cluster(settings, field):
    with refused(field, allowed="jobs.count"):
        load_scenario("tiny").replace({"job_classes": [{"settings": settings}]})


def test_a_wrong_setting_of_a_class_is_named():
    scenario = load_scenario("tiny").replace({"job_classes": [{"settings": {"weights.min_eur_per_s": -1.0}}]})
    with refused("job_classes[0].settings: weights.min_eur_per_s", -1.0):
        make_instance(scenario, 0)


def test_batches_are_submitted_at_once():
    every = {"arrivals.kind": "exponential", "arrivals.lambda_s": 60.0}
    tiny = load_scenario("tiny").replace({**every, "jobs.count": 10})
    single = make_instance(tiny.replace({"jobs.count": 4}), 2).jobs.submission_s
    batches = make_instance(tiny.replace({"arrivals.batch": 3}), 2).jobs.submission_s
    assert np.array_equal(batches, np.repeat(single, 3)[:10])


def test_only_arrivals_with_gaps_have_batches():
    with refused("arrivals.batch", 2, "1 with kind = 'simultaneous'"):
        load_scenario("tiny").replace({"arrivals.kind": "simultaneous", "arrivals.batch": 2})
