"""`gpusched trace`, and comparisons against the schedule that really ran."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import app
from gpusched_experiments.cli.scenario_options import chosen_scenario, scenario_settings

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,ua,va,4,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60
2,ub,va,0,16,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:05,2020-04-01 00:11:05,660,0
3,ub,vb,1,1,1,CANCELLED,2020-04-01 00:00:30,None,2020-04-01 00:10:00,0,570
4,ub,vb,16,1,2,FAILED,2020-04-01 01:00:00,2020-04-01 01:00:30,2020-04-01 01:10:30,600,30
"""


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helios.csv").write_text(HELIOS, encoding="utf-8")
    return "helios.csv"


def gpusched(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_everything_that_was_understood_stands_on_one_screen(trace):
    """3600 s on 4 GPUs and 600 s on 16: 6.67 GPU-hours in an hour, on 10 nodes of 8, 8 and 4 GPUs."""
    done = gpusched("trace", trace)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) <= 30
    for line in (
        "trace        helios.csv, format helios",
        "jobs         2",
        "left out     1 asked for no GPU, 1 never ran, or had not ended",
        "span         1 h from first to last submission",
        "work         6.7 GPU-hours, 6.7 GPUs on average",
        "durations    median 35 min, 95 % 57 min 30 s, longest 1 h",
        "GPUs            3-4   50.0% of jobs  60.0% of GPU-hours",
        "               9-16   50.0% of jobs  40.0% of GPU-hours",
        "load         0.10 on the 68 GPUs of 10 nodes of scenario default",
        "too large    1 jobs ask for more than 8 GPUs, the most that one is offered there",
        "start times  yes: as-traced replays what really ran; jobs waited 45 s (median), 58 s (95 %)",
        "of           2 tenants, 2 users",
        "- Due dates are modelled: submission + U(least, greatest full execution time).",
    ):
        assert line in lines
    assert lines[-1] == ("gpusched compare --trace helios.csv --policies as-traced,edf,sts,sts-x --reference as-traced")


def test_the_same_as_json_and_with_the_options_that_were_given(trace):
    done = gpusched("trace", trace, "--json", "--where", "gpus <= 4", "--nodes", 3, "--trace-format", "helios")
    said = json.loads(done.stdout)
    assert (said["format"], said["jobs"], said["left_out"]) == ("helios", 1, 3)
    assert said["skipped"] == {
        "not gpus <= 4": 1,
        "asked for no GPU": 1,
        "never ran, or had not ended": 1,
    }
    assert said["columns"]["gpus"] == "gpu_num"
    assert said["load"] is None
    assert shlex.split(said["command"])[2:10] == [
        "--trace", "helios.csv", "--trace-format", "helios", "--where", "gpus <= 4", "--nodes", "3",
    ]  # fmt: skip


@pytest.mark.usefixtures("trace")
def test_a_trace_without_start_times_goes_on_without_the_schedule_that_ran(tmp_path):
    (tmp_path / "own.csv").write_text("submission_s,duration_s,gpus\n0,5,1\n", encoding="utf-8")
    done = gpusched("trace", "own.csv")
    assert "start times  none: the schedule that really ran is not known" in done.stdout
    assert "load         all jobs come at once on the 68 GPUs" in done.stdout
    assert done.stdout.splitlines()[-1] == "gpusched compare --trace own.csv --policies fifo,edf,sts,sts-x"


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace", "helios.csv", "--trace-format", "nonsense"], ["--trace-format = 'nonsense'", "helios, acme"]),
        (["compare", "--trace", "none.csv", "--trace-format", "nonsense"], ["--trace-format = 'nonsense'"]),
        (["trace", "none.csv"], ["none.csv", "a CSV file that exists"]),
        (["trace", "helios.csv", "--where", "gpus"], ["trace.where", "a condition such as"]),
        (
            ["trace", "helios.csv", "--set", "trace.skip_invalid=false"],
            ["row 3: start_time = 'None'", "--skip-invalid"],
        ),
        (["trace", "odd.csv"], ["--set trace.columns.gpus=n_gpu", "it has when, took_s, n_gpu"]),
        (["compare", "--where", "gpus > 0"], ["--where", "nothing without --trace FILE"]),
        (["compare", "--skip-invalid"], ["--skip-invalid", "nothing without --trace FILE"]),
        (["compare", "--instance", "x.json", "--where", "gpus > 0"], ["--where", "--instance"]),
        (["compare", "-p", "as-traced", "-s", "tiny", "--seeds", "0"], ["as-traced: jobs.traced_start_s"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, words, tmp_path):
    (tmp_path / "odd.csv").write_text("when,took_s,n_gpu\n0,5,1\n", encoding="utf-8")
    done = gpusched(*arguments)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_settings_of_a_replay_win_over_options_and_a_scenario_with_a_trace_takes_conditions(trace, tmp_path):
    made = chosen_scenario("default", trace, "generic", None, None, ["trace.format=helios"], where=["gpus < 9"])
    assert (made.trace.format, made.trace.where, made.jobs.count) == ("helios", ("gpus < 9",), 1)
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[trace]\npath = "helios.csv"\nformat = "helios"\n')
    made = chosen_scenario("mine.toml", None, None, None, None, None, where=["gpus < 9"], skip_invalid=True)
    assert (made.trace.where, made.trace.skip_invalid) == (("gpus < 9",), True)
    values = scenario_settings(("tiny",), trace, None, None, None, None, ["gpus < 9"], True)
    assert (values["trace.where"], values["trace.skip_invalid"]) == (("gpus < 9",), True)


def test_policies_are_compared_with_the_schedule_that_really_ran(trace, tmp_path):
    done = gpusched(
        "compare", "--trace", trace, "-p", "as-traced,edf", "--reference", "as-traced", "--nodes", 3, "--seeds", "0",
        "-w", 1, "--out", "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "saving vs as-traced" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["reference"] == "as-traced"
    again = gpusched("compare", "--scenario", "out/scenario.toml", "-w", 1, "--out", "again")
    assert again.exit_code == 0, again.output
    repeated = json.loads((tmp_path / "again" / "results.json").read_text())
    assert [run["total_eur"] for run in repeated["runs"]] == [run["total_eur"] for run in results["runs"]]
