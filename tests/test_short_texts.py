"""What a prompt shows of an instance, its jobs and a result is one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpusched_baselines import edf
from gpusched_env import load_scenario, make_instance, simulate

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


@pytest.mark.parametrize("value", [INSTANCE, INSTANCE.jobs, simulate(INSTANCE, edf())])
def test_it_is_one_line(value):
    assert "\n" not in repr(value)
    assert len(repr(value)) < 200
