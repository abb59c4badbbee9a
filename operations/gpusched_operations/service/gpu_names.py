"""Which GPU type of the model stands for the name that a cluster manager has for one.

Nothing here needs compiled functions: what a driver did must be undone where none can be compiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from typing import TypeVar

from gpusched_env.workload.tables import SLICE, read_table

Value = TypeVar("Value")
_SLICE = re.compile(SLICE, re.IGNORECASE)
_VIRTUAL = re.compile(r"(^|[^a-z])(v?grid|vgpu)([^a-z]|$)|[-_](?<!\d)\d{1,2}[qcab]$|-shared$", re.IGNORECASE)
_PLAIN = re.compile(r"[\w .:/+-]+")


def is_part_of_gpu(name: str) -> bool:
    """Return whether a name is that of a logical device: a slice of MIG (`1g.5gb`), a virtual or a shared GPU."""
    return bool(_SLICE.search(name) or _VIRTUAL.search(name))


def sevenths(name: str) -> int:
    """Return how many sevenths of a GPU a slice of MIG is; 0: it is none."""
    found = _SLICE.search(name)
    return int(found[1]) if found else 0


@cache
def built_in_gpu_type(name: str) -> str | None:
    """Return the built-in type of a name such as `v100`, `nvidia_a100-sxm4-80gb` or `NVIDIA-H100-80GB-HBM3`.

    It is the built-in type whose name is that name or a word in it. None: there is none, there are several, or it is a
    part of a GPU (`1g.5gb`).
    """
    if is_part_of_gpu(name) or not _PLAIN.fullmatch(name):
        return None
    known = _built_in()
    if name.lower() in known:
        return known[name.lower()]
    found = {known[word] for word in re.split(r"[^0-9a-z]+", name.lower()) if word in known}
    return found.pop() if len(found) == 1 else None


def known_type(name: str, names: Collection[str]) -> str:
    """Return which of some GPU types a name means: that with the name, or the only one like the same built-in type."""
    if name in names:
        return name
    built_in = built_in_gpu_type(name)
    found = [each for each in names if built_in is not None and built_in_gpu_type(each) == built_in]
    return found[0] if len(found) == 1 else name


def under(table: Mapping[str, Value], name: str) -> Value | None:
    """Return what a table by GPU type has for a type, by `known_type`; None: nothing."""
    return table.get(known_type(name, table))


def suggestion(name: str) -> str:
    """Return how a request may give a GPU type whose name has no built-in one as a word."""
    words = re.split(r"[^0-9a-z]+", name.lower())
    near = [found[0] for word in words if (found := get_close_matches(word, _built_in(), n=1, cutoff=0.65))]
    source = json.dumps(_built_in()[near[0]] if near else "...")
    return f'{{"name": {json.dumps(name)}, "{"part_of" if is_part_of_gpu(name) else "like"}": {source}}}'


@cache
def _built_in() -> dict[str, str]:
    return {row["name"].lower(): row["name"] for row in read_table("gpu_types.csv")}
