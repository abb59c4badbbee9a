"""Traces that are no plain tables: SWF, JSON of sacct, dumps of slurmdbd, Gavel, Pollux, Alibaba 2025, odd lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpusched_env.workload import Trace, detect_format, read_trace
from gpusched_env.workload.traces.swf_writing import swf_text
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

SWF = """; Version: 2.2
; UnixStartTime: 1546300800
;
  1  100   30  600  8 -1 -1 -1  7200 -1 1 3 1 -1 1 -1 -1 -1
  2   60   -1   -1 16 -1 -1 16 14400 -1 5 4 1 -1 1 -1 -1 -1
  3    0    0   90 -1 -1 -1  2  1800 -1 0 5 2 -1 2 -1 -1 -1
"""
HEADER = "JobID|JobName|Submit|Start|End|ElapsedRaw|AllocTRES|State|User\n"
DAY = "2026-09-20T0"


def sacct(*names: str) -> str:
    rows = (
        f"{i}|{name}|{DAY}{i}:00:00|{DAY}{i}:05:00|{DAY}{i}:15:00|600|gres/gpu={i}|COMPLETED|u{i}"
        for i, name in enumerate(names, 1)
    )
    return HEADER + "\n".join(rows) + "\n"


def read(folder: Path, text: str, name: str = "trace.txt", **options: object) -> Trace:
    (folder / name).write_text(text, encoding="utf-8")
    return read_trace(folder / name, detect_format(folder / name), **options)  # type: ignore[arg-type]


def test_swf_is_read_and_what_never_ran_is_counted(tmp_path: Path):
    trace = read(tmp_path, SWF)
    assert (trace.format, trace.skipped) == ("swf", (("never ran, or had not ended", 1),))
    assert trace.submission_s.tolist() == [0.0, 100.0]
    assert trace.start_s.tolist() == [0.0, 130.0]
    assert trace.duration_s.tolist() == [90.0, 600.0]
    assert trace.gpus.tolist() == [2.0, 8.0]
    assert (trace.user, trace.tenant) == (("5", "3"), ("2", "1"))
    fewer = read(tmp_path, SWF, processors_per_gpu=4.0)
    assert fewer.gpus.tolist() == [0.5, 2.0]


def test_what_is_written_as_swf_reads_back(tmp_path: Path):
    trace = read(tmp_path, sacct("a", "b", "c"))
    again = read(tmp_path, swf_text(trace), "trace.swf")
    for name in ("submission_s", "start_s", "duration_s", "gpus"):
        assert getattr(again, name).tolist() == getattr(trace, name).tolist()
    assert again.user == ("1", "2", "3")
    assert "; User: 2 u2" in swf_text(trace)


@pytest.mark.parametrize("names", [("a", "grid|lr=0.1|x", "c"), ("a", "two\nlines", "c"), ("a\nb\nc", "d|e", "f")])
def test_separators_and_line_feeds_in_a_name_of_a_job_are_part_of_it(names: tuple[str, ...], tmp_path: Path):
    trace = read(tmp_path, sacct(*names))
    assert trace.gpus.tolist() == [1.0, 2.0, 3.0]
    assert trace.skipped == ()
    assert trace.user == ("u1", "u2", "u3")


@pytest.mark.parametrize(
    ("text", "line", "cells"),
    [
        (sacct("a", "b", "c").replace("|COMPLETED|u2", "|COM"), 3, 8),
        (sacct("a", "b|c", "d").replace("JobName", "Name"), 3, 10),
        ("submission_s,duration_s,gpus\n0,60,1\n1,60\n2,60,2\n", 3, 2),
        ('submission_s,duration_s,gpus,name\n0,60,1,"a, b"\n1,60,1,a, b\n2,60,2,c\n', 3, 5),
        (SWF + "4 1 2 3\n", 7, 4),
    ],
)
def test_a_line_that_is_no_row_is_an_error_with_its_number_or_costs_itself(
    text: str, line: int, cells: int, tmp_path: Path
):
    with refused(f"trace.txt line {line}", f"{cells} cells", "--skip-invalid"):
        read(tmp_path, text)
    trace = read(tmp_path, text, skip_invalid=True)
    assert len(trace) == 2
    assert ("has another number of cells", 1) in trace.skipped


def test_sacct_without_parsable_columns_is_told_how_to_print_them(tmp_path: Path):
    text = "JobID  Submit              State\n------ ------------------- ------\n1      2026-09-20T08:00:00 FAILED\n"
    with refused("trace.txt: no column for", allowed="sacct -P -a"):
        read(tmp_path, text)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_sacct_printed_is_known_whatever_separates_its_cells(separator: str, encoding: str, tmp_path: Path):
    """Spreadsheets write other separators, and PowerShell writes UTF-16."""
    path = tmp_path / "jobs.csv"
    path.write_text(sacct("a", "b", "c").replace("|", separator), encoding)
    assert detect_format(path) == "sacct"
    assert read_trace(path, "sacct").gpus.tolist() == [1.0, 2.0, 3.0]


SLURM_JOB = {"time": {"submission": 100, "start": 100, "end": 160, "elapsed": 60}}
SLURM_JOB |= {"tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]}}
ATTEMPT = {"start_time": "2017-10-09 07:00:00", "end_time": "2017-10-09 07:01:00", "detail": [{"gpus": ["g0", "g1"]}]}
PHILLY_JOB = {"submitted_time": "2017-10-09 07:00:00", "attempts": [ATTEMPT]}


@pytest.mark.parametrize(
    "document",
    [{"jobs": [SLURM_JOB, {"job_id": 8}]}, [PHILLY_JOB, {"jobid": "b"}], [PHILLY_JOB, PHILLY_JOB | {"attempts": 3}]],
)
def test_a_job_of_another_form_in_json_is_an_error_with_its_number_or_costs_itself(document: object, tmp_path: Path):
    with refused("trace.txt job 2", allowed="--skip-invalid"):
        read(tmp_path, json.dumps(document))
    trace = read(tmp_path, json.dumps(document), skip_invalid=True)
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([2.0], [60.0])
    assert dict(trace.skipped)["is no job of this form"] == 1


def test_a_decimal_comma_is_read_where_a_semicolon_separates_cells(tmp_path: Path):
    assert read(tmp_path, "submission_s;duration_s;gpus\n0;60,5;2\n").duration_s.tolist() == [60.5]
    assert read(tmp_path, "submission_s;duration_s;gpus\n0;1,200;2\n1;2,25;1\n").duration_s.tolist() == [1.2, 2.25]
    with refused("trace.txt: duration_s", "1,200", "nothing between thousands"):
        read(tmp_path, "submission_s;duration_s;gpus\n0;1,200;2\n1;3,600;1\n")


@pytest.mark.parametrize("text", [sacct("a", "b").partition("\n")[2], "0,60,1\n1,60,2\n"])
def test_a_file_without_a_header_is_refused_as_one(text: str, tmp_path: Path):
    with refused("trace.txt: first line", allowed="names of columns"):
        read(tmp_path, text)


def test_an_elapsed_time_that_cannot_be_read_is_an_invalid_row_and_no_job_that_never_ran(tmp_path: Path):
    text = "JobID|Submit|Elapsed|AllocTRES\n1|2026-09-20T08:00:00|1-02:03:04|gres/gpu=2\n"
    text += "2|2026-09-20T08:00:00|INVALID|gres/gpu=2\n"
    with refused("trace.txt row 2: elapsed_s", "INVALID", "--skip-invalid"):
        read(tmp_path, text)
    trace = read(tmp_path, text, skip_invalid=True)
    assert trace.duration_s.tolist() == [93_784.0]
    assert "never ran, or had not ended" not in dict(trace.skipped)


def test_slices_count_in_sevenths_and_shares_have_their_own_reason(tmp_path: Path):
    row = "{}|2026-09-20T08:00:00|60|{}\n"
    asked = (
        "gres/gpu:a100_3g.20gb=1,gres/gpu=1",
        "gres/gpu:a100_4g.20gb=2",
        "gres/gpu:a100=1",
        "gres/gpu=3,gres/gpu:a100=2,gres/gpu:a100_3g.20gb=1",
        "gres/gpu=2,gres/gpu:a100_1g.5gb=1,gres/gpu:a100_3g.20gb=1",
        "gres/shard=3",
        "cpu=1",
    )
    text = "JobID|Submit|ElapsedRaw|AllocTRES\n" + "".join(map(row.format, range(len(asked)), asked))
    trace = read(tmp_path, text)
    assert trace.gpus.tolist() == pytest.approx([3 / 7, 2.0, 1.0, 3.0, 4 / 7])
    reason = "asked for shares of GPUs or other resources, which are not read"
    assert dict(trace.skipped) == {reason: 1, "asked for no GPU": 1}


def test_json_of_sacct_is_read_in_both_of_its_forms(tmp_path: Path):
    tres = [
        {"type": "cpu", "name": "", "id": 1, "count": 8},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 2},
    ]
    times = {"submission": 1_789_884_000, "start": 1_789_884_300, "end": 1_789_887_900, "elapsed": 3600}
    later = {name: {"set": True, "infinite": False, "number": value + 60} for name, value in times.items()}
    jobs = [
        {"job_id": 1, "user": "u", "account": "a", "state": {"current": ["COMPLETED"]}, "time": times},
        {"job_id": 2, "user": "v", "account": "a", "state": "FAILED", "time": later},
        {"job_id": 3, "user": "v", "account": "a", "state": ["RUNNING"], "time": later | {"end": 0}},
    ]
    document = {"meta": {}, "jobs": [job | {"tres": {"allocated": tres}} for job in jobs], "errors": []}
    trace = read(tmp_path, json.dumps(document, indent=1), "jobs.json")
    assert (trace.format, trace.gpu_type, trace.user) == ("sacct", ("a100", "a100"), ("u", "v"))
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([2.0, 2.0], [3600.0, 3660.0])
    assert trace.start_s.tolist() == [300.0, 360.0]
    assert read(tmp_path, json.dumps(document), "jobs.json", where=["State = FAILED"]).user == ("v",)
    odd = document | {"jobs": [*document["jobs"], jobs[0] | {"tres": [1]}]}
    with refused("jobs.json job 4", "without its times, or with another form of tres"):
        read(tmp_path, json.dumps(odd), "jobs.json")
    assert dict(read(tmp_path, json.dumps(odd), "jobs.json", skip_invalid=True).skipped)["is no job of this form"] == 1
    with refused("jobs.json: jobs", allowed="squeue --json"):
        read(tmp_path, json.dumps({"jobs": [{"job_id": 1, "start_time": 5}]}), "jobs.json")


def test_a_dump_of_slurmdbd_has_gpus_by_name_or_by_the_numbers_of_the_site(tmp_path: Path):
    text = """id_job,id_user,gres_used,partition,state,time_submit,time_start,time_end,tres_alloc
11,u1,gpu:volta:2,normal,3,1000,1060,4660,"1=40,2=340000,4=1,1001=2,1002=2"
12,u2,,normal,5,1100,1200,1200,"1=8,4=1"
13,u1,,normal,3,1200,1300,1400,"1=8,4=1,1001=4,1002=4"
14,u1,,normal,3,1200,0,0,"1=8,1001=4"
"""
    trace = read(tmp_path, text)
    assert (trace.format, trace.gpu_type, trace.user) == ("slurmdbd", ("volta", ""), ("u1", "u1"))
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([2.0, 4.0], [3600.0, 100.0])
    assert dict(trace.skipped) == {"asked for no GPU": 1, "never ran, or had not ended": 1}


RESNET = "ResNet-18 (batch size 128)"


@pytest.mark.parametrize(
    "cells",
    [
        (RESNET, "python3 main.py", "--num_steps", "{steps}", "{at}", "{gpus}"),
        (RESNET, "python3 main.py", "--num_steps", "1", "{steps}", "{at}.000000", "{gpus}"),
        (RESNET, "python3 main.py", "--num_steps", "1", "{steps}", "{gpus}", "1", "-1.000000", "{at}"),
        (RESNET, "python3 main.py", "/a/b", "--num_steps", "1", "{steps}", "{gpus}", "1", "-1.0", "{at}"),
    ],
    ids=len,
)
def test_gavels_jobs_run_as_long_as_their_steps_on_v100(cells: tuple[str, ...], tmp_path: Path):
    jobs = ({"steps": 17995, "at": 5, "gpus": 1}, {"steps": 16209, "at": 65, "gpus": 8})
    trace = read(tmp_path, "\n".join("\t".join(cells).format(**job) for job in jobs) + "\n", "x.trace")
    assert (trace.format, trace.submission_s.tolist(), trace.gpus.tolist()) == ("gavel", [0.0, 60.0], [1.0, 8.0])
    assert trace.duration_s.tolist() == pytest.approx([1000.0, 100.0], rel=1e-3)


def test_pollux_and_sia_name_work_whose_time_was_measured(tmp_path: Path):
    text = "name,time,application,num_replicas,batch_size\nc-0,107.5,cifar10,1,2048\nn-1,110,ncf,1,32768\n"
    trace = read(tmp_path, text)
    assert (trace.format, trace.gpus.tolist(), trace.submission_s.tolist()) == ("pollux", [1.0, 1.0], [0.0, 2.5])
    assert trace.duration_s.tolist() == pytest.approx([4462.5, 33.0], rel=1e-3)
    unknown = f"{text}g-2,120,gpt_pmp,8,48\n"
    with refused("trace.txt row 3: duration", "no time of gpt_pmp with batch 48"):
        read(tmp_path, unknown)
    assert len(read(tmp_path, unknown, skip_invalid=True)) == 2


def test_of_alibabas_trace_of_2025_what_began_before_it_is_left_out(tmp_path: Path):
    text = """instance_sn,role,app_name,cpu_request,gpu_request,creation_time,scheduled_time,deletion_time
i0,HN,a0,12,1,,,500.0
i1,HN,a1,12,2,100.0,160.0,560.0
i2,CN,a1,64,0,100.0,100.0,200.0
i3,HN,a2,12,1,150.0,150.0,
i4,HN,a2,12,1,160.0,160.0,260.0
"""
    trace = read(tmp_path, text)
    assert (trace.format, trace.tenant) == ("dlrm", ("a1", "a2"))
    assert (trace.duration_s.tolist(), trace.start_s.tolist()) == ([400.0, 100.0], [60.0, 60.0])
    assert dict(trace.skipped) == {"asked for no GPU": 1, "never ran, or had not ended": 2}
