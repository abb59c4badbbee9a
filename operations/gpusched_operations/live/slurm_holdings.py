"""What a job of Slurm asks for and holds: GPUs, slices of them and shares of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gpusched_operations.live.slurm_text import SHARES, GresGpus, gpus_of, gres_of, number_of, other_gres
from gpusched_operations.service.gpu_names import is_part_of_gpu

GRES_FIELDS = ("tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "tres_req_str", "tres_alloc_str")


class Holdings(NamedTuple):
    """What a job holds, as `LiveJob` has it: `holds`, `gpu_numbers`, `parts`."""

    gpus: tuple[tuple[str, int], ...]
    numbers: tuple[tuple[str, tuple[int, ...]], ...]
    parts: tuple[tuple[str, str, int], ...]


def whole_number(record: Mapping[str, Any], field: str) -> int | None:
    value = number_of(record.get(field), field)
    return None if value is None else int(value)


def gres_in(record: Mapping[str, Any], field: str) -> tuple[GresGpus, ...]:
    return devices_of(str(record.get(field) or ""))


def devices_of(text: str) -> tuple[GresGpus, ...]:
    """Return the GPUs, and slices and shares of them, of a text."""
    return (*gpus_of(text), *(each for each in gres_of(text) if each.kind in SHARES))


def is_whole(gres: GresGpus) -> bool:
    return gres.kind == "gpu" and not is_part_of_gpu(gres.gpu_type or "")


def asks_besides(record: Mapping[str, Any], asked: tuple[GresGpus, ...]) -> str:
    """Return what a job asks for that is no whole GPU."""
    parts = [":".join(filter(None, (each.kind, each.gpu_type, str(each.many)))) for each in asked if not is_whole(each)]
    if parts:
        return f"parts of GPUs: {', '.join(parts)}"
    others = [] if asked else [text for field in GRES_FIELDS if (text := other_gres(str(record.get(field) or "")))]
    return f"{others[0]}, which is not read" if others else ""


def asked_by(record: Mapping[str, Any], nodes: int) -> tuple[GresGpus, ...]:
    tasks, sockets = whole_number(record, "tasks") or 1, whole_number(record, "sockets_per_node") or 1
    of_each = {"tres_per_node": nodes, "tres_per_job": 1, "tres_per_task": tasks, "tres_per_socket": nodes * sockets}
    for field, many in of_each.items():
        found = gres_in(record, field)
        if found:
            return tuple(gpus._replace(many=many * gpus.many) for gpus in found)
    return gres_in(record, "tres_req_str") or gres_in(record, "tres_alloc_str")


def holdings(record: Mapping[str, Any], placed: tuple[str, ...], asked: tuple[GresGpus, ...], name: str) -> Holdings:
    """Return the GPUs that a job holds on each of its nodes, their numbers where Slurm tells them, and its parts."""
    details = [devices_of(str(each)) for each in record.get("gres_detail") or ()]
    allocated = gres_in(record, "tres_alloc_str")
    if len(details) != len(placed) or not any(details) or _many(details) < _many([allocated]):
        # Slurm does not tell all: they are held on all nodes alike
        details = [_on_each(allocated or asked, max(1, len(placed)))] * len(placed)
    counts = [_many([each]) for each in details]
    numbers = [tuple(sorted(n for gpus in each if is_whole(gpus) for n in gpus.numbers)) for each in details]
    pairs = [(node, gres) for node, each in zip(placed, details, strict=True) for gres in each]
    parts = [(node, *part) for node, gres in pairs for part in _parts(gres, name)]
    return Holdings(
        tuple((node, count) for node, count in zip(placed, counts, strict=True) if count),
        tuple((node, each) for node, each in zip(placed, numbers, strict=True) if each),
        tuple(parts),
    )


def _many(details: Iterable[tuple[GresGpus, ...]]) -> int:
    return sum(gpus.many for each in details for gpus in each if is_whole(gpus))


def _on_each(held: tuple[GresGpus, ...], nodes: int) -> tuple[GresGpus, ...]:
    return tuple(gres._replace(many=-(-gres.many // nodes), numbers=()) for gres in held)


def _parts(gres: GresGpus, name: str) -> Iterator[tuple[str, int]]:
    """Return on which GPUs the parts of a resource are, and how many; a share of which no number is told is on one."""
    if gres.kind == "gpu":
        if gres.many and not is_whole(gres):
            yield "", gres.many
        return
    for place, number in enumerate(gres.numbers or ((f"of {name}",) if gres.many else ())):
        yield str(number), 0 if place else gres.many
