"""The nodes of a Slurm cluster, from `scontrol show nodes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_operations.live.slurm_text import SHARES, gpus_of, gres_of
from gpusched_operations.live.state import LiveNode
from gpusched_operations.service.gpu_names import built_in_gpu_type, is_part_of_gpu

NO_TYPE = "gpu"
"""GPU type of nodes of which Slurm tells none, neither by GRES nor by a feature."""

_FIELDS = re.compile(
    r"(?:^|\s)(NodeName|Gres|GresUsed|State|Partitions|ActiveFeatures|CfgTRES|AllocTRES|CPUAlloc|CPUEfctv|CPUTot)=(\S*)"
)
_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "!": "POWER_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_USABLE = {"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "CLOUD", "DYNAMIC_NORM", "POWERED_DOWN"}
_USABLE |= {"POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP", "PERFCTRS", "BLOCKED"}
_OFF = {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"}


def nodes_of(text: str) -> dict[LiveNode, frozenset[str]]:
    """Read nodes and their features from the text of `scontrol show nodes`, with or without `--oneliner` or `--json`.

    A node whose GPUs cannot be read has none, and is not available.
    """
    if text.lstrip().startswith("{"):
        records = [_of_json(record) for record in _json_nodes(text)]
    else:
        parts = re.split(r"(?m)^(?=NodeName=)", text)
        records = [_of_text(part) for part in parts if part.startswith("NodeName=")]
        if not records and text.strip() not in ("", "No nodes in the system"):
            raise InputError("nodes", text.strip(), "what `scontrol show nodes` writes")
    return {_node(record): frozenset(_words(record, "ActiveFeatures")) for record in records}


def _json_nodes(text: str) -> list[Mapping[str, Any]]:
    try:
        found = parse_json(text).get("nodes")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError("nodes", text, "what `scontrol show nodes --json` writes")
    return found


def _of_text(part: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _FIELDS.findall(part):
        found.setdefault(name, "" if value == "(null)" else value)
    return found


def _of_json(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a record as the text has them."""

    def joined(name: str, between: str) -> str:
        value = record.get(name, "")
        return between.join(map(str, value)) if isinstance(value, list) else str(value or "")

    states = [joined("state", "+"), joined("state_flags", "+")]
    return {
        "NodeName": joined("name", ","),
        "Gres": joined("gres", ","),
        "GresUsed": joined("gres_used", ","),
        "CfgTRES": joined("tres", ","),
        "AllocTRES": joined("tres_used", ","),
        "CPUAlloc": joined("alloc_cpus", ","),
        "CPUTot": joined("effective_cpus" if record.get("effective_cpus") else "cpus", ","),
        "State": "+".join(state for state in states if state).upper(),
        "Partitions": joined("partitions", ","),
        "ActiveFeatures": joined("active_features", ","),
    }


def _words(record: Mapping[str, str], field: str) -> tuple[str, ...]:
    return tuple(word for word in record.get(field, "").split(",") if word)


def _node(record: Mapping[str, str]) -> LiveNode:
    state = record.get("State", "")
    words = set(re.findall(r"[A-Z_]+", state.upper())) | {_MARKS[mark] for mark in state if mark in _MARKS}
    whole: dict[str, int] = {}
    parts: dict[str, int] = {}
    held, unread = _Held(), ""
    try:
        for gpus in gpus_of(record.get("Gres", "")):
            kind = parts if is_part_of_gpu(gpus.gpu_type or "") else whole
            kind[gpus.gpu_type or ""] = kind.get(gpus.gpu_type or "", 0) + gpus.many
        held = _held(record, bool(parts))
    except (InputError, ValueError) as error:
        whole, parts, unread = {}, {}, f" ({error})"
    features = [name for name in _words(record, "ActiveFeatures") if built_in_gpu_type(name)]
    return LiveNode(
        name=record["NodeName"],
        gpu_type="+".join(sorted(filter(None, whole))) or (features[0] if len(features) == 1 else NO_TYPE),
        gpus=sum(whole.values()),
        available=bool(words) and words <= _USABLE and not unread,
        on=not words & _OFF,
        state=state + unread,
        partitions=_words(record, "Partitions"),
        parts=tuple(sorted(parts.items())),
        allocated=held.gpus,
        allocated_any=held.any,
        allocated_shares=held.shares,
        has_cpus=not _cpus_are_held(record, words),
    )


def _cpus_are_held(record: Mapping[str, str], words: set[str]) -> bool:
    """Return whether jobs hold all of a node's CPUs, so that no other starts there, whatever GPUs are free."""
    held, there = record.get("CPUAlloc", ""), record.get("CPUEfctv") or record.get("CPUTot", "")
    if held.isdecimal() and there.isdecimal():
        return int(held) >= int(there) > 0
    return "ALLOCATED" in words


class _Held(NamedTuple):
    """What a node tells is held: GPUs, GPUs or parts without a type, and shares that are on no named GPU."""

    gpus: int = 0
    any: int = 0
    shares: int = 0


def _held(record: Mapping[str, str], has_parts: bool) -> _Held:
    """Return what a node tells is held: by `GresUsed`, which only `--details` writes, else by `AllocTRES`."""
    used, allocated = (_told(record.get(field, ""), has_parts) for field in ("GresUsed", "AllocTRES"))
    shares = used.shares if gres_of(record.get("GresUsed", "")) else allocated.shares
    return _Held(max(used.gpus, allocated.gpus), max(used.any, allocated.any), shares)


def _told(text: str, has_parts: bool) -> _Held:
    gpus = [each for each in gpus_of(text) if not is_part_of_gpu(each.gpu_type or "")]
    untyped = sum(each.many for each in gpus if each.gpu_type is None) if has_parts else 0
    on_gpus = {number for each in gpus for number in each.numbers}
    shares = [each for each in gres_of(text) if each.kind in SHARES]
    shared = {number for each in shares for number in each.numbers} - on_gpus
    of_all = sum(each.many for each in gpus_of(text)) if untyped else 0
    return _Held(
        sum(each.many for each in gpus) - untyped + len(shared),
        of_all,
        sum(each.many for each in shares if not each.numbers),
    )
