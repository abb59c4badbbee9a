"""`gpusched trace`, and comparisons against the schedule that really ran."""

import json
import shlex
from pathlib import Path

import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_experiments.cli.scenario_options import ScenarioOptions
from refusals import refused

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


def test_everything_that_was_understood_stands_on_one_screen(trace):
    """3600 s on 4 GPUs and 600 s on 16: 6.67 GPU-hours in an hour, on 10 nodes of 8, 8 and 4 GPUs."""
    done = succeeds("trace", trace)
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


def test_the_jobs_are_written_in_the_standard_workload_format(trace):
    assert "wrote jobs.swf" in succeeds("trace", trace, "--swf", "jobs.swf").stderr
    lines = succeeds("trace", "jobs.swf").stdout.splitlines()
    assert lines[0] == "trace        jobs.swf, format swf"
    assert "work         6.7 GPU-hours, 6.7 GPUs on average" in lines


def test_the_same_as_json_and_with_the_options_that_were_given(trace):
    done = gpusched("trace", trace, "--json", "--where", "gpus <= 4", "--nodes", 3, "--trace-format", "helios")
    said = json.loads(done.stdout)
    assert (said["format"], said["jobs"], said["left_out"]) == ("helios", 1, 3)
    assert said["skipped"] == {"not gpus <= 4": 1, "asked for no GPU": 1, "never ran, or had not ended": 1}
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
        (["trace", "none.csv"], ["none.csv", "a file that exists"]),
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
    assert_one_error(gpusched(*arguments), words)


def test_settings_of_a_replay_win_over_options_and_a_scenario_with_a_trace_takes_conditions(trace, tmp_path):
    made = ScenarioOptions(
        trace=trace, trace_format="generic", settings=["trace.format=helios"], where=["gpus < 9"]
    ).make()
    assert (made.trace.format, made.trace.where, made.jobs.count) == ("helios", ("gpus < 9",), 1)
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[trace]\npath = "helios.csv"\nformat = "helios"\n')
    made = ScenarioOptions(scenario="mine.toml", where=["gpus < 9"], skip_invalid=True).make()
    assert (made.trace.where, made.trace.skip_invalid) == (("gpus < 9",), True)
    values = ScenarioOptions(trace=trace, where=["gpus < 9"], skip_invalid=True).changes(("tiny",))
    assert (values["trace.where"], values["trace.skip_invalid"]) == (("gpus < 9",), True)


MINE = """base = "default"
[[gpu_types]]
name = "L4-8"
like = "L4"
gpus_per_node = 8
[[cluster.pools]]
gpu_type = "H100"
nodes = 6
gpus_per_node = 8
[[cluster.pools]]
gpu_type = "L4-8"
nodes = 10
"""
SACCT = """JobID|Submit|Start|End|ElapsedRaw|AllocTRES|State
1|2026-09-01T08:00:00|2026-09-01T08:00:02|2026-09-01T09:00:02|3600|cpu=8,gres/gpu:h100=8,gres/gpu=8|COMPLETED
2|2026-09-01T08:10:00|2026-09-01T08:10:04|2026-09-01T10:10:04|7200|cpu=8,gres/gpu:l4=1,gres/gpu=1|COMPLETED
3|2026-09-01T08:20:00|2026-09-01T08:20:06|2026-09-01T08:50:06|1800|cpu=8,gres/gpu:l4=4,gres/gpu=4|FAILED
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    (tmp_path / "jobs.txt").write_text(SACCT, encoding="utf-8")
    return "jobs.txt"


def test_jobs_and_load_are_told_by_the_type_that_rows_name(jobs):
    """8 GPU-hours on 48 H100 in 20 min; 2 h on one L4 and half an hour on four are 4 GPU-hours on 80."""
    lines = gpusched("trace", jobs, "--scenario", "mine.toml").stdout.splitlines()
    assert "GPU types        l4  2 jobs, 4.0 GPU-hours; load 0.15 on the 80 GPUs of L4-8" in lines
    assert "               h100  1 jobs, 8.0 GPU-hours; load 0.50 on the 48 GPUs of H100" in lines


def test_types_that_the_cluster_does_not_have_are_shown_by_trace_and_refused_by_compare(jobs):
    shown = succeeds("trace", jobs)
    assert "h100  1 jobs, 8.0 GPU-hours; the cluster has none" in shown.stdout
    assert "--set trace.gpu_types.l4=TYPE --set trace.gpu_types.h100=TYPE" in shown.stdout
    refused = gpusched("compare", "--trace", jobs, "--policies", "edf", "--seeds", "0")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "jobs.txt: gpu_type = 'l4 2 jobs, h100 1 jobs'" in refused.stderr


def test_the_replay_of_a_trace_that_fits_has_the_recorded_waits_whatever_the_reference_type(jobs, tmp_path):
    """The recorded waits are 2, 4 and 6 s, as-traced's are the same, and neither hangs on the reference type."""
    said = []
    for reference in ("H100", "L4-8"):
        done = gpusched(
            "compare", "--trace", jobs, "-s", "mine.toml", "-p", "as-traced,edf", "--reference", "as-traced",
            "--seeds", "0", "--gpu-demand", "exact", "-w", 1, "--out", reference,
            "--set", f"trace.reference_gpu_type={reference}",
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        said.append(json.loads((tmp_path / reference / "results.json").read_text(encoding="utf-8")))
    for each in said:
        recorded, replayed = each["traced"]["recorded"], each["policies"][0]
        assert recorded["waiting_s"] == pytest.approx(4.0)
        assert replayed["metrics"]["waiting_s"] == pytest.approx(4.0, abs=1.0)
        assert replayed["mean_completion_s"] == pytest.approx(recorded["completion_s"], abs=1.0)
    assert [run["energy_eur"] for run in said[0]["runs"]] == [run["energy_eur"] for run in said[1]["runs"]]
    page = (tmp_path / "H100" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Policies compared on jobs.txt (format sacct)</h1>" in page


def test_another_encoding_is_named_by_an_option_that_the_next_command_has_too(jobs, tmp_path):
    (tmp_path / jobs).write_bytes(SACCT.replace("COMPLETED", "erledigt, für").encode("cp1252"))
    refused = gpusched("trace", jobs, "--scenario", "mine.toml")
    assert (refused.exit_code, "--encoding cp1252" in refused.stderr) == (2, True)
    done = succeeds("trace", jobs, "--scenario", "mine.toml", "--encoding", "cp1252")
    assert "--encoding cp1252" in done.stdout.splitlines()[-1]


def test_policies_are_compared_with_the_schedule_that_really_ran(trace, tmp_path):
    done = succeeds(
        "compare", "--trace", trace, "-p", "as-traced,edf", "--reference", "as-traced", "--nodes", 3, "--seeds", "0",
        "-w", 1, "--out", "out",
    )  # fmt: skip
    assert "saving vs as-traced" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["reference"] == "as-traced"
    succeeds("compare", "--scenario", "out/scenario.toml", "-w", 1, "--out", "again")
    repeated = json.loads((tmp_path / "again" / "results.json").read_text())
    assert [run["total_eur"] for run in repeated["runs"]] == [run["total_eur"] for run in results["runs"]]


def test_the_option_of_prices_names_a_series_and_settings_win():
    assert ScenarioOptions(scenario="tiny", prices="de-lu-2024").make().prices.series == "de-lu-2024"
    assert ScenarioOptions(scenario="tiny", prices="mine.csv").make().prices.series == str(Path("mine.csv").resolve())
    more = ["prices.series=caiso-2022", "prices.levy_eur_per_kwh=0.1"]
    made = ScenarioOptions(scenario="tiny", prices="de-lu-2024", settings=more).make().prices
    assert (made.series, made.levy_eur_per_kwh) == ("caiso-2022", 0.1)
    with refused("prices.series", "mars"):
        ScenarioOptions(scenario="tiny", prices="mars").make()
