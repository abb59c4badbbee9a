"""What a prompt shows of an instance, its jobs and a result is one line."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import edf
from gpusched_env import EpochDistribution, Interference, builtin_scenarios, load_scenario, make_instance, simulate

INSTANCE = make_instance(load_scenario("tiny"), 3)


def test_an_instance_says_its_name_and_size():
    assert repr(INSTANCE) == ("Instance('tiny', seed 3: 3 nodes of V100, A100, T4, 10 jobs, 20 configurations)")
    assert repr(replace(INSTANCE, name="")).startswith("Instance('no name'")


def test_a_job_table_says_its_size():
    assert repr(INSTANCE.jobs).startswith("JobTable(10 jobs on 20 configurations, 14 applications, 20 distributions, ")


def test_a_result_says_who_ran_what_and_what_it_cost():
    result = simulate(INSTANCE, edf(), seed=7)
    text = repr(result)
    assert text.startswith("Result(edf on tiny, seed 7: ")
    for part in (f"{result.total_eur:,.2f} €", f"{result.energy_eur:,.2f} € energy", f"{result.late_jobs} of 10"):
        assert part in text


def test_a_scenario_says_its_name_and_size():
    assert repr(load_scenario("tiny")) == "Scenario('tiny': 3 nodes of V100, A100, T4, 10 jobs, arrivals 'exponential')"


def test_a_distribution_says_what_jobs_need_in_the_mean():
    half = EpochDistribution.from_masses([1.0, 1.0])
    assert repr(half) == "EpochDistribution('histogram', 2 bins, mean 0.75 of the maximum epochs)"


def test_tables_of_numbers_say_their_shapes():
    assert repr(Interference(np.ones((2, 3, 3)))) == "Interference(slowdown=<2 x 3 x 3 numbers>, fastest=False)"


def test_a_view_and_a_state_say_how_far_the_run_is():
    seen = []
    simulate(INSTANCE, edf(), on_round=lambda state: seen.append((repr(state.view), repr(state))))
    assert seen[0][0].startswith("View(at ")
    assert seen[0][0].endswith("1 active jobs, 3 nodes)")
    assert "0 of 10 jobs done" in seen[0][1]


def short_values():
    for name in ("sharing", "guaranteed-and-opportunistic", "byteps"):
        instance = make_instance(load_scenario(name), 0)
        yield from (instance, instance.interference, instance.synchronisation, instance.jobs.distributions[0])
    yield from builtin_scenarios().values()


@pytest.mark.parametrize("value", [INSTANCE, INSTANCE.jobs, simulate(INSTANCE, edf()), *short_values()])
def test_it_is_one_line(value):
    assert "\n" not in repr(value)
    assert len(repr(value)) < 200
