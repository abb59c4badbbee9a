"""The clairvoyant bound of a job for which being late is cheaper than being fast.

GPUs of 1,000 W without base power, at 1 €/kWh: a GPU costs 1 €/h with any jobs on its node.

    GPUs   epoch takes   epoch costs   a second saved costs, against the line above
    1      1 h           1.00 €
    2      0.6 h         1.20 €        0.5 €/h
    4      0.4 h         1.60 €        2.0 €/h

The job needs two epochs and is due after 1 h: one GPU alone is 1 h late. Two save 0.8 h for 0.40 €; four save the
remaining 0.2 h for 0.40 €.
"""

import pytest

from fixed import Fixed
from gpusched_baselines import clairvoyant_bound, clairvoyant_bounds
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from instances import CERTAIN, HOUR

CONFIGURATIONS = [Configuration("V", g) for g in (1, 2, 4)]


def instance(weight_eur_per_h: float, due_h: float = 1.0) -> Instance:
    seconds = dict(zip(CONFIGURATIONS, (HOUR, 0.6 * HOUR, 0.4 * HOUR), strict=True))
    job = Job(0.0, due_h * HOUR, weight_eur_per_h / HOUR, 2.0, CERTAIN, 2.0, seconds)
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    return Instance.from_jobs([gpu], [Node("V", 4)], [job], CONFIGURATIONS, energy_price_eur_per_kwh=1.0, pue=1.0)


@pytest.mark.parametrize(
    ("weight_eur_per_h", "by_hand"),
    [
        (0.25, 2.0 + 1.0 * 0.25),  # late by 1 h: cheaper than any second saved
        (1.0, 2.0 + 0.4 + 0.2 * 1.0),  # two GPUs, late by 0.2 h
        (3.0, 2.0 + 0.4 + 0.4),  # in time
    ],
)
def test_the_clairvoyant_bound_speeds_up_only_while_a_second_saved_costs_less_than_one_of_tardiness(
    weight_eur_per_h, by_hand
):
    assert clairvoyant_bounds(instance(weight_eur_per_h)) == pytest.approx([by_hand])


@pytest.mark.parametrize(("config", "weight_eur_per_h"), [(0, 0.25), (1, 1.0)])
def test_a_policy_that_is_late_on_purpose_attains_the_clairvoyant_bound_and_does_not_undercut_it(
    config, weight_eur_per_h
):
    of = instance(weight_eur_per_h)
    assert simulate(of, Fixed((config,))).total_eur == pytest.approx(clairvoyant_bound(of), rel=1e-12)


def test_a_job_with_time_is_bounded_by_its_cheapest_configuration():
    assert clairvoyant_bounds(instance(3.0, due_h=2.0)) == pytest.approx([2.0])


def test_a_job_that_is_late_even_on_the_fastest_pays_for_the_tardiness_left():
    """Due after 0.5 h; four GPUs throughout take 0.8 h and 3.20 €: 0.3 h late at 3 €/h."""
    assert clairvoyant_bounds(instance(3.0, due_h=0.5)) == pytest.approx([3.2 + 0.3 * 3.0])
