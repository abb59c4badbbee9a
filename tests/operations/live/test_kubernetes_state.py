from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.kai_state import kai_cluster
from gpusched_operations.live.kubernetes_objects import objects_of
from gpusched_operations.live.kueue_state import kueue_cluster
from gpusched_operations.live.occupancy import occupancy
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
    assert (wide.gpus, wide.nodes, wide.holds, wide.submit_s) == (4, 1, (("n1", 4),), HALF_PAST_EIGHT)
    assert jobs["job-over-4"].outcome == "failed"
    assert "name its nodes" in jobs["job-where-6"].unfit
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
    assert "quotas are not modelled" in left_out["vision/job-bert-2"]
    assert "insufficient unused quota" in left_out["vision/job-bert-2"]


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


def test_a_file_without_what_is_needed_is_refused_with_what_is_there() -> None:
    allowed = "allowed: objects of kind Workload, ClusterQueue or Pod among them"
    for text, there in (("", "no objects"), ("kind: Node", "Node")):
        with pytest.raises(InputError, match=f"{there}'; {allowed}"):
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
    assert (jobs["lab/part"].holds, jobs["lab/part"].parts) == ((), (("n1", "lab/part-0 0", 1),))
    assert jobs["lab/part"].asks == "parts of GPUs: gpu-fraction = 0.5"
    assert cluster.nodes[0].partitions == ("q",)
    told, left_out = accepted(cluster)
    assert told == {"lab/runs": "keep"}
    assert set(left_out) == {"lab/waits", "lab/part", "lab/bound", "lab/alone"}
    assert "a quota, and quotas are not modelled: OverLimit" in left_out["lab/waits"]


def test_a_snapshot_may_be_plain_or_packed() -> None:
    data = snapshot()
    assert kai_cluster(data, AT) == kai_cluster(zipped(data), AT) == kai_cluster(gzip.compress(data), AT)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04nothing", b"\x1f\x8bnothing", b"{}", b'{"rawObjects": {"nodes": []}}', zipped(b"x")]
)
def test_files_that_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="--kai"):
        kai_cluster(data, AT)


A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}


def a_node(name: str, has: dict[str, Any], **labels: Any) -> dict[str, Any]:
    labels = A100 | {f"nvidia.com/gpu.{key}": str(value) for key, value in labels.items()}
    ready = {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": ready}


def a_workload(name: str, asks: dict[str, Any], count: int = 1, **more: Any) -> dict[str, Any]:
    """A workload that waits, or where `more` has an admission runs."""
    waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": more.pop("message", "waits")}
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-11-26T08:30:00Z"}
    spec = {"containers": [{"name": "c", "resources": {"requests": asks}}]} | more.pop("spec", {})
    status = {"conditions": [admitted if "admission" in more else waits]} | more
    pod_set = {"name": "main", "count": count, "template": {"spec": spec}}
    metadata = {"name": name, "namespace": "lab"}
    return {
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": "q", "podSets": [pod_set]},
        "status": status,
    }


def a_pod(name: str, asks: dict[str, Any], node: str, workload: str = "", **labels: str) -> dict[str, Any]:
    annotations = {"kueue.x-k8s.io/workload": workload} if workload else {}
    metadata = {"name": name, "namespace": "lab", "annotations": annotations, "labels": labels}
    spec = {"nodeName": node, "containers": [{"resources": {"requests": asks}}]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def held(cluster: LiveCluster) -> dict[str, tuple[int, int]]:
    return {name: (each.held, each.unseen) for name, each in occupancy(cluster).items()}


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("has", "labels", "gpus", "parts"),
    [
        ({GPU: "8"}, {}, 8, ()),
        ({GPU: 8}, {"count": 8, "replicas": 1, "sharing-strategy": "none"}, 8, ()),
        ({GPU: "7"}, {"count": 8}, 7, ()),  # one is broken
        ({GPU: "12"}, {"count": 1, "replicas": 12, "product": "NVIDIA-L4-SHARED"}, 1, (("shares of 1 GPUs", 12),)),
        ({GPU: "16"}, {"replicas": 4, "sharing-strategy": "time-slicing"}, 4, (("shares of 4 GPUs", 16),)),
        ({GPU: "40"}, {"count": 4}, 4, (("shares of 4 GPUs", 40),)),
        ({"nvidia.com/gpu.shared": "8"}, {"count": 2}, 2, (("shares of 2 GPUs", 8),)),
        ({GPU: "8"}, {"sharing-strategy": "mps"}, 0, (("shares of unknown GPUs", 8),)),
        ({GPU: "4", "nvidia.com/mig-1g.5gb": "28"}, {"count": 8}, 4, (("nvidia.com/mig-1g.5gb", 28),)),
        ({GPU: "14"}, {"count": 14, "product": "A100-MIG-3g.20gb"}, 0, (("A100-MIG-3g.20gb", 14),)),
        ({"google.com/tpu": "4", "rdma/hca": "1", "cpu": "96"}, {}, 0, (("google.com/tpu", 4),)),
        ({"cpu": "96"}, {"count": 8}, 8, ()),  # none of them is offered
    ],
)
def test_what_nodes_have_by_what_they_offer_and_their_labels(
    has: dict[str, Any], labels: dict[str, Any], gpus: int, parts: tuple[tuple[str, int], ...]
) -> None:
    nodes = [a_node("n1", has, **labels), a_node("n2", {GPU: "1"})]
    node = kueue_cluster([*nodes, a_workload("w", {GPU: 1})], AT).nodes[0]
    assert (node.gpus, node.parts) == (gpus, parts)
    assert node.available == ("mps" not in labels.values() and (bool(parts) or "cpu" not in has))


GKE = "cloud.google.com/gke-"


@pytest.mark.parametrize(
    ("resource", "many", "labels", "gpus", "parts"),
    [
        (GPU, 56, {f"{GKE}accelerator": "nvidia-tesla-a100", f"{GKE}gpu-partition-size": "1g.5gb"}, 0, "1g.5gb"),
        (GPU, 16, {f"{GKE}accelerator": "nvidia-l4", f"{GKE}max-shared-clients-per-gpu": "8"}, 2, "shares of 2 GPUs"),
        (GPU, 8, {"karpenter.k8s.aws/instance-gpu-name": "a100", "karpenter.k8s.aws/instance-gpu-count": "8"}, 8, ""),
        (GPU, 32, {"karpenter.k8s.aws/instance-gpu-count": "8"}, 8, "shares of 8 GPUs"),
        ("amd.com/gpu", 64, {"amd.com/gpu.compute-memory-partition": "cpx_nps4"}, 0, "cpx_nps4"),
        ("amd.com/gpu", 8, {"amd.com/gpu.compute-memory-partition": "spx_nps1"}, 8, ""),
    ],
)
def test_what_providers_of_clouds_tell_of_divided_gpus(
    resource: str, many: int, labels: dict[str, str], gpus: int, parts: str
) -> None:
    """None of these labels is of NVIDIA's operator."""
    node = a_node("n1", {resource: many})
    node["metadata"]["labels"] = labels
    found = kueue_cluster([node, a_node("n2", {GPU: "1"}), a_workload("w", {GPU: 1})], AT).nodes[0]
    assert (found.gpus, [name for name, _ in found.parts]) == (gpus, [parts] if parts else [])


def test_shares_by_time_slicing_are_not_placed_as_gpus() -> None:
    """Of its twelve replicas one is held: no job gets the one GPU for itself."""
    slow = a_node("n1", {GPU: "12"}, count=1, replicas=12)
    waits = a_workload("eight", {GPU: "8"})
    free = kueue_cluster([slow, waits], AT)
    assert accepted(free)[0] == {}
    with pytest.raises(InputError, match="hold all of its GPUs"):
        accepted(kueue_cluster([slow, waits, a_pod("p", {GPU: 1}, "n1")], AT))


@pytest.mark.parametrize(
    ("asks", "spec", "said"),
    [
        ({"cpu": 8}, {"resourceClaims": [{"name": "gpu"}]}, "asks for resource claims, which are not read"),
        ({"volcano.sh/vgpu-number": 1}, {}, "asks for volcano.sh/vgpu-number, which is not read"),
        ({"google.com/tpu": "4"}, {}, "asks for google.com/tpu, which is not read"),
        ({"nvidia.com/mig-1g.5gb": "1"}, {}, "asks for parts of GPUs: nvidia.com/mig-1g.5gb"),
        ({GPU: 1, "nvidia.com/gpumem": "3Gi"}, {}, "asks for parts of GPUs: nvidia.com/gpumem"),
        ({GPU: 2}, {"nodeSelector": {"nvidia.com/gpu.product": "A100-MIG-1g.5gb"}}, "parts of GPUs: A100-MIG-1g.5gb"),
        ({GPU: "two"}, {}, "nvidia.com/gpu = 'two'; allowed: a whole number"),
        ({GPU: "1500m"}, {}, "nvidia.com/gpu = '1500m'; allowed: a whole number"),
        ({GPU: True}, {}, "a whole number"),
    ],
)
def test_whatever_asks_for_an_accelerator_is_told_or_left_out_with_its_reason(
    asks: dict[str, Any], spec: dict[str, Any], said: str
) -> None:
    plain = a_workload("plain", {GPU: "2", "rdma/hca": "1"})
    objects = [a_node("n1", {GPU: "8"}), plain, a_workload("other", asks, spec=spec), a_workload("cpu", {"cpu": 4})]
    told, left_out = accepted(kueue_cluster(objects, AT))
    assert told == {"lab/plain": "start"}
    assert list(left_out) == ["lab/other"]
    assert said in left_out["lab/other"]


def test_gpus_for_resource_claims_are_counted_and_left_out() -> None:
    devices = [{"name": f"gpu-{n}", "attributes": {"type": {"string": "gpu"}}} for n in range(2)]
    offers = {"nodeName": "n1", "driver": "gpu.nvidia.com", "devices": devices}
    objects = [a_node("n1", {"cpu": 96}, count=8), a_node("n2", {GPU: 8}), {"kind": "ResourceSlice", "spec": offers}]
    found = kueue_cluster([*objects, a_workload("w", {GPU: 1})], AT)
    assert [node.gpus for node in found.nodes] == [2, 8]
    left_out = request_of(found, JobRules(), "edf").nodes_left_out
    assert "asked for by resource claims" in left_out["n1"]


def test_a_workload_that_was_admitted_in_part_has_the_pods_that_it_got() -> None:
    levels = {"levels": ["kubernetes.io/hostname"], "domains": [{"values": ["n1"], "count": 3}]}
    got = {"podSetAssignments": [{"name": "main", "count": 3, "topologyAssignment": levels}]}
    objects = [a_node("n1", {GPU: 8}), a_workload("part", {GPU: 1}, 8, admission=got), a_workload("w", {GPU: 4})]
    found = kueue_cluster(objects, AT)
    assert (found.jobs[0].gpus, found.jobs[0].nodes, found.jobs[0].holds) == (3, 1, (("n1", 3),))
    made = request_of(found, JobRules(), "edf", preemptive=False)
    assert made.left_out == {}
    assert next(e for e in made.fields["jobs"] if "running" in e)["running"]["configuration"] == "A100x3"


def test_gpus_of_a_workload_whose_nodes_nobody_tells_are_free_on_no_node_that_it_may_be_on() -> None:
    objects = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 2})]
    queue = {"kind": "ClusterQueue", "metadata": {"name": "q"}}
    queue |= {"spec": {"resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": "any"}]}]}}
    objects += [a_workload("lost", {GPU: 4}, admission={"clusterQueue": "q"}), a_workload("w", {GPU: 8})]
    for found in (kueue_cluster([*objects, queue], AT), kueue_cluster(objects, AT)):
        assert held(found) == {"n1": (4, 4), "n2": (2, 2)}
        assert "lab/w" not in accepted(found)[0]


def test_pods_hold_what_they_ask_for_once_whoever_made_them() -> None:
    workload = a_workload("w", {GPU: 2}, admission={"clusterQueue": "q"})
    pods = [a_pod("w-0", {GPU: 2}, "n1", "w"), a_pod("notebook", {GPU: "1"}, "n1"), a_pod("cpu", {"cpu": 1}, "n1")]
    found = kueue_cluster([a_node("n1", {GPU: 8}), workload, *pods], AT)
    assert held(found) == {"n1": (3, 0)}
    broken = a_pod("broken", {GPU: "many"}, "n1")
    assert held(kueue_cluster([a_node("n1", {GPU: 8}), workload, broken], AT)) == {"n1": (8, 0)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"message": "insufficient unused quota in cohort all for nvidia.com/gpu in flavor any"}, "quotas are not mod"),
        ({"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Inadmissible"}]}, "Inadmissible"),
        (
            {"conditions": [{"type": "QuotaReserved", "status": "True"}], "admissionChecks": [{"name": "p"}]},
            "checks: p",
        ),
        ({"message": "topology default allows to fit only 3 out of 4 pods"}, ""),
        ({"message": "couldn't assign flavors to pod set main: untolerated taint {a b} in flavor any"}, "untolerated"),
        ({"message": "LocalQueue q doesn't exist"}, "doesn't exist"),
        (
            {"conditions": [{"type": "Requeued", "status": "False", "reason": "BackoffLimit", "message": "later"}]},
            "its return to the queue: BackoffLimit later",
        ),
    ],
)
def test_a_workload_that_waits_for_more_than_gpus_does_not_start(changes: dict[str, Any], said: str) -> None:
    told, left_out = accepted(kueue_cluster([a_node("n1", {GPU: 8}), a_workload("w", {GPU: 1}, **changes)], AT))
    assert (said in left_out["lab/w"]) if said else told == {"lab/w": "start"}


def test_a_workload_of_a_stopped_queue_does_not_start() -> None:
    queue = {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "lab"}, "spec": {"stopPolicy": "Hold"}}
    told, left_out = accepted(kueue_cluster([a_node("n1", {GPU: 8}), queue, a_workload("w", {GPU: 1})], AT))
    assert (told, "lab/q, which is stopped" in left_out["lab/w"]) == ({}, True)


def test_pods_that_share_a_gpu_hold_one_and_so_does_the_pod_that_reserves_it() -> None:
    def part(name: str, on: str, of: str) -> dict[str, Any]:
        made = pod(name, name, 0, on, annotations={"gpu-fraction": "0.25"})
        made["metadata"]["labels"] = {"runai-gpu-group": of}
        return made

    reservation = pod("gpu-reservation-n1", None, 1, "n1")
    reservation["metadata"]["labels"] = {"runai-gpu-group": "g0"}
    pods = [reservation, *(part(f"part{n}", "n1", "g0") for n in range(4)), pod("whole", "whole", 4)]
    names = [f"part{n}" for n in range(4)] + ["whole"]
    raw = {"nodes": [a_node("n1", {GPU: "8"})], "pods": pods, "podGroups": [group(name) for name in names]}
    found = kai_cluster(json.dumps({"rawObjects": raw}).encode(), AT)
    assert held(found) == {"n1": (1, 0)}
    told, left_out = accepted(found)
    assert told == {"lab/whole": "start"}
    assert set(left_out) == {f"lab/part{n}" for n in range(4)}
    raw["pods"] = [reservation, pods[-1]]
    assert held(kai_cluster(json.dumps({"rawObjects": raw}).encode(), AT)) == {"n1": (1, 1)}


TAINT = {"key": "dedicated", "value": "vision", "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "vision"}]}


ODD = {"coveredResources": 5}


def on_zone_b(operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "does not tolerate the taint dedicated=vision:NoSchedule of nodes, as node n2"),
        (TOLERATES, ""),
        ({"tolerations": [{"operator": "Exists"}]}, ""),
        ({"tolerations": [{"key": "dedicated", "value": "vision", "effect": "NoExecute"}]}, "tolerate the taint"),
        (TOLERATES | {"nodeSelector": {"zone": "b"}}, "asks for nodes with zone=b, which is not on all nodes"),
        (TOLERATES | {"nodeSelector": {"disk": "ssd"}}, ""),
        (TOLERATES | on_zone_b("In", "b", "c"), "asks for nodes by zone (node affinity)"),
        (TOLERATES | on_zone_b("NotIn", "c"), ""),
        (TOLERATES | on_zone_b("Exists"), ""),
        (TOLERATES | on_zone_b("DoesNotExist"), "node affinity"),
        (TOLERATES | on_zone_b("Like", "b"), "node affinity"),
    ],
)
def test_no_job_starts_on_a_node_that_its_pods_may_not_be_on(spec: dict[str, Any], said: str) -> None:
    """Two jobs tolerate the taint of a node, so that it is in use; a policy knows types of GPUs, and no nodes."""
    nodes = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 8})]
    nodes[1]["spec"] = {"taints": [TAINT, {"key": GPU, "effect": "NoSchedule"}]}
    for node, zone in zip(nodes, "ab", strict=True):
        node["metadata"]["labels"] |= {"zone": zone, "disk": "ssd"}
    others = [a_workload(name, {GPU: 1}, spec=TOLERATES) for name in ("a", "b")]
    told, left_out = accepted(kueue_cluster([*nodes, *others, a_workload("w", {GPU: 1}, spec=spec)], AT))
    assert ("lab/w" in told) == (not said)
    assert said in left_out.get("lab/w", "")


def test_a_job_gets_the_types_of_gpus_of_whose_nodes_it_may_be_on_all() -> None:
    nodes = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 8}, product="NVIDIA-H100-80GB-HBM3")]
    nodes[1]["metadata"]["labels"]["zone"] = "b"
    found = kueue_cluster([*nodes, a_workload("w", {GPU: 1}, spec={"nodeSelector": {"zone": "b"}})], AT)
    assert found.jobs[0].gpu_type == "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    ("holds", "gpu_type", "said"),
    [("n1", "NVIDIA-A100-SXM4-40GB", ""), ("n2", None, "does not tolerate the taint dedicated=vision:NoSchedule")],
)
def test_a_job_that_runs_moves_to_no_node_that_its_pods_may_not_be_on(
    holds: str, gpu_type: str | None, said: str
) -> None:
    """It keeps what it has where that is of a type that it would not get again."""
    nodes = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 8}, product="NVIDIA-H100-80GB-HBM3")]
    nodes[1]["spec"] = {"taints": [TAINT]}
    others = [a_workload(name, {GPU: 1}, spec=TOLERATES) for name in ("a", "b")]
    runs = a_workload("runs", {GPU: 4}, admission={"clusterQueue": "q"})
    runs["metadata"]["annotations"] = {"gpusched": "checkpoint=yes"}
    found = kueue_cluster([*nodes, *others, runs, a_pod("runs-0", {GPU: 4}, holds, "runs")], AT)
    assert found.nodes[1].available
    job = next(job for job in found.jobs if job.id == "lab/runs")
    assert (job.gpu_type, job.holds) == (gpu_type, ((holds, 4),))
    assert job.unfit.startswith(said)
    assert bool(job.unfit) == bool(said)


def test_jobs_that_are_over_do_not_make_a_node_with_a_taint_available() -> None:
    nodes = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 8})]
    nodes[1]["spec"] = {"taints": [TAINT]}
    over = {"conditions": [{"type": "Finished", "status": "True"}]}
    others = [a_workload(name, {GPU: 1}, spec=TOLERATES, **over) for name in ("a", "b")]
    made = request_of(kueue_cluster([*nodes, *others, a_workload("w", {GPU: 1})], AT), JobRules(), "edf")
    assert "which not more than half of the jobs tolerate" in made.nodes_left_out["n2"]


def test_names_that_are_no_texts_cost_nothing() -> None:
    """YAML reads a name without quotes, such as 5, as a number."""
    pods = [a_pod("p", {GPU: 2, 5: 1}, "n1"), a_workload("w", {GPU: 1, 5: 1})]  # type: ignore[dict-item]
    node = a_node("n1", {GPU: 8, 5: 1})  # type: ignore[dict-item]
    pods[0]["metadata"]["labels"] = node["metadata"]["annotations"] = {5: "a"}
    node["metadata"]["labels"][5] = "a"
    found = kueue_cluster([node, *pods], AT)
    assert (held(found), accepted(found)[0]) == ({"n1": (2, 0)}, {"lab/w": "start"})


def test_an_error_has_no_phrase_of_python() -> None:
    with pytest.raises(InputError, match=r"a field of another form'; allowed: objects as Kubernetes writes them$"):
        kueue_cluster([a_node("n1", {GPU: 8}), {"kind": "ClusterQueue", "spec": {"resourceGroups": [ODD]}}], AT)
    odd = a_workload("odd", {GPU: 1})
    odd["spec"]["maximumExecutionTimeSeconds"] = "long"
    left_out = accepted(kueue_cluster([a_node("n1", {GPU: 8}), odd, a_workload("w", {GPU: 1})], AT))[1]
    assert left_out == {"lab/odd": "fields that Kubernetes does not write"}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ({"key": ["zone"], "operator": "Exists"}, "key of a node affinity = ['zone']; allowed: the name of a label"),
        ({"key": "count", "operator": "Gt", "values": ["9" * 5000]}, "fields that Kubernetes does not write"),
    ],
)
def test_an_affinity_that_cannot_be_read_costs_only_its_job(expression: dict[str, Any], said: str) -> None:
    node = a_node("n1", {GPU: 8})
    node["metadata"]["labels"]["count"] = "3"
    term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}
    objects = [node, a_workload("plain", {GPU: 1}), a_workload("odd", {GPU: 1}, spec=spec)]
    told, left_out = accepted(kueue_cluster(objects, AT))
    assert told == {"lab/plain": "start"}
    assert said in left_out["lab/odd"]


def test_a_node_with_a_taint_that_hardly_a_job_tolerates_is_left_out() -> None:
    nodes = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 8})]
    nodes[1]["spec"] = {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}
    made = request_of(kueue_cluster([*nodes, a_workload("w", {GPU: 1})], AT), JobRules(), "edf")
    assert list(made.jobs) == ["lab/w"]
    assert "taint node.kubernetes.io/unreachable:NoExecute" in made.nodes_left_out["n2"]
    flavour = {"kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {"tolerations": [{"operator": "Exists"}]}}
    queue = {"kind": "ClusterQueue", "metadata": {"name": "q"}}
    queue |= {"spec": {"resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": "any"}]}]}}
    added = kueue_cluster([*nodes, flavour, queue, a_workload("w", {GPU: 1})], AT)
    assert request_of(added, JobRules(), "edf").nodes_left_out == {}
    flavour["spec"] = {"nodeLabels": {"pool": "x"}}
    nodes[0]["metadata"]["labels"]["pool"] = "x"
    made = request_of(kueue_cluster([*nodes, flavour, queue, a_workload("w", {GPU: 1})], AT), JobRules(), "edf")
    assert "no ClusterQueue has it" in made.nodes_left_out["n2"]


def test_a_suspended_job_without_a_workload_is_in_the_list_once() -> None:
    def job(name: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": name, "namespace": "lab"}, "spec": spec}

    template = {"template": {"spec": {"containers": [{"resources": {"limits": {GPU: "2"}}}]}}}
    replicas = {"Master": template, "Worker": {"replicas": 3, **template}}
    inner = {"spec": {"parallelism": 4, "completions": 4, **template}}
    owned = a_workload("job-known-1", {GPU: 2})
    owned["metadata"]["ownerReferences"] = [{"name": "known"}]
    objects = [
        a_node("n1", {GPU: 8}),
        owned,
        job("known", "Job", {"suspend": True, **template}),
        job("plain", "Job", {"suspend": True, "parallelism": 4, **template}),
        job("torch", "PyTorchJob", {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas}),
        job("set", "JobSet", {"suspend": True, "replicatedJobs": [{"name": "w", "replicas": 2, "template": inner}]}),
        job("odd", "Job", {"suspend": True, "parallelism": "four", **template}),
        job("none", "Job", {"suspend": True, "parallelism": 0, **template}),
        job("nightly", "CronJob", {"suspend": True, "schedule": "0 3 * * *", "jobTemplate": {"spec": template}}),
        job("runs", "Job", template),
        job("cpu", "Job", {"suspend": True, "template": {"spec": {"containers": [{}]}}}),
    ]
    found = kueue_cluster(objects, AT)
    told, left_out = accepted(found)
    assert told == {"lab/job-known-1": "start"}
    assert set(left_out) == {"lab/plain", "lab/torch", "lab/set", "lab/odd"}
    assert {job.id: job.gpus for job in found.jobs if job.unfit} == {
        "lab/plain": 8,
        "lab/torch": 8,
        "lab/set": 16,
        "lab/odd": 0,
    }
    assert "parallelism = 'four'; allowed: a whole number" in left_out["lab/odd"]
    assert "is suspended, and no workload" in left_out["lab/plain"]


@pytest.mark.parametrize("asks", [{GPU: 4}, {"nvidia.com/mig-1g.5gb": 1}, {GPU: "many"}])
def test_a_workload_that_runs_in_another_cluster_holds_nothing_here(asks: dict[str, Any]) -> None:
    away = a_workload("away", asks, admission={"clusterQueue": "q"}, clusterName="worker1")
    found = kueue_cluster([a_node("n1", {GPU: 8}), away, a_workload("w", {GPU: 8})], AT)
    told, left_out = accepted(found)
    assert (held(found), told) == ({"n1": (0, 0)}, {"lab/w": "start"})
    assert left_out["lab/away"] == "runs in the cluster worker1"


def test_a_plugin_that_shares_gpus_names_them_in_an_annotation() -> None:
    node = a_node("n1", {GPU: "20"})
    text = "GPU-1a-b,10,40960,100,NVIDIA-A100,0,true:GPU-2c-d,10,40960,100,NVIDIA-A100,0,true:"
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": text}
    found = kueue_cluster([node, a_workload("w", {GPU: 1}), a_pod("p", {GPU: 1}, "n1")], AT)
    assert (found.nodes[0].gpus, held(found)) == (2, {"n1": (1, 0)})


def test_pods_without_a_workload_have_the_times_of_the_pods() -> None:
    alone = a_pod("p", {GPU: 1}, "n1")
    alone["metadata"]["creationTimestamp"] = "2026-11-26T08:00:00Z"
    alone["status"]["startTime"] = "2026-11-26T08:30:00Z"
    job = kueue_cluster([a_node("n1", {GPU: 8}), alone], AT).jobs[0]
    assert (job.submit_s, job.start_s) == (HALF_PAST_EIGHT - 1800.0, HALF_PAST_EIGHT)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["n1", "n2", ""]),
            st.sampled_from(
                [{GPU: 1}, {GPU: "2"}, {"nvidia.com/mig-1g.5gb": 1}, {"a.b/npu": 1}, {GPU: "x"}, {"cpu": 1}]
            ),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_what_pods_hold_is_never_offered_and_whatever_asks_is_in_one_list(pods: list[tuple[str, Any, bool]]) -> None:
    objects = [a_node("n1", {GPU: 8}), a_node("n2", {GPU: 4}), a_node("n3", {GPU: 1}), a_workload("w", {GPU: 1})]
    really = dict.fromkeys(("n1", "n2", "n3"), 0)
    for number, (node, asks, has_workload) in enumerate(pods):
        if node:
            objects.append(a_pod(f"p{number}", asks, node, f"w{number}" if has_workload else ""))
            really[node] += int(asks.get(GPU, 0)) if asks.get(GPU) != "x" else 0
        if has_workload or not node:
            objects.append(a_workload(f"w{number}", asks, **({"admission": {"clusterQueue": "q"}} if node else {})))
    found = kueue_cluster(objects, AT)
    made = request_of(found, JobRules(), "edf")
    wanting = 1 + sum("cpu" not in asks for _, asks, _ in pods)
    assert len(found.jobs) == wanting == len(made.jobs) + len(made.left_out)
    own = {name: many for job in found.jobs if job.id in made.jobs for name, many in job.holds}
    for node in made.fields["cluster"]["nodes"]:
        free = node["gpus"] - own.get(node["name"], 0)
        assert free <= {"n1": 8, "n2": 4, "n3": 1}[node["name"]] - min(really[node["name"]], 8)
