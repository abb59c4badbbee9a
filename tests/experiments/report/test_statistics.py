import math

import numpy as np
import pytest

from gpusched_experiments.report import RunSummary, summarise
from gpusched_experiments.report.estimate import LEAST_SEEDS, mean_interval, paired_saving
from gpusched_experiments.report.statistics import gap
from refusals import refused


def run(policy, seed, energy, tardiness=0.0, **other):
    values = {
        "jobs": 4, "late_jobs": 0, "mean_completion_s": 100.0, "switches": 2, "rounds": 10, "decision_s": 0.5,
        "clairvoyant_eur": 5.0, "non_clairvoyant_eur": 8.0,
    }  # fmt: skip
    return RunSummary(policy=policy, seed=seed, energy_eur=energy, tardiness_eur=tardiness, **{**values, **other})


def test_a_saving_is_a_ratio_of_means_not_a_mean_of_ratios_and_none_against_nothing():
    assert paired_saving([50.0, 10.0], [100.0, 1.0]).value == pytest.approx(1.0 - 60.0 / 101.0)
    assert math.isnan(paired_saving([1.0], [0.0]).value)
    assert paired_saving([1.0] * 5, [0.0, 1.0, 1.0, 1.0, 1.0]).interval is None
    assert paired_saving([5.0, 50.0, 1.0, 2.0, 3.0], [10.0, 100.0, 2.0, 4.0, 6.0]).interval == pytest.approx((0.5, 0.5))


def test_the_interval_of_five_seeds_of_which_one_differs_is_that_of_a_binomial():
    # How often the odd one is among 5 draws is binomial(5, 1/5): never with probability 0.328 (above 2.5 %), more than
    # twice with 0.058, more than three times with 0.0067. So 97.5 % lie at three times or below.
    assert mean_interval([10.0, 0.0, 0.0, 0.0, 0.0]) == pytest.approx((0.0, 6.0))
    assert paired_saving([0.0, 10.0, 10.0, 10.0, 10.0], [10.0] * 5).interval == pytest.approx((0.0, 0.6))


def test_the_interval_is_that_of_the_bootstrap_distribution():
    rng = np.random.default_rng(3)
    other = rng.uniform(50.0, 150.0, 30)
    own = other * rng.normal(0.8, 0.1, 30)
    low, high = paired_saving(own, other).interval
    # By the delta method the standard error of 1 - mean(own) / mean(other) is sd(own - r other) / (mean(other) √n).
    ratio = own.sum() / other.sum()
    error = np.std(own - ratio * other, ddof=1) / (other.mean() * math.sqrt(30))
    assert low == pytest.approx(1.0 - ratio - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(1.0 - ratio + 1.96 * error, abs=0.15 * error)


@pytest.mark.parametrize("seeds", range(1, LEAST_SEEDS))
def test_fewer_than_five_seeds_have_no_interval(seeds):
    assert LEAST_SEEDS == 5
    assert paired_saving([1.0] * seeds, [2.0] * seeds).interval is None
    assert mean_interval([1.0] * seeds) is None


def test_intervals_are_the_same_at_every_call():
    costs = [1.0, 5.0, 2.0, 7.0, 3.0], [3.0, 4.0, 5.0, 8.0, 9.0]
    first = paired_saving(*costs).interval
    assert first is not None
    assert first == paired_saving(*costs).interval


def test_a_policy_is_summed_up_over_its_seeds():
    runs = [
        run("edf", 0, 10.0, 10.0, late_jobs=2), run("sts", 0, 9.0, decision_s=2.0),
        run("edf", 1, 20.0), run("sts", 1, 11.0, 1.0, late_jobs=1, switches=5, rounds=30, mean_completion_s=300.0),
    ]  # fmt: skip
    edf, sts = summarise(runs, "edf")
    assert (edf.policy, edf.runs, edf.energy_eur, edf.tardiness_eur, edf.total_eur) == ("edf", 2, 15.0, 5.0, 20.0)
    assert (edf.saving, edf.saving_interval, edf.late_jobs) == (0.0, None, 1.0)
    assert sts.total_eur == 10.5
    assert sts.saving == pytest.approx(1.0 - 21.0 / 40.0)
    assert (sts.saving_interval, sts.energy_saving_interval, sts.total_interval_eur) == (None, None, None)
    assert sts.energy_saving == pytest.approx(1.0 - 20.0 / 30.0)
    assert (sts.late_jobs, sts.switches, sts.mean_completion_s) == (0.5, 3.5, 200.0)
    assert sts.decision_s_per_round == pytest.approx(2.5 / 40)
    assert sts.clairvoyant_gap == pytest.approx(1.1)
    assert sts.non_clairvoyant_gap == pytest.approx(10.5 / 8.0 - 1.0)


def test_savings_are_paired_by_seed_whatever_the_order_of_the_runs():
    edf = [run("edf", seed, 10.0**seed) for seed in range(5)]
    sts = [run("sts", seed, 0.5 * 10.0**seed) for seed in (3, 1, 4, 0, 2)]
    assert summarise([*edf, *sts], "edf")[1].saving_interval == pytest.approx((0.5, 0.5))


def test_an_unknown_reference_and_other_seeds_are_refused_and_gaps_and_rounds_of_nothing_are_none():
    with refused("reference", "fifo", "one of the policies compared: edf"):
        summarise([run("edf", 0, 1.0)], "fifo")
    with refused("runs of sts", [1]):
        summarise([run("edf", 0, 1.0), run("sts", 1, 1.0)], "edf")
    assert run("edf", 0, 1.0, rounds=0).decision_s_per_round == 0.0
    assert gap([12.0, 18.0], [10.0, 10.0]) == pytest.approx(0.5)
    assert math.isnan(gap([1.0], [0.0]))
