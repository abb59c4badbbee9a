"""`gpusched worlds`."""

import numpy as np
import pytest

from commands import gpusched, succeeds
from gpusched_env.workload import draw_scenario
from gpusched_experiments.cli.worlds import ComparedScenario, summary
from gpusched_experiments.report import RunSummary, compare


def test_it_draws_compares_and_goes_on(tmp_path):
    asked = ("worlds", "--count", 2, "--seed", 3, "--seeds", "0-1", "-p", "edf,sts", "-r", "sts", "-w", 1)
    succeeds(*asked, "--out", tmp_path / "worlds")
    text = (tmp_path / "worlds" / "worlds.csv").read_text()
    assert len(text.splitlines()) == 3
    assert "drawn-3-0" in text
    assert (tmp_path / "worlds" / "drawn-3-1" / "scenario.toml").exists()
    again = succeeds(*asked, "--out", tmp_path / "worlds")
    assert "4 of 4 runs are finished already" in again.output
    assert (tmp_path / "worlds" / "worlds.csv").read_text() == text


def test_a_reference_alone_is_refused(tmp_path):
    result = gpusched("worlds", "--count", 1, "--policies", "sts-x", "--out", tmp_path / "worlds")
    assert result.exit_code == 2
    assert "--policies" in result.output
    assert not (tmp_path / "worlds").exists()


def test_the_best_other_policy_and_what_it_saves():
    runs: list[RunSummary] = list(compare(["edf", "sts", "greedy"], "tiny", range(5)))
    cost = {name: np.array([r.total_eur for r in runs if r.policy == name]) for name in ("edf", "sts", "greedy")}
    compared = ComparedScenario.of(draw_scenario(1, 0), runs, "edf")
    others = {name: cost[name].sum() for name in ("sts", "greedy")}
    assert compared.best == min(others, key=others.__getitem__)
    assert compared.ratio == pytest.approx(cost["edf"].sum() / min(others.values()))
    assert compared.reference_eur == pytest.approx(cost["edf"].mean())
    assert compared.surely == (compared.saving.interval is not None and compared.saving.interval[0] > 0.02)
    assert summary([compared], "edf").startswith("1 scenarios: on ")
