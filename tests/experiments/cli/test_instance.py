"""`--instance FILE`: one instance in place of a scenario."""

import json

import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_baselines.registry import make_policy
from gpusched_env import load_instance, load_scenario, make_instance, save_instance, simulate

INSTANCE = make_instance(load_scenario("tiny").replace({"jobs.count": 6}), 3)


@pytest.fixture
def file(tmp_path):
    save_instance(INSTANCE, tmp_path / "mine.json")
    return tmp_path / "mine.json"


@pytest.fixture
def compared(file, tmp_path):
    out = tmp_path / "out"
    done = succeeds("compare", "-p", "edf,random-greedy", "--instance", file, "-w", 1, "--out", out)
    return out, done


def test_a_simulation_of_an_instance_costs_what_it_costs_in_python(file, tmp_path):
    done = succeeds("simulate", "-p", "edf", "--instance", file, "--seed", 9, "--out", tmp_path / "run")
    total = simulate(INSTANCE, make_policy("edf"), seed=9).total_eur
    assert f"{total:,.2f} €" in done.stdout
    assert "mine.json, seed 9" in done.stdout
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["total_eur"] == pytest.approx(total)
    assert run["provenance"]["facts"]["instance_file"] == str(file)
    assert gpusched("audit", tmp_path / "run").exit_code == 0


def test_a_comparison_of_one_instance_says_so_keeps_it_and_its_seeds_decide_only_the_policies_randomness(
    compared, file
):
    out, _ = compared
    runs = json.loads((out / "results.json").read_text())["runs"]
    assert [run["seed"] for run in runs if run["policy"] == "edf"] == [0, 1, 2, 3, 4]
    total = simulate(INSTANCE, make_policy("edf")).total_eur
    assert {run["total_eur"] for run in runs if run["policy"] == "edf"} == {total}
    for seed in range(5):
        drawn = simulate(INSTANCE, make_policy("random-greedy"), seed=seed).total_eur
        (run,) = [run for run in runs if (run["policy"], run["seed"]) == ("random-greedy", seed)]
        assert run["total_eur"] == drawn
    out, done = compared
    assert load_instance(out / "instance.json") == INSTANCE
    assert not (out / "scenario.toml").exists()
    facts = json.loads((out / "results.json").read_text())["provenance"]["facts"]
    assert facts["instance_file"] == str(file)
    assert "scenario" not in facts
    note = "Means over 5 seeds of the policies' own randomness; all ran on the one instance of mine.json."
    assert note in (out / "table.md").read_text()
    assert note in " ".join(done.stdout.split())
    assert f"wrote {out / 'instance.json'}" in done.stdout
    done = gpusched("compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", out)
    assert (done.exit_code, "it holds runs of instance.json, and these are of tiny" in done.stderr) == (2, True)


def test_the_instance_that_was_compared_can_be_compared_again(compared, tmp_path):
    out, _ = compared
    again = ("compare", "-p", "edf,random-greedy", "--instance", out / "instance.json", "-w", 1)
    assert gpusched(*again, "--out", tmp_path / "again").exit_code == 0
    runs = [json.loads((folder / "results.json").read_text())["runs"] for folder in (out, tmp_path / "again")]
    assert [run["total_eur"] for run in runs[0]] == [run["total_eur"] for run in runs[1]]


def test_an_agent_is_evaluated_on_an_instance(file):
    done = succeeds("evaluate", "agent:default", "--instance", file, "--against", "edf", "-w", 1)
    assert "all ran on the one instance of mine.json" in " ".join(done.stdout.split())
    assert f"{simulate(INSTANCE, make_policy('edf')).total_eur:,.2f}" in done.stdout


@pytest.mark.parametrize("command", [("simulate",), ("compare", "-p", "edf"), ("evaluate", "agent:default")])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scenario", "tiny"], ["--scenario = 'tiny'", "--instance"]),
        (["--trace", "x.csv"], ["--trace = 'x.csv'", "--instance"]),
        (["--trace-format", "philly"], ["--trace-format", "--instance"]),
        (["--jobs", "3"], ["--jobs = 3", "--instance"]),
        (["--nodes", "3"], ["--nodes = 3", "--instance"]),
        (["--set", "prices.pue=2"], ["--set = 'prices.pue=2'", "--instance"]),
    ],
)
def test_nothing_stands_beside_an_instance(file, tmp_path, monkeypatch, command, options, words):
    monkeypatch.chdir(tmp_path)
    assert_one_error(gpusched(*command, "--instance", file, *options), words)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_a_file_that_is_no_instance_is_named(tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    for name, words in (("nowhere.json", "nowhere.json"), ("mine.json", "format")):
        done = gpusched("simulate", "--instance", tmp_path / name)
        assert done.exit_code == 2
        assert words in done.stderr
