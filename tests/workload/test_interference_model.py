"""What sharing a GPU does to jobs: random inflation, measured pairs, and a model of one's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env import Configuration, GpuType, Interference
from gpusched_env.workload import (
    MeasuredPairs,
    RandomInflation,
    SharingJobs,
    SharingTimes,
    builtin_max_inflation,
    builtin_slowdowns,
    load_scenario,
    make_instance,
)
from refusals import refused

JOBS = 20_000
TYPES = (GpuType("V100", 200.0, 100.0, 16.0), GpuType("K80", 100.0, 100.0, 12.0))
SHARES = tuple(Configuration(v.name, 1, share=f) for v in TYPES for f in (0.5, 0.3))


def jobs(applications: tuple[str, ...] = ("lm-wikitext2-bs5", "resnet18-cifar10-bs128")) -> SharingJobs:
    alone = np.tile([10.0, 10.0, 30.0, np.inf], (JOBS, 1))
    return SharingJobs(alone, SHARES, TYPES, np.zeros(JOBS, dtype=np.int64), applications)


def test_every_application_draws_one_number_for_all_types_and_fractions():
    """A fraction of 0.3 takes the row of a quarter, the largest fraction of the table that is not above it."""
    greatest = builtin_max_inflation()
    most = np.array([greatest["V100", 0.5], greatest["V100", 0.25], greatest["K80", 0.5]])
    names = tuple(f"a{i}" for i in range(JOBS))
    many = replace(jobs(names), application=np.arange(JOBS) // 2)
    made = RandomInflation().sharing_times(many, np.random.default_rng(0))
    inflation = made.seconds_per_epoch[:, :3] / many.alone_s[:, :3]
    part = (inflation - 1.01) / (most - 1.01)
    assert part[:, 1:] == pytest.approx(np.repeat(part[:, :1], 2, axis=1)), "the same part of the way everywhere"
    assert np.all(inflation[::2] == inflation[1::2]), "jobs of one application have one inflation"
    assert len(np.unique(inflation[:, 0])) == JOBS // 2
    assert 0.0 <= part.min() < 0.001
    assert 0.999 < part.max() <= 1.0
    assert part.mean() == pytest.approx(0.5, abs=0.01)
    assert np.all(np.isinf(made.seconds_per_epoch[:, 3])), "its memory does not fit"
    assert made.interference is None


def test_a_maximum_of_ones_own_holds_for_its_fraction():
    made = RandomInflation({0.5: 1.2}).sharing_times(jobs(), np.random.default_rng(0))
    inflation = made.seconds_per_epoch[:, :3] / jobs().alone_s[:, :3]
    assert inflation[:, [0, 2]].max() <= 1.2
    assert inflation[:, 1].max() > 1.2


def test_measured_pairs_leave_the_times_alone_and_give_the_slow_downs_by_type_and_pair():
    made = MeasuredPairs().sharing_times(jobs(), np.random.default_rng(0))
    assert np.array_equal(made.seconds_per_epoch, jobs().alone_s)
    table = builtin_slowdowns()
    assert made.interference.slowdown.shape == (2, 2, 2)
    for v, gpu_type in enumerate(("V100", "K80")):
        for a, one in enumerate(jobs().applications):
            for b, other in enumerate(jobs().applications):
                assert made.interference.slowdown[v, a, b] == table[gpu_type, one, other]
    assert made.interference.slowdown[0, 0, 1] != made.interference.slowdown[0, 1, 0]


SHARED = {"sharing.fractions": [0.5, 0.25]}


def shared_columns(instance):
    return [i for i, c in enumerate(instance.configurations) if c.kind == "shared"]


def test_a_job_may_use_a_share_only_if_its_memory_fits_it():
    instance = make_instance(load_scenario("default").replace(SHARED), 0)
    memory = {v.name: v.memory_gib for v in instance.gpu_types}
    some = set()
    for column in shared_columns(instance):
        c = instance.configurations[column]
        fits = instance.jobs.memory_gib <= c.share * memory[c.gpu_type]
        assert np.array_equal(np.isfinite(instance.jobs.seconds_per_epoch[:, column]), fits)
        some |= set(fits.tolist())
    assert some == {True, False}


def test_a_shared_time_is_the_time_on_one_gpu_of_the_type_times_the_inflation():
    instance = make_instance(load_scenario("sharing").replace({"sharing.max_inflation": [1.5, 2.5]}), 0)
    names = [c.name for c in instance.configurations]
    seconds = instance.jobs.seconds_per_epoch
    for gpu_type in ("V100", "A100", "T4"):
        alone = seconds[:, names.index(f"{gpu_type}x1")]
        for share, most in (("0.5", 1.5), ("0.25", 2.5)):
            inflation = seconds[:, names.index(f"{gpu_type}x{share}")] / alone
            inflation = inflation[np.isfinite(inflation)]
            assert 1.01 <= inflation.min() < inflation.max() <= most
    assert instance.find("shares") is None


def test_sharing_changes_nothing_else_of_the_jobs():
    plain = make_instance(load_scenario("default"), 0)
    for values in (SHARED, SHARED | {"sharing.interference": "measured"}, {"jobs.node_counts": [1, 2]}):
        other = make_instance(load_scenario("default").replace(values), 0)
        width = len(plain.configurations)
        assert other.configurations[:width] == plain.configurations
        assert np.array_equal(other.jobs.seconds_per_epoch[:, :width], plain.jobs.seconds_per_epoch)
        for column in ("submission_s", "due_s", "epochs_needed", "tardiness_weight_eur_per_s", "application"):
            assert np.array_equal(getattr(other.jobs, column), getattr(plain.jobs, column)), column


def test_measured_interference_reaches_the_instance_in_the_order_of_its_types_and_applications():
    instance = make_instance(load_scenario("sharing").replace({"sharing.interference": "measured"}), 0)
    slowdown, table = instance.find("shares").slowdown, builtin_slowdowns()
    for v, gpu_type in enumerate(instance.gpu_types):
        for a, one in enumerate(instance.jobs.applications):
            for b, other in enumerate(instance.jobs.applications):
                assert slowdown[v, a, b] == table[gpu_type.name, one, other]
    names = [c.name for c in instance.configurations]
    seconds = instance.jobs.seconds_per_epoch
    assert np.array_equal(seconds[:, names.index("V100x0.5")], seconds[:, names.index("V100x1")])


class Doubling:
    """A model of one's own: sharing doubles the time."""

    def sharing_times(self, jobs, rng):
        return SharingTimes(2.0 * jobs.alone_s, Interference(np.ones((3, 4, 4))))


def test_a_model_of_ones_own_takes_the_place_of_the_scenarios():
    instance = make_instance(load_scenario("sharing"), 0, Doubling())
    names = [c.name for c in instance.configurations]
    seconds = instance.jobs.seconds_per_epoch
    assert np.array_equal(seconds[:, names.index("T4x0.5")], 2.0 * seconds[:, names.index("T4x1")])
    assert instance.find("shares") == Interference(np.ones((3, 4, 4)))


def test_times_of_another_shape_are_refused():
    class Careless:
        def sharing_times(self, jobs, rng):
            return SharingTimes(jobs.alone_s[:, :1])

    with refused("interference.seconds_per_epoch", (100, 1), "(100, 6)"):
        make_instance(load_scenario("sharing"), 0, Careless())


def test_the_inflations_are_a_stream_of_the_seed():
    scenario = load_scenario("sharing")
    one, again, other = (make_instance(scenario, seed).jobs.seconds_per_epoch for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_time_on_whole_nodes_is_the_applications_and_the_memory_that_of_one_gpu():
    instance = make_instance(load_scenario("multi-node"), 0)
    names, jobs_ = [c.name for c in instance.configurations], instance.jobs
    assert names[-4:] == ["2*A100x8", "4*A100x8", "2*T4x4", "4*T4x4"]
    vgg = jobs_.application == jobs_.applications.index("vgg16-imagenet-global256")
    assert vgg.any()
    assert set(jobs_.seconds_per_epoch[vgg, names.index("2*A100x8")]) == {396.503}
    assert set(jobs_.seconds_per_epoch[vgg, names.index("2*T4x4")]) == {np.inf}, "not measured"
