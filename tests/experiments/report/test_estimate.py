import math

import numpy as np
import pytest

from gpusched_experiments.report.estimate import (
    Estimate,
    mean,
    mean_interval,
    paired_saving,
    pooled,
    pooled_saving,
    pooled_share,
    saving,
    share,
)
from gpusched_experiments.report.run import Runs


def runs(costs, first=0, jobs=10):
    return Runs.of(({}, "p", first + i, {"cost": c, "late": i, "jobs": jobs}) for i, c in enumerate(costs))


def test_a_saving_pairs_runs_by_seed_and_leaves_out_what_has_no_partner():
    own, other = runs([5.0, 10.0], first=1), runs([1_000.0, 10.0, 40.0])
    found = saving(own, other, "cost")
    assert found.value == pytest.approx(1.0 - 15.0 / 50.0)
    assert (found.interval, found.seeds) == (None, 2)


def test_one_group_has_the_intervals_of_every_other_comparison():
    rng = np.random.default_rng(5)
    own, other = rng.uniform(1.0, 2.0, 12), rng.uniform(2.0, 3.0, 12)
    found = saving(runs(own), runs(other), "cost")
    assert found.value == pytest.approx(paired_saving(own, other).value)
    assert found.interval == pytest.approx(paired_saving(own, other).interval)
    assert mean(runs(own), "cost").value == pytest.approx(own.mean())
    assert mean(runs(own), "cost").interval == pytest.approx(mean_interval(own))


def test_a_share_is_a_ratio_of_sums_and_of_nothing_no_number():
    assert share(runs([1.0, 1.0, 1.0]), "late", "jobs").value == pytest.approx(3.0 / 30.0)
    for found in (pooled([]), saving(runs([1.0]), runs([1.0], first=7), "cost"), pooled([({0: 1.0}, {0: 0.0})])):
        assert math.isnan(found.value)
        assert found.interval is None
    zero = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0, 4: 1.0}
    assert pooled([(zero, zero)]).interval is None


def test_groups_count_equally_however_large_their_costs():
    cheap, costly = (runs([5.0] * 5), runs([10.0] * 5)), (runs([900.0] * 5), runs([1_000.0] * 5))
    found = pooled_saving([cheap, costly], "cost")
    assert found.value == pytest.approx((0.5 + 0.1) / 2)
    assert found.interval == pytest.approx((0.3, 0.3))
    assert pooled_share([runs([1.0] * 2), runs([1.0] * 2, jobs=5)], "late", "jobs").value == pytest.approx(0.075)


def test_a_seed_brings_all_its_groups():
    # The same seed is odd in both groups: drawn together, the mean over groups varies as much as one group does.
    odd = {0: 0.0, 1: 10.0, 2: 10.0, 3: 10.0, 4: 10.0}
    tens = dict.fromkeys(range(5), 10.0)
    one, both = pooled([(odd, tens)]), pooled([(odd, tens), (odd, tens)])
    assert one == both
    # Odd in different seeds, the groups make up for each other.
    other = {**tens, 1: 0.0}
    apart = pooled([(odd, tens), (other, tens)])
    assert apart.interval[0] > one.interval[0]


def test_groups_with_few_seeds_are_left_out_unless_all_have_few():
    many, few = (runs([5.0] * 5), runs([10.0] * 5)), (runs([10.0]), runs([10.0]))
    assert pooled_saving([many, few], "cost").value == pytest.approx(0.25)
    assert pooled_saving([many, few], "cost", least_seeds=5).value == pytest.approx(0.5)
    assert pooled_saving([few, few], "cost", least_seeds=5).value == pytest.approx(0.0)


def test_a_draw_without_a_seed_of_a_group_passes_over_that_group():
    tens = dict.fromkeys(range(5), 10.0)
    found = pooled([(tens, tens), ({0: 5.0}, {0: 10.0})])
    assert found.value == pytest.approx(0.75)
    assert found.interval == pytest.approx((0.75, 1.0))


def test_a_ratio_turned_into_a_saving_turns_its_interval_round():
    ratio = Estimate(0.8, (0.7, 0.95), 9)
    assert ratio.as_saving().interval == pytest.approx((0.05, 0.3))
    assert Estimate(0.2, (0.05, 0.3), 9).as_extra().interval == (-0.3, -0.05)
    assert Estimate(0.2, (0.05, 0.3), 9).as_extra().value == -0.2
    assert Estimate(2.0, (1.0, 3.0), 9).times(1000.0) == Estimate(2000.0, (1000.0, 3000.0), 9)
