"""PipeSwitch's figures: what is simulated against what can be worked out by hand, and the log where it is there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gpusched_env.workload.network import SwitchingCosts
from gpusched_reproductions.systems import pipeswitch
from gpusched_reproductions.systems.pipeswitch import PARTS, overhead_s, progress_of_turns, shares

PUBLISHED = Path("../shared/data/pipeswitch/pipeswitch_v100.csv")


@pytest.mark.parametrize(("quantum_s", "costs_s"), [(10.0, 2.0), (1.0, 0.25), (5.0, 6.0)])
def test_of_each_turn_the_cost_is_lost(quantum_s: float, costs_s: float):
    assert progress_of_turns(quantum_s, costs_s) == pytest.approx(max(0.0, 1.0 - costs_s / quantum_s), abs=1e-9)


def test_a_task_waits_for_its_own_start():
    assert overhead_s(SwitchingCosts(0.75, 99.0, 99.0)) == pytest.approx(0.75)


def test_where_switches_are_free_training_gets_what_bursts_leave():
    free = shares(SwitchingCosts(0.0, 0.0, 0.0), 0, 1000.0, split=False)
    assert free.late == 0.0
    assert free.work == pytest.approx(1.0, abs=1e-6)
    costly = shares(SwitchingCosts(5.6, 5.6, 5.6), 0, 1000.0, split=False)
    assert costly.training < free.training - 0.15
    assert costly.late > 0.3


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_figure_lies_in_its_band(part):
    assert [check.what for check in part.run(True).checks if not check.met] == []


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published figures are not beside the repository")
def test_the_published_figures_are_the_logs():
    with PUBLISHED.open(encoding="utf-8") as file:
        rows = {(row[0], row[1]): [float(x) for x in row[2:]] for row in csv.reader(file) if row[0] in {"5", "6", "7"}}
    for name, figure, system in (
        ("READY_MS", "5", "ready_model"),
        ("PIPESWITCH_MS", "5", "pipeswitch"),
        ("STOP_START_MS", "5", "kill_restart"),
        ("UNPIPELINED_MS", "7", "grouped"),
        ("READY_RATE", "6", "ready_model"),
    ):
        assert getattr(pipeswitch, name) == pytest.approx(
            rows[figure, system][: len(getattr(pipeswitch, name))], rel=1e-3
        )
    for system, logged in (("PipeSwitch", "pipeswitch"), ("stop-start", "kill_restart")):
        assert pipeswitch.RATES[system] == pytest.approx(rows["6", logged], rel=1e-3)
