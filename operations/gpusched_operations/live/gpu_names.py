"""Which GPU type of the model stands for the name that a cluster manager has for one.

Nothing here needs compiled functions: what a driver did must be undone where none can be compiled.
"""

from __future__ import annotations

import re
from functools import cache

from gpusched_env.workload.tables import read_table

_SLICE = re.compile(r"(?:^|[^0-9a-z])(\d+)g\.\d+gb", re.IGNORECASE)
_VIRTUAL = re.compile(r"(^|[^a-z])(v?grid|vgpu)([^a-z]|$)|[-_](?<!\d)\d{1,2}[qcab]$|-shared$", re.IGNORECASE)
SLICES = 7
"""Slices that a GPU has for MIG."""


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
    if is_part_of_gpu(name):
        return None
    known = _built_in()
    if name.lower() in known:
        return known[name.lower()]
    found = {known[word] for word in re.split(r"[^0-9a-z]+", name.lower()) if word in known}
    return found.pop() if len(found) == 1 else None


@cache
def _built_in() -> dict[str, str]:
    return {row["name"].lower(): row["name"] for row in read_table("gpu_types.csv")}
