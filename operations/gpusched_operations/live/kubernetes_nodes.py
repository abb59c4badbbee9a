"""What nodes of Kubernetes have, by what they offer and by labels: GPUs, parts of them, and other accelerators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_gpus import (
    CLAIMS,
    NO_TYPE,
    SHARED,
    TYPE_LABELS,
    WHOLE_GPUS,
    gpu_type_of,
    is_accelerator,
)
from gpusched_operations.live.kubernetes_objects import Object, at, holds_true, mapping_at, objects_at, quantity
from gpusched_operations.live.state import LiveNode
from gpusched_operations.service.gpu_names import sevenths

_COUNTS = (
    *("nvidia.com/gpu.count", "cloud.google.com/gke-accelerator-count", "karpenter.k8s.aws/instance-gpu-count"),
    "gpu.nvidia.com/count",
)
_REPLICAS = ("nvidia.com/gpu.replicas", "cloud.google.com/gke-max-shared-clients-per-gpu")
_PARTITION = re.compile(r"gke-gpu-partition-size$|^amd\.com/.*partition$")
"""Labels whose value is how each GPU of a node is divided; of those of AMD, spx is undivided."""
_REGISTER = re.compile(r"node-(nvidia|vgpu)-register$")


class _Devices(NamedTuple):
    """What a node has: whole GPUs, parts, what a GPU that a pod asks for is there, and why no job may start there."""

    gpus: int
    parts: tuple[tuple[str, int], ...] = ()
    kind: str = "whole"
    why: str = ""


def live_nodes(
    objects: Iterable[Object], partitions: Callable[[Mapping[str, Any]], Iterable[str]], slices: Iterable[Object] = ()
) -> dict[str, tuple[LiveNode, str]]:
    """Return the nodes by name, each with what a GPU that a pod asks for is there: `whole`, a `share` or a `slice`.

    Args:
        partitions: Gives the queues of a node by its labels.
        slices: The ResourceSlices, by which nodes offer GPUs to resource claims.
    """
    claimed, found = _claimed(slices), {}
    for node in objects:
        labels, name = mapping_at(node, "metadata", "labels"), str(at(node, "metadata", "name"))
        room = mapping_at(node, "status", "allocatable") or mapping_at(node, "status", "capacity")
        ready = not objects_at(node, "status", "conditions") or holds_true(node, "Ready")
        closed = bool(at(node, "spec", "unschedulable"))
        types = claimed.get(name, Counter())
        registered = _registered(mapping_at(node, "metadata", "annotations"))
        try:
            has = _devices(
                {"nvidia.com/gpu.count": registered, **labels} if registered else labels, room, sum(types.values())
            )
        except InputError as error:
            has = _Devices(0, why=str(error))
        gpu_type = gpu_type_of(labels) or next(iter(types), NO_TYPE)
        state = ("Ready" if ready else "NotReady") + (", SchedulingDisabled" if closed else "")
        found[name] = (
            LiveNode(
                name=name,
                gpu_type=re.sub("-SHARED$", "", gpu_type),
                gpus=has.gpus,
                available=ready and not closed and not has.why,
                state=state + (f" ({has.why})" if has.why else ""),
                partitions=tuple(partitions(labels)),
                parts=has.parts,
            ),
            has.kind,
        )
    return found


def _registered(annotations: Mapping[str, Any]) -> int:
    """Return the GPUs that a device plugin which shares them names in an annotation, such as those of HAMi; 0: none."""
    text = next((str(value) for name, value in annotations.items() if _REGISTER.search(str(name))), "")
    return len(set(re.findall(r"GPU-[0-9A-Za-z-]+", text)))


def _claimed(slices: Iterable[Object]) -> dict[str, Counter[str]]:
    """Return the types of the GPUs of each node that are offered to resource claims."""
    found: dict[str, dict[str, str]] = {}
    for each in slices:
        for device in objects_at(each, "spec", "devices") if "gpu" in str(at(each, "spec", "driver")) else ():
            has = mapping_at(device, "attributes") or mapping_at(device, "basic", "attributes")
            if at(has, "type", "string") in (None, "gpu"):
                own = found.setdefault(str(at(each, "spec", "nodeName")), {})
                own[str(device.get("name"))] = str(at(has, "productName", "string") or NO_TYPE)
    return {node: Counter(devices.values()) for node, devices in found.items()}


def _devices(labels: Mapping[str, Any], room: Mapping[str, Any], claimed: int) -> _Devices:
    """Return what a node has; labels give the number of GPUs where each is offered several times."""
    offered = {name: quantity(name, value) for name, value in room.items() if is_accelerator(name)}
    there = sum(offered.pop(name, 0) for name in WHOLE_GPUS)
    shares = offered.pop(SHARED, 0)
    others = tuple(sorted((name, many) for name, many in offered.items() if many))
    count, product = _label(labels, _COUNTS), str(labels.get(TYPE_LABELS[0], ""))
    replicas = _label(labels, _REPLICAS) or 1
    divided = next((f"{each}" for name, each in labels.items() if _PARTITION.search(str(name))), "")
    divided = "" if divided.lower().startswith("spx") else divided
    if not there and not shares:
        why = f"its GPUs are asked for by {CLAIMS}" if claimed else "it offers none of its GPUs"
        gpus = claimed or (0 if others else count or 0)
        return _Devices(gpus, others, "whole", why if gpus else "")
    if divided or sevenths(product) or labels.get("nvidia.com/vgpu.present") in ("true", True):
        return _Devices(0, (*others, (divided or product or "vGPU", there)), "slice")
    shared = shares or replicas > 1 or product.endswith("-SHARED") or (count is not None and there > count)
    if not shared and labels.get("nvidia.com/gpu.sharing-strategy") in (None, "none", ""):
        return _Devices(there, others)
    gpus = count if count is not None else (there + shares) // replicas if replicas > 1 else 0
    why = "" if gpus else "its GPUs are shared, and no label gives their number"
    return _Devices(gpus, (*others, (f"shares of {gpus or 'unknown'} GPUs", there + shares)), "share", why)


def _label(labels: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return next((quantity(name, labels[name]) for name in names if name in labels), None)
