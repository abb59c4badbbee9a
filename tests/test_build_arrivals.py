"""The tables of how unevenly traced jobs come."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.workload.tables.applications import arrival_profile
from scripts import run_script

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
COMMITTED = ROOT / "gpusched_env" / "workload" / "tables" / "data"
TABLES = ("arrival_profiles.csv", "arrival_bursts.csv")


@pytest.mark.skipif(not (DATA / "philly").is_dir(), reason="the public traces are not beside the repository")
def test_the_committed_tables_are_what_the_script_makes(tmp_path):
    run_script("build_arrivals.py", "--data", DATA, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(TABLES)
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes()


@pytest.mark.parametrize("name", ["philly", "openb"])
def test_a_profile_has_168_factors_of_mean_one(name):
    profile = arrival_profile(name)
    assert profile.factors.shape == (168,)
    assert np.all(profile.factors > 0.0)
    assert profile.factors.mean() == pytest.approx(1.0)
    assert 0.0 < profile.persistence < 1.0
    assert 0.0 < profile.variation < 2.0


def test_the_figures_of_made_up_counts_are_those_of_the_process_that_made_them():
    """Two weeks' rates, alike but for a gamma factor of variance 0.25 that holds for two hours each."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from applications.arrivals import burstiness, weekly_factors  # noqa: PLC0415 - the script's folder is no package
    finally:
        sys.path.pop(0)
    rng, weeks = np.random.default_rng(0), 400
    factors = np.outer([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5], np.where(np.arange(24) < 8, 0.5, 1.5)).ravel()
    factors /= factors.mean()
    bursts = np.repeat(rng.gamma(4.0, 0.25, weeks * 84), 2)
    counts = rng.poisson(20.0 * np.tile(factors, weeks) * bursts)
    found = weekly_factors(counts)
    assert found == pytest.approx(factors, rel=0.1)
    variation, persistence = burstiness(counts, found)
    assert variation == pytest.approx(0.5, rel=0.05)
    assert persistence == pytest.approx(0.5, abs=0.05)  # every second hour shares the factor of the one before
