"""The machine on which figures were measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def machine() -> dict[str, str | int | float]:
    """Describe the machine: processor, cores, memory, versions, and how busy it was before."""
    return {
        "cpu": _proc_field("cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "memory_gib": round(_kib("meminfo", "MemTotal") / 2**20, 1),
        "python": platform.python_version(),
        "numba": version("numba"),
        "numpy": version("numpy"),
        "gymnasium": version("gymnasium"),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
    }


def usable_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def peak_memory_mib() -> float:
    """Return the peak memory of this process so far [MiB]; 0 where the system does not report it (not Linux).

    `resource.getrusage` would report the parent's peak if that is larger: Linux keeps it through `exec`.
    """
    return _kib("self/status", "VmHWM") / 1024.0


def _kib(file: str, field: str) -> float:
    return float(_proc_field(file, field).removesuffix("kB") or 0)


def _proc_field(file: str, field: str) -> str:
    path = Path("/proc", file)
    if not path.is_file():
        return ""
    lines = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == field), "")
