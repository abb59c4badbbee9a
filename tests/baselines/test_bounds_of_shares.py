"""Bounds of jobs that share GPUs: the GPU-seconds of the best co-runners, by hand, and below every policy's cost."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import capacity_bound, clairvoyant_bound, make_policy
from gpusched_baselines.bounds import options
from gpusched_baselines.bounds.options import Options
from gpusched_env import Configuration, Instance, Interference, UtilisationModel, load_scenario, make_instance, simulate
from mixed import mixed_instance
from small_instances import hours_job, kilowatt_cluster

HALF, QUARTER = Configuration("V", 1, share=0.5), Configuration("V", 1, share=0.25)
ROUNDING = 1.0 - 1e-9


def sharing(slowdown: list[list[float]], jobs: int = 2) -> Instance:
    """Make jobs of an hour on halves of a GPU that costs 1 €/h, each of an application of its own, due late."""
    of = [replace(hours_job(9.0, {HALF: 1.0}, 1.0), application=f"a{i % len(slowdown)}") for i in range(jobs)]
    return replace(kilowatt_cluster(of, [1], [HALF]), interference=Interference(np.array([slowdown])))


def test_two_equal_jobs_hold_the_time_that_they_take_together():
    """Together each takes 1.5 h: the GPU is busy for 1.5 h, 1.5 €."""
    instance = sharing([[1.5]])
    assert clairvoyant_bound(instance) == pytest.approx(1.5, rel=1e-6)
    assert capacity_bound(instance) == pytest.approx(1.5, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(1.5)


def test_the_rest_of_a_job_that_its_co_runner_leaves_runs_alone():
    """a0 takes 1.2 h beside a1, which has done 0.6 of its work by then and needs 0.4 h more: 1.6 €."""
    instance = sharing([[1.0, 1.2], [2.0, 1.0]])
    assert clairvoyant_bound(instance) == pytest.approx(1.6, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(1.6)


def test_co_runners_that_slow_each_other_too_much_are_better_apart():
    """2.5 h each together, 2 h one after the other; the simulator puts them together."""
    instance = sharing([[2.5]])
    assert clairvoyant_bound(instance) == pytest.approx(2.0, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur == pytest.approx(2.5)


def test_an_application_of_one_job_has_no_co_runner_of_its_own():
    """One job alone pays for the whole GPU: an hour, 1 €."""
    assert clairvoyant_bound(sharing([[1.0]], jobs=1)) == pytest.approx(1.0, rel=1e-6)
    assert clairvoyant_bound(sharing([[1.0]], jobs=2)) == pytest.approx(1.0, rel=1e-6)
    assert clairvoyant_bound(sharing([[1.0]], jobs=3)) == pytest.approx(1.5, rel=1e-6)


def test_jobs_that_divide_the_time_of_a_gpu_hold_their_utilisation():
    """Two of 0.8 take 1.6 h together; four of 0.1 do not slow each other."""
    two = kilowatt_cluster([hours_job(9.0, {HALF: 1.0}, 1.0)] * 2, [1], [HALF])
    assert clairvoyant_bound(replace(two, interference=UtilisationModel(np.array([[0.8]])))) == pytest.approx(1.6)
    many = kilowatt_cluster([hours_job(9.0, {QUARTER: 1.0}, 1.0)] * 4, [1], [QUARTER])
    instance = replace(many, interference=UtilisationModel(np.array([[0.1]])))
    assert clairvoyant_bound(instance) == pytest.approx(1.0, rel=1e-6)
    assert simulate(instance, make_policy("edf")).total_eur >= clairvoyant_bound(instance) * ROUNDING


def test_where_sets_are_too_many_a_job_holds_its_least_share(monkeypatch):
    instance = sharing([[1.5]])
    monkeypatch.setattr(options, "MOST_SETS", 1)
    assert clairvoyant_bound(instance) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("name", ["edf", "sts", "sts-x", "atc-co-located", "antman", "pack", "sts-x:own-slack"])
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
