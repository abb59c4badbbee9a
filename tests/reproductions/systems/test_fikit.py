"""FIKIT's figures: the GPU kernel by kernel by hand, and the bands where the public data is there."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_reproductions.systems.fikit import (
    BACKGROUND_UTILISATION,
    GAVEL,
    PARTS,
    Pair,
    by_default,
    fill_gaps,
    filling,
    first_come,
    gaps_of,
    measured_pairs,
)


def test_a_kernel_waits_for_all_that_was_launched_before_it():
    """Kernels and gaps of 1 s, the other job's of 3 s: it waits 3, then 3 - 1 = 2 s; if two are launched 6, then 5."""
    ones, threes = np.ones(2), np.full(1, 3.0)
    assert first_come(ones, ones, threes, 1) == pytest.approx((3 + 1 + 3 + 1 + 1) / 4)
    assert first_come(ones, ones, threes, 2) == pytest.approx((6 + 1 + 6 + 1 + 1) / 4)


def test_a_gap_is_filled_with_kernels_that_end_in_time():
    """In a gap of 1 s fit kernels of 0.4 s, one after a pause: 0.4 + 0.044 + 0.4 s."""
    ones, short, long = np.ones(3), np.full(1, 0.4), np.full(1, 1.1)
    filled = fill_gaps(ones, ones, ones, short)
    assert filled.slowdown == pytest.approx(1.0)
    assert filled.filled == pytest.approx(0.8)
    assert fill_gaps(ones, ones, ones, long) == pytest.approx((1.0, 0.0))


def test_a_gap_that_ends_early_makes_the_first_job_wait():
    """Predicted 1 s, in truth 0.5 s: a kernel of 0.9 s holds it up by 0.4 s, in every second gap at least."""
    ones, half = np.ones(1), np.full(1, 0.5)
    assert fill_gaps(ones, ones, half, np.full(1, 0.9)).slowdown == pytest.approx((1.0 + 0.9) / 1.5)


def test_the_idle_time_makes_the_utilisation_however_it_is_cut():
    kernels = np.random.default_rng(0).uniform(0.1, 1.0, 400)
    for every in (1, 20, 200):
        predicted, actual = gaps_of(kernels, 0.3, every, 0.2, 0)
        assert np.count_nonzero(predicted) == 400 // every
        assert kernels.sum() / (kernels.sum() + predicted.sum()) == pytest.approx(0.3)
        assert np.all(np.abs(actual - predicted) <= 0.2 * predicted + 1e-12)
    assert 0.0 < BACKGROUND_UTILISATION < 1.0


def test_two_jobs_on_one_gpu_in_the_simulator():
    """By default 3 and 2 times as long; with filling the first takes 1.03 and the other waits in its gaps."""
    pair = Pair("a", "b", 3.0, 2.0, 0.5, 0.8)
    assert by_default(pair, (0.0,), 100.0, 1000.0) == pytest.approx((300.0, 300.0 + 1000.0 - 150.0))
    first, other = filling(pair, (0.0,), 100.0, 1000.0)
    assert first == pytest.approx(103.0)
    assert other == pytest.approx(103.0 + 1000.0 - 103.0 * 0.85 * 0.5 / 0.8)


@pytest.mark.skipif(not GAVEL.is_dir(), reason=f"needs Gavel's throughputs in {GAVEL}")
def test_the_measured_pairs_are_all_there():
    assert [len(measured_pairs(gpu)) for gpu in ("K80", "P100", "V100")] == [589, 656, 636]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_figure_lies_in_its_band(part):
    if part.needs is not None and not part.needs.is_dir():
        pytest.skip(f"needs {part.needs}")
    assert [check.what for check in part.run(True).checks if not check.met] == []
