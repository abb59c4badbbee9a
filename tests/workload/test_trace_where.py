"""Conditions on the rows of a trace, and rows that are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload import Scenario, read_trace, replayed_trace
from gpusched_env.workload.traces.presets import settings_for
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """submission_s,duration_s,gpus,state,vc,day,odd name
0,10,1,COMPLETED,a,2020-04-01 00:00:00,1
1,20,2,FAILED,b,2020-04-02 06:00:00,2
2,30,4,,c,2020-04-03 00:00:00,x
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("condition", "durations"),
    [
        ("gpus > 1", [20, 30]),
        ("gpus>=2", [20, 30]),
        ("gpus < 2", [10]),
        ("gpus <= 1.0", [10]),
        ("gpus = 2.0", [20]),
        ("gpus == 2", [20]),
        ("gpus != 2", [10, 30]),
        ("state = COMPLETED", [10]),
        ("state != COMPLETED", [20, 30]),
        ("state = 'COMPLETED'", [10]),
        ("vc in (a, c)", [10, 30]),
        ("vc in [b]", [20]),
        ("gpus in (1.0, 4)", [10, 30]),
        ("day >= 2020-04-02", [20, 30]),
        ("day < 2020-04-01 12:00", [10]),
        ("day = 2020-04-02", [20]),
        ("day != 2020-04-02", [10, 30]),
        ("day <= 2020-04-02", [10, 20]),
        ("day > 2020-04-02", [30]),
        ("day in (2020-04-01, 2020-04-03)", [10, 30]),
        ('"odd name" > 1', [20]),
        ("odd name = x", [30]),
        ('odd name = "1"', [10]),
        ("duration_s > 15", [20, 30]),
    ],
)
def test_a_condition_takes_the_rows_that_meet_it(condition, durations, tmp_path):
    trace = read_trace(write(tmp_path, ROWS), where=[condition])
    assert trace.duration_s.tolist() == durations
    assert trace.skipped == ((f"not {condition}", 3 - len(durations)),)


@pytest.mark.parametrize(
    ("condition", "durations"),
    [
        ('note in ("7, 8", c)', [20, 30]),
        ("note in ('7, 8')", [20]),
        ("note in ('7')", [10]),
        ("note in (7)", [10, 40]),
        ("note in (7, '7, 8')", [10, 20, 40]),
        ("note in ('7', \"it's\")", [10, 50]),
        ("note in (it's, 7.0)", [10, 40, 50]),
    ],
)
def test_a_value_in_quotes_is_one_text_in_a_list_too(condition, durations, tmp_path):
    rows = '0,10,1,7\n0,20,1,"7, 8"\n0,30,1,c\n0,40,1,7.0\n0,50,1,it\'s\n'
    trace = read_trace(write(tmp_path, "submission_s,duration_s,gpus,note\n" + rows), where=[condition])
    assert trace.duration_s.tolist() == durations


def test_all_conditions_must_be_met_and_the_first_that_is_not_counts(tmp_path):
    trace = read_trace(write(tmp_path, ROWS), where=["gpus > 1", "vc = b"])
    assert trace.duration_s.tolist() == [20.0]
    assert trace.skipped == (("not gpus > 1", 1), ("not vc = b", 1))


def test_a_field_can_be_named_where_its_column_has_another_name(tmp_path):
    path = write(tmp_path, "when,duration_s,n,gpu\n0,5,1,x\n3,6,2,y\n")
    columns = {"submission_s": "when", "gpus": "n"}
    assert read_trace(path, columns=columns, where=["gpus = 2"]).duration_s.tolist() == [6.0]
    assert read_trace(path, columns=columns, where=["gpu = x"]).duration_s.tolist() == [5.0]


@pytest.mark.parametrize(
    ("condition", "allowed"),
    [
        ("gpus", "a condition such as"),
        ("", "a condition such as"),
        ("__import__('os')", "a condition such as"),
        ("gpus >", "a condition such as"),
        ("gpu > 2", "one of the columns submission_s, duration_s, gpus, state"),
        ("state > COMPLETED", "a number or a date"),
        ("row of the trace > 1", "one of the columns submission_s"),
    ],
)
def test_what_is_no_condition_is_refused(condition, allowed, tmp_path):
    with refused("trace.where", condition) as caught:
        read_trace(write(tmp_path, ROWS), where=[condition])
    assert allowed in caught.value.allowed


def test_a_scenario_checks_its_conditions_before_the_file_is_read():
    with refused("trace.where", "gpus"):
        Scenario(trace={"path": "none.csv", "where": ["gpus"]})


def test_conditions_that_nothing_meets_are_an_error_that_says_why(tmp_path):
    with refused("trace.csv: rows left out", "3 not gpus > 9"):
        read_trace(write(tmp_path, ROWS), where=["gpus > 9"])


INVALID = "submission_s,duration_s,gpus\n0,10,1\n1,0,1\n2,5,0\nsoon,5,1\n4,x,1\n5,6,1.5\n6,7,2\n"


def test_rows_that_are_not_valid_are_left_out_and_counted_by_reason_if_asked(tmp_path):
    path = write(tmp_path, INVALID)
    trace = read_trace(path, skip_invalid=True)
    assert (trace.submission_s.tolist(), trace.gpus.tolist()) == ([0.0, 6.0], [1.0, 2.0])
    reasons = dict(trace.skipped)
    assert (reasons["asked for no GPU"], reasons["ran for 0 s"]) == (1, 1)
    assert sorted(reason.split(" is not ")[0] for reason in reasons if " is not " in reason) == [
        "duration_s",
        "gpus",
        "submission_s",
    ]
    with refused("trace.csv row 4: submission_s", "soon", "--skip-invalid (trace.skip_invalid)"):
        read_trace(path)


def test_a_scenario_says_what_is_left_out(tmp_path):
    path = write(tmp_path, INVALID)
    scenario = Scenario(cluster={"nodes": 3}, trace={"path": str(path), "skip_invalid": True, "where": ["gpus >= 2"]})
    assert replayed_trace(scenario).gpus.tolist() == [2.0]


def test_rows_out_of_order_are_an_error_even_where_invalid_ones_are_left_out(tmp_path):
    path = write(tmp_path, "submission_s,duration_s,gpus\n5,1,1\n3,0,1\n4,1,1\n")
    with refused("trace.csv row 3: submission_s", "4", "trace.sort = true"):
        read_trace(path, skip_invalid=True)


def test_start_and_end_give_the_duration_and_dates_and_numbers_go_in_any_column(tmp_path):
    text = "submission_s,start_s,end_s,gpus\n2020-01-01 00:00:00,2020-01-01 00:00:05,2020-01-01 00:01:05.5,1\n"
    trace = read_trace(write(tmp_path, text))
    assert (trace.duration_s.tolist(), trace.start_s.tolist()) == ([60.5], [5.0])
    trace = read_trace(write(tmp_path, "timestamp,duration_s,gpus\n100,5,1\n107,6,1\n"))
    assert trace.submission_s.tolist() == [0.0, 7.0]


def test_a_start_before_the_submission_is_not_valid_in_files_of_ones_own(tmp_path):
    path = write(tmp_path, "submission_s,start_s,duration_s,gpus\n90,90,5,1\n100,90,6,1\n110,115,7,1\n")
    with refused("trace.csv row 2: start_s", "90", "not before the submission; --skip"):
        read_trace(path)
    trace = read_trace(path, skip_invalid=True)
    assert trace.start_s.tolist() == [0.0, 25.0]
    assert trace.skipped == (("start_s is not a time not before the submission", 1),)


def test_a_start_before_the_submission_counts_as_at_it_in_published_files(tmp_path):
    text = "submit_time,start_time,duration,gpu_num\n100,90,5,1\n110,115,5,1\n"
    trace = read_trace(write(tmp_path, text), "helios")
    assert trace.start_s.tolist() == [0.0, 15.0]
    assert trace.stretch(0.1).start_s.tolist() == [0.0, 6.0]


def test_times_of_two_kinds_are_refused(tmp_path):
    text = "submission_s,start_s,duration_s,gpus\n0,2020-01-01 00:00:05,5,1\n"
    with refused("trace.csv row 1: start_s", "2020-01-01 00:00:05"):
        read_trace(write(tmp_path, text))


def test_all_missing_fields_are_named_with_all_columns_and_options_that_mend_it(tmp_path):
    text = "job_id,user,cpu_num,node_num,submitted at,start_time,end_time,gpu_count\n1,a,1,1,0,1,2,1\n"
    with pytest.raises(InputError) as caught:
        read_trace(write(tmp_path, text))
    assert str(caught.value) == (
        "trace.csv: no column for = 'submission_s, duration_s, gpus'; allowed: a column for each; it has job_id, user, "
        "cpu_num, node_num, submitted at, start_time, end_time, gpu_count; name them: "
        "--set trace.columns.submission_s='submitted at' --set trace.columns.start_s=start_time "
        "--set trace.columns.end_s=end_time --set trace.columns.gpus=gpu_count"
    )


def test_what_no_column_is_like_is_left_to_the_reader():
    assert settings_for(["gpus"], ["a", "b"]) == "--set trace.columns.gpus=COLUMN"
    assert settings_for(["gpus", "duration_s"], ["Num_GPUs", "runtime"]) == (
        "--set trace.columns.gpus=Num_GPUs --set trace.columns.duration_s=runtime"
    )


def test_a_column_is_suggested_where_its_whole_name_and_its_values_fit(tmp_path: Path):
    text = """state,array_task_pending,ended,creation_time,time_start,time_finish,gpu_num,gpu_model,gpus_ok
3,0,1,1000,1060,4660,2,V100,x
5,0,0,1100,1200,1300,8,A100,y
3,0,1,1200,1300,1400,0.5,A100,z
"""
    (tmp_path / "trace.csv").write_text(text)
    with refused("trace.csv: no column for") as error:
        read_trace(tmp_path / "trace.csv")
    assert str(error.value).endswith(
        "name them: --set trace.columns.submission_s=creation_time --set trace.columns.start_s=time_start "
        "--set trace.columns.end_s=time_finish --set trace.columns.gpus=gpu_num"
    )
    (tmp_path / "trace.csv").write_text("state,stopping,submit_ok,gpus\n3,1,0,many\n5,0,1,few\n3,1,0,many\n")
    with refused("trace.csv: no column for") as error:
        read_trace(tmp_path / "trace.csv")
    assert str(error.value).endswith("submission_s=COLUMN --set trace.columns.duration_s=COLUMN")
