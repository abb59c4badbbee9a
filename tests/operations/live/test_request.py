from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress import JobHistory, JobProgress
from gpusched_operations.live.request import LiveRequest, request_of
from gpusched_operations.live.slurm_state import cluster_of
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode
from gpusched_operations.service.decision import Decider, PolicyCatalogue

DATA = Path(__file__).parent / "data"
AT = 1_795_657_761.0
DECIDER = Decider(PolicyCatalogue.of("edf,edf:preemptive,sts"), b"a key")
TIMES = {"1": 3600.0, "2": 2000.0, "3": 1500.0, "4": 1000.0, "2*2": 1100.0}
RULES = JobRules.of(
    {
        "gpu_types": {"old": {"name": "V", "gpu_power_w": 1000.0, "memory_gib": 16.0, "idle_gpu_power_w": 100.0}},
        "applications": {"mine": {"seconds_per_epoch": {"V": TIMES}, "max_epochs": 10.0}},
        "defaults": {"app": "mine", "due": "+100h"},
    }
)
NODES = tuple(LiveNode(name, "old", 4, partitions=("gpu",)) for name in ("v1", "v2"))
WAITS = LiveJob("7", partition="gpu", submit_s=1000.0, gpus=2)
RUNS = replace(WAITS, id="8", phase="running", start_s=2000.0, holds=(("v1", 2),), comment="gpusched checkpoint=yes")


def request(*jobs: LiveJob, nodes: tuple[LiveNode, ...] = NODES, rules: JobRules = RULES, **more: Any) -> LiveRequest:
    return request_of(LiveCluster("slurm", 10_000.0, nodes, jobs), rules, "edf", **more)


def entries(made: LiveRequest) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in made.fields["jobs"]}


def answer(made: LiveRequest) -> dict[str, dict[str, Any]]:
    return {job["id"]: job for job in json.loads(DECIDER(json.dumps(made.fields).encode()))["jobs"]}


def test_a_real_cluster_is_accepted() -> None:
    texts = (DATA / name for name in ("squeue.json", "nodes.txt"))
    made = request_of(cluster_of(*(path.read_text("utf-8") for path in texts), AT), JobRules(), "edf")
    told = answer(made)
    assert set(told) == {"1", "21", "22", "25", "31", "37"} == set(made.jobs)
    assert told["21"]["action"] == "keep"
    assert told["1"]["action"] == "wait"  # it asks for V100: the two left are those of 21
    assert told["37"]["action"] == "start"
    assert set(made.left_out) == {
        *map(str, (23, 24, 29, 30, 32, 33, 34, 35, 36)),
        "26_0",
        "26_1",
        "26_2",
        "26_3",
        "27+0",
        "27+1",
    }
    assert "many" in made.left_out["30"]
    assert "Dependency" in made.left_out["32"]
    assert made.nodes_left_out == {"v2": "no job may start on it: MIXED+DRAIN"}
    free = {node["name"]: node["gpus"] for node in made.fields["cluster"]["nodes"]}
    assert free == {"a1": 5, "a2": 8, "v1": 2}  # 3 GPUs of a1 and 2 of v1 are those of jobs that go on as they are


def test_a_job_that_waits_and_one_that_runs() -> None:
    made = entries(request(WAITS, RUNS))
    assert made["7"]["submission_s"] == 1000.0
    assert made["7"]["due_s"] == 1000.0 + 360_000.0
    assert "running" not in made["7"]
    assert "started_s" not in made["7"]
    held = {"configuration": "Vx2", "nodes": ["v1"], "since_s": 2000.0, "ready_s": 2000.0}
    assert made["8"]["running"] == held
    assert made["8"]["started_s"] == 2000.0
    assert made["8"]["epochs_done"] == 4.0  # 8000 s of 2000 s each


def test_progress_and_what_was_seen() -> None:
    """Since its report of 3 epochs, 1000 s ago, it has done half of one; it first started long before."""
    seen = {
        "8": JobHistory(submit_s=500.0, first_start_s=600.0, since_s=4000.0, ready_s=4500.0, last_nodes=("v2", "gone"))
    }
    entry = entries(request(RUNS, progress={"8": JobProgress(3.0, 9000.0)}, seen=seen))["8"]
    assert entry["epochs_done"] == 3.5
    assert entry["submission_s"] == 500.0
    assert entry["due_s"] == 360_500.0
    assert (entry["started_s"], entry["state_on"]) == (600.0, ["v2"])
    assert (entry["running"]["since_s"], entry["running"]["ready_s"]) == (4000.0, 4500.0)


def test_a_job_that_reports_has_not_done_another_whole_epoch() -> None:
    done = {"8": JobProgress(3.0, 2000.0), "7": JobProgress(5.0, 100.0)}
    made = entries(request(WAITS, RUNS, progress=done))
    assert 3.9 < made["8"]["epochs_done"] < 4.0
    assert made["7"]["epochs_done"] == 5.0
    full = entries(request(RUNS, progress={"8": JobProgress(12.0, 9000.0)}))["8"]
    assert 9.9 < full["epochs_done"] < full["max_epochs"]


def test_gpus_of_jobs_that_are_not_told_are_not_free() -> None:
    stays = replace(RUNS, comment="")
    made = request(WAITS, stays)
    assert "may be stopped" in made.left_out["8"]
    assert [node["gpus"] for node in made.fields["cluster"]["nodes"]] == [2, 4]
    full = request(WAITS, replace(stays, holds=(("v1", 4),)))
    assert [node["name"] for node in full.fields["cluster"]["nodes"]] == ["v2"]
    assert "v1" in full.nodes_left_out
    ending = request(WAITS, replace(RUNS, phase="ending"))
    assert ending.left_out["8"] == "is ending"
    assert ending.fields["cluster"]["nodes"][0]["gpus"] == 2


def test_a_job_that_may_not_be_stopped_is_told_to_a_policy_that_stops_none() -> None:
    """It has what it holds, and no more; the job that waits for four GPUs waits for those."""
    stays, waits = replace(RUNS, comment="", holds=(("v1", 4),)), replace(WAITS, gpus=4)
    made = request(waits, stays, nodes=NODES[:1], preemptive=False)
    assert [node["gpus"] for node in made.fields["cluster"]["nodes"]] == [4]
    assert made.fields["times"][entries(made)["8"]["seconds_per_epoch"]] == {"Vx4": 1000.0}
    assert {name: job["action"] for name, job in answer(made).items()} == {"7": "wait", "8": "keep"}
    with pytest.raises(InputError, match="hold all of its GPUs"):
        request(waits, stays, nodes=NODES[:1])


def test_epochs_of_a_time_limit_are_those_of_what_a_job_holds() -> None:
    """Half of its limit is over, so that half of its epochs is; without a type it asked for the slowest GPUs, too."""
    nodes = (LiveNode("v1", "v100", 4), LiveNode("h1", "h100", 4))
    runs = replace(WAITS, phase="running", start_s=6400.0, time_limit_s=7200.0, holds=(("h1", 2),))
    entry = entries(request(runs, nodes=nodes, rules=JobRules(), preemptive=False))["7"]
    assert entry["epochs_done"] / entry["max_epochs"] == pytest.approx(0.5)


def test_the_place_of_a_state_may_be_a_node_that_is_left_out() -> None:
    """Its last node is there, and all of it is held by a job that goes on as it is."""
    full = replace(RUNS, comment="", holds=(("v1", 4),))
    made = request(WAITS, full, seen={"7": JobHistory(last_nodes=("v1", "v2"))})
    assert entries(made)["7"]["state_on"] == ["v2"]
    made = request(WAITS, full, seen={"7": JobHistory(last_nodes=("v1",))}, progress={"7": JobProgress(1.0, 3000.0)})
    assert "state_on" not in entries(made)["7"]
    assert answer(made)["7"]["action"] == "start"


def test_a_node_draws_the_same_power_when_some_of_its_gpus_are_not_told() -> None:
    """The base of the smaller node has what four GPUs draw while idle; each that is busy draws 900 W more."""
    whole, part = request(WAITS), request(WAITS, replace(RUNS, comment=""))
    assert whole.fields["cluster"]["gpu_types"][0]["idle_gpu_power_w"] == 100.0
    (made,) = part.fields["cluster"]["gpu_types"]
    assert (made["node_base_power_w"], made["gpu_power_w"], made["idle_gpu_power_w"]) == (400.0, 900.0, 0.0)
    energy = [answer(each)["7"]["expected_energy_eur"] for each in (whole, part)]
    assert energy[0] == pytest.approx(energy[1])


def test_fixed_jobs_other_partitions_and_jobs_that_did_not_opt_in() -> None:
    assert request(WAITS, RUNS, fixed=frozenset({"8"})).left_out == {"8": "not the policy's to decide"}
    assert request(WAITS, RUNS, only_opted_in=True).left_out == {"7": "did not opt in"}
    other = replace(RUNS, partition="cpu")
    assert request(WAITS, other, partition="gpu").left_out == {"8": "not in gpu"}
    nodes = (*NODES, LiveNode("x", "old", 4, partitions=("cpu",)))
    assert request(WAITS, nodes=nodes, partition="gpu").nodes_left_out == {"x": "not in gpu"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"held": "user", "reason": "JobHeldUser"}, "held"),
        ({"held": "user", "comment": "gpusched"}, ""),
        ({"waits_for": "QOSMaxGRESPerUser"}, "something else: QOSMaxGRESPerUser"),
        ({"asks": "parts of GPUs: shard:2", "gpus": 0}, "asks for parts of GPUs: shard:2"),
        ({"reason": "Resources"}, ""),
        ({"gpus": 0}, "no GPUs"),
        ({"unfit": "is suspended"}, "suspended"),
        ({"gpus": 3, "nodes": 2}, "3 on 2 nodes"),
        ({"gpus": 4, "nodes": 2}, "whole ones"),
        ({"gpus": 5}, "mine has times"),
    ],
)
def test_jobs_that_wait_are_told_unless_gpus_alone_do_not_start_them(fields: dict[str, Any], why: str) -> None:
    made = request(replace(WAITS, **fields))
    assert (why in made.left_out["7"]) if why else "7" in made.jobs
    assert ("7" in made.jobs) != ("7" in made.left_out)


@pytest.mark.parametrize(
    ("partition", "why"),
    [("gpu", "--partition gpu"), ("long", ""), ("gpu,long", ""), ("", ""), ("old", "--partition old")],
)
def test_no_job_starts_on_a_node_of_another_partition(partition: str, why: str) -> None:
    """The second node is in one partition alone; a policy knows types of GPUs, and no partitions."""
    nodes = (replace(NODES[0], partitions=("gpu", "long")), replace(NODES[1], partitions=("long",)))
    made = request(replace(WAITS, partition=partition), nodes=nodes)
    assert ("7" in made.jobs) == (not why)
    assert why in made.left_out.get("7", "")


def test_a_job_that_may_not_be_resized_keeps_its_number_of_gpus() -> None:
    comment = "gpusched checkpoint=yes gpus=1,2,4"
    free, kept = (request(replace(RUNS, comment=f"{comment} resize={word}")) for word in ("yes", "no"))
    (times,) = free.fields["times"].values()
    assert set(times) == {"Vx1", "Vx2", "Vx4"}
    (times,) = kept.fields["times"].values()
    assert set(times) == {"Vx2"}


def test_what_a_job_holds_is_offered_even_if_it_did_not_ask_for_it() -> None:
    (times,) = request(replace(RUNS, comment="gpusched checkpoint=yes gpus=1,4")).fields["times"].values()
    assert set(times) == {"Vx1", "Vx2", "Vx4"}


def test_the_clock_of_short_trials() -> None:
    rules = JobRules.of(RULES.file.model_dump(exclude_unset=True) | {"clock": {"speed": 10.0, "origin_s": 0.0}})
    made = request(WAITS, RUNS, rules=rules)
    told = entries(made)
    assert made.fields["now_s"] == 100_000.0
    assert told["7"]["submission_s"] == 10_000.0
    assert told["7"]["due_s"] == 10_000.0 + 360_000.0
    assert told["8"]["running"]["since_s"] == 20_000.0


def test_without_a_node_there_is_no_request() -> None:
    with pytest.raises(InputError, match=r"cluster\.nodes"):
        request(WAITS, nodes=(replace(NODES[0], available=False),))
    made = request(WAITS, nodes=(*NODES, LiveNode("x", "gtx", 4), LiveNode("cpu", "gpu", 0)))
    assert set(made.nodes_left_out) == {"x"}
    assert "gtx" in made.nodes_left_out["x"]


def test_a_node_whose_jobs_hold_more_than_it_has_is_left_out() -> None:
    made = request(WAITS, RUNS, replace(RUNS, id="9", holds=(("v1", 3),)))
    assert "5 of its 4 GPUs" in made.nodes_left_out["v1"]
    assert set(made.left_out) == {"8", "9"}


PHASES = st.sampled_from(["pending", "running", "ending", "ended"])
COMMENTS = st.sampled_from(
    [
        "",
        "gpusched",
        "gpusched checkpoint=yes",
        "gpusched checkpoint=yes gpus=1,2,3,4 due=2001-01-01",
        "gpusched epochs=1e12 due=+999999d",
        "gpusched epochs=0.0001 weight=1e11 restart=1e12 checkpoint=yes",
        "gpusched gpus=2*4,1 types=any checkpoint=yes resize=no",
        "gpusched app=vgg16-imagenet-global256 types=v100,a100",
        "gpusched nonsense",
    ]
)
HELD = st.lists(
    st.tuples(st.sampled_from(["v1", "v2", "a1", "gone"]), st.integers(1, 4)), max_size=2, unique_by=lambda x: x[0]
)
TIME = st.floats(0.0, 12_000.0)


@st.composite
def live_jobs(draw: st.DrawFn, name: str) -> LiveJob:
    phase = draw(PHASES)
    return LiveJob(
        name,
        partition="gpu",
        comment=draw(COMMENTS),
        phase=phase,
        submit_s=draw(TIME),
        start_s=draw(st.none() | TIME) if phase != "pending" else None,
        time_limit_s=draw(st.none() | st.floats(0.0, 1e7)),
        gpus=draw(st.integers(0, 9)),
        nodes=draw(st.integers(1, 2)),
        gpu_type=draw(st.sampled_from([None, "old", "a100", "old|a100", "gtx"])),
        holds=tuple(draw(HELD)) if phase in ("running", "ending") else (),
        restarts=draw(st.integers(0, 2)),
    )


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 6), st.sampled_from([1.0, 600.0]), st.booleans())
def test_whatever_jobs_say_the_service_takes_the_request(
    data: st.DataObject, count: int, speed: float, own: bool
) -> None:
    """One job's nonsense leaves that job out; the others are decided about."""
    jobs = [data.draw(live_jobs(str(i))) for i in range(count)]
    done = {
        job.id: JobProgress(data.draw(st.floats(0.0, 1e9)), data.draw(TIME)) for job in jobs if data.draw(st.booleans())
    }
    seen = {
        job.id: JobHistory(*(data.draw(st.none() | TIME) for _ in range(4)), ("v2", "gone"))
        for job in jobs
        if data.draw(st.booleans())
    }
    rules = (RULES if own else JobRules.of({"gpu_types": {"old": "V100"}})).file.model_dump(exclude_unset=True)
    rules |= {"clock": {"speed": speed, "origin_s": 5000.0}}
    nodes = (*NODES, LiveNode("a1", "a100", 8, partitions=("gpu",)), LiveNode("free", "old", 4, partitions=("gpu",)))
    cluster = LiveCluster("slurm", 10_000.0, nodes, tuple(jobs))
    made = request_of(cluster, JobRules.of(rules), "edf", progress=done, seen=seen)
    there = {job.id for job in jobs if job.phase != "ended"}
    assert made.jobs.keys() | made.left_out.keys() == there
    assert not made.jobs.keys() & made.left_out.keys()
    told = answer(made)
    assert told.keys() == made.jobs.keys()
    assert all(
        told[job.id]["action"] in ("keep", "change", "stop")
        for job in jobs
        if job.id in told and job.phase == "running"
    )
