"""PipeSwitch's figures: what is simulated against what can be worked out by hand, and the log where it is there."""

import csv
from pathlib import Path

import pytest

from gpusched_env.workload.scenario.sharing import SwitchingCosts
from gpusched_reproductions.systems.pipeswitch import PARTS, published
from gpusched_reproductions.systems.pipeswitch.bursts import beside, drawn_pair, shares
from gpusched_reproductions.systems.pipeswitch.one_gpu import progress_of_turns
from gpusched_reproductions.systems.pipeswitch.start_up import FITTED, predicted_ms, start_up

LOG = Path("../shared/data/pipeswitch/pipeswitch_v100.csv")


@pytest.mark.parametrize(("quantum_s", "costs_s"), [(10.0, 2.0), (1.0, 0.25), (5.0, 6.0)])
def test_of_each_turn_the_cost_is_lost(quantum_s, costs_s):
    assert progress_of_turns(quantum_s, costs_s) == pytest.approx(max(0.0, 1.0 - costs_s / quantum_s), abs=1e-9)


def test_where_switches_are_free_training_gets_what_bursts_leave():
    free = shares(SwitchingCosts(0.0, 0.0, 0.0), 1000.0, 0)
    assert free.late == 0.0
    assert free.work == pytest.approx(1.0, abs=1e-6)
    costly = shares(SwitchingCosts(5.6, 5.6, 5.6), 1000.0, 0)
    assert costly.training < free.training - 0.15
    assert costly.late > 0.3


def test_a_split_cluster_trains_on_its_two_gpus():
    assert shares(SwitchingCosts(0.0, 0.0, 0.0), 1000.0, 0, split=True).training == pytest.approx(0.25, abs=0.001)


def test_beside_bursts_nothing_is_lost_without_slow_down_and_start_up():
    alone, slowed = beside(0.0, 1.0, 1000.0, 0), beside(0.0, 2.0, 1000.0, 0)
    assert alone.training == pytest.approx(1.0)
    assert alone.late == 0.0
    assert slowed.training < 0.8
    assert slowed.late == 1.0  # due after 1.5 times the work


@pytest.mark.parametrize("model", ["pipelined", "stop-start"])
def test_bursts_by_slack_pause_training_less_often(model):
    at_once, by_slack = drawn_pair(model, 7, 1000.0)
    assert by_slack.pauses < at_once.pauses
    assert by_slack.training > at_once.training - 0.001
    assert by_slack.late <= at_once.late + 0.03


def test_what_is_fitted_is_only_the_first_model_and_meets_its_figure():
    """Every constant that no source gives is fitted to one latency of ResNet152."""
    checks = start_up(quick=True).checks
    fitted = [check for check in checks if check.kind == "fitted"]
    assert len(checks) == 30
    assert len(fitted) == len(FITTED)
    for check in fitted:
        assert "ResNet152" in check.what
        assert check.ours == pytest.approx(check.published, rel=0.002)


def test_the_predictions_that_miss_their_bands_are_known():
    """Pages that are not pinned cross more slowly than 6 GB/s there; a new process takes 1.7 s longer for BERT."""
    missed = [check.what for check in start_up(quick=True).checks if not check.met]
    assert missed == ["no pinned memory, ResNet152: latency [ms]", "two processes, BERT-base: latency [ms]"]


def test_pipelining_is_the_fastest_method_and_close_to_a_ready_model():
    for model, ready_ms in zip(published.MODELS, published.READY_MS, strict=True):
        latencies = {method: predicted_ms(method, model, ready_ms) for method in published.START_UP_MS}
        assert min(latencies, key=latencies.__getitem__) == "pipelined"
        assert ready_ms < latencies["pipelined"] < ready_ms + 10.0


@pytest.mark.parametrize("part", [part for part in PARTS if part.name in ("figure-6", "cluster")], ids=lambda p: p.name)
def test_every_figure_lies_in_its_band(part):
    assert [check.what for check in part.run(True).checks if check.banded and not check.met] == []


@pytest.mark.skipif(not LOG.is_file(), reason="the published figures are not beside the repository")
def test_the_published_figures_are_the_logs():
    with LOG.open(encoding="utf-8") as file:
        rows = {(row[0], row[1]): [float(x) for x in row[2:]] for row in csv.reader(file) if row[0] in set("56789")}
    assert pytest.approx(rows["5", "ready_model"][:3], rel=1e-3) == published.READY_MS
    for method, (figure, latencies) in published.START_UP_MS.items():
        assert latencies == pytest.approx(rows[figure, published.LOG_NAMES[method]][:3], rel=1e-6)
    assert pytest.approx(rows["6", "ready_model"], rel=1e-3) == published.READY_RATE
    for system, logged in (("PipeSwitch", "pipeswitch"), ("stop-start", "kill_restart")):
        assert published.RATES[system] == pytest.approx(rows["6", logged], rel=1e-3)
