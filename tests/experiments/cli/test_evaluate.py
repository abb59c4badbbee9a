"""`gpusched evaluate`, with an agent that was never trained."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from agent_folders import controls_description, description, spec, weights
from commands import gpusched
from gpusched_agents.any_policy import make_any_policy
from gpusched_agents.files.storage import save_agent
from gpusched_agents.spec import AgentSpec
from gpusched_baselines import make_policy
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.cli.evaluate import ms_per_job
from gpusched_experiments.report import RunSummary

SEEDS = range(5)


@cache
def tiny(seed):
    return make_instance(load_scenario("tiny"), seed)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    fits = AgentSpec.of("control-set", tiny(0).configurations, tiny(0).gpu_types)
    save_agent(tmp_path / "mine", description(spec=fits), weights(of=fits))
    save_agent(tmp_path / "other", controls_description(), weights(of=spec("controls")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(agent, *arguments):
    return gpusched("evaluate", agent, "-s", "tiny", "--seeds", "0-4", "-w", "1", *arguments)


def cells(done):
    assert done.exit_code == 0, done.output
    lines = [line.split(maxsplit=6) for line in done.stdout.splitlines()]
    rows = [line for line in lines if line and line[0] in {"agent:mine", "edf", "sts", "fifo"}]
    return {line[0]: line[1:] for line in rows[: len(rows) // 2]}  # costs come first, then metrics of jobs and machines


def costs(name):
    policy = make_any_policy(name)
    return [simulate(tiny(seed), policy).total_eur for seed in SEEDS]


def test_the_table_has_means_and_what_the_agent_saves_against_each_policy():
    table = cells(evaluate("agent:mine", "--against", "edf,fifo"))
    assert list(table) == ["agent:mine", "edf", "fifo"]
    own = costs("agent:mine")
    assert table["agent:mine"][2] == f"{np.mean(own):,.2f}"
    for name in ("edf", "fifo"):
        others = costs(name)
        assert table[name][2] == f"{np.mean(others):,.2f}"
        saving = 1.0 - sum(own) / sum(others)
        share, interval = table[name][5].split(" ", 1)
        assert share == (f"{saving:+.0%}" if abs(saving) >= 10 else f"{saving:+.1%}")
        assert interval.startswith("[")
    assert len(table["agent:mine"]) == 5  # it saves nothing against itself


def test_a_folder_may_be_named_without_agent_and_the_policies_are_edf_and_sts_by_default(folder):
    before = sorted(folder.rglob("*"))
    assert list(cells(evaluate("mine"))) == ["agent:mine", "edf", "sts"]
    assert sorted(folder.rglob("*")) == before


def test_an_agent_and_a_policy_of_ones_own_are_evaluated_on_the_test_seeds_of_a_track(folder):
    (folder / "track.toml").write_text('base = "tiny"\n[track]\nhard = "nothing"\nweights = "none"\ntest = "3-4"\n')
    (folder / "rule.py").write_text("from gpusched_baselines import make_policy\n\nPOLICY = make_policy('fifo')\n")
    done = gpusched("evaluate", "rule.py", "--track", "track.toml", "--against", "edf,agent:mine", "-w", "1")
    assert done.exit_code == 0, done.output
    assert "Means over 2 seeds" in done.stdout
    total = np.mean([simulate(tiny(seed), make_policy("fifo")).total_eur for seed in (3, 4)])
    assert next(line.split()[3] for line in done.stdout.splitlines() if line.startswith(" fifo ")) == f"{total:,.2f}"


def test_few_seeds_have_no_intervals_and_the_workload_can_be_changed():
    done = evaluate("mine", "--against", "edf", "--seeds", "0,3")
    assert "[" not in cells(done)["edf"][5]
    assert "No intervals: they need 5 seeds or more." in done.stdout
    table = cells(evaluate("mine", "--against", "edf", "--set", "prices.pue=2", "--jobs", "4"))
    changed = load_scenario("tiny").replace({"prices.pue": 2, "jobs.count": 4})
    totals = [simulate(make_instance(changed, seed), make_policy("edf")).total_eur for seed in SEEDS]
    assert table["edf"][2] == f"{np.mean(totals):,.2f}"


def test_the_time_per_job_is_that_of_the_policys_own_runs():
    run = RunSummary("edf", 0, 10, 1.0, 0.0, 0, 0.0, 0, 5, decision_s=0.2, clairvoyant_eur=0.0, non_clairvoyant_eur=0.0)
    runs = [run, replace(run, seed=1, jobs=30, decision_s=0.6), replace(run, policy="sts", decision_s=9.0)]
    assert ms_per_job(runs, "edf") == pytest.approx(20.0)
    assert ms_per_job(runs, "sts") == pytest.approx(900.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), ("agent = 'agent:nobody'", "agent.json")),
        (("other",), ("agent:other: instance.configurations", "at most 6")),
        (("mine", "--against", "slurm"), ("policy = 'slurm'", "edf")),
        (("mine", "--against", "edf,agent:mine"), ("--against", "without the agent")),
        (("mine", "--against", "edf,edf"), ("--against", "each once")),
        (("mine", "--seeds", "x"), ("--seeds", "'x'")),
        (("mine", "--workers", "0"), ("--workers", "0")),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    done = evaluate(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    error = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    for word in words:
        assert word in error


def test_an_evaluation_can_be_kept_as_a_comparison_is(tmp_path):
    emitting = ("--against", "edf", "--set", "prices.co2_g_per_kwh=9", "--seeds", "0,3")
    done = evaluate("mine", *emitting, "--out", str(tmp_path / "a"))
    assert done.exit_code == 0, done.output
    assert "kg CO₂" in done.stdout
    assert {"report.html", "results.json", "runs", "scenario.toml"} <= {
        path.name for path in (tmp_path / "a").iterdir()
    }
    assert f"wrote {tmp_path / 'a' / 'report.html'}" in done.stdout
    assert "kg CO₂" in evaluate("mine", *emitting).stdout
