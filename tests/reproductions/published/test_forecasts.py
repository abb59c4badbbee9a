"""The check of forecasts: what counts as inside, and that a forecast of what is certain is right."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_agents.any_policy import make_any_policy
from gpusched_env import EpochDistribution
from gpusched_env.simulator import layout as at
from gpusched_experiments.report.experiment import Selection
from gpusched_operations.forecast import Forecast, Outcomes
from gpusched_reproductions.published.forecast_check import KNOWN, MEASURES, MODELLED, NONE, count_hits
from gpusched_reproductions.published.forecasts import FORECASTS
from instances import random_instance


@pytest.mark.parametrize("mode", [NONE, KNOWN])
def test_what_is_certain_is_inside_and_without_error(mode):
    made = random_instance(3, jobs=10, span_s=1500.0)
    certain = {"distribution": np.zeros(10, dtype=np.int64), "distributions": (EpochDistribution.certain(),)}
    instance = replace(made, jobs=replace(made.jobs, max_epochs=made.jobs.epochs_needed, **certain))
    found = MEASURES[mode].of(instance, make_any_policy("sts"), 0)
    assert found["jobs"] > 0.0
    if mode == KNOWN:
        assert found["inside"] == found["jobs"]
        assert found["start_inside"] == found["waiting"]
        assert found["error_s"] == pytest.approx(0.0, abs=1e-6)
        assert found["brier"] == 0.0
        assert found["chance"] == found["late"]
    else:
        assert found["inside"] < found["jobs"]  # jobs that come delay the others


def test_jobs_count_as_before_inside_or_after_and_by_horizon_and_chance():
    end_s = np.repeat(np.array([[100.0, 5000.0, 40_000.0, 100.0]]), 9, axis=0) + 10.0 * np.arange(9.0)[:, None]
    nothing = np.zeros_like(end_s)
    outcomes = Outcomes(nothing, end_s, nothing, nothing, np.zeros(9), np.zeros(9, np.int64), np.zeros(9, np.int64))
    due_s = np.array([1000.0, 5035.0, 30_000.0, 1000.0])
    made = Forecast(outcomes, (0.1, 0.5, 0.9), 0.0, due_s, np.inf, 0, 1.0)
    jobs = np.zeros((4, at.JOB_COLUMNS))
    jobs[:, at.END_S] = [180.0, 4999.0, 40_081.0, 100.0 - 1e-9]
    jobs[:, at.DUE] = due_s
    jobs[:, at.START_S] = [0.0, 0.0, 5.0, 0.0]
    found = count_hits(made, jobs, np.array([True, True, True, False]))
    assert [found[name] for name in ("jobs", "inside", "before", "after")] == [4.0, 2.0, 1.0, 1.0]
    assert [found["waiting"], found["start_inside"]] == [3.0, 2.0]
    assert [found[f"{name}_jobs"] for name in ("short", "medium", "long")] == [2.0, 1.0, 1.0]
    assert [found[f"{name}_inside"] for name in ("short", "medium", "long")] == [2.0, 0.0, 0.0]
    assert found["late"] == 1.0
    assert found["chance"] == pytest.approx(1.0 + 5.0 / 9.0)
    assert found["brier"] == pytest.approx((5.0 / 9.0) ** 2)
    assert [found[f"chance{i}_jobs"] for i in range(5)] == [2.0, 0.0, 1.0, 0.0, 1.0]
    assert found["error_s"] == pytest.approx(40.0 + 41.0 + 41.0 + 40.0)


def test_the_experiment_forecasts_on_tracks_with_and_without_jobs_to_come():
    cells = FORECASTS.cells(Selection(quick=True), ("edf",))
    assert {dict(cell.labels)["arrivals"] for cell in cells} == {NONE, MODELLED, KNOWN}
    assert len({cell.key("") for cell in cells}) == len(cells)
    assert all(cell.seed >= 30_000 for cell in cells)
