"""Objects of Kubernetes as texts, and what nodes and pods among them say of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple

from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.parsing import parse_json, unpack
from gpusched_operations.live.state import LiveNode

Object = Mapping[str, Any]

ANNOTATION = "gpusched"
"""The annotation of a job that stands for a comment: `gpusched: app=NAME epochs=90 checkpoint=yes`."""

TYPE_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name", "accelerator")
"""Labels of nodes that tell the type of their GPUs, and node selectors that ask for one."""

NO_TYPE = "gpu"
WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_OF_YAML = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What loading YAML raises beside its own error, such as for an empty `!!int`."""


def objects_of(text: str, field: str) -> list[Object]:
    """Return the objects of a text of YAML documents or JSON, those of lists one by one."""
    try:
        yaml = import_module("yaml")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyyaml", "cli", "objects of Kubernetes") from error
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = [parse_json(text)] if text.lstrip().startswith("{") else list(yaml.load_all(text, loader))
    except (yaml.YAMLError, *_OF_YAML) as error:
        raise InputError(field, text, f"YAML or JSON ({error})") from None
    found: list[Object] = []
    for document in documents:
        if document is None:
            continue
        listed = document.get("items") if isinstance(document, dict) and "items" in document else [document]
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise InputError(field, text, "objects of Kubernetes, or lists of them")
        found += listed
    return found


def unpacked(data: bytes, field: str) -> Any:
    """Return the JSON of a file that may be packed, as a ZIP archive of one file or by gzip."""
    try:
        return parse_json(unpack(data))
    except ValueError as error:
        raise InputError(
            field, "...", f"JSON, a ZIP archive of one JSON file, or one packed by gzip ({error})"
        ) from None


def at(value: Any, *names: str) -> Any:
    """Return what stands in a value at nested names; None if it is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: Any, *names: str) -> Mapping[str, Any]:
    found = at(value, *names)
    return found if isinstance(found, Mapping) else {}


def objects_at(value: Any, *names: str) -> list[Object]:
    found = at(value, *names)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def full_name(thing: Object) -> str:
    return f"{at(thing, 'metadata', 'namespace') or 'default'}/{at(thing, 'metadata', 'name')}"


def whole(field: str, value: Any) -> int:
    """Return a count, a whole number from 0 on; None counts as 0."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31):
        raise InputError(field, value, "a whole number from 0 on")
    return value or 0


@contextmanager
def as_written(field: str) -> Iterator[None]:
    """Turn what objects of another form raise into one error."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(field, repr(error), "objects with fields as Kubernetes writes them") from error


def unix_time(value: Any) -> float | None:
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InputError("time", value, "a time such as 2026-11-26T08:00:00Z") from None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def condition(thing: Object, kind: str) -> Object:
    return next((each for each in objects_at(thing, "status", "conditions") if each.get("type") == kind), {})


def holds_true(thing: Object, kind: str) -> bool:
    return condition(thing, kind).get("status") in ("True", True)


def gpu_type_of(labels: Mapping[str, Any]) -> str | None:
    return next((str(labels[name]) for name in TYPE_LABELS if labels.get(name)), None)


class PodGpus(NamedTuple):
    """GPUs of a pod: whole ones, one of which it has a part counts as one; and which parts or slices; empty: none."""

    many: int
    parts: str = ""


def gpus_of_pod(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> PodGpus:
    """Return the GPUs that a pod asks for, by the specification of it or of its template."""
    fraction = next((name for name in ("gpu-fraction", "gpu-memory") if annotations.get(name)), "")
    parts, most = {f"{fraction} = {annotations[fraction]}"} if fraction else set(), 0
    for together, kind in ((True, "containers"), (False, "initContainers")):
        counts = [0]
        for container in objects_at(spec, kind):
            asked = {**mapping_at(container, "resources", "limits"), **mapping_at(container, "resources", "requests")}
            counts.append(sum(int(str(asked[name])) for name in WHOLE_GPUS if str(asked.get(name, "")).isdigit()))
            parts |= {name for name in asked if name.startswith("nvidia.com/") and name not in WHOLE_GPUS}
        most = max(most, sum(counts) if together else max(counts))
    return PodGpus(max(most, int(bool(fraction))), ", ".join(sorted(parts)))


class AskedByPods:
    """What the pods of a job ask for, in all.

    Attributes:
        pods: Pods that ask for GPUs.
        gpus: GPUs of all of them.
        gpu_type: The type that they ask for; None: any.
        image: The image of the first.
        unfit: Why no policy can be told of such a job; empty: it can.
    """

    def __init__(self) -> None:
        self.pods, self.gpus, self.image, self.unfit = 0, 0, "", ""
        self.gpu_type: str | None = None
        self._each: set[int] = set()

    def add(self, spec: Mapping[str, Any], annotations: Mapping[str, Any], count: int) -> None:
        asked = gpus_of_pod(spec, annotations)
        if asked.parts:
            self.unfit = f"asks for parts of GPUs: {asked.parts}"
        if not asked.many:
            return
        self.pods, self.gpus = self.pods + count, self.gpus + count * asked.many
        self._each.add(asked.many)
        if len(self._each) > 1:
            self.unfit = f"its pods ask for {' and '.join(map(str, sorted(self._each)))} GPUs"
        self.gpu_type = self.gpu_type or gpu_type_of(mapping_at(spec, "nodeSelector"))
        self.image = self.image or next((str(each.get("image", "")) for each in objects_at(spec, "containers")), "")


def live_nodes(objects: Iterator[Object], partitions: Any) -> list[LiveNode]:
    """Return the nodes; `partitions` gives the queues of a node by its labels."""
    found = []
    for node in objects:
        labels = mapping_at(node, "metadata", "labels")
        room = mapping_at(node, "status", "allocatable") or mapping_at(node, "status", "capacity")
        ready = not objects_at(node, "status", "conditions") or holds_true(node, "Ready")
        closed = bool(at(node, "spec", "unschedulable"))
        found.append(
            LiveNode(
                name=str(at(node, "metadata", "name")),
                gpu_type=gpu_type_of(labels) or NO_TYPE,
                gpus=sum(int(str(room[name])) for name in WHOLE_GPUS if str(room.get(name, "")).isdigit()),
                available=ready and not closed,
                on=True,
                state=("Ready" if ready else "NotReady") + (", SchedulingDisabled" if closed else ""),
                partitions=tuple(partitions(labels)),
            )
        )
    return found
