"""Agents on the command line, with one that was never trained."""

import json
from functools import cache

import pytest

from agent_folders import controls_description, description, spec, weights
from commands import assert_one_error, gpusched, succeeds
from gpusched_agents.files import storage as shipping
from gpusched_agents.files.storage import save_agent
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import AgentSpec
from gpusched_baselines import edf
from gpusched_baselines.registry import policy_names
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.cli.policies import parse_policies


def compare(*arguments):
    return gpusched("compare", "-s", "tiny", "--seeds", "0-1", "-w", 1, "--out", "out", *arguments)


@cache
def tiny(seed):
    return make_instance(load_scenario("tiny"), seed)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Ship an agent for the scenario tiny, and keep one for another cluster in a folder."""
    monkeypatch.setattr(shipping, "SHIPPED", tmp_path / "shipped")
    fits = AgentSpec.of("control-set", tiny(0).configurations, tiny(0).gpu_types)
    save_agent(tmp_path / "shipped" / "clever", description(name="clever", spec=fits), weights(of=fits))
    save_agent(tmp_path / "mine", controls_description(), weights(of=spec("controls")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both():
    return (("edf", edf()), ("agent:clever", load_policy("agent:clever")))


def costs(folder):
    results = json.loads((folder / "out" / "results.json").read_text())
    return {(run["policy"], run["seed"]): run["total_eur"] for run in results["runs"]}


def test_an_agent_is_compared_like_any_policy(folder):
    done = compare("-p", "edf, agent:clever", "-r", "agent:clever")
    assert done.exit_code == 0, done.output
    assert "agent:clever" in done.stdout
    direct = {(name, seed): simulate(tiny(seed), policy).total_eur for name, policy in both() for seed in (0, 1)}
    assert costs(folder) == direct
    assert direct["edf", 0] != direct["agent:clever", 0]


def test_the_scenario_of_a_comparison_names_its_agents_and_compares_the_same_again(folder):
    assert compare("-p", "edf,agent:clever,agent:./shipped/clever").exit_code == 0
    before = costs(folder)
    (folder / "out" / "scenario.toml").rename(folder / "again.toml")
    succeeds("compare", "-s", "again.toml", "--out", "out")
    assert costs(folder) == before
    assert ("agent:./shipped/clever", 0) in before


def test_an_agent_is_simulated_like_any_policy(folder):
    done = succeeds("simulate", "-p", "agent:clever", "-s", "tiny", "--out", "run")
    assert "agent:clever" in done.stdout
    assert json.loads((folder / "run" / "run.json").read_text())["policy"] == "agent:clever"


def test_shipped_agents_are_listed_with_what_they_were_trained_for():
    row = next(line for line in gpusched("policies").stdout.splitlines() if "agent:clever" in line)
    assert "Learned by es" in row
    assert "single-node" in row


def test_all_policies_are_those_that_need_no_training():
    assert list(parse_policies("all")) == list(policy_names())


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ("agent:nobody", ("agent = 'agent:nobody'", "clever")),
        ("edf,agent:", ("agent:", "clever")),
        ("agent:mine", ("agent:mine: instance.configurations", "20 of them", "at most 6")),
        ("agent:clever,agent:clever", ("--policies", "each once")),
        ("clever", ("policy", "clever", "agent:NAME")),
    ],
)
def test_an_agent_that_is_not_there_or_does_not_fit_is_one_error(folder, policies, words):
    before = sorted(folder.rglob("*"))
    commands = [("compare", "-s", "tiny", "-p", policies, "--seeds", "0", "--out", "out")]
    if "," not in policies:
        commands.append(("simulate", "-s", "tiny", "-p", policies, "--out", "out"))
    for command in commands:
        assert_one_error(gpusched(*command), words)
        assert sorted(folder.rglob("*")) == before
