from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_operations.live.slurm_nodes import nodes_of
from gpusched_operations.live.slurm_state import cluster_of
from gpusched_operations.live.state import LiveJob, LiveNode
from slurm_versions import VERSIONS, in_version

DATA = Path(__file__).parent / "data"
SQUEUE, NODES = (DATA / "squeue.json").read_text("utf-8"), (DATA / "nodes.txt").read_text("utf-8")
AT = 1_795_657_761.0


def jobs_of(text: str = SQUEUE) -> dict[str, LiveJob]:
    return {job.id: job for job in cluster_of(text, NODES, AT).jobs}


def one(**fields: Any) -> LiveJob:
    """Read one job whose record has these fields."""
    record = {"job_id": 7, "job_state": "PENDING", "partition": "gpu"} | fields
    (job,) = cluster_of(json.dumps({"jobs": [record]}), NODES, AT).jobs
    return job


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_all_versions_say_the_same(version: str) -> None:
    """The records of a real cluster of 22.05, in the shapes that later versions have."""
    told = in_version(SQUEUE, version)
    assert told != json.dumps(json.loads(SQUEUE))
    assert cluster_of(told, NODES, AT) == cluster_of(SQUEUE, NODES, AT)


def test_jobs_of_a_real_cluster() -> None:
    """What sbatch was told by hand, and what squeue then wrote."""
    jobs = jobs_of()
    assert set(jobs) == {
        *map(str, (1, 19, 20, 21, 22, 23, 24, 25, 29, 30, 31, 32, 33, 34, 35, 36, 37)),
        *("26_0", "26_1", "26_2", "26_3", "27+0", "27+1"),
    }
    ended = {name: job.outcome for name, job in jobs.items() if job.phase == "ended"}
    assert ended == {"19": "completed", "20": "failed"}
    running = {name: job.holds for name, job in jobs.items() if job.phase == "running"}
    assert running == {
        "21": (("v1", 2),),
        "22": (("a1", 4),),
        "23": (("v1", 2),),
        "24": (("v2", 2),),
        "26_0": (("a1", 1),),
        "26_1": (("a1", 1),),
        "34": (("a1", 1),),
    }
    resnet = jobs["21"]
    assert (resnet.gpus, resnet.gpu_type, resnet.nodes, resnet.time_limit_s) == (2, "v100", 1, 8 * 3600.0)
    assert resnet.gpu_numbers == (("v1", (0, 1)),)
    assert resnet.can_requeue
    assert resnet.restarts == 0
    assert resnet.start_s == 1_795_657_699.0
    assert resnet.submit_s == 1_795_657_698.0
    assert (jobs["23"].gpus, jobs["24"].gpus, jobs["25"].gpus, jobs["25"].nodes) == (2, 2, 16, 2)
    assert jobs["34"].gpu_type == "A100"  # by its constraint
    assert jobs["36"].gpus == 0
    assert (jobs["29"].held, jobs["29"].reason) == ("user", "JobHeldUser")
    assert (jobs["1"].held, jobs["1"].restarts, jobs["1"].phase) == ("requeue", 1, "pending")
    assert jobs["25"].start_s is None
    assert jobs["25"].reason == "Resources"
    assert "heterogeneous" in jobs["27+1"].unfit
    assert "nodes of its own" in jobs["33"].unfit


@pytest.mark.parametrize(
    ("states", "phase", "outcome"),
    [
        (["PENDING"], "pending", ""),
        (["PENDING", "REQUEUED"], "pending", ""),
        (["REQUEUE_HOLD"], "pending", ""),
        (["RUNNING"], "running", ""),
        (["RUNNING", "CONFIGURING"], "running", ""),
        (["CONFIGURING"], "running", ""),
        (["SUSPENDED"], "running", ""),
        (["COMPLETING"], "ending", ""),
        (["CANCELLED", "COMPLETING"], "ending", "cancelled"),
        (["COMPLETED"], "ended", "completed"),
        (["FAILED"], "ended", "failed"),
        (["OUT_OF_MEMORY"], "ended", "failed"),
        (["CANCELLED"], "ended", "cancelled"),
        (["PREEMPTED"], "ended", "cancelled"),
        (["TIMEOUT"], "ended", "timeout"),
        (["NODE_FAIL"], "ended", "node-fail"),
    ],
)
def test_states(states: list[str], phase: str, outcome: str) -> None:
    job = one(job_state=states)
    assert (job.phase, job.outcome) == (phase, outcome)
    if len(states) == 1:
        assert one(job_state=states[0]).phase == phase


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"state_reason": "Priority"}, ""),
        ({"state_reason": "JobHeldUser"}, "user"),
        ({"state_reason": "JobHeldAdmin"}, "admin"),
        ({"state_reason": "JobHeldUser", "state_description": "job requeued in held state"}, "requeue"),
        ({"state_reason": "JobHoldMaxRequeue"}, "admin"),
        ({"state_reason": "JobHeldAdmin", "state_description": "launch failed requeued held"}, "admin"),
        ({"job_state": ["PENDING", "REQUEUE_HOLD"]}, "requeue"),
        ({"state_reason": "Priority", "hold": True}, "user"),
    ],
)
def test_who_holds_a_job(fields: dict[str, Any], held: str) -> None:
    assert one(**fields).held == held


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_per_node": "gres:gpu:v100:2", "node_count": 3}, 6),
        ({"tres_per_job": "gres/gpu:5", "node_count": 2}, 5),
        ({"tres_per_task": "gres/gpu:1", "tasks": {"set": True, "infinite": False, "number": 4}}, 4),
        ({"tres_per_socket": "gres/gpu:1", "sockets_per_node": 2, "node_count": 2}, 4),
        ({"tres_req_str": "cpu=8,gres/gpu=8,gres/gpu:v100=8"}, 8),
        ({}, 0),
    ],
)
def test_gpus_that_jobs_ask_for(fields: dict[str, Any], gpus: int) -> None:
    assert one(**fields).gpus == gpus


def test_gpus_of_a_job_that_is_ending_are_those_that_it_asked_for() -> None:
    """Slurm tells no details of it any more, and its GPUs are not free yet."""
    job = one(job_state=["COMPLETING"], nodes="a[1-2]", node_count=2, tres_per_node="gres/gpu:a100:4")
    assert job.holds == (("a1", 4), ("a2", 4))
    assert job.gpu_numbers == ()
    job = one(job_state=["COMPLETING"], nodes="a[1-2]", node_count=2, tres_per_job="gres/gpu:5")
    assert job.holds == (("a1", 3), ("a2", 3))  # one of them holds three


def test_details_stand_in_the_order_of_the_nodes() -> None:
    details = ["gpu:a100:4(IDX:1-4)", "gpu:v100:1(IDX:0)"]
    job = one(job_state="RUNNING", nodes="a1,v2", node_count=2, tres_per_job="gres/gpu:5", gres_detail=details)
    assert job.holds == (("a1", 4), ("v2", 1))
    assert dict(job.gpu_numbers)["a1"] == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"job_state": "SUSPENDED"}, "suspended"),
        ({"tres_per_node": "gres/gpu:a100:1,gres/gpu:v100:1"}, "several types"),
        ({"features": "ib&A100", "tres_per_node": "gres/gpu:1"}, "nodes with ib"),
        ({"required_nodes": "v1", "tres_per_node": "gres/gpu:1"}, "which nodes"),
        ({"resv_name": "course", "tres_per_node": "gres/gpu:1"}, "reservation course"),
        ({"features": "A100|V100", "tres_per_node": "gres/gpu:1"}, ""),
        ({"required_nodes": "v1", "tres_per_node": "gres/gpu:1", "comment": "gpusched epochs=1"}, ""),
    ],
)
def test_jobs_that_no_policy_can_be_told(fields: dict[str, Any], why: str) -> None:
    found = one(**fields).unfit
    assert (why in found) if why else not found


def test_an_alternative_of_features_is_one_of_several_types() -> None:
    assert one(features="A100|V100", tres_per_node="gres/gpu:1").gpu_type == "A100|V100"


def test_no_limit_is_none() -> None:
    assert one(time_limit=None).time_limit_s is None
    assert one(time_limit={"set": False, "infinite": True, "number": 0}).time_limit_s is None
    assert one(time_limit=525_600).time_limit_s is None  # what Slurm puts in its place once the job runs
    assert one(time_limit=120).time_limit_s == 7200.0


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"jobs": 3}', '{"jobs": [3]}'])
def test_what_squeue_never_writes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="squeue --json"):
        cluster_of(text, NODES, AT)


UNREADABLE = [
    {"job_state": "DANCING"},
    {"job_state": 3},
    {"gres_detail": 3},
    {"gres_detail": ["gpu:v100:999999999"]},
    {"tres_per_node": "gres:gpu:100001"},
    {"tres_req_str": "gres/gpu=999999999"},
    {"node_count": "two"},
    {"node_count": math.inf, "tasks": math.nan, "sockets_per_node": 10**400},
]


@pytest.mark.parametrize("fields", UNREADABLE)
def test_a_job_that_cannot_be_read_is_unfit_and_no_job_starts_on_its_nodes(fields: dict[str, Any]) -> None:
    record = {"job_id": 7, "job_state": "RUNNING", "partition": "gpu", "nodes": "v1"} | fields
    other = {"job_id": 8, "job_state": "RUNNING", "partition": "gpu", "nodes": "a1", "tres_per_node": "gres:gpu:2"}
    cluster = cluster_of(json.dumps({"jobs": [record, other]}), NODES, AT)
    bad, good = cluster.jobs
    assert (bad.id, bad.phase, bad.partition) == ("7", "running", "gpu")
    assert bad.unfit
    assert (good.unfit, good.holds) == ("", (("a1", 2),))
    before = {node.name: node.available for node in nodes_of(NODES)}
    assert before["v1"]
    assert {node.name: node.available for node in cluster.nodes} == before | {"v1": False}


@pytest.mark.parametrize("nodes", ["v[1-", "v[0-999999]"])
def test_where_the_nodes_of_a_job_cannot_be_read_none_of_its_partition_is_free(nodes: str) -> None:
    text = NODES.replace("Partitions=gpu", "Partitions=other", 1)
    (other,) = (node.name for node in nodes_of(text) if node.partitions == ("other",))
    record = {"job_id": 7, "job_state": "COMPLETING", "partition": "gpu", "nodes": nodes}
    cluster = cluster_of(json.dumps({"jobs": [record]}), text, AT)
    assert [node.name for node in cluster.nodes if node.available] == [other]


@pytest.mark.parametrize(
    "fields",
    [
        {"array_job_id": 7, "array_task_string": "0-200000%5"},
        {"array_job_id": 7, "array_task_string": "[x]"},
        {"time_limit": "1:00"},
        {"submit_time": math.inf},
        {"restart_cnt": math.nan},
        {"het_job_id": "7"},
        {"job_state": []},
    ],
)
def test_a_waiting_job_that_cannot_be_read_costs_nothing_but_itself(fields: dict[str, Any]) -> None:
    """Above all an array of more tasks than are told one by one."""
    record = {"job_id": 7, "job_state": "PENDING", "partition": "gpu", "state_reason": "JobHeldAdmin"} | fields
    cluster = cluster_of(json.dumps({"jobs": [record]}), NODES, AT)
    (job,) = cluster.jobs
    assert (job.id, job.phase, job.held) == ("7", "pending", "admin")
    assert job.unfit
    assert cluster.nodes == tuple(nodes_of(NODES))


@pytest.mark.parametrize("gres", ["gpu:v100:999999999", "gpu:v100:" + "9" * 5000])
def test_a_node_that_cannot_be_read_is_not_available(gres: str) -> None:
    found = node(State="IDLE", Gres=gres, ActiveFeatures="(null)")
    assert (found.gpus, found.available) == (0, False)
    assert found.state.startswith("IDLE (")


def test_nodes_of_a_real_cluster() -> None:
    nodes = {node.name: node for node in nodes_of(NODES)}
    assert nodes["a1"] == LiveNode("a1", "a100", 8, True, True, "MIXED", ("gpu",))
    assert {name: node.available for name, node in nodes.items()} == {"a1": True, "a2": True, "v1": True, "v2": False}


def test_a_line_a_node_and_json_say_the_same() -> None:
    lines = [" ".join(part.split()) for part in NODES.split("\n\n") if part.strip()]
    assert nodes_of("\n".join(lines)) == nodes_of(NODES)
    document = {
        "nodes": [
            {
                "name": node.name,
                "gres": f"gpu:{node.gpu_type}:{node.gpus}(S:0)",
                "state": node.state.split("+"),
                "partitions": list(node.partitions),
                "active_features": sorted(features),
            }
            for node, features in nodes_of(NODES).items()
        ]
    }
    assert nodes_of(json.dumps(document)) == nodes_of(NODES)


def node(**fields: str) -> LiveNode:
    text = " ".join(f"{name}={value}" for name, value in ({"NodeName": "n"} | fields).items())
    (found,) = nodes_of(text)
    return found


@pytest.mark.parametrize(
    ("state", "available", "on"),
    [
        ("IDLE", True, True),
        ("MIXED+PLANNED", True, True),
        ("ALLOCATED", True, True),
        ("IDLE+CLOUD+POWERED_DOWN", True, False),
        ("IDLE+POWERED_DOWN", True, False),
        ("IDLE+POWERING_DOWN", True, False),
        ("IDLE+POWERING_UP", True, True),
        ("idle~", True, False),
        ("DOWN*", False, True),
        ("IDLE*", False, True),
        ("DOWN+DRAIN", False, True),
        ("IDLE+DRAIN", False, True),
        ("MIXED+DRAIN", False, True),
        ("RESERVED", False, True),
        ("IDLE+RESERVED", False, True),
        ("IDLE+MAINTENANCE", False, True),
        ("FUTURE", False, True),
        ("UNKNOWN*", False, True),
        ("", False, True),
    ],
)
def test_states_of_nodes(state: str, available: bool, on: bool) -> None:
    found = node(State=state, Gres="gpu:v100:4")
    assert (found.available, found.on) == (available, on)


@pytest.mark.parametrize(
    ("gres", "features", "gpu_type", "gpus"),
    [
        ("gpu:v100:4(S:0-1)", "", "v100", 4),
        ("gpu:4", "A100,ib", "A100", 4),
        ("gpu:4", "ib", "gpu", 4),
        ("gpu:4", "A100,V100", "gpu", 4),
        ("gpu:a100:2,gpu:v100:2", "", "a100+v100", 4),
        ("(null)", "", "gpu", 0),
    ],
)
def test_gpus_of_nodes(gres: str, features: str, gpu_type: str, gpus: int) -> None:
    found = node(State="IDLE", Gres=gres, ActiveFeatures=features or "(null)")
    assert (found.gpu_type, found.gpus) == (gpu_type, gpus)


@pytest.mark.parametrize("text", ["slurm_load_node error", '{"nodes": 3}', "{"])
def test_what_scontrol_never_writes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nodes"):
        nodes_of(text)


def test_a_cluster_may_have_no_nodes() -> None:
    assert nodes_of("No nodes in the system\n") == {}
