"""README.md shows what its record holds, and what the record holds is what the code does now."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import edf
from gpusched_env import EpochDistribution, Interference, builtin_scenarios, load_scenario, make_instance, simulate
from gpusched_env.workload import load_track
from gpusched_experiments import compare

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts/front_page.py"))
RECORD = json.loads(SCRIPT["RECORD"].read_text(encoding="utf-8"))
PAGE = SCRIPT["README"].read_text(encoding="utf-8")


def test_the_pages_are_those_of_the_record():
    assert SCRIPT["filled"](PAGE, RECORD) == PAGE
    assert RECORD["provenance"]["facts"]["training"] == SCRIPT["box"](2)
    shown = SCRIPT["_against"](RECORD["costs_eur"]["slack"])
    assert [page for page in ("train",) if shown not in (ROOT / f"docs/{page}.md").read_text("utf-8")] == []
    for track, costs in RECORD["costs_eur"].items():
        seeds = [str(seed) for seed in load_track(track).seeds("test")]
        assert [list(each) for each in costs.values()] == [seeds] * len(costs)
        assert sum(name.startswith("ppo-") for name in costs) == 5


def test_another_record_makes_another_page():
    costs = {track: {name: {"0": 1.0} for name in each} for track, each in RECORD["costs_eur"].items()}
    other = SCRIPT["filled"](PAGE, {"boxes": {"1": "none\n"}, "costs_eur": costs})
    assert "| EDF (earliest due date first) | 1.00 | 1.00 |" in other
    assert "```text\nnone\n```" in other


def test_the_first_box_prints_what_is_recorded():
    assert SCRIPT["printed"](SCRIPT["box"](1)) == RECORD["boxes"]["1"]


@pytest.mark.parametrize("policy", SCRIPT["RULES"])
def test_the_first_seed_costs_what_is_recorded(policy):
    (run,) = compare([policy], "slack", seeds=[30_000])
    assert run.total_eur == pytest.approx(RECORD["costs_eur"]["slack"][policy]["30000"], abs=1e-3)


INSTANCE = make_instance(load_scenario("tiny"), 3)


def test_each_value_says_in_a_line_what_it_is():
    assert repr(INSTANCE) == ("Instance('tiny', seed 3: 3 nodes of V100, A100, T4, 10 jobs, 20 configurations)")
    assert repr(replace(INSTANCE, name="")).startswith("Instance('no name'")
    assert repr(INSTANCE.jobs).startswith("JobTable(10 jobs on 20 configurations, 14 applications, 20 distributions, ")
    result = simulate(INSTANCE, edf(), seed=7)
    text = repr(result)
    assert text.startswith("Result(edf on tiny, seed 7: ")
    for part in (f"{result.total_eur:,.2f} €", f"{result.energy_eur:,.2f} € energy", f"{result.late_jobs} of 10"):
        assert part in text
    assert repr(load_scenario("tiny")) == "Scenario('tiny': 3 nodes of V100, A100, T4, 10 jobs, arrivals 'exponential')"
    half = EpochDistribution.from_masses([1.0, 1.0])
    assert repr(half) == "EpochDistribution('histogram', 2 bins, mean 0.75 of the maximum epochs)"
    assert repr(Interference(np.ones((2, 3, 3)))) == "Interference(slowdown=<2 x 3 x 3 numbers>, fastest=False)"
    seen = []
    simulate(INSTANCE, edf(), on_round=lambda state: seen.append((repr(state.view), repr(state))))
    assert seen[0][0].startswith("View(at ")
    assert seen[0][0].endswith("1 active jobs, 3 nodes)")
    assert "0 of 10 jobs done" in seen[0][1]


def short_values():
    for name in ("sharing", "guaranteed-and-opportunistic", "byteps"):
        instance = make_instance(load_scenario(name), 0)
        yield from (instance, *instance.mechanisms, instance.jobs.distributions[0])
    yield from builtin_scenarios().values()


@pytest.mark.parametrize("value", [INSTANCE, INSTANCE.jobs, simulate(INSTANCE, edf()), *short_values()])
def test_it_is_one_line(value):
    assert "\n" not in repr(value)
    assert len(repr(value)) < 200
