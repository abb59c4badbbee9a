"""The exact solver: plans against their own costs, solved again half way, and by hand; `solvers` has other solvers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import Plan, solve_single_job
from gpusched_baselines.planning.plan import lower_hull
from gpusched_env import EpochDistribution
from single_job import SingleJob, random_single_job


def recomputed_cost(case: SingleJob, plan: Plan) -> float:
    edges = case.distribution.edges * case.largest
    alive = case.distribution.survival[np.searchsorted(edges, case.done, side="right") - 1]
    total = 0.0
    for segment in plan.segments:
        for b, survival in enumerate(case.distribution.survival):
            inside = min(segment.end_epoch, edges[b + 1]) - max(segment.start_epoch, edges[b])
            total += max(0.0, inside) * survival / alive * case.price[segment.configuration]
    return float(total)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_plan_costs_what_it_says_covers_all_epochs_and_speeds_up(seed):
    case = random_single_job(seed)
    plan = case.exactly()
    assert plan.expected_cost_eur == pytest.approx(recomputed_cost(case, plan), rel=1e-9)
    assert plan.segments[0].start_epoch == case.done
    assert plan.segments[-1].end_epoch == case.largest
    for now, following in zip(plan.segments[:-1], plan.segments[1:], strict=True):
        assert now.end_epoch == following.start_epoch
        assert case.tau[now.configuration] > case.tau[following.configuration]
        assert case.price[now.configuration] < case.price[following.configuration]
    if plan.status == "tight":
        assert plan.worst_case_s == pytest.approx(case.time_left, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95))
def test_solved_again_half_way_it_gives_the_remaining_plan(seed, share):
    case = random_single_job(seed)
    edges = case.distribution.edges * case.largest
    last = edges[np.flatnonzero(case.distribution.masses > 0)[-1] + 1]
    plan = case.exactly()
    later = case.done + (last - case.done) * share * 0.999
    spent = sum(max(0.0, min(s.end_epoch, later) - s.start_epoch) * case.tau[s.configuration] for s in plan.segments)
    again = SingleJob(case.tau, case.price, case.distribution, case.largest, case.time_left - spent, later)
    rest = [(s.configuration, max(s.start_epoch, later), s.end_epoch) for s in plan.segments if s.end_epoch > later]
    if plan.status == "tight" and len(rest) == 1:
        return  # the last segment alone: the time left is exact only up to rounding, and the status may read late
    replanned = again.exactly()
    found = [(s.configuration, s.start_epoch, s.end_epoch) for s in replanned.segments]
    cost = sum(recomputed_cost(again, Plan("tight", 0, 0, (s,))) for s in replanned.segments)
    kept = recomputed_cost(again, Plan(plan.status, 0, 0, tuple(s for s in _cut(plan, later))))
    assert cost == pytest.approx(kept, rel=1e-7)
    if len({round(s, 9) for s in case.distribution.survival}) == len(case.distribution.survival):
        kept_parts = [row for row in rest if row[2] - row[1] > 1e-6 * case.largest]
        found_parts = [row for row in found if row[2] - row[1] > 1e-6 * case.largest]
        assert [row[0] for row in found_parts] == [row[0] for row in kept_parts]
        for ours, theirs in zip(found_parts, kept_parts, strict=True):
            assert ours[1:] == pytest.approx(theirs[1:], abs=1e-6 * case.largest)


def _cut(plan: Plan, later: float):
    for s in plan.segments:
        if s.end_epoch > later:
            yield type(s)(s.configuration, max(s.start_epoch, later), s.end_epoch)


def test_a_worked_example():
    """Epochs cost 1 h and 1 € or 40 min and 19/15 €; S is 1, then ½; 3.5 h for four epochs: 0.5 h must be saved.

    The second half is the cheaper place: 1.5 epochs there save 0.5 h. 2 + ½ · (0.5 · 1 + 1.5 · 19/15) = 3.2 €.
    """
    distribution = EpochDistribution(np.array([0, 0.5, 1]), np.array([1.0, 0.5]))
    plan = solve_single_job([3600, 2400], [1, 19 / 15], distribution, 4.0, 3.5 * 3600)
    assert plan.status == "tight"
    assert plan.expected_cost_eur == pytest.approx(3.2)
    assert [(s.configuration, s.start_epoch, s.end_epoch) for s in plan.segments] == [(0, 0, 2.5), (1, 2.5, 4)]


def test_slack_takes_the_cheapest_late_the_fastest_and_epochs_that_no_job_reaches_are_run_fast_for_nothing():
    distribution = EpochDistribution.from_masses([1, 1])
    slack = solve_single_job([10, 5], [1, 2], distribution, 4.0, 40.0)
    assert (slack.status, [s.configuration for s in slack.segments]) == ("slack", [0])
    late = solve_single_job([10, 5], [1, 2], distribution, 4.0, 19.9)
    assert (late.status, [s.configuration for s in late.segments]) == ("late", [1])
    assert late.expected_cost_eur == pytest.approx(2 * (2 + 0.5 * 2))
    # S is 0 in the second half: all the time that must be saved is saved there, at no expected cost.
    distribution = EpochDistribution(np.array([0, 0.5, 1]), np.array([1.0, 0.0]))
    plan = solve_single_job([10, 5], [1, 2], distribution, 4.0, 30.0)
    assert plan.expected_cost_eur == pytest.approx(2.0)
    assert [s.configuration for s in plan.segments] == [0, 1]


@pytest.mark.parametrize("largest", [1.0, 3.7, 90.0, 137.31])
@pytest.mark.parametrize("bins", [4, 10, 49, 100])
def test_a_job_on_a_bin_edge_has_survived_the_bin_before_it_whichever_edge(bins, largest):
    """Of n equal masses n - b are left at edge b: with one configuration at 1 € per epoch, (n - b + 1) / 2 bins."""
    distribution = EpochDistribution.from_masses(np.ones(bins))
    for b, edge in enumerate(distribution.edges[:-1].tolist()):
        plan = solve_single_job([1.0], [1.0], distribution, largest, 2.0 * largest, epochs_done=edge * largest)
        assert plan.expected_cost_eur == pytest.approx(largest * (bins - b + 1) / 2 / bins, rel=1e-9)


def test_a_job_on_a_bin_edge_begins_to_speed_up_at_the_epoch_it_is_at():
    """All that is left must be run fast: the plan omits no part of an epoch before the edge."""
    distribution = EpochDistribution.from_masses([0.5, 0.0, 0.0, 0.5])
    for done in (25.0, np.nextafter(25.0, 0.0), 25.0 - 5e-11):
        plan = solve_single_job([2.0, 1.0], [1.0, 3.0], distribution, 100.0, 100.0 - done, epochs_done=done)
        assert plan.segments[-1].configuration == 1
        assert plan.segments[-1].start_epoch == pytest.approx(done, abs=1e-14)
        assert plan.worst_case_s == pytest.approx(100.0 - done, abs=3e-14)


def hull_of(tau: list[float], price: list[float]) -> list[int]:
    capacity = np.empty(len(tau), dtype=np.int64)
    points = lower_hull(np.array(tau), np.array(price), capacity)
    return capacity[:points].tolist()


def test_a_configuration_that_is_not_allowed_is_left_out():
    assert hull_of([np.inf, 3.0], [0.0, 2.0]) == [1]
    assert hull_of([np.inf], [0.0]) == []


@settings(max_examples=300, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12, unique=True),
    price_of_time=st.floats(0.001, 50.0),
)
def test_for_every_price_of_time_a_hull_point_is_best(points, price_of_time):
    tau, price = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    hull = hull_of(tau.tolist(), price.tolist())
    value = price + price_of_time * tau
    assert value[hull].min() == value.min()
    slopes = [(price[b] - price[a]) / (tau[a] - tau[b]) for a, b in itertools.pairwise(hull)]
    assert np.all(np.diff(slopes) > 0)
