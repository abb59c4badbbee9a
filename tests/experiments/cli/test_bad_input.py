"""Bad input: exit code 2, one line on stderr that says what is allowed, no traceback, nothing written."""

import numpy as np
import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_env.errors import InputError
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.cli.limits import _numbers, at_limit
from gpusched_experiments.cli.simulate import _draft
from gpusched_experiments.report import evaluation
from refusals import refused

COMPARE = ("compare", "-s", "tiny", "-p", "edf", "--seeds", "0", "-w", "1", "--out", "out")
SIMULATE = ("simulate", "-s", "tiny", "-p", "edf", "--out", "out")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(folder, words, *arguments):
    before = sorted(folder.rglob("*"))
    assert_one_error(gpusched(*arguments), words)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", [COMPARE, SIMULATE])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-s", "nowhere"], ["scenario", "nowhere", "default"]),
        (["-s", "missing.toml"], ["scenario", "missing.toml"]),
        (["-s", "track:nowhere"], ["track", "nowhere", "one of a100-h200, busy"]),
        (["--track", "busy"], ["--track", "busy", "nothing beside --scenario"]),
        (["-p", "slurm"], ["policy", "slurm", "random-greedy"]),
        (["--jobs", "0"], ["jobs.count", "0", "whole number >= 1"]),
        (["--nodes", "-3"], ["cluster.nodes", "-3"]),
        (["--set", "prices.energy_price_eur_per_kwh=-0.1"], ["prices.energy_price_eur_per_kwh", "-0.1", ">= 0"]),
        (["--set", "prices.energy_price_eur_per_kwh=nan"], ["prices.energy_price_eur_per_kwh", "nan"]),
        (["--set", "prices.energy_price_eur_per_kwh=cheap"], ["prices.energy_price_eur_per_kwh", "cheap"]),
        (["--set", "prices.pue=0.9"], ["prices.pue", "0.9", ">= 1"]),
        (["--set", "weights.min_eur_per_s=-1"], ["weights.min_eur_per_s", "-1"]),
        (["--set", "weights.max_eur_per_s=inf"], ["weights.max_eur_per_s", "inf"]),
        (["--set", 'cluster.gpu_types=["H9000"]'], ["cluster.gpu_types", "H9000", "V100"]),
        (["--set", "arrivals.kind=never"], ["arrivals.kind", "never", "mixed"]),
        (["--set", "jobs.colour=red"], ["jobs.colour", "red"]),
        (["--set", "nonsense"], ["--set", "nonsense", "section.name=value"]),
        (["--set", "=3"], ["--set", "=3"]),
        (["--set", "restart_s.deep=1"], ["restart_s"]),
        (["--trace", "missing.csv"], ["missing.csv"]),
        (["--trace-format", "philly"], ["--trace-format", "philly", "--trace"]),
    ],
)
def test_a_bad_option_is_named_with_what_is_allowed(folder, command, options, words):
    one_line(folder, words, *command, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "5-1"], ["--seeds", "5-1"]),
        (["--seeds", "x"], ["--seeds", "x"]),
        (["--workers", "0"], ["--workers", "0"]),
        (["--reference", "sts"], ["--reference", "sts", "edf"]),
        (["-p", "edf,edf"], ["--policies", "each once"]),
    ],
)
def test_a_bad_option_of_compare_is_named_with_what_is_allowed(folder, options, words):
    one_line(folder, words, *COMPARE, *options)


def test_a_negative_seed_and_a_chart_that_is_no_png_are_refused(folder):
    one_line(folder, ["seed = -1"], *SIMULATE, "--seed", "-1")
    one_line(folder, ["--gantt"], *SIMULATE, "--gantt", "chart.bmp")


@pytest.mark.parametrize(
    ("command", "field"),
    [([*COMPARE, "--out"], "path"), ([*SIMULATE, "--gantt"], "--gantt"), ([*SIMULATE, "--gif"], "--gif")],
)
def test_a_place_that_cannot_be_written_is_one_line_that_names_it(folder, command, field):
    """What is below a file cannot be written, whoever asks."""
    (folder / "file").write_text("")
    done = gpusched(*command, "file/x.gif" if field == "--gif" else "file/x.png")
    error = done.stderr.splitlines()[-1]
    assert (done.exit_code, [submission.name for submission in folder.iterdir()]) == (2, ["file"])
    assert error.startswith(f"error: {field} = 'file/x.")
    assert "can be written" in error


def test_a_picture_whose_place_cannot_be_written_any_more_is_named_by_its_own_name(folder):
    (folder / "file").write_text("")
    with refused("path", "file/x.png"), _draft("file/x.png") as draft:
        draft.write_bytes(b"")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jobs = = 3", ["bad", "TOML"]),
        ("[jobs]\ncount = 'many'", ["jobs.count", "many"]),
        ("[cluster]\nracks = 3", ["cluster.racks"]),
        ("restart_s = nan", ["restart_s", "nan"]),
        ("[jobs]\napplications = ['doom']", ["jobs.applications", "doom"]),
        ("[compare]\nworkers = 0", ["compare.workers", "0"]),
        ("[compare]\nreference = 'sts'", ["compare.reference", "sts", "edf"]),
    ],
)
def test_a_wrong_scenario_file_is_refused(folder, text, words):
    (folder / "bad.toml").write_text(text)
    one_line(folder, words, *COMPARE, "-s", "bad.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("submission_s,gpus\n0,1\n", ["duration_s"]),
        ("submission_s,duration_s,gpus\n5,60,1\n0,60,1\n", ["submission_s"]),
        ("submission_s,duration_s,gpus\n0,soon,1\n", ["duration_s", "soon"]),
        ("submission_s,duration_s,gpus\n0,nan,1\n", ["duration_s", "nan"]),
        ("timestamp,duration,num_gpus,gpu_time,cluster\n2017-99-09 07:01:55,66.0,1,66.0,a\n", ["timestamp"]),
        ("", ["trace.csv"]),
    ],
)
def test_a_wrong_trace_is_refused(folder, text, words):
    (folder / "trace.csv").write_text(text)
    one_line(folder, words, *COMPARE, "--trace", "trace.csv", "--jobs", "1", "--nodes", "1")


def test_what_a_scenario_file_or_an_option_may_not_ask_for_is_refused(folder):
    (folder / "sent.toml").write_text("[compare]\npolicies = ['edf', 'sb3:model.zip']\n")
    (folder / "model.zip").write_text("whatever")
    one_line(
        folder, ("compare.policies[1]", "sb3:model.zip", "--policies"), "compare", "-s", "sent.toml", "--out", "out"
    )
    (folder / "bad.toml").write_text("[compare]\npolicies = ['edf', 'slurm']\n")
    one_line(folder, ("compare.policies[1]", "slurm", "random-greedy"), "compare", "-s", "bad.toml", "--out", "out")
    one_line(
        folder,
        ["memory"],
        *COMPARE,
        "--set",
        "cluster.overrides.V100.memory_gib=0.001",
        "--set",
        'cluster.gpu_types=["V100"]',
    )
    one_line(folder, ["nowhere"], "scenarios", "--show", "nowhere")
    one_line(folder, ["missing"], "audit", "missing")
    (folder / "empty").mkdir()
    one_line(folder, ["empty"], "audit", "empty")


def test_a_run_of_another_workload_policy_or_seed_is_not_replaced(folder):
    assert gpusched(*SIMULATE).exit_code == 0
    for other, words in {
        ("--seed", "1"): "seed = 0, these of 1",
        ("-p", "fifo"): "policy = edf, these of fifo",
        ("--jobs", "4"): "scenario.jobs.count = 10, these of 4",
    }.items():
        one_line(folder, ["--out = 'out'", "another place", words], *SIMULATE, *other)
    assert gpusched(*SIMULATE).exit_code == 0


@pytest.mark.parametrize("command", [COMPARE, SIMULATE])
def test_a_folder_with_other_files_is_left_alone(folder, command):
    (folder / "out").mkdir()
    (folder / "out" / "thesis.tex").write_text("precious")
    one_line(folder, ["thesis.tex"], *command)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--workers", "x"], ("--workers = 'x'",)),
        (["compare", "-w", "x"], ("-w = 'x'", "--workers")),
        (["simulate", "--seed=half"], ("--seed = 'half'",)),
        (["compare", "--bogus"], ("--bogus",)),
        (["frobnicate"], ("frobnicate",)),
        (["audit"], ("DIR",)),
        (["policies", "foo"], ("foo",)),
    ],
)
def test_a_wrong_option_ends_in_one_line(arguments, words):
    assert_one_error(gpusched(*arguments), words)


def test_without_a_command_the_help_is_shown():
    result = succeeds()
    assert "compare" in result.stdout


def test_an_interrupted_comparison_keeps_no_run_that_has_not_ended(tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "simulate", interrupted)
    words = f"compare -p edf -s tiny --seeds 0-3 --workers 1 --out {tmp_path / 'run'}"
    done = gpusched(*words.split())
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "error: interrupted"
    assert {path.name: path.stat().st_size for path in (tmp_path / "run").iterdir()} == {
        "cells.csv": 0,
        "scenario.toml": (tmp_path / "run/scenario.toml").stat().st_size,
    }


def limited():
    return make_instance(load_scenario("tiny").replace({"jobs.power_limits": [1.0, 0.7]}), 0)


@pytest.mark.parametrize("limit", [1.0, 0.7])
def test_one_limit_for_all_leaves_its_configurations_alone(limit):
    whole = limited()
    alone = at_limit(whole, limit)
    of_limit = np.array([c.power_limit == limit for c in whole.configurations])
    assert np.isinf(alone.jobs.seconds_per_epoch[:, ~of_limit]).all()
    assert (alone.jobs.seconds_per_epoch[:, of_limit] == whole.jobs.seconds_per_epoch[:, of_limit]).all()
    assert alone.jobs.due_s.tolist() == whole.jobs.due_s.tolist()


def test_limits_are_read_from_the_largest_on_and_jobs_without_one_keep_what_they_have():
    whole = limited()
    none = at_limit(whole, 0.5)
    unlimited = np.array([c.power_limit == 1.0 for c in whole.configurations])
    assert np.isinf(none.jobs.seconds_per_epoch[:, ~unlimited]).all()
    assert np.isfinite(none.jobs.seconds_per_epoch[:, unlimited]).any(axis=1).all()
    assert _numbers("0.6, 0.85") == (1.0, 0.85, 0.6)


@pytest.mark.parametrize("text", ["", "0.7,x", "0", "1.2", "0.7,0.7"])
def test_a_wrong_limit_is_one_error(text):
    with pytest.raises(InputError, match="--limits"):
        _numbers(text)


def test_the_table_has_a_row_for_each_limit_and_says_what_is_measured():
    done = succeeds("limits", "-s", "tiny", "-p", "edf", "--limits", "1,0.7", "--seeds", "0-1")
    for text in ("none", "0.7 for all", "chosen", "Measured (Zeus", "Assumed: that A100, T4", "Modelled"):
        assert text in done.output
