"""What pods of Kubernetes ask for and hold: GPUs, parts of them, and other accelerators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gpusched_env.errors import InputError
from gpusched_operations.live.kubernetes_objects import (
    Object,
    full_name,
    mapping_at,
    objects_at,
    quantity,
)
from gpusched_operations.live.state import LiveNode
from gpusched_operations.service.gpu_names import is_part_of_gpu

TYPE_LABELS = (
    *("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name", "accelerator"),
    *("gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator"),
)
"""Labels of nodes that name the type of their GPUs, and node selectors that ask for one."""

NO_TYPE = "gpu"
WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
SLICE = "nvidia.com/mig-"
"""Begins the resources that are slices of MIG."""
SHARED = "nvidia.com/gpu.shared"
FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations of KAI-Scheduler with which a pod asks for a part of a GPU."""
GROUP_OF_GPU = "runai-gpu-group"
"""The label of KAI-Scheduler that names the GPU which pods share, and which a pod of its own reserves for them."""
NOT_READ = "which is not read"
CLAIMS = "resource claims, which are not read"
OVER = ("Succeeded", "Failed")
_NO_ACCELERATOR = re.compile(
    r"^[^/]*$|kubernetes\.io/|(^|[/._\-])(rdma|infiniband|sriov|roce|mlnx|mellanox|hostdev|vhost|(ib|hca|efa|fuse|kvm|tun)\b)"
)
_NO_COUNT = re.compile(r"mem|core|percent")
"""Resources that are an amount of each GPU of a pod, not a number of GPUs."""


class PodGpus(NamedTuple):
    """What a pod asks for.

    Attributes:
        many: Whole GPUs.
        asks: What it asks for that is no whole GPU, in words; empty: nothing.
        shares: GPUs of which it has a share.
        slices: Slices of MIG.
    """

    many: int = 0
    asks: str = ""
    shares: int = 0
    slices: int = 0


def is_accelerator(name: object) -> bool:
    """Return whether a resource may be an accelerator: one of a device plugin, and not of networks and the like."""
    return not _NO_ACCELERATOR.search(str(name))


def gpu_type_of(labels: Mapping[str, Any]) -> str | None:
    return next((str(labels[name]) for name in TYPE_LABELS if labels.get(name)), None)


def gpus_of_pod(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> PodGpus:
    """Return what a pod asks for, by the specification of it or of its template.

    Raises:
        InputError: A number cannot be read.
    """
    fraction = next((f"{name} = {annotations[name]}" for name in FRACTIONS if annotations.get(name)), "")
    parts, most = {fraction} - {""}, Counter[str]()
    for together, kind in ((True, "containers"), (False, "initContainers")):
        asked: Counter[str] = Counter()
        for container in objects_at(spec, kind):
            own = _asked_by(container)
            asked = asked + own if together else asked | own
        most |= asked
    parts |= {name for name in most if name not in WHOLE_GPUS}
    whole = sum(most[name] for name in WHOLE_GPUS)
    slices = sum(many for name, many in most.items() if name.startswith(SLICE))
    shares = sum(most[name] for name in parts if not name.startswith(SLICE) and not _NO_COUNT.search(name))
    if whole and any(map(_NO_COUNT.search, parts)):  # so much of each of its GPUs
        shares, whole = shares + whole, 0
    if fraction:
        shares += quantity("gpu-fraction-num-devices", annotations.get("gpu-fraction-num-devices", 1))
    asks = [_in_words(parts)] if parts else []
    return PodGpus(whole, "; ".join(asks + [CLAIMS] * bool(objects_at(spec, "resourceClaims"))), shares, slices)


def _asked_by(container: Object) -> Counter[str]:
    asked = {**mapping_at(container, "resources", "limits"), **mapping_at(container, "resources", "requests")}
    found = Counter[str]()
    for name, value in asked.items():
        if is_accelerator(name) and str(value) not in ("", "0"):
            found[name] = 1 if _NO_COUNT.search(name) else quantity(name, value)
    return found


def _in_words(parts: Iterable[str]) -> str:
    known = sorted(part for part in parts if "/" not in part or part.startswith("nvidia.com/"))
    others = sorted(part for part in parts if part not in known)
    said = [f"parts of GPUs: {', '.join(known)}"] if known else []
    return "; ".join([*said, f"{', '.join(others)}, {NOT_READ}"] if others else said)


class AskedByPods:
    """What the pods of a job ask for, in all.

    Attributes:
        pods: Pods that ask for GPUs.
        gpus: GPUs of all of them.
        gpu_type: The type that they ask for; None: any.
        image: The image of the first.
        asks: What they ask for that is no whole GPU; empty: nothing.
        unfit: Why such a job goes to no policy; empty: it may.
    """

    def __init__(self) -> None:
        self.pods, self.gpus, self.image, self.asks, self.unfit = 0, 0, "", "", ""
        self.gpu_type: str | None = None
        self._each: set[int] = set()

    def add(self, spec: Mapping[str, Any], annotations: Mapping[str, Any], count: int) -> None:
        asked = gpus_of_pod(spec, annotations)
        self.asks = self.asks or asked.asks
        self.image = self.image or next((str(each.get("image", "")) for each in objects_at(spec, "containers")), "")
        if not asked.many or not count:
            return
        self.pods, self.gpus = self.pods + count, self.gpus + count * asked.many
        self._each.add(asked.many)
        if len(self._each) > 1:
            self.unfit = f"its pods ask for {' and '.join(map(str, sorted(self._each)))} GPUs"
        self.gpu_type = self.gpu_type or gpu_type_of(mapping_at(spec, "nodeSelector"))
        if self.gpu_type is not None and is_part_of_gpu(self.gpu_type):
            self.asks = self.asks or f"parts of GPUs: {self.gpu_type}"


class HeldByPods:
    """What pods hold of nodes, as `LiveJob` has it: `holds` and `parts`.

    Args:
        nodes: The nodes, by name, with what a GPU that a pod asks for is on them: `whole`, a `share` or a `slice`.
    """

    def __init__(self, nodes: Mapping[str, tuple[LiveNode, str]]) -> None:
        self.holds, self._nodes = Counter[str](), nodes
        self._parts: dict[tuple[str, str], int] = {}

    def parts(self) -> tuple[tuple[str, str, int], ...]:
        return tuple((node, gpu, many) for (node, gpu), many in sorted(self._parts.items()) if many)

    def add(self, node: str, name: str, asked: PodGpus, groups: Iterable[str] = ()) -> None:
        """Add what a pod holds, by its name, what it asks for, and the names of GPUs that it shares; none: unknown."""
        many, shares, slices = asked.many, asked.shares, asked.slices
        kind = self._nodes[node][1] if node in self._nodes else "whole"
        if kind != "whole":
            many, shares, slices = 0, shares + many * (kind == "share"), slices + many * (kind == "slice")
        self.holds[node] += many
        self._add(node, "", slices)
        for gpu in list(groups) or [f"{name} {number}" for number in range(min(shares, self._gpus(node)))]:
            self._add(node, gpu, int(shares > 0))

    def add_pod(self, pod: Object, node: str) -> None:
        """Add what a pod holds; one of which that cannot be read holds all GPUs of its node."""
        try:
            asked = pod_gpus(pod)
        except InputError:
            asked = PodGpus(shares=self._gpus(node))
        self.add(node, full_name(pod), asked, groups_of(pod) if asked.shares else ())

    def _add(self, node: str, gpu: str, many: int) -> None:
        self._parts[node, gpu] = self._parts.get((node, gpu), 0) + many

    def _gpus(self, node: str) -> int:
        return self._nodes[node][0].gpus if node in self._nodes else 0


def pod_gpus(pod: Object) -> PodGpus:
    return gpus_of_pod(mapping_at(pod, "spec"), mapping_at(pod, "metadata", "annotations"))


def groups_of(pod: Object) -> list[str]:
    """Return the names of the GPUs that a pod shares with others, or that it reserves for them."""
    labels = mapping_at(pod, "metadata", "labels")
    return [str(value) for name, value in labels.items() if str(name).partition("/")[0] == GROUP_OF_GPU]


def is_reservation(pod: Object) -> bool:
    """Return whether a pod only reserves a GPU for the pods that share it."""
    annotations = mapping_at(pod, "metadata", "annotations")
    return bool(groups_of(pod)) and not any(annotations.get(name) for name in FRACTIONS)
