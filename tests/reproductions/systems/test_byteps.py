from __future__ import annotations

import pytest

from gpusched_experiments.report.figures import chart_files
from gpusched_reproductions.systems import byteps


@pytest.mark.parametrize("part", byteps.PARTS, ids=lambda part: part.name)
def test_every_figure_lies_in_its_band(part):
    found = part.run(True)
    assert found.checks
    for check in found.checks:
        assert check.met, check


def test_gains_rise_with_every_spare_machine_up_to_the_number_of_nodes():
    for network in byteps.MODEL_GB:
        gains = [byteps.gain(network, k, byteps.SLOW_GB_PER_S, byteps.TCP) for k in range(byteps.NODES + 1)]
        assert gains == sorted(gains)


def test_a_v100_computes_64_images_of_resnet50_in_0_19_s():
    assert byteps.compute_s("ResNet-50") == pytest.approx(64 / 332, rel=0.01)


def test_every_measured_number_of_nodes_of_every_application_is_looked_at():
    assert len(byteps.PARTS[3].run(True).checks) == 6 * 4


def test_a_completion_that_is_not_the_formulas_is_told(monkeypatch):
    monkeypatch.setattr(byteps, "iteration_s", lambda a, x, n, k: a / n + x * (2.0 - k / n))
    assert not byteps.simulated(True).checks[0].met


def test_the_figure_can_be_drawn():
    assert chart_files(byteps.gains(True).chart, "gains").keys() == {"gains.svg"}
