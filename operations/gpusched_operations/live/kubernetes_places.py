"""On which nodes of Kubernetes the pods of a job may be, by taints of nodes and by labels that pods ask for.

A policy knows types of GPUs, and no nodes: a job may use the types of which it may be on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_gpus import TYPE_LABELS, WHOLE_GPUS, gpus_of_pod
from gpusched_operations.live.kubernetes_objects import Object, at, mapping_at, objects_at
from gpusched_operations.live.kubernetes_state import UNREADABLE, Nodes, in_queue, in_words
from gpusched_operations.live.state import LiveJob, LiveNode

_KEEPS_OFF = ("NoSchedule", "NoExecute")
_CORDONED = "node.kubernetes.io/unschedulable"


def specs_with_gpus(pods: Iterable[Object], tolerations: Sequence[Object] = ()) -> list[Mapping[str, Any]]:
    """Return the specifications of pods, or of templates of pods, that ask for whole GPUs.

    Args:
        tolerations: Further tolerations that these pods get.
    """
    found: list[Mapping[str, Any]] = []
    for pod in pods:
        spec = mapping_at(pod, "spec")
        try:
            asked = gpus_of_pod(spec, mapping_at(pod, "metadata", "annotations")).many
        except InputError:
            continue
        if asked:
            found.append({**spec, "tolerations": [*objects_at(spec, "tolerations"), *tolerations]})
    return found


def placed(
    objects: Iterable[Object], nodes: Nodes, jobs: list[LiveJob], specs: Mapping[str, list[Mapping[str, Any]]]
) -> tuple[Nodes, list[LiveJob]]:
    """Return the nodes and jobs, with what taints and labels allow.

    A node is not available if it has a taint which not more than half of the jobs of its queues tolerate; jobs that
    are over do not count. A job that waits or runs gets the types of GPUs of whose available nodes it may be on all; it
    is unfit where there are none, or where what it holds is of another type.

    Args:
        objects: The objects of the nodes.
        specs: What the pods with GPUs of each job ask for, by id of the job.
    """
    raw = {str(at(each, "metadata", "name")): each for each in objects}
    found: dict[str, tuple[LiveNode, str]] = {}
    for name, (node, kind) in nodes.items():
        own = [specs[job.id] for job in jobs if job.phase != "ended" and specs.get(job.id) and in_queue(job, node)]
        taint = next((each for each in _taints(raw[name]) if 2 * _tolerating(own, each) <= len(own)), None)
        why = "" if taint is None else f" (taint {_text(taint)}, which not more than half of the jobs tolerate)"
        found[name] = (replace(node, available=node.available and not why, state=node.state + why), kind)
    return found, [_restricted(job, specs.get(job.id, []), found, raw) for job in jobs]


def _restricted(job: LiveJob, specs: Sequence[Mapping[str, Any]], nodes: Nodes, raw: Mapping[str, Object]) -> LiveJob:
    if job.phase not in ("pending", "running") or job.unfit or not specs:
        return job
    asked = None if job.gpu_type is None else job.gpu_type.split("|")
    there = [
        node
        for node, _ in nodes.values()
        if node.gpus and node.available and in_queue(job, node) and (asked is None or node.gpu_type in asked)
    ]
    try:
        why = {
            node.gpu_type: f"{said}, as node {node.name}"
            for node in there
            if (said := next((text for spec in specs if (text := _may_not(spec, raw[node.name]))), ""))
        }
    except UNREADABLE as error:
        return replace(job, unfit=in_words(error))
    if not why:
        return job
    held = {nodes[name][0].gpu_type for name, _ in job.holds if name in nodes}
    types = ({node.gpu_type for node in there} | held) - why.keys()
    if held & why.keys() or not types:
        return replace(job, unfit=next(text for name, text in why.items() if not held & why.keys() or name in held))
    return replace(job, gpu_type="|".join(sorted(types)))


def _taints(node: Object) -> list[Object]:
    """Return the taints that keep pods off, but for those of cordoned nodes and those that mean nodes with GPUs."""
    found = objects_at(node, "spec", "taints")
    return [
        each for each in found if each.get("effect") in _KEEPS_OFF and each.get("key") not in (_CORDONED, *WHOLE_GPUS)
    ]


def _text(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _tolerating(jobs: Iterable[Sequence[Mapping[str, Any]]], taint: Object) -> int:
    return sum(all(_tolerates(spec, taint) for spec in specs) for specs in jobs)


def _tolerates(spec: Mapping[str, Any], taint: Object) -> bool:
    return any(
        each.get("effect") in (None, "", taint.get("effect"))
        and (
            (each.get("operator") == "Exists" and each.get("key") in (None, "", taint.get("key")))
            or (
                each.get("operator") in (None, "", "Equal")
                and each.get("key") == taint.get("key")
                and (each.get("value") or "") == (taint.get("value") or "")
            )
        )
        for each in objects_at(spec, "tolerations")
    )


def _may_not(spec: Mapping[str, Any], node: Object) -> str:
    """Return why a pod may not be on a node; empty: it may."""
    labels = mapping_at(node, "metadata", "labels")
    for taint in _taints(node):
        if not _tolerates(spec, taint):
            return f"does not tolerate the taint {_text(taint)} of nodes"
    for key, value in mapping_at(spec, "nodeSelector").items():
        if key not in TYPE_LABELS and str(labels.get(key)) != str(value):
            return f"asks for nodes with {key}={value}, which is not on all nodes"
    required = mapping_at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = objects_at(required, "nodeSelectorTerms")
    fields = {"metadata.name": at(node, "metadata", "name")}
    good = any(
        all(_holds(each, labels) for each in objects_at(term, "matchExpressions"))
        and all(_holds(each, fields) for each in objects_at(term, "matchFields"))
        for term in terms
    )
    keys = {str(each.get("key")) for term in terms for each in objects_at(term, "matchExpressions")}
    named = ", ".join(sorted(keys)) or "a name"
    return "" if good or not terms else f"asks for nodes by {named} (node affinity), which not all nodes have"


def _holds(expression: Object, labels: Mapping[str, Any]) -> bool:
    """Return whether an expression holds for labels; one that is not known does not.

    Raises:
        InputError: Its key is no text.
    """
    key, listed = expression.get("key"), expression.get("values")
    if not isinstance(key, str):
        raise InputError("key of a node affinity", key, "the name of a label")
    values = [str(each) for each in listed] if isinstance(listed, list) else []
    own = None if key not in labels else str(labels[key])
    match expression.get("operator"):
        case "In":
            return own in values
        case "NotIn":
            return own not in values
        case "Exists":
            return own is not None
        case "DoesNotExist":
            return own is None
        case "Gt" | "Lt" as order if own is not None and own.isdecimal() and values and values[0].isdecimal():
            return int(own) > int(values[0]) if order == "Gt" else int(own) < int(values[0])
    return False
