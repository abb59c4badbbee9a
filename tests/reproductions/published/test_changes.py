import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_reproductions.published.changes import WAYS, BasePower, Misspecified, Slower, SpeedUp
from instances import HOUR, three_jobs
from refusals import refused


def test_exponents_of_one_and_nought_by_hand_and_due_dates_keep_their_place():
    changed = SpeedUp(1.0, 1.0)(three_jobs())
    assert changed.jobs.seconds_per_epoch.tolist() == [[HOUR, HOUR / 2]] * 3
    # Job A needs at most 4 epochs: from 9,600 to 14,400 s before, so its 12,600 s were 5/8 of the way; now from 7,200.
    assert changed.jobs.due_s[0] == pytest.approx(7_200.0 + 0.625 * 7_200.0)
    # Job B had more time than it could take: 36,000 s where 4,800 to 7,200 were the range, 13 widths on.
    assert changed.jobs.due_s[1] == pytest.approx(3_600.0 + 13.0 * 3_600.0)
    np.testing.assert_array_equal(changed.jobs.epochs_needed, three_jobs().jobs.epochs_needed)
    changed = SpeedUp(0.0, 0.0)(three_jobs())
    assert changed.jobs.seconds_per_epoch.tolist() == [[HOUR, HOUR]] * 3
    assert changed.jobs.due_s.tolist() == pytest.approx([4 * HOUR, 2 * HOUR, 2 * HOUR])


def test_every_gpu_type_starts_from_its_least_open_number_and_what_is_closed_stays_closed():
    types = (GpuType("A", 100.0, 0.0, 16.0), GpuType("B", 100.0, 0.0, 16.0))
    nodes = (Node("A", 4), Node("B", 4))
    distribution = EpochDistribution.from_masses([1.0])
    seconds = {Configuration("A", 1): 100.0, Configuration("A", 4): 90.0, Configuration("B", 2): 8.0}
    seconds[Configuration("B", 4)] = 7.0
    job = Job(0.0, 500.0, 0.01, 5.0, distribution, 5.0, seconds)
    changed = SpeedUp(0.5, 0.5)(Instance.from_jobs(types, nodes, [job]))
    found = dict(zip(changed.configurations, changed.jobs.seconds_per_epoch[0], strict=True))
    assert {c.name: t for c, t in found.items() if np.isfinite(t)} == pytest.approx(
        {"Ax1": 100.0, "Ax4": 50.0, "Bx2": 8.0, "Bx4": 8.0 / 2**0.5}
    )


def test_exponents_of_a_range_differ_by_job_and_are_the_same_at_every_call():
    instance = make_instance(load_scenario("tiny"), 3)
    first, again = SpeedUp(0.2, 0.8)(instance), SpeedUp(0.2, 0.8)(instance)
    np.testing.assert_array_equal(first.jobs.seconds_per_epoch, again.jobs.seconds_per_epoch)
    one, eight = (first.configurations.index(Configuration("V100", g)) for g in (1, 8))
    tau = first.jobs.seconds_per_epoch
    exponents = np.log(tau[:, one] / tau[:, eight]) / np.log(8.0)
    assert len(np.unique(exponents.round(9))) == len(tau)
    assert 0.2 <= exponents.min() < exponents.max() <= 0.8


def test_due_dates_of_the_generator_stay_between_the_least_and_the_greatest_time():
    changed = SpeedUp(0.3, 0.3)(make_instance(load_scenario("tiny"), 0)).jobs
    full = changed.seconds_per_epoch * changed.max_epochs[:, None]
    left = changed.due_s - changed.submission_s
    assert np.all(left >= full.min(axis=1) * (1 - 1e-9))
    assert np.all(left <= np.where(np.isfinite(full), full, 0.0).max(axis=1) * (1 + 1e-9))


@pytest.mark.parametrize(("least", "greatest", "field"), [(-0.1, 0.5, "least"), (0.5, 0.4, "greatest")])
def test_exponents_that_make_no_sense_are_refused(least, greatest, field):
    with refused(field):
        SpeedUp(least, greatest)


def informed(way):
    return Misspecified(way)(three_jobs()).jobs


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_told_jobs_need_what_they_needed(way):
    instance = make_instance(load_scenario("tiny"), 1)
    np.testing.assert_array_equal(Misspecified(way)(instance).jobs.epochs_needed, instance.jobs.epochs_needed)


def test_optimists_and_pessimists_are_told_twice_and_half_the_hazard():
    # Of the three jobs A ends half way or at the end, each with probability 1/2; B and C always need all.
    assert informed("optimistic").distributions[informed("optimistic").distribution[0]].survival.tolist() == [1.0, 0.25]
    assert informed("pessimistic").distributions[informed("pessimistic").distribution[0]].survival[1] == pytest.approx(
        0.5**0.5
    )
    assert informed("optimistic").distributions[informed("optimistic").distribution[1]].survival.tolist() == [1.0]


def test_the_average_weighs_every_job_once_and_the_uniform_and_worst_case_say_the_same_of_all():
    jobs = informed("average")
    assert jobs.distribution.tolist() == [0, 0, 0]
    assert jobs.distributions[0].edges.tolist() == [0.0, 0.5, 1.0]
    assert jobs.distributions[0].survival.tolist() == pytest.approx([1.0, (0.5 + 1.0 + 1.0) / 3])
    (uniform,), (certain,) = informed("uniform").distributions, informed("worst case").distributions
    assert uniform.mean == pytest.approx(0.505)
    assert certain.mean == 1.0
    assert informed("uniform").distribution.tolist() == informed("worst case").distribution.tolist() == [0, 0, 0]
    with refused("way", "lies", "one of optimistic"):
        Misspecified("lies")


def test_shuffling_deals_the_same_distributions_to_other_jobs():
    instance = make_instance(load_scenario("default"), 2)
    first, again = (Misspecified("shuffled")(instance).jobs.distribution for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert sorted(first) == sorted(instance.jobs.distribution)
    assert np.mean(first != instance.jobs.distribution) > 0.5


def test_only_policies_that_look_at_distributions_notice():
    instance = make_instance(load_scenario("default"), 0)
    for name, same in (("edf", True), ("sts", False)):
        costs = {simulate(each, make_policy(name)).energy_eur for each in (instance, Misspecified("uniform")(instance))}
        assert (len(costs) == 1) is same


INSTANCE = make_instance(load_scenario("published-high").replace({"jobs.count": 12}), 0)


def test_a_slower_type_takes_longer_and_due_dates_keep_their_place():
    changed = Slower("M60", 3.0)(INSTANCE)
    of_type = np.array([c.gpu_type == "M60" for c in INSTANCE.configurations])
    before, after = INSTANCE.jobs.seconds_per_epoch, changed.jobs.seconds_per_epoch
    assert np.array_equal(after[:, ~of_type], before[:, ~of_type])
    assert after[:, of_type] == pytest.approx(3.0 * before[:, of_type])

    def place(instance):
        full = instance.jobs.seconds_per_epoch * instance.jobs.max_epochs[:, None]
        left = instance.jobs.due_s - instance.jobs.submission_s
        return (left - full.min(axis=1)) / (full.max(axis=1) - full.min(axis=1))

    assert place(changed) == pytest.approx(place(INSTANCE))
    assert Slower("M60", 1.0)(INSTANCE).jobs.due_s == pytest.approx(INSTANCE.jobs.due_s)


def test_base_power_is_added_to_every_node_that_is_on():
    changed = BasePower(0.5)(INSTANCE)
    for before, after in zip(INSTANCE.gpu_types, changed.gpu_types, strict=True):
        extra = 0.5 * before.power_w(1)
        assert [after.power_w(b) for b in range(1, 9)] == pytest.approx(
            [before.power_w(b) + extra for b in range(1, 9)]
        )
    assert BasePower(0.0)(INSTANCE) == INSTANCE


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Slower("M60", 0.0), ("factor", 0.0)),
        (lambda: BasePower(-1.0), ("share", -1.0)),
        (lambda: Slower("A100", 2.0)(INSTANCE), ("gpu_type", "A100")),
    ],
)
def test_what_cannot_be_is_one_error(make, error):
    with refused(*error):
        make()
