"""Which code made a run: runs of different code must not be mixed."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

# Everything that can change what a run gives. Reports, the command line and pictures cannot.
_DECIDES = (
    ("gpusched_env", "model"),
    ("gpusched_env", "workload"),
    ("gpusched_env", "simulator"),
    ("gpusched_env", "report/reproduce/changes"),
    ("gpusched_env", "report/reproduce/measures.py"),
    ("gpusched_baselines", ""),
)
_PACKAGES = ("gpusched-env", "numpy", "numba", "scipy")


@cache
def code_version() -> str:
    """Give a fingerprint of all that decides a run's result: sources, tables and the packages that compute it.

    Returns:
        16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for package, path in _DECIDES:
        root = files(package)
        for name, content in sorted(_contents(root.joinpath(path) if path else root, path)):
            digest.update(f"{package}/{name} {len(content)}\n".encode())
            digest.update(content)
    for package in _PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    digest.update(platform.python_version().encode())
    return digest.hexdigest()[:16]


def machine() -> str:
    """Name the machine for times: architecture, processor and number of cores."""
    return f"{platform.machine()}, {_processor()}, {cores()} cores"


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _contents(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Give the name and content of every source and table in `place`, a file or a folder."""
    if place.is_file():
        if name.endswith((".py", ".csv")):
            yield name, place.read_bytes()
        return
    for entry in place.iterdir():
        yield from _contents(entry, f"{name}/{entry.name}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "unknown processor"
