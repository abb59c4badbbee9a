"""Agents in experiments: run like any policy, and run again when they, and only they, have changed."""

import csv
import io
import json

import pytest

from agent_folders import controls_description, description, spec, weights
from gpusched_agents.any_policy import known_policies, make_any_policy
from gpusched_agents.files import storage as shipping
from gpusched_agents.files.storage import load_agent, save_agent
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import AgentSpec
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report import cell
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.code_version import agent_version
from gpusched_experiments.report.experiment import Selection
from gpusched_experiments.report.experiment_run import reproduce
from gpusched_reproductions.published import EXPERIMENTS
from refusals import refused
from watching import Watching

HIGH = load_scenario("high").replace({"cluster.nodes": 2, "jobs.count": 20})
SMALL = Selection(nodes=(2,), seeds=(0, 1), policies=("edf", "agent:mine"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Ship nothing, and keep an agent for any of the experiment's clusters in a folder."""
    monkeypatch.setattr(shipping, "SHIPPED", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    save_mine()
    return tmp_path


def save_mine(seed=0):
    instance = make_instance(HIGH, 0)
    fits = AgentSpec.of("control-set", instance.configurations, instance.gpu_types)
    save_agent("mine", description(spec=fits), weights(seed, of=fits))


def run(choice=SMALL):
    watching = Watching()
    reproduce(EXPERIMENTS["agents"], choice, "out", watcher=watching)
    return watching


def rows(folder):
    return list(csv.DictReader(io.StringIO((folder / "out/agents/cells.csv").read_text())))


def facts(folder):
    return json.loads((folder / "out/agents/record.json").read_text())["provenance"]["facts"]


def test_a_cell_of_an_agent_gives_what_simulate_gives_for_names_that_begin_with_agent():
    values = Cell((), HIGH, "agent:mine", 1).run()
    result = simulate(make_instance(HIGH, 1), load_policy("agent:mine"), seed=1)
    assert (values["energy_eur"], values["total_eur"]) == (result.energy_eur, result.total_eur)
    assert values["total_eur"] != Cell((), HIGH, "edf", 1).run()["total_eur"]
    assert make_any_policy("agent:mine").name == "agent:mine"
    assert make_any_policy("sts").name == "sts"


def test_an_agent_is_one_of_the_policies_of_the_experiment(folder):
    assert run().ran == 5 * 2 * 2
    assert {row["policy"] for row in rows(folder)} == {"edf", "agent:mine"}
    assert "agent:mine saves" in (folder / "out/agents/table.md").read_text()
    assert facts(folder)["agents"] == {"agent:mine": agent_version("agent:mine")}
    assert run().ran == 0


def test_a_trained_again_agent_is_run_again_and_nothing_else(folder):
    run()
    before = rows(folder)
    save_mine(seed=1)
    again = run()
    assert again.ran == 5 * 2
    assert any("10 of its 20 runs are of another set (settings, seeds or agents)" in n for n in again.notes)
    after = rows(folder)
    changed = [row["policy"] for row, former in zip(after, before, strict=True) if row["key"] != former["key"]]
    assert set(changed) == {"agent:mine"}
    costs = [[float(row["total_eur"]) for row in each if row["policy"] == "agent:mine"] for each in (before, after)]
    assert costs[0] != costs[1]


def test_other_code_runs_agents_again_too(monkeypatch):
    run()
    monkeypatch.setattr(cell, "run_version", lambda *_: "another")
    assert run().ran == 5 * 2 * 2


def test_until_an_agent_is_shipped_the_experiment_goes_without(folder):
    choice = Selection(nodes=(2,), seeds=(0,))
    notes = run(choice).notes
    assert "agents: without agent:default, which this version does not have" in notes
    assert {row["policy"] for row in rows(folder)} == {"edf", "random-greedy", "sts", "sts-x"}
    save_agent(folder / "shipped/default", *load_agent("mine"))
    assert "agent:default" in known_policies()
    assert run(choice).ran == 5
    assert {row["policy"] for row in rows(folder)} == {"edf", "random-greedy", "sts", "sts-x", "agent:default"}


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("agent:nobody", ("agent", "agent:nobody")),
        ("agent:other", ("agent:other: instance.configurations",)),
        ("agent:cut", ("cut/weights.npz", "0 bytes")),
        ("nobody", ("policy", "nobody", "one of .*fifo")),
    ],
)
def test_an_agent_that_is_not_there_or_does_not_fit_is_an_error_before_anything_is_written(folder, policy, error):
    save_agent("other", controls_description(), weights(of=spec("controls")))
    save_agent("cut", description(), weights())
    (folder / "cut/weights.npz").write_bytes(b"")
    with refused(*error):
        run(Selection(nodes=(2,), seeds=(0,), policies=("edf", policy)))
    assert not (folder / "out").exists()
