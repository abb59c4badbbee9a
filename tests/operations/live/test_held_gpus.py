"""A driver never starts a job on GPUs that somebody holds: drawn queues with jobs of others beside."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from gpusched_reproductions.conform.drive import OtherJob, drawn_queue, starts_on_held, without
from made_up_drives import ELASTIC, driver
from made_up_slurm import MadeUpJob, MadeUpSlurm

A_TEST = 25
"""Queues of one test."""


def as_much_as_offered(fields):
    """Start every job that waits, on as many GPUs as the request still has."""
    free = {node["name"]: node["gpus"] for node in fields["cluster"]["nodes"]}
    types = {node["name"]: node["gpu_type"] for node in fields["cluster"]["nodes"]}
    for running in (job["running"] for job in fields["jobs"] if job.get("running")):
        free[running["nodes"][0]] -= int(running["configuration"].rpartition("x")[2])
    jobs = []
    for job in fields["jobs"]:
        names = [] if job.get("running") else list(fields["times"][job["seconds_per_epoch"]])
        fits = [
            (int(name.rpartition("x")[2]), name, node)
            for name in names
            for node in free
            if name.startswith(types[node]) and free[node] >= int(name.rpartition("x")[2])
        ]
        gpus, name, node = max(fits, default=(0, "", ""))
        action = "start" if fits else "keep" if job.get("running") else "wait"
        if fits:
            free[node] -= gpus
        jobs.append({"id": job["id"], "action": action, "configuration": name, "nodes": [node]})
    return {"jobs": jobs, "memory": None, "ask_again_at_s": None}


def other_job(number: int, of: OtherJob) -> MadeUpJob:
    tres = f"gres:shard:{of.shares}" if of.shares else f"gres:gpu:{of.gpus}"
    return MadeUpJob(number, tres=tres, work_s=10.0 * of.length_s, hidden=of.hidden, alone=of.alone)


def drive_queue(number: int, folder: Path) -> MadeUpSlurm:
    slurm = MadeUpSlurm()
    made, _ = driver(slurm, folder, as_much_as_offered)
    for turn in drawn_queue(number):
        for other in turn.others:
            slurm.submit(other_job(1000 + len(slurm.jobs), other))
        slurm.pause(1.0)
        for length_s in turn.own_s:
            slurm.submit(MadeUpJob(1 + len(slurm.jobs), ELASTIC, work_s=20.0 * length_s), held=True)
        made.round()
        slurm.pause(10.0)
    return slurm


@pytest.mark.parametrize("first", range(0, 200, A_TEST))
def test_no_job_is_started_on_gpus_that_somebody_holds(first: int, tmp_path: Path) -> None:
    """In 200 drawn queues: beside hidden jobs, such as have their node alone, and shares of GPUs, that come and go."""
    started = 0
    for number in range(first, first + A_TEST):
        slurm = drive_queue(number, tmp_path / f"{number}")
        assert slurm.overbooked == [], f"queue {number}"
        started += sum(bool(job.runs) for job in slurm.jobs.values() if job.comment == ELASTIC)
    assert started > A_TEST


def shown(job: int, state: str, start: str = "2027-01-15T08:00:00", **fields: str) -> str:
    """Return a line of `scontrol show job --details --oneliner`, with the fields that count."""
    asked = {"ReqNodeList": "(null)", "NodeList": "", "OverSubscribe": "OK", "TresPerNode": "gres:gpu:2"} | fields
    where = f" Nodes={asked['NodeList']} CPU_IDs=0 Mem=0 GRES={asked.pop('gres')}" if "gres" in asked else ""
    words = " ".join(f"{name}={value}" for name, value in asked.items())
    return f"JobId={job} JobState={state} StartTime={start}{where} {words}\n"


GPUS = {"v100-1": 4, "v100-2": 4}
NOON_S = datetime.fromisoformat("2027-01-15T12:00:00").timestamp()
OURS = shown(9, "PENDING", "Unknown", ReqNodeList="v100-1")


@pytest.mark.parametrize(
    ("others", "held"),
    [
        (shown(1, "RUNNING", NodeList="v100-1", gres="gpu:v100:2(IDX:0,3)"), 0),
        (shown(1, "RUNNING", NodeList="v100-1", gres="gpu:v100:3(IDX:0-2)"), 1),
        (shown(1, "COMPLETING", NodeList="v100-1", gres="gpu:v100:4(IDX:0-3)"), 2),
        (shown(1, "RUNNING", NodeList="v100-2", gres="gpu:v100:4(IDX:0-3)"), 0),
        (shown(1, "COMPLETED", NodeList="v100-1", gres="gpu:v100:4(IDX:0-3)"), 0),
        (shown(1, "RUNNING", "2027-01-15T12:00:00", NodeList="v100-1", gres="gpu:v100:4(IDX:0-3)"), 0),
        (shown(1, "RUNNING", NodeList="v100-1", gres="gpu:v100:1(IDX:0)", OverSubscribe="NO"), 2),
        (
            shown(1, "RUNNING", NodeList="v100-1", gres="gpu:v100:1(IDX:0),shard:1(IDX:1)")
            + shown(2, "RUNNING", NodeList="v100-1", gres="shard:3(IDX:1)"),
            0,
        ),
        (
            shown(1, "RUNNING", NodeList="v100-1", gres="shard:1(IDX:0)")
            + shown(2, "RUNNING", NodeList="v100-1", gres="gpu:v100:2(IDX:1-2)"),
            1,
        ),
    ],
)
def test_starts_on_held_gpus_are_found_in_what_slurm_shows(others: str, held: int) -> None:
    told = [f"{held} of the 2 GPUs of job 9 on v100-1"] if held else []
    assert starts_on_held(others + OURS, ["9"], GPUS, NOON_S) == (1, told)


def test_jobs_that_are_released_together_count_together_and_those_given_back_do_not() -> None:
    both = OURS + shown(8, "PENDING", "Unknown", ReqNodeList="v100-1", TresPerNode="gres:gpu:v100:4")
    assert starts_on_held(both, ["9", "8"], GPUS, NOON_S) == (2, ["2 of the 4 GPUs of job 8 on v100-1"])
    assert starts_on_held(shown(7, "PENDING", "Unknown"), ["7"], GPUS, NOON_S) == (0, [])


def test_hidden_jobs_are_in_no_list() -> None:
    assert without({"2"}, "1 R None\n2 PD Resources\n") == "1 R None\n"
    assert json.loads(without({"2"}, '{"jobs": [{"job_id": 1}, {"job_id": 2}]}')) == {"jobs": [{"job_id": 1}]}
