from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.kubernetes_objects import objects_of
from gpusched_operations.live.kubernetes_state import kai_cluster, kueue_cluster
from gpusched_operations.live.request import request_of
from gpusched_operations.live.state import LiveCluster, LiveJob
from gpusched_operations.service.decision import Decider, PolicyCatalogue

TEXT = (Path(__file__).parent / "data" / "kueue.yaml").read_text("utf-8")
AT = datetime(2026, 11, 26, 9, tzinfo=UTC).timestamp()
HALF_PAST_EIGHT = datetime(2026, 11, 26, 8, 30, tzinfo=UTC).timestamp()


def kueue() -> tuple[LiveCluster, dict[str, LiveJob]]:
    found = kueue_cluster(objects_of(TEXT, "--kueue"), AT)
    return found, {job.id.rpartition("/")[2]: job for job in found.jobs}


def accepted(cluster: LiveCluster) -> tuple[dict[str, str], dict[str, str]]:
    """Return the action for each job that is told, and why others are not."""
    made = request_of(cluster, JobRules(), "edf")
    answer = json.loads(Decider(PolicyCatalogue.of("edf"), b"a key")(json.dumps(made.fields).encode()))
    return {job["id"]: job["action"] for job in answer["jobs"]}, made.left_out


def test_workloads_of_kueue() -> None:
    _, jobs = kueue()
    assert {name: job.phase for name, job in jobs.items()} == {
        "job-resnet-1": "running",
        "job-bert-2": "pending",
        "job-off-3": "pending",
        "job-over-4": "ended",
        "job-wide-5": "running",
        "job-where-6": "running",
        "notebook": "running",
    }
    resnet, bert, wide = jobs["job-resnet-1"], jobs["job-bert-2"], jobs["job-wide-5"]
    assert resnet.holds == (("n1", 2),)
    assert resnet.comment == "gpusched app=resnet50-imagenet-bs64 epochs=90 gpus=1,2,4 checkpoint=yes"
    assert (resnet.name, resnet.account, resnet.partition, resnet.script) == (
        "resnet",
        "vision",
        "research",
        "registry/resnet:1",
    )
    assert resnet.start_s == datetime(2026, 11, 26, 8, 0, 6, tzinfo=UTC).timestamp()
    assert (bert.gpus, bert.gpu_type, bert.time_limit_s) == (4, "Tesla-V100-SXM2-16GB", 7200)
    assert "insufficient unused quota" in bert.reason
    assert jobs["job-off-3"].held == "user"
    assert jobs["job-off-3"].gpu_type == "NVIDIA-A100-SXM4-40GB|Tesla-V100-SXM2-16GB"
    assert (wide.gpus, wide.nodes, wide.holds, wide.submit_s) == (4, 2, (("n1", 4),), HALF_PAST_EIGHT)
    assert jobs["job-over-4"].outcome == "failed"
    assert "tell its nodes" in jobs["job-where-6"].unfit
    assert "no workload" in jobs["notebook"].unfit


def test_nodes_of_kueue() -> None:
    cluster, _ = kueue()
    assert [(node.name, node.gpus, node.available, node.partitions) for node in cluster.nodes] == [
        ("n1", 8, True, ("research",)),
        ("n2", 4, True, ("research",)),
        ("n3", 4, False, ("research",)),
    ]


def test_the_service_takes_a_cluster_of_kueue() -> None:
    told, left_out = accepted(kueue()[0])
    assert told == {"vision/job-resnet-1": "keep"}
    assert "held" in left_out["vision/job-off-3"]
    assert "hold the GPUs" in left_out["vision/job-bert-2"]  # one of the four of n2 is that of another pod


def test_many_documents_and_json_say_the_same() -> None:
    objects = objects_of(TEXT, "--kueue")
    plain = json.loads(json.dumps(objects, default=datetime.isoformat))
    as_json = json.dumps({"kind": "List", "items": plain})
    documents = "\n---\n".join(json.dumps(each) for each in plain)
    expected = kueue_cluster(objects, AT)
    assert kueue_cluster(objects_of(as_json, ""), AT) == expected
    assert kueue_cluster(objects_of("---\n" + documents, ""), AT) == expected


@pytest.mark.parametrize("text", ["a: [", "{", "- 3", "kind: List\nitems: 3", "kind: Node\nmetadata: {name: n}"])
def test_texts_that_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--kueue"):
        kueue_cluster(objects_of(text, "--kueue"), AT)


def pod(name: str, group: str | None, gpus: int, node: str | None = None, **more: Any) -> dict[str, Any]:
    annotations = {"pod-group-name": group} if group else {}
    return {
        "metadata": {"name": name, "namespace": "lab", "annotations": annotations | more.pop("annotations", {})},
        "spec": {
            "nodeName": node,
            "containers": [{"image": "i", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}],
        },
        "status": {"phase": "Running" if node else "Pending"} | more,
    }


def group(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": "2026-11-26T08:30:00Z"},
        "spec": {"minMember": 1, "queue": "q"},
        "status": status,
    }


def snapshot() -> bytes:
    node = {
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    over = {
        "type": "UnschedulableOnNodePool",
        "reasons": [{"reason": "OverLimit", "message": "queue q is over its limit"}],
    }
    running = group("runs")
    running["metadata"]["annotations"] = {"gpusched": "app=resnet50-imagenet-bs64 checkpoint=yes"}
    raw = {
        "nodes": [node],
        "queues": [{"metadata": {"name": "q"}}],
        "podGroups": [
            running,
            group("waits", schedulingConditions=[over]),
            group("part"),
            group("bound"),
            group("over"),
        ],
        "pods": [
            pod("runs-0", "runs", 2, "n1", startTime="2026-11-26T08:31:00Z"),
            pod("waits-0", "waits", 1),
            pod("part-0", "part", 0, "n1", annotations={"gpu-fraction": "0.5"}),
            pod("bound-0", "bound", 1),
            pod("over-0", "over", 1, "n1") | {"status": {"phase": "Succeeded"}},
            pod("alone", None, 1, "n1"),
        ],
        "bindRequests": [{"metadata": {"namespace": "lab"}, "spec": {"podName": "bound-0", "selectedNode": "n1"}}],
    }
    return json.dumps({"config": {}, "rawObjects": raw}).encode()


def zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("snapshot.json", data)
    return packed.getvalue()


def test_a_snapshot_of_kai() -> None:
    cluster = kai_cluster(zipped(snapshot()), AT)
    jobs = {job.id: job for job in cluster.jobs}
    phases = {name: job.phase for name, job in jobs.items()}
    assert phases == {
        "lab/runs": "running",
        "lab/waits": "pending",
        "lab/part": "running",
        "lab/bound": "running",
        "lab/over": "ended",
        "lab/alone": "running",
    }
    assert jobs["lab/runs"].holds == (("n1", 2),)
    assert jobs["lab/runs"].start_s == HALF_PAST_EIGHT + 60.0
    assert jobs["lab/waits"].reason == "queue q is over its limit"
    assert (jobs["lab/part"].holds, "gpu-fraction" in jobs["lab/part"].unfit) == ((("n1", 1),), True)
    assert cluster.nodes[0].partitions == ("q",)
    told, left_out = accepted(cluster)
    assert told == {"lab/runs": "keep", "lab/waits": "start"}
    assert set(left_out) == {"lab/part", "lab/bound", "lab/alone"}


def test_a_snapshot_may_be_plain_or_packed() -> None:
    data = snapshot()
    assert kai_cluster(data, AT) == kai_cluster(zipped(data), AT) == kai_cluster(gzip.compress(data), AT)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04nothing", b"\x1f\x8bnothing", b"{}", b'{"rawObjects": {"nodes": []}}', zipped(b"x")]
)
def test_files_that_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="--kai"):
        kai_cluster(data, AT)
