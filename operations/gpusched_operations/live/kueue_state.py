"""The state of a Kubernetes cluster, from objects of Kueue.

The form is the published one: `apis/kueue` of github.com/kubernetes-sigs/kueue. It was not tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_gpus import (
    WHOLE_GPUS,
    AskedByPods,
    HeldByPods,
    PodGpus,
    gpu_type_of,
    gpus_of_pod,
)
from gpusched_operations.live.kubernetes_nodes import live_nodes
from gpusched_operations.live.kubernetes_objects import (
    Object,
    as_written,
    at,
    condition,
    full_name,
    holds_true,
    mapping_at,
    objects_at,
    unix_time,
    whole,
)
from gpusched_operations.live.kubernetes_places import placed, specs_with_gpus
from gpusched_operations.live.kubernetes_state import (
    CANNOT_BE_READ,
    UNREADABLE,
    Nodes,
    cluster_of_pods,
    comment_of,
    fields_of,
    held_by_pods,
    in_words,
    pods_alone,
    quota_named,
    suspended,
)
from gpusched_operations.live.occupancy import HOLDING
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode, Outcome, Phase
from gpusched_operations.service.gpu_names import is_part_of_gpu

WORKLOAD = "kueue.x-k8s.io/workload"
JOB_LABELS = (
    "job-name",
    "batch.kubernetes.io/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "kueue.x-k8s.io/pod-group-name",
)
HOST = "kubernetes.io/hostname"
STOPPED = ("Hold", "HoldAndDrain")


@as_written("--kueue")
def kueue_cluster(objects: Sequence[Object], read_s: float) -> LiveCluster:
    """Read a cluster from objects of Kueue: Workload, ClusterQueue, LocalQueue, ResourceFlavor, and Node and Pod.

    The nodes of a running workload are taken from its pods or its topology assignment; a workload of which neither is
    there goes to no policy, and so many GPUs of each node of its queue are not free.

    Args:
        objects: The objects, in any order; of other kinds they are not read.
    """
    kinds: dict[str, list[Object]] = {}
    for each in objects:
        kinds.setdefault(str(each.get("kind")), []).append(each)
    if not kinds.keys() & {"Workload", "ClusterQueue", "Pod"}:
        raise InputError(
            "--kueue",
            ", ".join(sorted(kinds)) or "no objects",
            "objects of kind Workload, ClusterQueue or Pod among them, with those of kind Node",
        )
    queues = _Queues.of(kinds)
    nodes: Nodes = live_nodes(kinds.get("Node", []), queues.of_labels, kinds.get("ResourceSlice", []))
    if any(queues.flavours.values()):
        nodes = {name: each if each[0].partitions else (_in_no_queue(each[0]), each[1]) for name, each in nodes.items()}
    pods, workloads = kinds.get("Pod", []), kinds.get("Workload", [])
    known: set[str] = set()
    jobs = [_workload(each, queues, pods, nodes, known) for each in workloads]
    specs = {
        job.id: specs_with_gpus(
            (mapping_at(each, "template") for each in objects_at(thing, "spec", "podSets")),
            queues.tolerations(job.partition),
        )
        for thing, job in zip(workloads, jobs, strict=True)
    }
    nodes, jobs = placed(kinds.get("Node", []), nodes, jobs, specs)
    others = (pod for pod in pods if full_name(pod) not in known)
    jobs += pods_alone(others, nodes, "no workload of Kueue stands for it")
    owners = {f"{job.account}/{job.name}" for job in jobs}
    jobs += suspended(objects, owners, "is suspended, and no workload of Kueue stands for it")
    return cluster_of_pods("kueue", read_s, nodes, pods, {}, jobs)


def _in_no_queue(node: LiveNode) -> LiveNode:
    return replace(node, available=False, state=f"{node.state} (no ClusterQueue has it)")


@dataclass(frozen=True)
class _Queues:
    """Cluster queues of Kueue: of each its flavours with GPUs, the labels of their nodes, and what they add to pods."""

    flavours: dict[str, list[str]] = field(default_factory=dict)
    labels: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    adds: dict[str, list[Object]] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, kinds: Mapping[str, list[Object]]) -> _Queues:
        made = cls()
        for each in kinds.get("ResourceFlavor", []):
            made.labels[str(at(each, "metadata", "name"))] = mapping_at(each, "spec", "nodeLabels")
            made.adds[str(at(each, "metadata", "name"))] = objects_at(each, "spec", "tolerations")
        for each in kinds.get("LocalQueue", []):
            made.local[full_name(each)] = str(at(each, "spec", "clusterQueue"))
            made.stopped.update([full_name(each)] if at(each, "spec", "stopPolicy") in STOPPED else [])
        for each in kinds.get("ClusterQueue", []):
            made.stopped.update(
                [str(at(each, "metadata", "name"))] if at(each, "spec", "stopPolicy") in STOPPED else []
            )
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

    def tolerations(self, queue: str) -> list[Object]:
        """Return the tolerations that the flavours of a cluster queue add to pods."""
        return [each for name in self.flavours.get(queue, []) for each in self.adds.get(name, [])]

    def types(self, queue: str) -> str | None:
        """Return the GPU types of a cluster queue's flavours; None: one of them has any."""
        found = [gpu_type_of(self.labels.get(name, {})) for name in self.flavours.get(queue, [])]
        return "|".join(dict.fromkeys(each for each in found if each)) or None if None not in found else None


def _workload(thing: Object, queues: _Queues, pods: Iterable[Object], nodes: Nodes, known: set[str]) -> LiveJob:
    """Return the job of a workload; the names of its pods are added to those known."""
    namespace = str(at(thing, "metadata", "namespace") or "default")
    owners = [str(each.get("name")) for each in objects_at(thing, "metadata", "ownerReferences")]
    names = {*owners, str(at(thing, "metadata", "name"))}
    own = [pod for pod in pods if str(at(pod, "metadata", "namespace") or "default") == namespace and _of(pod, names)]
    known |= {full_name(pod) for pod in own}
    phase, outcome, reason = _phase_of_workload(thing)
    spec, admission = mapping_at(thing, "spec"), mapping_at(thing, "status", "admission")
    local = f"{namespace}/{spec.get('queueName')}"
    queue = str(admission.get("clusterQueue") or queues.local.get(local, "") or spec.get("queueName") or "")
    base = LiveJob(
        id=f"{namespace}/{at(thing, 'metadata', 'name')}",
        name=owners[0] if owners else str(at(thing, "metadata", "name")),
        user=str(mapping_at(thing, "metadata", "labels").get("user") or ""),
        account=namespace,
        partition=queue,
        comment=comment_of(thing),
        phase=phase,
        held="user" if spec.get("active") is False and phase == "pending" else "",
        reason=reason,
        waits_for=_waits_for(thing, {local, queue} & queues.stopped) if phase == "pending" else "",
        outcome=outcome,
        can_requeue=True,
    )
    holds = phase in HOLDING
    try:
        return _asking(base, thing, queues.types(queue), held_by_pods(own, {}, nodes) if holds else HeldByPods(nodes))
    except UNREADABLE as error:
        held = fields_of(held_by_pods(own, {}, nodes)) if holds else {}
        elsewhere = _elsewhere(thing, held) if holds else ""
        return replace(base, unfit=elsewhere or in_words(error), asks="" if elsewhere else CANNOT_BE_READ, **held)


def _asking(base: LiveJob, thing: Object, gpu_types: str | None, held: HeldByPods) -> LiveJob:
    """Return the job of a workload with what it asks for and holds."""
    spec, runs, asked = mapping_at(thing, "spec"), base.phase in HOLDING, AskedByPods()
    counts = _counts(thing)
    for pod_set in objects_at(spec, "podSets"):
        template = mapping_at(pod_set, "template")
        annotations = mapping_at(template, "metadata", "annotations")
        asked.add(mapping_at(template, "spec"), annotations, counts[str(pod_set.get("name", "main"))])
    if runs and not held.holds.total() and not held.parts():
        _add_assigned(held, base.id, mapping_at(thing, "status", "admission"), spec)
    limit_s, own = spec.get("maximumExecutionTimeSeconds"), fields_of(held)
    asks, elsewhere = asked.asks or _asks_for_types(gpu_types), _elsewhere(thing, own) if runs else ""
    why = ""
    if elsewhere and (asked.gpus or asks):
        why = elsewhere
    elif runs and asked.gpus and not own["holds"] and not own["parts"]:
        why = "Kueue admitted it, and neither pods nor a topology name its nodes"
    return replace(
        base,
        script=asked.image,
        submit_s=unix_time(at(thing, "metadata", "creationTimestamp")) or 0.0,
        start_s=unix_time(condition(thing, "Admitted").get("lastTransitionTime")) if base.phase == "running" else None,
        time_limit_s=None if limit_s is None else float(limit_s),
        gpus=sum(many for _, many in own["holds"]) or (0 if elsewhere else asked.gpus),
        gpu_type=asked.gpu_type or gpu_types,
        restarts=whole("requeueState.count", at(thing, "status", "requeueState", "count")),
        nodes=len(own["holds"]) or max(1, asked.pods),
        unfit=asked.unfit or why,
        asks="" if elsewhere else asks,
        **own,
    )


def _elsewhere(thing: Object, own: Mapping[str, Any]) -> str:
    """Return that a workload which runs, and holds nothing here, is in another cluster; empty: it is not."""
    name = at(thing, "status", "clusterName")
    return f"runs in the cluster {name}" if name and not own["holds"] and not own["parts"] else ""


def _asks_for_types(gpu_types: str | None) -> str:
    """Return what a job asks for whose queue has parts of GPUs alone."""
    found = (gpu_types or "").split("|")
    return f"parts of GPUs: {gpu_types}" if gpu_types and all(map(is_part_of_gpu, found)) else ""


def _counts(thing: Object) -> dict[str, int]:
    """Return the number of pods of each set: as admitted, of which some may be done, or as asked for."""
    asked = {
        str(each.get("name", "main")): whole("podSets.count", each.get("count", 1))
        for each in objects_at(thing, "spec", "podSets")
    }
    for each in objects_at(thing, "status", "admission", "podSetAssignments"):
        if each.get("count") is not None:
            asked[str(each.get("name", "main"))] = whole("podSetAssignments.count", each["count"])
    for each in objects_at(thing, "status", "reclaimablePods"):
        name = str(each.get("name", "main"))
        asked[name] = max(0, asked.get(name, 0) - whole("reclaimablePods.count", each.get("count")))
    return asked


def _waits_for(thing: Object, stopped: Iterable[str]) -> str:
    """Return what a workload waits for besides GPUs, so that free ones do not start it."""
    if stopped:
        return f"its queue {', '.join(sorted(stopped))}, which is stopped"
    if holds_true(thing, "QuotaReserved"):
        checks = objects_at(thing, "status", "admissionChecks")
        return (
            f"admission checks: {', '.join(str(each.get('name')) for each in checks if each.get('state') != 'Ready')}"
        )
    put_back, waits = condition(thing, "Requeued"), condition(thing, "QuotaReserved")
    if put_back.get("status") in ("False", False):
        return f"its return to the queue: {put_back.get('reason') or ''} {put_back.get('message') or ''}".strip()
    return quota_named(f"{waits.get('reason') or ''}: {waits.get('message') or ''}".strip(": "))


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


def _add_assigned(held: HeldByPods, name: str, admission: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    """Add what a workload holds by a topology assignment whose last level is the node."""
    each: dict[Any, PodGpus] = {}
    for pod_set in objects_at(spec, "podSets"):
        template = mapping_at(pod_set, "template")
        annotations = mapping_at(template, "metadata", "annotations")
        each[pod_set.get("name", "main")] = gpus_of_pod(mapping_at(template, "spec"), annotations)
    for assignment in objects_at(admission, "podSetAssignments"):
        asked = each.get(assignment.get("name", "main"), PodGpus())
        levels = at(assignment, "topologyAssignment", "levels") or [None]
        for domain in objects_at(assignment, "topologyAssignment", "domains") if levels[-1] == HOST else ():
            count = whole("domains.count", domain.get("count", 1))
            many = PodGpus(asked.many * count, "", asked.shares * count, asked.slices * count)
            held.add(str(domain["values"][-1]), name, many)
