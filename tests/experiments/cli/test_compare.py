import csv
import io
import json

import pytest
from typer.testing import CliRunner

from gpusched_env.rendering import MissingExtraError
from gpusched_env.workload import generator, load_scenario
from gpusched_experiments.cli import terminal
from gpusched_experiments.cli.app import app
from gpusched_experiments.report import figures

FILES = {"results.json", "runs.csv", "table.md", "scenario.toml", "costs.png", "gantt.png"}


def gpusched(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "results"
    done = gpusched(
        "compare", "-p", "fifo,edf,greedy", "-s", "tiny", "--seeds", "0-1,5", "--jobs", 6, "--set", "prices.pue=1.25",
        "--workers", 1, "--out", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return out, done


def test_a_comparison_ends_in_a_table_and_the_paths_of_its_files(compared):
    out, done = compared
    assert {path.name for path in out.iterdir()} == FILES
    for name in ("fifo", "edf", "greedy", "reference", "saving vs edf"):
        assert name in done.stdout
    for name in FILES:
        assert f"wrote {out / name}" in done.stdout


def test_the_results_hold_every_run_the_scenario_and_where_they_come_from(compared):
    out, _ = compared
    results = json.loads((out / "results.json").read_text())
    assert [(run["seed"], run["policy"]) for run in results["runs"]] == [
        (seed, policy) for seed in (0, 1, 5) for policy in ("fifo", "edf", "greedy")
    ]
    assert {run["jobs"] for run in results["runs"]} == {6}
    facts = results["provenance"]["facts"]
    assert facts["scenario"]["prices"]["pue"] == 1.25
    assert (facts["policies"], facts["seeds"], facts["workers"]) == (["fifo", "edf", "greedy"], [0, 1, 5], 1)
    assert facts["reference"] == "edf"
    assert results["reference"] == "edf"
    assert len(list(csv.DictReader(io.StringIO((out / "runs.csv").read_text())))) == 9
    assert (out / "table.md").read_text().startswith("| policy |")


def test_a_track_is_compared_on_its_test_seeds(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('base = "tiny"\n[track]\nhard = "nothing"\nweights = "none"\ntest = "3-4"\n')
    done = gpusched("compare", "--track", path, "-p", "edf", "-w", 1, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "out/results.json").read_text())["seeds"] == [3, 4]
    assert load_scenario(tmp_path / "out/scenario.toml").compare.seeds == "3-4"


def test_the_scenario_that_was_compared_can_be_run_again(compared):
    out, _ = compared
    again = load_scenario(out / "scenario.toml")
    compare = {"policies": ["fifo", "edf", "greedy"], "seeds": "0-1,5", "workers": 1}
    values = {"jobs.count": 6, "prices.pue": 1.25} | {f"compare.{name}": value for name, value in compare.items()}
    assert again == load_scenario("tiny").replace(values)


def test_a_former_comparison_is_replaced_and_nothing_else_is(tmp_path):
    arguments = ("compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "--workers", 1, "--out")
    assert gpusched(*arguments, tmp_path / "a").exit_code == 0
    assert gpusched(*arguments, tmp_path / "a").exit_code == 0
    (tmp_path / "a" / "mine.txt").write_text("precious")
    done = gpusched(*arguments, tmp_path / "a")
    assert done.exit_code == 2
    assert "mine.txt" in done.stderr
    assert (tmp_path / "a" / "mine.txt").read_text() == "precious"


def test_without_edf_the_first_policy_is_the_reference(tmp_path):
    done = gpusched("compare", "-p", "greedy,fifo", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "a" / "results.json").read_text())["reference"] == "greedy"


def test_without_matplotlib_there_are_no_figures_and_it_is_said(tmp_path, monkeypatch):
    def no_module(_):
        raise MissingExtraError("matplotlib", "plot", "charts")

    monkeypatch.setattr(terminal, "import_module", no_module)
    done = gpusched("compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a")
    assert done.exit_code == 0
    assert "note: no figures, since charts need matplotlib" in done.stderr
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES - {"costs.png", "gantt.png"}


def test_the_gantt_chart_shows_a_run_of_the_comparison_itself(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "gantt_png", lambda result: drawn.append(result) or b"")
    out = tmp_path / "a"
    done = gpusched("compare", "-p", "fifo,greedy", "-s", "tiny", "--seeds", "3,1", "-w", 1, "--out", out)
    assert done.exit_code == 0, done.output
    results = json.loads((out / "results.json").read_text())
    best = min(results["policies"], key=lambda row: row["total_eur"])["policy"]
    (run,) = [run for run in results["runs"] if (run["policy"], run["seed"]) == (best, 3)]
    (result,) = drawn
    assert (result.policy, result.seed, result.decision_s) == (best, 3, run["decision_s"])
    assert len(result.log) >= run["jobs"]


def test_a_trace_can_be_compared(tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{60 * i},{600 + i},{1 + i % 2}" for i in range(8)]
    trace.write_text("\n".join(["submission_s,duration_s,gpus", *rows]) + "\n")
    done = gpusched(
        "compare", "-p", "edf", "--trace", trace, "--trace-format", "generic", "--jobs", 5, "--nodes", 2, "--seeds",
        "0", "-w", 1, "--out", tmp_path / "a",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    assert results["runs"][0]["jobs"] == 5
    assert results["provenance"]["facts"]["scenario"]["cluster"]["nodes"] == 2


def test_a_trace_is_read_once_however_many_runs_there_are(tmp_path, monkeypatch):
    read = []

    def spied(scenario):
        read.append(scenario)
        return generator_replayed(scenario)

    generator_replayed = generator.replayed_trace
    monkeypatch.setattr(generator, "replayed_trace", spied)
    trace = tmp_path / "trace.csv"
    trace.write_text("submission_s,duration_s,gpus\n" + "".join(f"{60 * i},600,1\n" for i in range(4)))
    out = ("-w", 1, "--out", tmp_path / "a")
    done = gpusched("compare", "-p", "edf,fifo", "--trace", trace, "--nodes", 2, "--seeds", "0-2", *out)
    assert done.exit_code == 0, done.output
    assert len(read) == 1


def test_settings_of_the_replay_reach_the_trace(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("when,duration_s,gpus\n" + "".join(f"{60 * i},600,1\n" for i in range(4)))
    arguments = ("simulate", "-p", "edf", "--trace", trace)
    assert gpusched(*arguments).exit_code == 2
    done = gpusched(*arguments, "--set", "trace.columns.submission_s=when", "--set", "trace.first=1")
    assert done.exit_code == 0, done.output
    assert "3 jobs" in done.stdout


def test_values_that_are_set_may_be_words_numbers_and_lists(tmp_path):
    done = gpusched(
        "compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a", "--set",
        "arrivals.kind=low", "--set", 'cluster.gpu_types=["T4", "V100"]', "--set", "prices.pue=2", "--set", "name=mine",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    made = load_scenario(tmp_path / "a" / "scenario.toml")
    assert (made.name, made.arrivals.kind, made.cluster.gpu_types) == ("mine", "low", ("T4", "V100"))
    assert made.prices.pue == 2.0
