"""The figures of a study of agents that set controls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adapted import InThisProcess
from gpusched_agents import EsConfig, NetworkConfig, TrainingConfig, load_policy
from gpusched_agents.training import constants
from gpusched_baselines.adaptation_env.controls import control_count
from gpusched_env import make_instance, simulate
from gpusched_env.workload import load_scenario
from gpusched_experiments.report.run import Runs
from gpusched_reproductions.learning import StudyPlan, study
from gpusched_reproductions.learning.figures import controls_over_time, savings_chart, seeds_chart
from gpusched_reproductions.learning.tables import costs_over_base

BASE = TrainingConfig(
    agent=EsConfig(),
    scenarios=("tiny",),
    scenario_settings={"jobs.count": 5},
    network=NetworkConfig("controls"),
    validation_seeds=(500,),
    evaluate_every=40,
)
PLAN = StudyPlan(BASE, 60, ("best-constants", "controls-es"), (0, 1), tuple(range(5)))


def runs_of(costs: dict[str, list[float]]) -> Runs:
    """Make runs with given costs on the seeds of the plan."""
    labels = {"workloads": "held out", "scenario": "tiny"}
    rows = ((labels, name, seed, {"total_eur": cost}) for name, each in costs.items() for seed, cost in enumerate(each))
    return Runs.of(rows)


COSTS = {
    "sts-x": [10.0] * 5,
    "best-constants-0": [9.0] * 5,
    "best-constants-1": [11.0] * 5,
    "controls-es-0": [8.0, 8.0, 8.0, 8.0, 18.0],
    "controls-es-1": [10.0, 8.0, 8.0, 8.0, 6.0],
}


def test_savings_are_over_the_best_constants_of_all_trainings():
    ((panel,),) = savings_chart(PLAN, runs_of(COSTS)).rows
    found = dict(panel.series[0].points)
    assert {name: estimate.value for name, estimate in found.items()} == pytest.approx({"sts-x": 0.0, "es": 0.1})
    assert found["es"].interval[0] < 0.1 < found["es"].interval[1]
    assert panel.levels[0].name == "best constants"
    assert costs_over_base(runs_of(COSTS), PLAN, "controls-es")[1] == [1.0, 0.8, 0.8, 0.8, 0.6]


def test_savings_of_workloads_are_sorted_and_grouped_by_the_parts_of_a_mixture(tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text('[[mixture]]\nscenario = "tiny"\n[[mixture]]\nscenario = "default"\n', encoding="utf-8")
    plan = replace(PLAN, base=replace(BASE, scenarios=(str(path),), scenario_settings={}))
    labels = {"workloads": "held out", "scenario": str(path)}
    rows = ((labels, name, seed, {"total_eur": cost}) for name, each in COSTS.items() for seed, cost in enumerate(each))
    ((by_seed, by_part),) = seeds_chart(plan, Runs.of(rows)).rows
    (line,) = by_seed.series
    assert [estimate.value for _, estimate in line.points] == pytest.approx([-0.2, 0.1, 0.2, 0.2, 0.2])
    assert by_part.categories == ("0: tiny", "1: default")
    assert {name: estimate.value for name, estimate in by_part.series[0].points} == pytest.approx(
        {"0: tiny": 1.0 - (0.9 + 0.8 + 1.2) / 3, "1: default": 0.2}
    )


@pytest.mark.slow
def test_a_study_of_controls_draws_what_its_agent_sets(tmp_path, monkeypatch):
    monkeypatch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
    for name, number in (("EVALUATIONS", 3), ("WORKLOADS", 2), ("EACH", 1)):
        monkeypatch.setattr(constants, name, number)
    drawn: dict[str, Any] = {}

    class Draws:
        def chart_files(self, chart: Any, name: str = "figure") -> dict[str, bytes]:
            drawn[name] = chart
            return {f"{name}.svg": b""}

    told = {"on_training": lambda *_: None, "on_evaluating": lambda *_: None}
    study(PLAN, tmp_path, drawing=Draws(), **told)
    assert set(drawn) == {"curves", "savings", "seeds", "controls"}
    assert [level.name for level in drawn["curves"].rows[0][0].levels] == ["edf", "sts", "sts-x", "best constants"]
    ((observed, said),) = drawn["controls"].rows
    assert (len(observed.series), len(said.series)) == (3, 3)
    policy: Any = load_policy(f"agent:{tmp_path}/runs/controls-es-0/agent")
    instance = make_instance(load_scenario("tiny").replace({"jobs.count": 5}), 0)
    hours, seen, controls = controls_over_time(policy, instance)
    assert (len(hours), controls.shape[1]) == (len(seen), control_count(3))
    assert np.all(np.diff(hours) >= 0.0)
    assert hours[-1] <= simulate(instance, policy).completion_s.max() / 3600.0
