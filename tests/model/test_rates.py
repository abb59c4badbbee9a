"""Cost rates, by hand."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import Configuration, GpuType, simulate
from gpusched_env.formats.instance_file import load_instance
from gpusched_env.model.rates import (
    Rates,
    kilowatts,
)
from gpusched_env.simulator import State
from instances import random_instance, three_jobs
from refusals import refused
from run_files import audited

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_env import Instance
    from gpusched_env.simulator import Board


def test_idle_gpus_of_a_switched_on_node_draw_power():
    gpu_type = GpuType("A100", 390.0, 950.0, 80.0, 8, idle_gpu_power_w=60.0)
    assert gpu_type.power_w(1) == 950.0 + 390.0 + 7 * 60.0
    assert gpu_type.power_w(8) == 950.0 + 8 * 390.0


def test_a_table_of_node_power_replaces_the_other_powers():
    gpu_type = GpuType.of_table("K80", [560.0, 1130.0, 1690.0], 12.0)
    assert [gpu_type.power_w(busy) for busy in (1, 2, 3)] == [560.0, 1130.0, 1690.0]
    with refused("gpu_types.K80.node_power_w", [560.0, 1130.0, 1690.0]):
        replace(gpu_type, max_gpus_per_node=4)
    with refused("gpu_types.K80.node_power_w[1]", 0.0):
        GpuType.of_table("K80", [560.0, 0.0, 1690.0], 12.0)


def test_runs_with_idle_gpus_and_tables_of_power_are_saved_and_audited(tmp_path: Path):
    instance = random_instance(6)
    first, second = instance.gpu_types
    largest = instance.largest_node
    table = tuple(300.0 + 90.0 * busy**1.3 for busy in range(1, first.max_gpus_per_node + 1))
    idling = replace(second, max_gpus_per_node=largest[second.name], idle_gpu_power_w=40.0)
    nodes = tuple(replace(node, gpus=largest[node.gpu_type]) for node in instance.nodes)
    instance = replace(instance, gpu_types=(replace(first, node_power_w=table), idling), nodes=nodes)
    result = simulate(instance, make_policy("edf"))
    plain = simulate(replace(instance, gpu_types=(first, replace(idling, idle_gpu_power_w=0.0))), make_policy("edf"))
    used = {instance.nodes[node].gpu_type for node in result.intervals()["node"]}
    assert used == {first.name, second.name}, "both ways to tell powers are billed"
    assert idling.max_gpus_per_node > 1
    assert result.energy_eur != plain.energy_eur
    assert audited(result, tmp_path / "run") == []
    assert load_instance(tmp_path / "run" / "instance.json") == instance


def test_nodes_whose_idle_gpus_draw_power_are_full_ones():
    instance = random_instance(3)
    gpu_types = tuple(replace(v, max_gpus_per_node=9, idle_gpu_power_w=40.0) for v in instance.gpu_types)
    with refused("nodes[0].gpus", 1):
        replace(instance, gpu_types=gpu_types)


def test_rates_hold_all_of_them_in_seconds():
    """A node draws 100 W and 900 W a busy GPU, at 1 €/kWh; its second GPU halves what the first pays for the node."""
    rates = Rates.of(three_jobs())
    assert rates.node * 3600 == pytest.approx(np.array([[0.0, 1.0, 1.9]]))
    assert rates.planning[0] * 3600 == pytest.approx([1.0, 1.9])
    assert rates.least[0] * 3600 == pytest.approx([0.95, 1.9])


def test_shares_and_several_nodes_cost_their_part():
    half, two_nodes = Configuration("V", 1, share=0.5), Configuration("V", 2, nodes=2)
    instance = three_jobs()
    jobs = replace(instance.jobs, seconds_per_epoch=instance.jobs.seconds_per_epoch[:, :2])
    rates = Rates.of(replace(instance, configurations=(half, two_nodes), jobs=jobs))
    assert rates.planning[0] * 3600 == pytest.approx([0.5, 3.8])
    assert rates.least[0] * 3600 == pytest.approx([0.475, 3.8])


def test_the_price_and_the_pue_are_factors_of_every_rate_and_leave_the_kilowatts():
    instance = three_jobs()
    costly = replace(instance, energy_price_eur_per_kwh=0.5, pue=1.5)
    ours, theirs = Rates.of(instance), Rates.of(costly)
    for field in fields(Rates):
        np.testing.assert_allclose(getattr(theirs, field.name), 0.75 * getattr(ours, field.name), rtol=1e-15)
    np.testing.assert_array_equal(kilowatts(costly), kilowatts(instance))
    assert kilowatts(instance) == pytest.approx(np.array([[0.0, 1.0, 1.9]]))


@pytest.mark.parametrize("seed", range(4))
def test_a_board_has_the_rates_of_its_instance(seed: int):
    instance = random_instance(seed, kinds=True)
    board = State(instance).board
    assert_rates_of(board, instance)


def assert_rates_of(board: Board, instance: Instance) -> None:
    rates = Rates.of(instance)
    np.testing.assert_array_equal(board.node_rate, rates.node)
    np.testing.assert_array_equal(board.planning_rate, rates.planning)
    np.testing.assert_array_equal(board.least_rate, rates.least)
