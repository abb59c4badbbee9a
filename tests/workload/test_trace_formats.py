"""Traces as they are published, in tiny files with their columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.workload import Scenario, detect_format, read_trace, scenario_for_trace
from gpusched_env.workload.traces import FORMATS
from refusals import refused

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,ua,va,4,16,1,COMPLETED,2020-04-02 00:00:00,2020-04-02 00:01:00,2020-04-02 00:11:00,600,60
2,ub,va,0,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:11:00,660,0
3,ub,vb,1,1,1,CANCELLED,2020-04-01 00:00:30,None,2020-04-01 00:10:00,0,570
4,ub,vb,1,1,1,FAILED,2020-04-01 00:00:40,2020-04-01 00:00:40,2020-04-01 00:00:50,10,0
"""
SEREN = """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
7,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0
8,u1,1,0,128,Other,COMPLETED,2023-03-01 00:18:23+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,31,0.0
9,u2,2,16,128,SFT,COMPLETED,2023-02-28 16:18:32+00:00,2023-02-28 16:18:32+00:00,2023-02-28 16:20:32+00:00,120,0,1.0
"""
KALOS = """job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,\
end_time,fail_time,stop_time,duration,queue,gpu_time
d1,u1,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:26+00:00,\
2023-05-17 11:01:26+00:00,,18,10.0,1152.0
"""
PAI_HEADER = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
PAI = """a,tensorflow,1.0,Terminated,1000.0,1100.0,600.0,29.3,25.0,MISC
a,ps,2.0,Terminated,1000.0,1100.0,600.0,29.3,,
b,worker,3.0,Failed,500.0,600.0,600.0,29.3,50.0,T4
c,worker,2.0,Terminated,600.0,650.0,600.0,29.3,100.0,V100
d,worker,1.0,Running,700.0,,600.0,29.3,100.0,V100
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,460,,LS,Running,100,300,150
p1,12000,16384,2,1000,,BE,Succeeded,90,190,90
p2,12000,16384,0,0,,BE,Succeeded,90,190,90
p3,12000,16384,1,1000,,BE,Pending,95,195,
"""
ITP = "job_id,submission_time,duration,num_gpu\nx,60,100,4\ny,20,50,1\n"
_SLURM = """JobID|JobName|User|Account|Partition|Submit|Start|End|Elapsed|AllocTRES|State
10|a,b|ann|chem|gpu|DAYT12:00:00|DAYT12:05:00|2024-02-01T13:05:01|1-01:00:01|cpu=8,gres/gpu:a100=4,gres/gpu=4|COMPLETED
10.batch|batch||chem||DAYT12:05:00|DAYT12:05:00|2024-02-01T13:05:01|1-01:00:01|cpu=8,gres/gpu=4|COMPLETED
11_3|"c|bob|phys|gpu|DAYT11:00:00|DAYT11:00:00|DAYT11:02:05|02:05|gres/gpu:v100=1,gres/gpu:a100=1|CANCELLED by 7
12|cpu|bob|phys|cpu|DAYT11:00:00|DAYT11:00:00|DAYT11:01:00|00:01:00|cpu=8|COMPLETED
13|queue|bob|phys|gpu|DAYT11:30:00|Unknown|Unknown|00:00:00||PENDING
14|now|bob|phys|gpu|DAYT11:30:00|DAYT11:40:00|Unknown|00:05:00|gres/gpu=1|RUNNING
"""
SACCT = _SLURM.replace("DAY", "2024-01-31")
GPUS = [f"gpu{i}" for i in range(8)]
PHILLY = [
    {
        "status": "Pass", "vc": "v1", "jobid": "application_1", "user": "u1", "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:12:19",
             "detail": [{"ip": "m1", "gpus": GPUS}]},
            {"start_time": "2017-10-07 01:13:00", "end_time": "2017-10-07 01:13:30",
             "detail": [{"ip": "m1", "gpus": GPUS}, {"ip": "m2", "gpus": GPUS}]},
        ],
    },
    {
        "status": "Killed", "vc": "v2", "jobid": "application_2", "user": "u2", "submitted_time": "2017-10-07 01:00:00",
        "attempts": [{"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 01:01:00",
                      "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}],
    },
    {"status": "Killed", "vc": "v2", "jobid": "3", "user": "u2", "submitted_time": "2017-10-07 01:00:00",
     "attempts": []},
    {
        "status": "Failed", "vc": "v2", "jobid": "4", "user": "u2", "submitted_time": "2017-10-07 01:00:00",
        "attempts": [{"start_time": "2017-10-07 01:00:00", "end_time": None, "detail": [{"ip": "m", "gpus": GPUS}]}],
    },
]  # fmt: skip


def write(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_helios_is_read_as_published_and_what_needs_no_gpu_or_never_ran_is_counted(tmp_path):
    path = write(tmp_path, HELIOS)
    assert detect_format(path) == "helios"
    trace = read_trace(path, "helios")
    assert trace.submission_s.tolist() == [0.0, 86360.0]
    assert trace.start_s.tolist() == [0.0, 86420.0]
    assert trace.duration_s.tolist() == [10.0, 600.0]
    assert trace.gpus.tolist() == [1.0, 4.0]
    assert (trace.tenant, trace.user) == (("vb", "va"), ("ub", "ua"))
    assert trace.skipped == (("asked for no GPU", 1), ("never ran, or had not ended", 1))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_cells_may_be_separated_by_other_signs_than_commas(separator, tmp_path):
    path = write(tmp_path, HELIOS.replace(",", separator))
    assert detect_format(path) == "helios"
    assert read_trace(path, "helios").gpus.tolist() == [1.0, 4.0]


def test_what_sacct_was_not_asked_for_is_told(tmp_path):
    path = write(tmp_path, "JobID|Submit|Start\n1|2020-01-01T00:00:00|Unknown\n")
    with refused("trace.csv: no column for", "duration_s, gpus", "sacct -P -a -o JobID,Submit"):
        read_trace(path, "sacct")


def test_acme_is_read_with_its_time_zones(tmp_path):
    path = write(tmp_path, SEREN)
    assert detect_format(path) == "acme"
    trace = read_trace(path, "acme")
    assert trace.submission_s.tolist() == [0.0, 10.0]
    assert trace.start_s.tolist() == [32.0, 10.0]
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([8.0, 16.0], [117.0, 120.0])
    assert trace.skipped == (("asked for no GPU", 1),)


def test_acmes_other_cluster_has_further_columns(tmp_path):
    path = write(tmp_path, KALOS)
    assert detect_format(path) == "acme"
    trace = read_trace(path, "acme")
    assert (trace.gpus.tolist(), trace.duration_s.tolist(), trace.start_s.tolist()) == ([64.0], [18.0], [10.0])


@pytest.mark.parametrize("header", [PAI_HEADER, ""])
def test_pai_counts_percents_of_all_instances_with_a_header_and_without(header, tmp_path):
    """A quarter is a share; three halves are two whole GPUs, twice a whole one too; a server asks for none."""
    path = write(tmp_path, header + PAI)
    assert detect_format(path) == "pai"
    trace = read_trace(path, "pai")
    assert trace.gpus.tolist() == [2.0, 2.0, 0.25]
    assert trace.duration_s.tolist() == [100.0, 50.0, 100.0]
    assert trace.submission_s.tolist() == trace.start_s.tolist() == [0.0, 100.0, 500.0]
    assert trace.skipped == (("asked for no GPU", 1), ("never ran, or had not ended", 1))


def test_pai_counts_an_instance_where_a_task_says_no_number(tmp_path):
    trace = read_trace(write(tmp_path, PAI_HEADER + PAI.replace("worker,2.0", "worker,")), "pai")
    assert trace.gpus.tolist() == [2.0, 1.0, 0.25]
    assert trace.skipped == (("asked for no GPU", 1), ("never ran, or had not ended", 1))


def test_openb_counts_thousandths_and_runs_from_scheduling_to_deletion(tmp_path):
    path = write(tmp_path, OPENB)
    assert detect_format(path) == "openb"
    trace = read_trace(path, "openb")
    assert trace.gpus.tolist() == [2.0, 0.46]
    assert (trace.submission_s.tolist(), trace.start_s.tolist()) == ([0.0, 10.0], [0.0, 60.0])
    assert trace.duration_s.tolist() == [100.0, 150.0]
    assert trace.skipped == (("asked for no GPU", 1), ("never ran, or had not ended", 1))


def test_itp_is_sorted_and_has_no_start_times(tmp_path):
    path = write(tmp_path, ITP)
    assert detect_format(path) == "itp"
    trace = read_trace(path, "itp")
    assert (trace.submission_s.tolist(), trace.duration_s.tolist()) == ([0.0, 40.0], [50.0, 100.0])
    assert (trace.gpus.tolist(), trace.start_s, trace.skipped) == ([1.0, 4.0], None, ())


def test_sacct_leaves_steps_out_and_reads_elapsed_times_and_typed_gpus(tmp_path):
    path = write(tmp_path, SACCT)
    assert detect_format(path) == "sacct"
    trace = read_trace(path, "sacct")
    assert trace.submission_s.tolist() == [0.0, 3600.0]
    assert trace.start_s.tolist() == [0.0, 3900.0]
    assert trace.duration_s.tolist() == [125.0, 90001.0]
    assert trace.gpus.tolist() == [2.0, 4.0]
    assert (trace.tenant, trace.user) == (("phys", "chem"), ("bob", "ann"))
    assert trace.skipped == (("asked for no GPU", 1), ("never ran, or had not ended", 2))


@pytest.mark.parametrize(
    ("columns", "row", "gpus"),
    [
        ("ReqTRES", "cpu=1,gres/gpu=2", 2),
        ("AllocGRES", "gpu:3", 3),
        ("ReqGRES", "gpu:tesla:2,gpu:a100:1", 3),
        ("ReqGRES", "gpu", 1),
        ("ReqGRES", "gpu:2080ti", 1),
        ("ReqGRES", "craynetwork:4,gres:gpu:a100", 1),
        ("ReqGRES", "gpu:a100:2(IDX:0,1),gpu", 3),
        ("AllocTRES|ReqTRES", "|gres/gpu=5", 5),
        ("ReqGRES", "gpu:a100:2,gpu:a100_3g.20gb:1(IDX:0)", 3),  # 2 and 3/7
        ("AllocGRES", "gpu:a100_1g.5gb:7", 1),
    ],
)
def test_sacct_finds_gpus_in_every_column_that_may_hold_them(columns, row, gpus, tmp_path):
    text = f"JobID|Submit|Start|End|ElapsedRaw|{columns}\n1|2024-01-31T12:00:00|2024-01-31T12:00:00|"
    trace = read_trace(write(tmp_path, f"{text}2024-01-31T12:00:07|7|{row}\n"), "sacct")
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([gpus], [7.0])


ATTEMPTS = """JobID|User|Submit|Start|End|ElapsedRaw|AllocTRES|State
1|ann|DAYT08:00:00|DAYT08:00:00|DAYT08:01:40|100|gres/gpu=1|REQUEUED
1|ann|DAYT08:02:00|DAYT08:03:00|DAYT08:08:00|300|gres/gpu=1|COMPLETED
1|bob|DAYT09:00:00|DAYT09:00:00|DAYT09:00:50|50|gres/gpu=1|COMPLETED
2|bob|DAYT09:00:00|DAYT09:00:00|DAYT09:00:00|0|gres/gpu=1|CANCELLED
""".replace("DAY", "2026-09-21")


def test_of_a_job_that_slurm_queued_again_the_last_attempt_counts_and_a_job_of_no_time_has_its_own_reason(tmp_path):
    trace = read_trace(write(tmp_path, ATTEMPTS), "sacct")
    assert (trace.user, trace.duration_s.tolist()) == (("ann", "bob"), [300.0, 50.0])
    assert trace.skipped == (("an earlier attempt of a job that was queued again", 1), ("ran for 0 s", 1))


DATES = "JobID|Submit|Start|End|AllocTRES\n1|DAY 08:15:00|DAY 08:16:00|DAY 09:16:00|gres/gpu=2\n2|DAY 09:00|||\n"


def test_dates_are_read_with_dots_too(tmp_path):
    trace = read_trace(write(tmp_path, DATES.replace("DAY", "21.09.2026")), "sacct")
    assert (trace.duration_s.tolist(), trace.start_s.tolist()) == ([3600.0], [60.0])
    assert trace.skipped == (("never ran, or had not ended", 1),)


def test_a_date_in_another_form_is_an_error_with_its_row_and_no_job_that_never_ran(tmp_path):
    with refused("trace.csv row 1: Start", "09/21/2026 08:16:00", "09.10.2017 07:01:55"):
        read_trace(write(tmp_path, DATES.replace("DAY", "09/21/2026")), "sacct")


def test_a_file_in_another_encoding_is_read_where_that_is_said(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(HELIOS.replace("va", "jürgen").replace("job_id", "prüf").encode("cp1252"))
    with refused("jobs.csv", allowed="--encoding cp1252"):
        read_trace(path, "helios")
    assert read_trace(path, "helios", encoding="cp1252").tenant == ("vb", "jürgen")
    assert detect_format(path, "cp1252") == "helios"
    with refused("trace.encoding", "nonsense"):
        Scenario(trace={"path": str(path), "encoding": "nonsense"})


@pytest.mark.parametrize("zipped", [False, True])
def test_microsofts_json_adds_up_attempts_and_counts_the_gpus_of_all_machines(zipped, tmp_path):
    """10 s and 30 s of two attempts, from the first start; one never ran, one was still running."""
    path = tmp_path / ("cluster_job_log.gz" if zipped else "cluster_job_log")
    text = json.dumps(PHILLY).encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert detect_format(path) == "philly"
    trace = read_trace(path, "philly")
    assert (trace.submission_s.tolist(), trace.start_s.tolist()) == ([0.0, 699.0], [0.0, 729.0])
    assert (trace.duration_s.tolist(), trace.gpus.tolist()) == ([60.0, 40.0], [1.0, 16.0])
    assert (trace.tenant, trace.user) == (("v2", "v1"), ("u2", "u1"))
    assert trace.skipped == (("never ran, or had not ended", 2),)
    assert len(read_trace(path, "philly", where=["status = Pass"])) == 1


def test_an_attempt_of_microsofts_that_never_began_does_not_undo_those_that_ran(tmp_path):
    never = {"start_time": None, "end_time": None, "detail": []}
    jobs = [PHILLY[0] | {"attempts": [*PHILLY[0]["attempts"], never]}]
    trace = read_trace(write(tmp_path, json.dumps(jobs), "cluster_job_log"), "philly")
    assert (trace.duration_s.tolist(), trace.gpus.tolist(), trace.skipped) == ([40.0], [16.0], ())


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[1, 2]", "cluster_job_log"),
        ('{"a": 1}', "cluster_job_log"),
        ('[{"attempts": 3}]', "cluster_job_log job 1"),
        ("[", "cluster_job_log"),
        ('[{"attempts": [], "vc": 1}]', "cluster_job_log job 1"),
    ],
)
def test_json_that_is_no_list_of_jobs_is_refused(text, field, tmp_path):
    with refused(field):
        read_trace(write(tmp_path, text, "cluster_job_log"), "philly")


def test_an_unknown_format_is_refused_before_the_file_is_looked_at(tmp_path):
    for read in (lambda: read_trace(tmp_path / "none", "nonsense"),
                 lambda: scenario_for_trace(tmp_path / "none", trace_format="nonsense")):  # fmt: skip
        with refused("trace.format", "nonsense", f"one of {', '.join(FORMATS)}"):
            read()


def test_columns_that_are_named_win_over_the_formats(tmp_path):
    trace = read_trace(write(tmp_path, HELIOS), "helios", {"gpus": "cpu_num", "timestamp": "end_time"})
    assert trace.gpus.tolist() == [1.0, 16.0, 16.0]
    assert trace.submission_s.tolist() == [0.0, 610.0, 87_010.0]


def test_nothing_is_left_out_where_that_is_not_wanted(tmp_path):
    with refused("trace.csv row 3: start_time", "None", "--skip-invalid"):
        read_trace(write(tmp_path, HELIOS), "helios", skip_invalid=False)


DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


@pytest.mark.skipif(not (DATA / "openb_2023").is_dir(), reason="Alibaba's trace of 2023 is not beside the repository")
def test_the_whole_openb_trace_is_read():
    path = DATA / "openb_2023" / "openb_pod_list_default.csv"
    assert detect_format(path) == "openb"
    trace = read_trace(path, "openb")
    assert len(trace) + sum(count for _, count in trace.skipped) == 8_152
    shares = float(np.mean(trace.gpus < 1))
    assert 0.3 < shares < 0.6
    assert np.all(trace.start_s >= trace.submission_s)
