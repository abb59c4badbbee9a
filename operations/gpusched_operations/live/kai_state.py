"""The state of a Kubernetes cluster, from a snapshot of KAI-Scheduler.

The form is what the plugin in `pkg/scheduler/plugins/snapshot` of github.com/NVIDIA/KAI-Scheduler writes. It was not
tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_gpus import OVER, AskedByPods
from gpusched_operations.live.kubernetes_nodes import live_nodes
from gpusched_operations.live.kubernetes_objects import (
    Object,
    as_written,
    at,
    full_name,
    mapping_at,
    objects_at,
    unix_time,
    unpacked,
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
    node_of,
    pods_alone,
    quota_named,
)
from gpusched_operations.live.state import LiveCluster, LiveJob, Phase

GROUP = "pod-group-name"
"""The annotation of a pod that names its pod group of KAI-Scheduler."""


@as_written("--kai")
def kai_cluster(data: bytes, read_s: float) -> LiveCluster:
    """Read a cluster from what the snapshot plugin of KAI-Scheduler writes: JSON in a ZIP archive, or plain."""
    raw = mapping_at(unpacked(data, "--kai"), "rawObjects")
    if not raw:
        raise InputError("--kai", "...", "a snapshot with rawObjects, as the plugin of KAI-Scheduler writes it")
    queues = [str(at(each, "metadata", "name")) for each in objects_at(raw, "queues")]
    nodes: Nodes = live_nodes(objects_at(raw, "nodes"), lambda _: queues, objects_at(raw, "resourceSlices"))
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
    listed = objects_at(raw, "podGroups")
    specs = {full_name(each): specs_with_gpus(groups.get(full_name(each), [])) for each in listed}
    jobs = [_pod_group(each, groups.pop(full_name(each), []), bound, nodes) for each in listed]
    nodes, jobs = placed(objects_at(raw, "nodes"), nodes, jobs, specs)
    alone += [pod for pods in groups.values() for pod in pods]
    jobs += pods_alone(alone, nodes, "no pod group stands for it", bound)
    return cluster_of_pods("kai", read_s, nodes, objects_at(raw, "pods"), bound, jobs)


def _pod_group(thing: Object, pods: list[Object], bound: Mapping[str, Any], nodes: Nodes) -> LiveJob:
    """Return the job of a pod group of KAI-Scheduler."""
    held = fields_of(held_by_pods(pods, bound, nodes))
    placed = any(node_of(pod, bound) for pod in pods)
    over = bool(pods) and all(at(pod, "status", "phase") in OVER for pod in pods)
    failed = any(at(pod, "status", "phase") == "Failed" for pod in pods)
    leaving = any(at(pod, "metadata", "deletionTimestamp") for pod in pods)
    phase: Phase = "ended" if over else "ending" if leaving and placed else "running" if placed else "pending"
    said = [each for each in objects_at(thing, "status", "schedulingConditions") if phase == "pending"]
    reasons = objects_at(said[-1], "reasons") if said else []
    reason = "; ".join(str(each.get("message")) for each in reasons)
    base = LiveJob(
        id=full_name(thing),
        name=str(at(thing, "metadata", "name")),
        user=str(mapping_at(thing, "metadata", "labels").get("user") or ""),
        account=str(at(thing, "metadata", "namespace") or "default"),
        partition=str(at(thing, "spec", "queue") or ""),
        comment=comment_of(thing) or next((text for pod in pods if (text := comment_of(pod))), ""),
        phase=phase,
        reason=reason or (str(said[-1].get("message") or "") if said else ""),
        outcome="" if not over else "failed" if failed else "completed",
        can_requeue=at(thing, "spec", "preemptibility") != "non-preemptible",
        **held,
    )
    gates = {str(each.get("name")) for pod in pods for each in objects_at(pod, "spec", "schedulingGates")}
    waits_for = f"scheduling gates: {', '.join(sorted(gates))}" if gates and phase == "pending" else ""
    waits_for = waits_for or quota_named(
        "; ".join(f"{each.get('reason') or ''}: {each.get('message') or ''}" for each in reasons)
    )
    try:
        return replace(_asking_pods(base, thing, pods, placed=placed), waits_for=waits_for or quota_named(base.reason))
    except UNREADABLE as error:
        return replace(base, unfit=in_words(error), asks=CANNOT_BE_READ)


def _asking_pods(base: LiveJob, thing: Object, pods: list[Object], *, placed: bool) -> LiveJob:
    """Return the job of a pod group with what its pods ask for."""
    asked = AskedByPods()
    for pod in pods:
        asked.add(mapping_at(pod, "spec"), mapping_at(pod, "metadata", "annotations"), 1)
    starts = [unix_time(at(pod, "status", "startTime")) for pod in pods]
    limits = [at(pod, "spec", "activeDeadlineSeconds") for pod in pods]
    return replace(
        base,
        script=asked.image,
        submit_s=unix_time(at(thing, "metadata", "creationTimestamp")) or 0.0,
        start_s=max((each for each in starts if each is not None), default=None) if placed else None,
        time_limit_s=max((float(each) for each in limits if each is not None), default=None),
        gpus=sum(many for _, many in base.holds) or asked.gpus,
        gpu_type=asked.gpu_type,
        nodes=len(base.holds) or max(1, asked.pods),
        unfit=asked.unfit,
        asks=asked.asks,
    )
