from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.workload import Arrivals
from gpusched_env.workload.scenario.arrivals import _bursts, profiled_times, submission_times
from gpusched_env.workload.tables.applications import ArrivalProfile, arrival_profile
from refusals import refused

MANY = 40_000


def draw(arrivals: Arrivals, saturation: np.ndarray, nodes: int = 10, seed: int = 0) -> np.ndarray:
    return submission_times(arrivals, saturation, nodes, np.random.default_rng(seed))


def gaps_by_cluster(times: np.ndarray, clusters: int) -> np.ndarray:
    """Gaps before jobs, (clusters, rows): they were dealt round-robin, and cluster comes after cluster."""
    in_turn = times.reshape(-1, clusters).T
    gaps = np.diff(in_turn.ravel(), prepend=np.nan)
    return gaps.reshape(clusters, -1)


@pytest.mark.parametrize(("name", "nodes"), [("mean_gap_s", 10), ("lambda_s", 1)])
def test_a_gap_by_which_the_last_job_comes_too_late_is_named(name, nodes):
    rule = Arrivals(kind="exponential", **{name: 1e12})
    with refused(f"arrivals.{name}", 1e12, "last of 100 jobs comes within 1e12 s"):
        draw(rule, np.ones(100), nodes=nodes)


def test_simultaneous_jobs_all_come_at_zero():
    assert draw(Arrivals(kind="simultaneous"), np.ones(7)).tolist() == [0.0] * 7


@pytest.mark.parametrize(
    ("arrivals", "mean"),
    [
        (Arrivals(kind="exponential", mean_gap_s=50.0), 50.0),
        (Arrivals(kind="exponential", lambda_s=500.0), 50.0),
        (Arrivals(kind="poisson", mean_gap_s=50.0), 50.0),
        (Arrivals(kind="poisson", lambda_s=500.0), 50.0),
    ],
)
def test_the_mean_gap_is_given_directly_or_as_lambda_over_the_nodes(arrivals, mean):
    times = draw(arrivals, np.ones(MANY), nodes=10)
    assert times[0] == 0.0
    assert np.diff(times).mean() == pytest.approx(mean, rel=0.02)


def test_exponential_gaps_spread_as_their_mean_and_poisson_gaps_as_its_root_in_whole_seconds():
    exponential = np.diff(draw(Arrivals(kind="exponential", mean_gap_s=50.0), np.ones(MANY)))
    poisson = np.diff(draw(Arrivals(kind="poisson", mean_gap_s=50.0), np.ones(MANY)))
    assert exponential.std() == pytest.approx(50.0, rel=0.03)
    assert poisson.std() == pytest.approx(50.0**0.5, rel=0.03)
    assert np.all(poisson == np.round(poisson))


@pytest.mark.parametrize(("kind", "divisor"), [("high", 2.5), ("low", 10.0)])
def test_clusters_come_one_after_the_other_and_their_gaps_have_the_rate_of_the_rule(kind, divisor):
    """All λ_j are 0.2/s: mean gap 2.5 / 0.2 = 12.5 s with high, 4 · 2.5 / 0.2 = 50 s with low."""
    times = draw(Arrivals(kind=kind), np.full(MANY, 0.2))
    gaps = gaps_by_cluster(times, MANY // 10)
    assert times[0] == 0.0
    assert np.sum(times == 0.0) == 1
    assert np.all(gaps.ravel()[1:] > 0.0)
    assert np.nanmean(gaps) == pytest.approx(divisor / 0.2, rel=0.02)
    assert np.max(times) == pytest.approx(MANY * divisor / 0.2, rel=0.02)


def test_mixed_clusters_alternate_high_and_low():
    gaps = gaps_by_cluster(draw(Arrivals(kind="mixed"), np.full(MANY, 0.2)), MANY // 10)
    assert np.nanmean(gaps[::2]) == pytest.approx(12.5, rel=0.03)
    assert np.nanmean(gaps[1::2]) == pytest.approx(50.0, rel=0.03)


def test_the_rate_of_a_cluster_is_the_mean_over_its_own_jobs():
    """Two clusters of ten: jobs 0, 2, 4, … have λ = 1 and 3 in turn (mean 2), the others 20: ten times the rate."""
    saturation = np.empty(20)
    saturation[::4], saturation[2::4], saturation[1::2] = 1.0, 3.0, 20.0
    ends = np.array([draw(Arrivals(kind="high"), saturation, seed=seed)[-2:] for seed in range(3_000)])
    first = 9 * 2.5 / 2.0
    assert ends.mean(axis=0) == pytest.approx([first, first + 10 * 2.5 / 20.0], rel=0.03)


@pytest.mark.parametrize("kind", ["high", "mixed", "exponential", "poisson"])
def test_a_factor_on_the_rate_divides_every_time_between_submissions(kind):
    gap = {"mean_gap_s": 40.0} if kind in {"exponential", "poisson"} else {}
    once = draw(Arrivals(kind=kind, **gap), np.linspace(0.1, 1.0, 37))
    twice = draw(Arrivals(kind=kind, rate=2.5, **gap), np.linspace(0.1, 1.0, 37))
    assert twice == pytest.approx(once / 2.5)


def flat(variation: float, persistence: float = 0.0) -> ArrivalProfile:
    return ArrivalProfile(np.ones(168), variation, persistence)


def hourly(times: np.ndarray) -> np.ndarray:
    """Jobs in each whole hour."""
    counts = np.bincount((times // 3600.0).astype(np.int64))
    return counts[:-1]


def test_a_flat_profile_without_variation_is_a_poisson_process():
    times = profiled_times(flat(0.0), 60.0, MANY, np.random.default_rng(0))
    counts = hourly(times)
    assert times[0] == 0.0
    assert counts.mean() == pytest.approx(60.0, rel=0.02)
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(("variation", "persistence"), [(0.5, 0.0), (0.5, 0.6)])
def test_hourly_counts_vary_and_persist_as_the_profile_says(variation, persistence):
    """Counts about a rate m · G have the variance m + m² · Var[G], those of two hours the covariance m² Cov[G, G']."""
    counts = hourly(profiled_times(flat(variation, persistence), 60.0, 600_000, np.random.default_rng(1)))
    mean = counts.mean()
    beyond = (counts.var() - mean) / mean**2
    together = np.mean((counts[1:] - mean) * (counts[:-1] - mean)) / mean**2
    assert mean == pytest.approx(60.0, rel=0.03)
    assert beyond == pytest.approx(variation**2, rel=0.1)
    assert together == pytest.approx(persistence * variation**2, abs=0.02)


def test_what_is_left_of_the_noise_of_a_week_is_in_the_next():
    for seed in range(8):
        weeks = _bursts(flat(1.0, 0.999), np.random.default_rng(seed))
        first, second = np.log(next(weeks)), np.log(next(weeks))
        assert abs(second[0] - first[-1]) < 0.3


@pytest.mark.parametrize(("name", "tolerance"), [("philly", 0.25), ("openb", 0.1)])
def test_generated_hourly_counts_are_about_as_uneven_as_those_of_the_trace(name, tolerance):
    profile = arrival_profile(name)
    spread = []
    for seed in range(40):
        counts = hourly(profiled_times(profile, 60.0, 60_000, np.random.default_rng(seed)))
        spread.append((counts.var() - counts.mean()) / counts.mean() ** 2)
    # The rate is factor · G, independent: E[(f G)²] = E[f²] · E[G²].
    expected = np.mean(profile.factors**2) * (1.0 + profile.variation**2) - 1.0
    assert np.mean(spread) == pytest.approx(expected, rel=tolerance)
    assert expected > 0.3


def test_without_variation_the_counts_follow_the_hours_of_the_week():
    factors = np.where(np.arange(168) % 24 < 12, 0.2, 1.8)
    profile = ArrivalProfile(factors, 0.0, 0.0)
    counts = hourly(profiled_times(profile, 60.0, 200_000, np.random.default_rng(2)))
    by_hour = counts[: len(counts) // 24 * 24].reshape(-1, 24).mean(axis=0)
    # The run begins anywhere in the week, and its hours within an hour of it: two of 24 may hold a change.
    assert np.sum(by_hour < 0.25 * 60.0) >= 10
    assert np.sum(by_hour > 1.7 * 60.0) >= 10


def test_a_factor_on_the_rate_of_a_profile_leaves_the_week_as_long_as_it_is():
    once = draw(Arrivals(kind="profile", profile="philly", mean_gap_s=60.0), np.ones(1000))
    same = draw(Arrivals(kind="profile", profile="philly", mean_gap_s=120.0, rate=2.0), np.ones(1000))
    assert np.array_equal(once, same)


def test_profiled_arrivals_that_would_take_centuries_are_refused():
    with refused("arrivals.mean_gap_s", 1e9, "within 1e10 s"):
        draw(Arrivals(kind="profile", profile="openb", mean_gap_s=1e9), np.ones(100))


@pytest.mark.parametrize("count", [1, 4, 14, 26])
def test_any_number_of_jobs_is_dealt_into_clusters(count):
    times = draw(Arrivals(kind="mixed"), np.ones(count))
    assert len(times) == count
    assert np.all(np.isfinite(times))
    assert np.sum(times == 0.0) == 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"kind": "sometimes"}, "kind"),
        ({"kind": "poisson"}, "mean_gap_s"),
        ({"kind": "poisson", "mean_gap_s": 1.0, "lambda_s": 1.0}, "lambda_s"),
        ({"kind": "exponential", "mean_gap_s": 0.0}, "mean_gap_s"),
        ({"kind": "high", "lambda_s": 5.0}, "lambda_s"),
        ({"kind": "high", "rate": 0.0}, "rate"),
        ({"kind": "simultaneous", "rate": 2.0}, "rate"),
        ({"kind": "profile", "mean_gap_s": 1.0}, "profile"),
        ({"kind": "profile", "profile": "borg", "mean_gap_s": 1.0}, "profile"),
        ({"kind": "profile", "profile": "philly"}, "mean_gap_s"),
        ({"kind": "profile", "profile": "philly", "mean_gap_s": 1.0, "lambda_s": 1.0}, "lambda_s"),
        ({"kind": "exponential", "profile": "philly", "mean_gap_s": 1.0}, "profile"),
    ],
)
def test_a_wrong_rule_is_one_clear_error(values, field):
    with refused(field):
        Arrivals(**values)
