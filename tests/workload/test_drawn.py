"""Random scenarios."""

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload import draw_scenario, make_instance, offered_load, scenario_toml


def test_the_same_seed_and_number_draw_the_same():
    assert scenario_toml(draw_scenario(4, 7)) == scenario_toml(draw_scenario(4, 7))
    assert (
        scenario_toml(draw_scenario(4, 7)) != scenario_toml(draw_scenario(4, 8)) != scenario_toml(draw_scenario(5, 8))
    )


def test_draws_span_the_ranges_and_kinds():
    drawn = [draw_scenario(11, index) for index in range(60)]
    kinds = [scenario.description.split(": ")[1].split(",")[0] for scenario in drawn]
    assert {"plain", "own", "multi-node", "sharing", "tenants"} == set(kinds)
    assert {scenario.epochs.family for scenario in drawn} == {
        "histogram",
        "geometric",
        "beta",
        "two-point",
        "lognormal",
    }
    assert all(0.02 <= scenario.due_dates.slack <= 3.2 for scenario in drawn)
    assert all(20 <= scenario.jobs.count <= 500 for scenario in drawn)
    assert any(pool.gpu_type.endswith("-rent") for scenario in drawn for pool in scenario.cluster.pools)


@pytest.mark.parametrize("index", range(8))
def test_the_load_is_near_the_one_that_it_says(index: int):
    scenario = draw_scenario(2, index)
    load = np.mean([offered_load(make_instance(scenario, seed)) for seed in range(20)])
    assert load == pytest.approx(float(scenario.description.split("load ")[1].rstrip(".")), rel=0.6)


@pytest.mark.parametrize(("seed", "index"), [(-1, 0), (1, -1), (1, True), (1, 1.5)])
def test_bad_numbers_are_named(seed, index):
    with pytest.raises(InputError):
        draw_scenario(seed, index)
