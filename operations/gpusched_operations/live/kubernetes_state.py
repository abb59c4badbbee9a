"""What Kueue and KAI-Scheduler have in common: nodes, and the pods that hold what there is of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_gpus import (
    CLAIMS,
    NOT_READ,
    OVER,
    AskedByPods,
    HeldByPods,
    is_reservation,
    pod_gpus,
)
from gpusched_operations.live.kubernetes_objects import (
    ANNOTATION,
    Object,
    at,
    full_name,
    mapping_at,
    objects_at,
    unix_time,
    whole,
)
from gpusched_operations.live.occupancy import HOLDING, occupancy
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode

Nodes: TypeAlias = Mapping[str, tuple[LiveNode, str]]
UNREADABLE = (InputError, ValueError, LookupError, TypeError, AttributeError, OverflowError)
CANNOT_BE_READ = "what cannot be read"
_QUOTA = re.compile(
    r"quota|cohort|borrow|overlimit|over its limit|maximum capacity|inadmissible|inactive", re.IGNORECASE
)
"""What the reasons of Kueue and KAI-Scheduler name where a job waits for a quota, which is not modelled."""
_TIMES = {"schedule", "schedules"}
_NUMBERS = ("replicas", "parallelism")
"""Fields beside a template: how many it is a template of."""
_NO_FLAVOUR = re.compile(
    r"untolerated|affinity|does(n't| not) exist|not found|unavailable in|validation", re.IGNORECASE
)
"""What they name where no GPU would do: a queue, a flavour or its nodes."""


def cluster_of_pods(
    manager: str, read_s: float, nodes: Nodes, pods: Iterable[Object], bound: Mapping[str, Any], jobs: list[LiveJob]
) -> LiveCluster:
    """Return the cluster: with the GPUs that pods hold of each node, and those of jobs whose nodes are not known."""
    if not any(node.gpus or node.parts for node, _ in nodes.values()):
        raise InputError(f"--{manager}", f"{len(nodes)} nodes", "objects of kind Node with GPUs among them")
    allocated: Counter[str] = Counter()
    for pod in pods:
        node = node_of(pod, bound)
        with suppress(InputError):
            allocated[node] += pod_gpus(pod).many if node else 0
    counted = [
        replace(node, allocated=min(node.gpus, allocated[name]) if kind != "slice" else 0)
        for name, (node, kind) in nodes.items()
    ]
    names: Counter[str] = Counter()
    listed = []
    for job in jobs:
        if job.wants_gpus or job.unfit:
            names[job.id] += 1
            listed.append(replace(job, id=f"{job.id} ({names[job.id]})") if names[job.id] > 1 else job)
    return _with_lost(LiveCluster(manager, read_s, tuple(counted), tuple(listed)))


def _with_lost(cluster: LiveCluster) -> LiveCluster:
    """Return the cluster without the GPUs of jobs that run on unknown nodes, on each node that they may be on."""
    lost = [job for job in cluster.jobs if job.phase in HOLDING and not (job.holds or job.parts)]
    lost = [job for job in lost if job.gpus or (job.asks and not job.asks.endswith((NOT_READ, CLAIMS)))]
    held, nodes = occupancy(cluster), []
    for node in cluster.nodes:
        more = sum(job.gpus or node.gpus for job in lost if in_queue(job, node))
        allocated = min(node.gpus, held[node.name].held + more) if more else node.allocated
        nodes.append(replace(node, allocated=allocated))
    return replace(cluster, nodes=tuple(nodes))


def in_queue(job: LiveJob, node: LiveNode) -> bool:
    return not job.partition or not node.partitions or job.partition in node.partitions


def node_of(pod: Object, bound: Mapping[str, Any]) -> str:
    """Return the node that a pod is on, or is bound to; empty: none, or it is over."""
    node = at(pod, "spec", "nodeName") or bound.get(full_name(pod))
    return "" if at(pod, "status", "phase") in OVER else str(node or "")


def held_by_pods(pods: Iterable[Object], bound: Mapping[str, Any], nodes: Nodes) -> HeldByPods:
    held = HeldByPods(nodes)
    for pod in pods:
        node = node_of(pod, bound)
        if node:
            held.add_pod(pod, node)
    return held


def fields_of(held: HeldByPods) -> dict[str, Any]:
    """Return the fields of a job that have what it holds."""
    holds = tuple(sorted((node, many) for node, many in held.holds.items() if many))
    return {"holds": holds, "parts": held.parts()}


def comment_of(thing: Object) -> str:
    value = mapping_at(thing, "metadata", "annotations").get(ANNOTATION)
    return "" if value is None else f"{ANNOTATION} {value}"


def in_words(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else "fields that Kubernetes does not write"


def quota_named(reason: str) -> str:
    if _QUOTA.search(reason):
        return f"a quota, and quotas are not modelled: {reason}"
    return reason if _NO_FLAVOUR.search(reason) else ""


def pods_alone(pods: Iterable[Object], nodes: Nodes, why: str, bound: Mapping[str, Any] | None = None) -> list[LiveJob]:
    """Return pods as jobs that no policy gets: their GPUs are not free.

    Pods that only reserve a GPU for those that share it are none: what they hold shows in their nodes.
    """
    found = []
    for pod in pods:
        node = node_of(pod, bound or {})
        if is_reservation(pod) or at(pod, "status", "phase") in OVER:
            continue
        try:
            asks, unfit, gpus = pod_gpus(pod).asks, why, pod_gpus(pod).many
        except InputError as error:
            asks, unfit, gpus = CANNOT_BE_READ, str(error), 0
        name = str(at(pod, "metadata", "name"))
        times: dict[str, Any] = {}
        with suppress(InputError):
            submit_s = unix_time(at(pod, "metadata", "creationTimestamp")) or 0.0
            times = {"submit_s": submit_s, "start_s": unix_time(at(pod, "status", "startTime")) if node else None}
        made = LiveJob(full_name(pod), name, phase="running" if node else "pending", unfit=unfit, asks=asks, gpus=gpus)
        made = replace(made, **times, **fields_of(held_by_pods([pod], bound or {}, nodes)))
        if made.wants_gpus:
            found.append(made)
    return found


def suspended(objects: Iterable[Object], known: Container[str], why: str) -> list[LiveJob]:
    """Return suspended jobs of any kind that ask for GPUs as jobs that no policy gets: they have no pods.

    What makes jobs at given times, such as a CronJob, is none.

    Args:
        known: Full names of those that are listed already.
    """
    found = []
    for each in objects:
        spec = mapping_at(each, "spec")
        is_suspended = True in (spec.get("suspend"), at(spec, "runPolicy", "suspend")) and not spec.keys() & _TIMES
        if not is_suspended or full_name(each) in known or objects_at(each, "metadata", "ownerReferences"):
            continue
        made = LiveJob(full_name(each), str(at(each, "metadata", "name")), unfit=why)
        asked = AskedByPods()
        try:
            for pod, count in _pod_specs(spec):
                asked.add(pod, {}, count)
            made = replace(made, gpus=asked.gpus, asks=asked.asks)
        except InputError as error:
            made = replace(made, asks=CANNOT_BE_READ, unfit=str(error))
        if made.wants_gpus:
            found.append(made)
    return found


def _pod_specs(value: Any, count: int = 1) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Return the specifications of pods at any depth of an object, and how many pods each stands for."""
    if isinstance(value, Mapping):
        if "containers" in value:
            yield value, count
        own = next((name for name in _NUMBERS if "template" in value and value.get(name) is not None), None)
        many = count if own is None else count * whole(own, value[own])
        for name, each in value.items():
            yield from _pod_specs(each, many if name == "template" else count)
    elif isinstance(value, list):
        for each in value:
            yield from _pod_specs(each, count)
