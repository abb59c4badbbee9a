"""The state of a Kubernetes cluster, from objects of Kueue or a snapshot of KAI-Scheduler.

The forms are the published ones: `apis/kueue` of github.com/kubernetes-sigs/kueue, and what the plugin in
`pkg/scheduler/plugins/snapshot` of github.com/NVIDIA/KAI-Scheduler writes. Neither was tried on a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_objects import (
    ANNOTATION,
    WHOLE_GPUS,
    AskedByPods,
    Object,
    as_written,
    at,
    condition,
    full_name,
    gpu_type_of,
    gpus_of_pod,
    holds_true,
    live_nodes,
    mapping_at,
    objects_at,
    unix_time,
    unpacked,
    whole,
)
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode, Outcome, Phase

GROUP = "pod-group-name"
"""The annotation of a pod that names its pod group of KAI-Scheduler."""

WORKLOAD = "kueue.x-k8s.io/workload"
JOB_LABELS = (
    "job-name",
    "batch.kubernetes.io/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "kueue.x-k8s.io/pod-group-name",
)
HOST = "kubernetes.io/hostname"
OVER = ("Succeeded", "Failed")


@as_written("--kueue")
def kueue_cluster(objects: Sequence[Object], read_s: float) -> LiveCluster:
    """Read a cluster from objects of Kueue: Workload, ClusterQueue, LocalQueue, ResourceFlavor, and Node and Pod.

    The nodes of a running workload are taken from its pods or its topology assignment; a workload of which neither is
    there cannot be told to a policy, and no node is taken from it.

    Args:
        objects: The objects, in any order; of other kinds they are not read.
    """
    kinds: dict[str, list[Object]] = {}
    for each in objects:
        kinds.setdefault(str(each.get("kind")), []).append(each)
    if not kinds.get("Workload"):
        raise InputError("--kueue", sorted(kinds), "objects of kind Workload among them, with those of kind Node")
    queues = _Queues.of(kinds)
    nodes = tuple(live_nodes(iter(kinds.get("Node", [])), queues.of_labels))
    pods = kinds.get("Pod", [])
    told: set[str] = set()
    jobs = [_workload(each, queues, pods, told) for each in kinds["Workload"]]
    others = (pod for pod in pods if full_name(pod) not in told)
    return _cluster("kueue", read_s, nodes, [*jobs, *_alone(others, "no workload of Kueue stands for it")])


@as_written("--kai")
def kai_cluster(data: bytes, read_s: float) -> LiveCluster:
    """Read a cluster from what the snapshot plugin of KAI-Scheduler writes: JSON in a ZIP archive, or plain."""
    raw = mapping_at(unpacked(data, "--kai"), "rawObjects")
    if not raw:
        raise InputError("--kai", "...", "a snapshot with rawObjects, as the plugin of KAI-Scheduler writes it")
    queues = [str(at(each, "metadata", "name")) for each in objects_at(raw, "queues")]
    nodes = tuple(live_nodes(iter(objects_at(raw, "nodes")), lambda _: queues))
    bound = {
        f"{at(each, 'metadata', 'namespace') or 'default'}/{at(each, 'spec', 'podName')}": at(
            each, "spec", "selectedNode"
        )
        for each in objects_at(raw, "bindRequests")
    }
    groups: dict[str, list[Object]] = {}
    alone = []
    for pod in objects_at(raw, "pods"):
        name = mapping_at(pod, "metadata", "annotations").get(GROUP)
        if name:
            groups.setdefault(f"{at(pod, 'metadata', 'namespace') or 'default'}/{name}", []).append(pod)
        else:
            alone.append(pod)
    jobs = [_pod_group(each, groups.pop(full_name(each), []), bound) for each in objects_at(raw, "podGroups")]
    alone += [pod for pods in groups.values() for pod in pods]
    return _cluster("kai", read_s, nodes, [*jobs, *_alone(alone, "no pod group stands for it")])


def _cluster(manager: str, read_s: float, nodes: tuple[LiveNode, ...], jobs: list[LiveJob]) -> LiveCluster:
    if not any(node.gpus for node in nodes):
        raise InputError(f"--{manager}", f"{len(nodes)} nodes", "objects of kind Node with GPUs among them")
    return LiveCluster(manager, read_s, nodes, tuple(job for job in jobs if job.gpus or job.holds or job.unfit))


@dataclass(frozen=True)
class _Queues:
    """Cluster queues of Kueue: of each its flavours with GPUs, and the labels of their nodes."""

    flavours: dict[str, list[str]] = field(default_factory=dict)
    labels: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Mapping[str, list[Object]]) -> _Queues:
        made = cls()
        for each in kinds.get("ResourceFlavor", []):
            made.labels[str(at(each, "metadata", "name"))] = mapping_at(each, "spec", "nodeLabels")
        for each in kinds.get("LocalQueue", []):
            made.local[full_name(each)] = str(at(each, "spec", "clusterQueue"))
        for each in kinds.get("ClusterQueue", []):
            made.flavours[str(at(each, "metadata", "name"))] = [
                str(flavour.get("name"))
                for group in objects_at(each, "spec", "resourceGroups")
                if any(name in WHOLE_GPUS for name in at(group, "coveredResources") or ())
                for flavour in objects_at(group, "flavors")
            ]
        return made

    def of_labels(self, labels: Mapping[str, Any]) -> list[str]:
        return [queue for queue, names in self.flavours.items() if any(self._fits(name, labels) for name in names)]

    def _fits(self, flavour: str, labels: Mapping[str, Any]) -> bool:
        return all(str(labels.get(key)) == str(value) for key, value in self.labels.get(flavour, {}).items())

    def types(self, queue: str) -> str | None:
        """Return the GPU types of a cluster queue's flavours; None: one of them has any."""
        found = [gpu_type_of(self.labels.get(name, {})) for name in self.flavours.get(queue, [])]
        return "|".join(dict.fromkeys(each for each in found if each)) or None if None not in found else None


def _workload(thing: Object, queues: _Queues, pods: Iterable[Object], told: set[str]) -> LiveJob:
    """Return the job of a workload; its pods are added to those told."""
    spec, namespace = mapping_at(thing, "spec"), str(at(thing, "metadata", "namespace") or "default")
    admission = mapping_at(thing, "status", "admission")
    owners = [str(each.get("name")) for each in objects_at(thing, "metadata", "ownerReferences")]
    queue = str(admission.get("clusterQueue") or queues.local.get(f"{namespace}/{spec.get('queueName')}", "")) or str(
        spec.get("queueName") or ""
    )
    names = {*owners, str(at(thing, "metadata", "name"))}
    own = [pod for pod in pods if str(at(pod, "metadata", "namespace") or "default") == namespace and _of(pod, names)]
    told |= {full_name(pod) for pod in own}
    phase, outcome, reason = _phase_of_workload(thing)
    asked = AskedByPods()
    for pod_set in objects_at(spec, "podSets"):
        template = mapping_at(pod_set, "template")
        asked.add(
            mapping_at(template, "spec"),
            mapping_at(template, "metadata", "annotations"),
            whole("podSets.count", pod_set.get("count", 1)),
        )
    holds, limit_s = _places(own, {}) if phase == "running" else {}, spec.get("maximumExecutionTimeSeconds")
    if phase == "running" and not holds:
        holds = _assigned(admission, spec)
    unfit = asked.unfit or (
        "Kueue admitted it, and neither pods nor a topology tell its nodes" if phase == "running" and not holds else ""
    )
    return LiveJob(
        id=f"{namespace}/{at(thing, 'metadata', 'name')}",
        name=owners[0] if owners else str(at(thing, "metadata", "name")),
        user=str(mapping_at(thing, "metadata", "labels").get("user") or ""),
        account=namespace,
        partition=queue,
        comment=_comment(thing),
        script=asked.image,
        phase=phase,
        held="user" if spec.get("active") is False and phase == "pending" else "",
        reason=reason,
        outcome=outcome,
        submit_s=unix_time(at(thing, "metadata", "creationTimestamp")) or 0.0,
        start_s=unix_time(condition(thing, "Admitted").get("lastTransitionTime")) if phase == "running" else None,
        time_limit_s=None if limit_s is None else float(limit_s),
        gpus=asked.gpus,
        gpu_type=asked.gpu_type or queues.types(queue),
        holds=tuple(sorted(holds.items())),
        restarts=whole("requeueState.count", at(thing, "status", "requeueState", "count")),
        can_requeue=True,
        nodes=max(1, asked.pods),
        unfit=unfit if asked.gpus or asked.unfit else "",
    )


def _comment(thing: Object) -> str:
    value = mapping_at(thing, "metadata", "annotations").get(ANNOTATION)
    return "" if value is None else f"{ANNOTATION} {value}"


def _of(pod: Object, names: set[str]) -> bool:
    labels, annotations = mapping_at(pod, "metadata", "labels"), mapping_at(pod, "metadata", "annotations")
    owners = {str(each.get("name")) for each in objects_at(pod, "metadata", "ownerReferences")}
    return bool(names & {str(annotations.get(WORKLOAD)), *owners, *(str(labels.get(name)) for name in JOB_LABELS)})


def _phase_of_workload(thing: Object) -> tuple[Phase, Outcome, str]:
    if holds_true(thing, "Finished"):
        good = str(condition(thing, "Finished").get("reason", "")) in ("", "Succeeded", "JobFinished")
        return "ended", "completed" if good else "failed", ""
    if holds_true(thing, "Admitted"):
        return ("ending" if holds_true(thing, "Evicted") else "running"), "", ""
    waits = condition(thing, "QuotaReserved")
    return "pending", "", str(waits.get("message") or waits.get("reason") or "")


def _assigned(admission: Mapping[str, Any], spec: Mapping[str, Any]) -> Counter[str]:
    """Return GPUs by node of a topology assignment whose last level is the node."""
    each = {}
    for pod_set in objects_at(spec, "podSets"):
        template = mapping_at(pod_set, "template")
        each[pod_set.get("name", "main")] = gpus_of_pod(mapping_at(template, "spec"), {}).many
    found: Counter[str] = Counter()
    for assignment in objects_at(admission, "podSetAssignments"):
        levels = at(assignment, "topologyAssignment", "levels") or [None]
        for domain in objects_at(assignment, "topologyAssignment", "domains") if levels[-1] == HOST else ():
            found[str(domain["values"][-1])] += whole("domains.count", domain.get("count", 1)) * each.get(
                assignment.get("name", "main"), 0
            )
    return Counter({node: gpus for node, gpus in found.items() if gpus})


def _pod_group(thing: Object, pods: list[Object], bound: Mapping[str, Any]) -> LiveJob:
    """Return the job of a pod group of KAI-Scheduler."""
    asked = AskedByPods()
    for pod in pods:
        asked.add(mapping_at(pod, "spec"), mapping_at(pod, "metadata", "annotations"), 1)
    places = _places(pods, bound)
    over = bool(pods) and all(at(pod, "status", "phase") in OVER for pod in pods)
    failed = any(at(pod, "status", "phase") == "Failed" for pod in pods)
    leaving = any(at(pod, "metadata", "deletionTimestamp") for pod in pods)
    phase: Phase = "ended" if over else "ending" if leaving and places else "running" if places else "pending"
    said = [each for each in objects_at(thing, "status", "schedulingConditions") if phase == "pending"]
    reasons = [str(each.get("message")) for each in objects_at(said[-1], "reasons")] if said else []
    starts = [unix_time(at(pod, "status", "startTime")) for pod in pods]
    limits = [at(pod, "spec", "activeDeadlineSeconds") for pod in pods]
    return LiveJob(
        id=full_name(thing),
        name=str(at(thing, "metadata", "name")),
        user=str(mapping_at(thing, "metadata", "labels").get("user") or ""),
        account=str(at(thing, "metadata", "namespace") or "default"),
        partition=str(at(thing, "spec", "queue") or ""),
        comment=_comment(thing) or next((text for pod in pods if (text := _comment(pod))), ""),
        script=asked.image,
        phase=phase,
        reason="; ".join(reasons) or (str(said[-1].get("message") or "") if said else ""),
        outcome="" if not over else "failed" if failed else "completed",
        submit_s=unix_time(at(thing, "metadata", "creationTimestamp")) or 0.0,
        start_s=max((each for each in starts if each is not None), default=None) if places else None,
        time_limit_s=max((float(each) for each in limits if each is not None), default=None),
        gpus=asked.gpus,
        gpu_type=asked.gpu_type,
        holds=tuple(sorted(places.items())),
        can_requeue=at(thing, "spec", "preemptibility") != "non-preemptible",
        nodes=max(1, asked.pods),
        unfit=asked.unfit,
    )


def _places(pods: Iterable[Object], bound: Mapping[str, Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for pod in pods:
        node = at(pod, "spec", "nodeName") or bound.get(full_name(pod))
        gpus = gpus_of_pod(mapping_at(pod, "spec"), mapping_at(pod, "metadata", "annotations")).many
        if node and gpus and at(pod, "status", "phase") not in OVER:
            found[str(node)] += gpus
    return found


def _alone(pods: Iterable[Object], why: str) -> list[LiveJob]:
    """Return pods as jobs that no policy is told: their GPUs are not free."""
    return [
        LiveJob(id=full_name(pod), name=str(at(pod, "metadata", "name")), phase="running", holds=holds, unfit=why)
        for pod in pods
        if (holds := tuple(_places([pod], {}).items()))
    ]
