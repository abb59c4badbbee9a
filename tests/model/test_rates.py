"""Cost rates, by hand."""

from __future__ import annotations

import pytest

from gpusched_env.model.rates import cost_rate_eur_per_h, least_rate_eur_per_s, planning_rate_eur_per_s
from instances import three_jobs


def test_a_node_costs_base_and_gpu_power_and_nothing_when_idle():
    assert cost_rate_eur_per_h(three_jobs()).tolist() == [pytest.approx([0.0, 1.0, 1.9])]


def test_planning_charges_a_configuration_as_if_alone_on_its_node():
    assert planning_rate_eur_per_s(three_jobs()) * 3600 == pytest.approx([1.0, 1.9])


def test_the_least_rate_is_a_share_of_the_full_node():
    assert least_rate_eur_per_s(three_jobs()) * 3600 == pytest.approx([0.95, 1.9])
