"""Values are validated where they are made, with one error that names field, value and what is allowed."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Interference, Job, JobTable, Node
from instances import CERTAIN, random_instance, three_jobs
from refusals import refused

V100 = GpuType("V100", 250.0, 300.0, 16.0, 8)


def job(**changes: object) -> Job:
    good = {
        "submission_s": 0.0,
        "due_s": 10.0,
        "tardiness_weight_eur_per_s": 0.01,
        "max_epochs": 5.0,
        "distribution": CERTAIN,
        "epochs_needed": 5.0,
        "seconds_per_epoch": {Configuration("V100", 1): 2.0},
    }
    return Job(**(good | changes))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: GpuType("", 1, 1, 1), "gpu_type.name"),
        (lambda: GpuType("V", 0.0, 1, 1), "gpu_types.V.gpu_power_w"),
        (lambda: GpuType("V", float("nan"), 1, 1), "gpu_types.V.gpu_power_w"),
        (lambda: GpuType("V", 1, -1.0, 1), "gpu_types.V.node_base_power_w"),
        (lambda: GpuType("V", 1, 1, 0), "gpu_types.V.memory_gib"),
        (lambda: GpuType("V", 1, 1, 1, 0), "gpu_types.V.max_gpus_per_node"),
        (lambda: GpuType("V", 1, 1, 1, 2000), "gpu_types.V.max_gpus_per_node"),
        (lambda: Node("V", 0), "node.gpus"),
        (lambda: Node("V", 1.5), "node.gpus"),
        (lambda: Configuration("V", 0), "configuration.gpus_per_node"),
        (lambda: Configuration("V", 1, 0), "configuration.nodes"),
        (lambda: Configuration("V", 1, 1, 0.0), "configuration.share"),
        (lambda: Configuration("V", 2, 1, 1.5), "configuration.share"),
        (lambda: job(submission_s=-1.0), "job.submission_s"),
        (lambda: job(submission_s=2e12, due_s=3e12), "job.submission_s"),
        (lambda: job(due_s=float("inf")), "job.due_s"),
        (lambda: job(due_s=1.1e12), "job.due_s"),
        (lambda: job(restart_s=1.1e12), "job.restart_s"),
        (lambda: job(start_s=-1.0), "job.start_s"),
        (lambda: job(resume_s=float("nan")), "job.resume_s"),
        (lambda: job(seconds_per_epoch={Configuration("V100", 1): 3e11}), "job.seconds_per_epoch[V100x1]"),
        (lambda: job(submission_s=11.0), "job.due_s"),
        (lambda: job(tardiness_weight_eur_per_s=float("nan")), "job.tardiness_weight_eur_per_s"),
        (lambda: job(max_epochs=0.0), "job.max_epochs"),
        (lambda: job(epochs_needed=6.0), "job.epochs_needed"),
        (lambda: job(seconds_per_epoch={Configuration("V100", 1): 0.0}), "job.seconds_per_epoch[V100x1]"),
        (lambda: EpochDistribution([0.0, 0.5], [1.0]), "distribution.edges"),
        (lambda: EpochDistribution([0.0, 1.0, 1.0], [1.0, 0.5]), "distribution.edges"),
        (lambda: EpochDistribution([0.0, 0.5, 1.0], [1.0]), "distribution.survival"),
        (lambda: EpochDistribution([0.0, 0.5, 1.0], [0.9, 0.5]), "distribution.survival"),
        (lambda: EpochDistribution([0.0, 0.5, 1.0], [1.0, 1.1]), "distribution.survival"),
        (lambda: EpochDistribution.from_masses([0.0, 0.0]), "distribution.masses"),
        (lambda: EpochDistribution.from_masses([1.0, -1.0]), "distribution.masses"),
    ],
)
def test_a_wrong_value_is_named(make, field):
    with refused(field):
        make()


def test_configurations_have_three_kinds_and_names():
    kinds = {
        Configuration("V100", 4): ("single-node", "V100x4", 4),
        Configuration("V100", 8, 2): ("multi-node", "2*V100x8", 16),
        Configuration("V100", 1, 1, 0.25): ("shared", "V100x0.25", 0.25),
    }
    assert {c: (c.kind, c.name, c.gpus) for c in kinds} == kinds


def test_a_distribution_gives_masses_mean_and_survival():
    """Ends after a quarter with ½, after three quarters with ¼, else runs on: mean ½·¼ + ¼·¾ + ¼ = 0.5625."""
    distribution = EpochDistribution.from_masses([2, 1, 1], [0, 0.25, 0.75, 1])
    assert distribution.survival.tolist() == [1.0, 0.5, 0.25]
    assert distribution.masses.tolist() == [0.5, 0.25, 0.25]
    assert distribution.mean == pytest.approx(0.5625)


def test_draws_follow_the_distribution_and_fall_on_right_edges():
    distribution = EpochDistribution.from_masses([2, 0, 1, 1], [0, 0.25, 0.5, 0.75, 1])
    rng = np.random.default_rng(0)
    draws = np.array([distribution.sample(rng) for _ in range(4000)])
    values, counts = np.unique(draws, return_counts=True)
    assert values.tolist() == [0.25, 0.75, 1.0]
    assert counts / 4000 == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda m: sum(m) > 0.01))
def test_masses_and_survival_say_the_same(masses):
    distribution = EpochDistribution.from_masses(masses)
    assert distribution.masses == pytest.approx(np.array(masses) / np.sum(masses), abs=1e-12)
    right = distribution.edges[1:]
    assert distribution.mean == pytest.approx(float(np.dot(distribution.masses, right)), abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=1, max_size=6))
def test_rows_of_masses_make_the_same_distributions_as_one_by_one(rows):
    made = EpochDistribution.of_rows(rows)
    assert made == tuple(EpochDistribution.from_masses(row) for row in rows)
    assert not any(array.flags.writeable for one in made for array in (one.edges, one.survival))
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own bytes


@pytest.mark.parametrize("rows", [[[1.0, -1.0]], [[1.0, 1.0], [0.0, 0.0]], [1.0, 2.0], [[np.nan, 1.0]]])
def test_rows_that_are_no_masses_are_refused(rows):
    with refused("distribution.masses", rows):
        EpochDistribution.of_rows(rows)


def test_values_are_frozen_compare_and_pickle():
    assert pickle.loads(pickle.dumps(random_instance(0))) == random_instance(0)  # noqa: S301 - our own bytes
    assert random_instance(0) != random_instance(1)
    assert EpochDistribution.from_masses([1, 2]) == EpochDistribution.from_masses([1, 2])
    assert len({EpochDistribution.from_masses([1, 2]), EpochDistribution.from_masses([1, 2])}) == 1
    with pytest.raises(FrozenInstanceError):
        V100.name = "A100"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        random_instance(0).jobs.due_s[0] = 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])  # noqa: S301
def test_copies_are_read_only_too(copied):
    instance = copied(random_instance(0))
    assert instance == random_instance(0)
    assert not instance.jobs.due_s.flags.writeable
    assert not instance.jobs.seconds_per_epoch.flags.writeable
    assert not instance.jobs.distributions[0].survival.flags.writeable


def test_jobs_are_sorted_by_submission():
    late = job(submission_s=5.0, application="late")
    instance = Instance.from_jobs([V100], [Node("V100", 1)], [late, job(application="early")])
    assert [instance.jobs.applications[i] for i in instance.jobs.application] == ["early", "late"]


def test_configurations_that_no_node_holds_and_memory_that_does_not_fit_are_closed():
    one, four = Configuration("V100", 1), Configuration("V100", 4)
    both = job(seconds_per_epoch={one: 2.0, four: 1.0})
    instance = Instance.from_jobs([V100], [Node("V100", 2)], [both], [one, four])
    assert instance.jobs.seconds_per_epoch.tolist() == [[2.0, np.inf]]


def test_a_job_that_fits_no_configuration_is_told_why():
    one, four = Configuration("V100", 1), Configuration("V100", 4)
    nodes = [Node("V100", 2)]
    both, large = job(seconds_per_epoch={one: 2.0, four: 1.0}), job(seconds_per_epoch={four: 1.0})
    with refused("jobs[0].memory_gib", 17.0, r"\[GiB\]: V100 16$"):
        Instance.from_jobs([V100], nodes, [replace(both, memory_gib=17.0)], [one, four])
    with refused("jobs[1].seconds_per_epoch", ["V100x4"], rf"hold: {one.name}$"):
        Instance.from_jobs([V100], nodes, [both, large], [one, four])
    with refused("jobs[0].seconds_per_epoch", allowed=rf"{one.name}, {four.name}$"):
        Instance.from_jobs([V100], nodes, [job(seconds_per_epoch={})], [one, four])


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"pue": 0.9}, ("pue", 0.9)),
        ({"energy_price_eur_per_kwh": -0.1}, ("energy_price_eur_per_kwh", -0.1)),
        ({"energy_price_eur_per_kwh": float("nan")}, ("energy_price_eur_per_kwh", float("nan"))),
        ({"mechanisms": (Interference(np.ones((1, 2, 2))),)}, ("interference.slowdown", (1, 2, 2))),
        ({"nodes": ()}, ("nodes", [])),
        ({"nodes": (Node("X", 1),)}, ("nodes[0].gpu_type", "X")),
        ({"nodes": (Node("V", 3),)}, ("nodes[0].gpus", 3)),
        ({"gpu_types": ()}, ("gpu_types", [])),
        ({"configurations": (Configuration("V", 1), Configuration("V", 1))}, ("configurations", ["Vx1", "Vx1"])),
        ({"configurations": (Configuration("V", 1), Configuration("X", 1))}, ("configurations[1].gpu_type", "X")),
        ({"configurations": (Configuration("V", 1),)}, ("jobs.seconds_per_epoch", (3, 2))),
        ({"configurations": (Configuration("V", 1), Configuration("V", 1, 2))}, ("configurations[1]", "2*Vx1")),
    ],
)
def test_a_wrong_instance_is_named(changes, error):
    with refused(*error):
        replace(three_jobs(), **changes)


def test_a_negative_restart_overhead_is_named():
    with refused("restart_s", -1.0):
        Instance.from_jobs([V100], [Node("V100", 2)], [job()], restart_s=-1.0)
    with refused("job.restart_s", -1.0):
        job(restart_s=-1.0)


def test_more_nodes_than_the_cluster_has_are_closed_or_named():
    one, two, three = (Configuration("V100", 4, nodes=k) for k in (1, 2, 3))
    nodes = [Node("V100", 4), Node("V100", 2), Node("V100", 4)]
    some = job(seconds_per_epoch={one: 3.0, two: 2.0, three: 1.0})
    instance = Instance.from_jobs([V100], nodes, [some], [one, two, three])
    assert instance.jobs.seconds_per_epoch.tolist() == [[3.0, 2.0, np.inf]]
    with refused("jobs[0].seconds_per_epoch", ["3*V100x4"], r"V100x4, 2\*V100x4$"):
        Instance.from_jobs([V100], nodes, [job(seconds_per_epoch={three: 1.0})], [one, two, three])


def test_a_share_is_closed_if_the_memory_does_not_fit_that_part_of_the_gpu():
    whole, half = Configuration("V100", 1), Configuration("V100", 1, share=0.5)
    shared = job(seconds_per_epoch={whole: 1.0, half: 1.0}, memory_gib=9.0)
    instance = Instance.from_jobs([V100], [Node("V100", 2)], [shared], [whole, half])
    assert instance.jobs.seconds_per_epoch.tolist() == [[1.0, np.inf]]
    only = job(seconds_per_epoch={half: 1.0}, memory_gib=9.0)
    with refused("jobs[0].memory_gib", 9.0, "V100x0.5 8$"):
        Instance.from_jobs([V100], [Node("V100", 2)], [only], [whole, half])


@pytest.mark.parametrize(
    ("slowdown", "field", "value"),
    [
        (np.ones((1, 2)), "interference.slowdown", (1, 2)),
        (np.ones((1, 2, 3)), "interference.slowdown", (1, 2, 3)),
        ([[[0.9]]], "interference.slowdown[0, 0, 0]", 0.9),
        ([[[np.nan]]], "interference.slowdown[0, 0, 0]", np.nan),
    ],
)
def test_a_wrong_slowdown_is_named(slowdown, field, value):
    with refused(field, value):
        Interference(np.array(slowdown))


def test_a_slowdown_by_which_a_job_would_take_too_long_is_named():
    half = Configuration("V100", 1, share=0.5)
    only = job(seconds_per_epoch={half: 1e9})
    for factor, good in ((199.0, True), (201.0, False)):
        with nullcontext() if good else refused("interference.slowdown", 201.0, "1e12 s"):
            slow = Interference(np.full((1, 1, 1), factor))
            Instance.from_jobs([V100], [Node("V100", 2)], [only], [half], mechanisms=[slow])


def test_slowdowns_are_compared_and_read_only():
    interference = Interference(np.array([[[1.0, 1.5], [1.2, 1.1]]]))
    assert interference == Interference(interference.slowdown)
    assert interference != Interference(np.ones((1, 2, 2)))
    assert not interference.slowdown.flags.writeable


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("submission_s", [0.0, 2.0, 1.0], ("jobs[2].submission_s", 1.0)),
        ("submission_s", [np.nan, 1.0, 2.0], ("jobs[0].submission_s", float("nan"))),
        ("submission_s", [0.0, 1.0, 1.1e12], ("jobs[2].submission_s", 1.1e12, "1e12 s$")),
        ("due_s", [-1.0, 1e9, 1e9], ("jobs[0].due_s", -1.0)),
        ("due_s", [1e9, 1e15, 1e9], ("jobs[1].due_s", 1e15, "1e12 s$")),
        ("restart_s", [0.0, 1.1e12, 0.0], ("jobs[1].restart_s", 1.1e12, "1e12 s$")),
        ("start_s", [0.0, 0.0, -1.0], ("jobs[2].start_s", -1.0)),
        ("resume_s", [0.0, np.nan, 1.0], ("jobs[1].resume_s", float("nan"))),
        ("opportunistic", [1.0, 0.0, 1.0], ("jobs.opportunistic", [1.0, 0.0, 1.0])),
        ("opportunistic", [True], ("jobs.opportunistic", 1)),
        ("max_epochs", [5.0, 5.0, 1e300], ("jobs[2].seconds_per_epoch", [3600.0, 2400.0], "max_epochs times")),
        ("seconds_per_epoch", [[1.0, 1.0], [1e12, 1.0], [1.0, 1.0]], ("jobs[1].seconds_per_epoch", [1e12, 1.0])),
        ("tardiness_weight_eur_per_s", [0.0, -1.0, 0.0], ("jobs[1].tardiness_weight_eur_per_s", -1.0)),
        ("epochs_needed", [1.0, 1.0, 9.0], ("jobs[2].epochs_needed", 9.0)),
        ("epochs_needed", [1.0, 1.0], ("jobs.epochs_needed", 2)),
        ("distribution", [0, 0, 7], ("jobs[2].distribution", 7)),
        ("seconds_per_epoch", [[1.0, 1.0], [1.0, np.nan], [1.0, 1.0]], ("jobs[1].seconds_per_epoch", [1.0, np.nan])),
    ],
)
def test_a_wrong_column_of_the_job_table_is_named(column, value, error):
    table = three_jobs().jobs
    with refused(*error):
        replace(table, **{column: np.array(value)})


def test_a_table_without_jobs_is_refused():
    with refused("jobs", 0):
        JobTable.from_jobs([], [Configuration("V100", 1)])


def test_finished_runs_make_a_histogram_whose_bins_end_at_their_edges():
    found = EpochDistribution.from_runs([0.5, 0.25, 0.250001, 1.0, 0.01], bins=4)
    assert found.masses.tolist() == pytest.approx([0.4, 0.4, 0.0, 0.2])
    assert EpochDistribution.from_runs(np.arange(1, 101) / 100.0).masses == pytest.approx(np.full(100, 0.01))
    for bad in ([], [0.0], [1.2], [[0.5]]):
        with refused("distribution.fractions", bad):
            EpochDistribution.from_runs(bad)
