import csv
import json

import pytest

from commands import gpusched
from gpusched_env.rendering import MissingExtraError
from gpusched_experiments.cli import terminal
from gpusched_reproductions.cli import reproduce as command
from gpusched_reproductions.published import EXPERIMENTS

FILES = {"report.html", "cells.csv", "table.md", "table.csv", "summary.csv", "figure.svg", "record.json"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_experiment_ends_in_a_table_and_the_paths_of_its_files(folder):
    done = gpusched("reproduce", "cost", "-p", "edf,sts", "--nodes", "3,2", "--seeds", "0-1,5", "-w", 1, "--out", "a/b")
    assert done.exit_code == 0, done.output
    assert {path.name for path in (folder / "a/b/cost").iterdir()} == FILES
    for name in FILES:
        assert f"wrote a/b/cost/{name}" in done.stdout
    for words in ("Cost of STS", "energy saved", "38 to 40 %", "mean of the"):
        assert words in done.stdout
    with (folder / "a/b/cost/cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 2 * 2 * 3
    assert {(row["nodes"], row["policy"], row["seed"]) for row in rows} == {
        (nodes, policy, seed) for nodes in "23" for policy in ("edf", "sts") for seed in "015"
    }
    facts = json.loads((folder / "a/b/cost/record.json").read_text())["provenance"]["facts"]
    assert (facts["finished"], facts["runs"], facts["quick"]) == (True, 60, False)


def test_a_policy_of_ones_own_runs_and_has_its_name_in_tables_and_the_verdict_comes_first(folder):
    rule = "from gpusched_baselines import Sts\n\nPOLICY = Sts(name='mine')\n"
    (folder / "rule.py").write_text(rule)
    arguments = ("reproduce", "cost", "-p", "edf,sts,rule.py", "--nodes", 2, "--seeds", 0, "-w", 1, "--out", "a")
    done = gpusched(*arguments)
    assert done.exit_code == 0, done.output
    details = list(csv.DictReader((folder / "a/cost/table.csv").read_text().splitlines()))
    costs = {row["policy"]: row["total_eur"] for row in details if row["arrivals"] == "high"}
    assert costs["mine"] == costs["sts"]
    page, report = ((folder / "a/cost" / name).read_text() for name in ("table.md", "report.html"))
    verdict = "sts against edf: energy saved here "
    assert page.index(verdict) < page.index("| reported |")
    assert "reported 38 to 40 %" in page[page.index(verdict) :].splitlines()[0]
    assert report.index(verdict) < report.index("<table>")
    assert "**Verdict" not in report
    (folder / "rule.py").write_text(rule + "# changed\n")
    assert "10 of 15 runs are finished already" in gpusched(*arguments).stderr


def test_fewer_policies_and_seeds_lose_no_finished_run(folder):
    command = ("reproduce", "cost", "--nodes", 2, "-w", 1, "--out", "a", "-p")
    assert gpusched(*command, "edf,fifo", "--seeds", "0,1").exit_code == 0
    whole = (folder / "a/cost/cells.csv").read_text().splitlines()
    done = gpusched(*command, "edf", "--seeds", "0")
    assert "15 of its 20 runs are of another set" in done.stderr
    assert sorted((folder / "a/cost/cells.csv").read_text().splitlines()) == sorted(whole)
    assert {row["policy"] for row in csv.DictReader((folder / "a/cost/table.csv").read_text().splitlines())} == {"edf"}
    assert "20 of 20 runs are finished already" in gpusched(*command, "edf,fifo", "--seeds", "0,1").stderr


def test_all_runs_every_experiment_once_and_a_second_time_nothing(folder, monkeypatch):
    chosen = {name: EXPERIMENTS[name] for name in ("cost", "mean-times", "conformance")}
    monkeypatch.setattr(command, "EXPERIMENTS", chosen)
    arguments = ("reproduce", "all", "--quick", "-p", "edf,sts", "--nodes", 2, "--seeds", 0, "-w", 1)
    done = gpusched(*arguments)
    assert done.exit_code == 0, done.output
    # Conformance runs only where the reference instances are: not beside this folder.
    assert "note: without conformance" in done.stdout
    assert "github.com/ai-sprint-eu-project/GPUScheduler at 0f0ccf6 (Apache-2.0)" in done.stdout
    assert {path.name for path in (folder / "results/reproduce-quick").iterdir()} == {"cost", "mean-times"}
    assert "mean-times: 10 of 10 runs are finished already, 10 of them from the experiments beside it" in done.stderr
    assert gpusched(*arguments).exit_code == 0
    for name in ("cost", "mean-times"):
        record = (folder / "results/reproduce-quick" / name / "record.json").read_text()
        facts = json.loads(record)["provenance"]["facts"]
        assert facts["reused"] == facts["runs"]


def test_without_matplotlib_there_are_no_figures_and_it_is_said(folder, monkeypatch):
    def no_module(_):
        raise MissingExtraError("matplotlib", "plot", "charts")

    monkeypatch.setattr(terminal, "import_module", no_module)
    done = gpusched("reproduce", "cost", "-p", "edf,sts", "--nodes", 2, "--seeds", 0, "-w", 1)
    assert done.exit_code == 0
    assert "note: no figures, since charts need matplotlib" in done.stderr
    assert {path.name for path in (folder / "results/reproduce/cost").iterdir()} == FILES - {"figure.svg"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["costs"], ["experiment", "costs", "mean-times", "all"]),
        (["cost", "-p", "slurm"], ["policy", "slurm", "random-greedy"]),
        (["cost", "-p", "edf,edf"], ["--policies", "each once"]),
        (["cost", "--seeds", "5-1"], ["--seeds", "5-1"]),
        (["cost", "--nodes", "0"], ["--nodes", "0", "whole numbers >= 1"]),
        (["cost", "--nodes", "3,x"], ["--nodes", "3,x"]),
        (["cost", "--nodes", "3,3"], ["--nodes", "3,3", "each once"]),
        (["cost", "--nodes", "1000000"], ["cluster.nodes", "1000000"]),
        (["cost", "--workers", "0"], ["--workers", "0"]),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, options, words):
    done = gpusched("reproduce", *options)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert not list(folder.iterdir())


def test_a_place_that_cannot_be_written_is_named_and_the_help_names_every_experiment(folder):
    (folder / "taken").write_text("precious")
    done = gpusched("reproduce", "cost", "-p", "edf,sts", "--nodes", 2, "--seeds", 0, "-w", 1, "--out", "taken")
    assert done.exit_code == 2
    assert "taken" in done.stderr
    assert (folder / "taken").read_text() == "precious"
    results = gpusched("reproduce", "--help").stdout
    for name in ("cost", "mean-times", "sharing", "scaling", *EXPERIMENTS, "all"):
        assert name in results
