"""The figure of a training shows every evaluation that lies near the reference policies, and those policies."""

import pytest

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_experiments.report.chart import training_chart

ES = TrainingConfig(agent=EsConfig(), scenarios=("track:slack",), validation_seeds=(500, 501))
REFERENCES = {"sts-x": 100.0, "sts": 120.0, "edf": 140.0}


def point(steps, total_eur, **more):
    return {"steps": steps, "seconds": 1.0, "phase": "learning", "total_eur": total_eur} | more


def only_panel(chart):
    ((panel,),) = chart.rows
    return panel


def test_it_has_a_point_for_each_evaluation_and_a_line_for_each_reference_policy():
    chart = training_chart(ES, [point(0, 100.0, relative=1.0), point(2_000, 90.0, relative=0.9)], REFERENCES)
    panel = only_panel(chart)
    assert chart.title == "Training on the track slack"
    assert [(x, estimate.value) for x, estimate in panel.series[0].points] == [(0.0, 100.0), (2.0, 90.0)]
    assert {level.name: level.value for level in panel.levels} == REFERENCES
    assert panel.y_range == pytest.approx((84.0, 146.0))
    assert "2 validation workloads" in panel.y_label


def test_what_an_untrained_network_costs_is_cut_off_but_not_a_trained_one_that_is_costly():
    untrained = training_chart(TrainingConfig(), [point(0, 90_000.0), point(1, 130.0)], REFERENCES)
    assert only_panel(untrained).y_range[1] < 150.0
    costly = training_chart(TrainingConfig(), [point(0, 90_000.0), point(1, 500.0)], REFERENCES)
    assert only_panel(costly).y_range[1] > 500.0


def test_of_several_tracks_it_shows_the_ratio_by_which_the_agent_is_chosen():
    config = TrainingConfig(agent=EsConfig(), scenarios=("track:slack", "track:busy"))
    curve = [point(0, 900.0, relative=1.0), point(1_000, 950.0, relative=0.9)]
    panel = only_panel(training_chart(config, curve, REFERENCES))
    assert [estimate.value for _, estimate in panel.series[0].points] == pytest.approx([0.0, -0.1])
    assert panel.percent
    assert [(level.name, level.value) for level in panel.levels] == [("sts-x", 0.0)]


def test_a_curve_of_one_cost_can_be_drawn():
    low, high = only_panel(training_chart(ES, [point(0, 100.0)], {"sts": 100.0})).y_range
    assert low < 100.0 < high
