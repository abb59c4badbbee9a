from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gpusched_env.model import EpochDistribution
from gpusched_env.workload import (
    BetaEpochs,
    GeometricEpochs,
    HistogramEpochs,
    LognormalEpochs,
    TwoPointEpochs,
    beta_distribution,
    geometric_distribution,
    histogram_of_runs,
    lognormal_distribution,
    two_point_distribution,
)
from gpusched_env.workload.families import draw_fractions, given_library, histograms, make_library
from refusals import refused

FRACTIONS = st.floats(0.05, 0.95)
BINS = st.integers(1, 200)
FAMILIES = [HistogramEpochs(), LognormalEpochs(), BetaEpochs(), GeometricEpochs(), TwoPointEpochs()]


def mean_of_right_edges(distribution: EpochDistribution) -> float:
    return float(np.dot(distribution.masses, distribution.edges[1:]))


@given(FRACTIONS, st.floats(0.5, 50.0), BINS)
def test_beta_masses_are_differences_of_its_distribution_function(mean, concentration, bins):
    made = beta_distribution(mean, concentration, bins)
    beta = stats.beta(mean * concentration, (1 - mean) * concentration)
    np.testing.assert_allclose(made.masses, np.diff(beta.cdf(made.edges)), atol=1e-12)
    assert made.mean == pytest.approx(mean_of_right_edges(made))
    assert mean - 1e-9 <= made.mean <= mean + 1 / bins + 1e-9


@given(FRACTIONS, st.floats(0.1, 2.0), BINS)
def test_lognormal_masses_are_those_of_the_truncated_distribution(median, sigma, bins):
    made = lognormal_distribution(median, sigma, bins)
    whole = stats.lognorm(sigma, scale=median)
    np.testing.assert_allclose(made.masses, np.diff(whole.cdf(made.edges)) / whole.cdf(1.0), atol=1e-12)
    partial = median * math.exp(sigma**2 / 2) * stats.norm.cdf(-math.log(median) / sigma - sigma)
    mean = partial / whole.cdf(1.0)
    assert mean - 1e-9 <= made.mean <= mean + 1 / bins + 1e-9


@given(st.floats(0.01, 20.0), BINS)
def test_geometric_hazard_is_the_same_in_every_bin_and_the_mean_is_the_formulas(rate, bins):
    made = geometric_distribution(rate, bins)
    hazard = made.masses[:-1] / made.survival[:-1]
    np.testing.assert_allclose(hazard, 1 - math.exp(-rate / bins))
    assert made.mean == pytest.approx((1 - math.exp(-rate)) / (bins * (1 - math.exp(-rate / bins))))


def test_two_point_has_two_bins_of_its_own_and_a_mean_worked_out_by_hand():
    made = two_point_distribution(0.2, 0.75)
    assert made.edges.tolist() == [0.0, 0.2, 1.0]
    assert made.masses.tolist() == [0.75, 0.25]
    assert made.mean == pytest.approx(0.75 * 0.2 + 0.25 * 1.0)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_two_point_allows_a_point_of_probability_zero(probability):
    assert two_point_distribution(0.3, probability).mean == pytest.approx(0.3 if probability else 1.0)


def test_a_histogram_of_runs_counts_every_run_once():
    made = histogram_of_runs(0.4, 5.0, 50, np.random.default_rng(1))
    counts = made.masses * 50
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert counts.sum() == pytest.approx(50)
    assert np.sum(counts < 0.5) > 50  # ragged: at most 50 of 100 bins can hold one of 50 runs


@given(st.integers(1, 120), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.data())
def test_histograms_are_those_of_numpy_also_at_the_edges_of_bins(bins, drawn, data):
    edges = np.linspace(0.0, 1.0, bins + 1)
    near = data.draw(st.lists(st.sampled_from(edges.tolist()), min_size=1, max_size=20))
    for runs in (np.array(drawn), np.array(near), np.nextafter(near, 0.0), np.nextafter(near, 1.0).clip(0.0, 1.0)):
        made = histograms([np.array(near), runs], bins)[1]
        assert made == EpochDistribution.from_masses(np.histogram(runs, edges)[0])


def test_a_histogram_of_many_runs_comes_close_to_the_beta_distribution_behind_it():
    made = histogram_of_runs(0.3, 4.0, 200_000, np.random.default_rng(1))
    np.testing.assert_allclose(made.survival, beta_distribution(0.3, 4.0).survival, atol=0.005)


@pytest.mark.parametrize("section", FAMILIES, ids=lambda s: s.family)
def test_the_default_library_of_every_family_needs_about_forty_percent_of_the_epochs(section):
    big = type(section)(library_size=2_000)
    library = make_library(big, np.random.default_rng(0))
    assert len(library) == 2_000
    assert np.mean([d.mean for d in library]) == pytest.approx(0.41, abs=0.02)
    assert {d.family for d in library} == {section.family}
    assert all(len(d.survival) == (2 if section.family == "two-point" else 100) for d in library)


@pytest.mark.parametrize("section", FAMILIES, ids=lambda s: s.family)
def test_drawn_fractions_follow_the_distribution_and_stand_at_right_edges_with_mass(section):
    library = make_library(section, np.random.default_rng(3))
    choice = np.repeat(np.arange(len(library)), 4_000)
    fractions = draw_fractions(library, choice, np.random.default_rng(4))
    for index, distribution in enumerate(library):
        drawn = fractions[choice == index]
        counts = np.array([np.sum(drawn == edge) for edge in distribution.edges[1:]])
        assert counts.sum() == len(drawn)
        assert np.all(counts[distribution.masses == 0] == 0)
        np.testing.assert_allclose(np.cumsum(counts) / len(drawn), np.cumsum(distribution.masses), atol=0.035)


def test_many_draws_are_the_draws_of_the_single_rule():
    library = make_library(HistogramEpochs(), np.random.default_rng(3))
    choice = np.arange(500) % len(library)
    rng = np.random.default_rng(9)
    one_by_one = [library[i].sample(rng) for i in choice]
    assert draw_fractions(library, choice, np.random.default_rng(9)).tolist() == one_by_one


def test_given_histograms_are_the_library():
    library = given_library(HistogramEpochs(masses=[[1, 0, 3], [2.0, 2.0]]), ())
    assert library is not None
    assert [d.masses.tolist() for d in library] == [[0.25, 0.0, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: beta_distribution(1.0, 2.0), "mean"),
        (lambda: beta_distribution(float("nan"), 2.0), "mean"),
        (lambda: beta_distribution(0.5, 0.0), "concentration"),
        (lambda: lognormal_distribution(0.0, 1.0), "median"),
        (lambda: lognormal_distribution(0.5, float("inf")), "sigma"),
        (lambda: geometric_distribution(-1.0), "stop_rate"),
        (lambda: geometric_distribution(1.0, 0), "bins"),
        (lambda: two_point_distribution(0.0, 0.5), "early_at"),
        (lambda: two_point_distribution(0.5, 1.1), "early_probability"),
        (lambda: histogram_of_runs(0.4, 5.0, 0, np.random.default_rng(0)), "runs"),
    ],
)
def test_a_parameter_out_of_its_range_is_named(make, field):
    with refused(field):
        make()
