"""What `gpusched warm-up` has compiled, noted beside it, so that the next one need not load it all to find out."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from llvmlite.binding import get_host_cpu_name

import gpusched_agents
import gpusched_baselines
import gpusched_env
import gpusched_experiments
from gpusched_env.files import write_atomically
from gpusched_env.simulator.placement.placement import place

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGES = (gpusched_env, gpusched_baselines, gpusched_agents, gpusched_experiments)
NAME = "gpusched-warm-up.json"


def is_compiled(steps: Iterable[str]) -> bool:
    """Say whether all these steps were compiled, by this very code, Numba and Python, for this processor."""
    return set(steps) <= set(_noted())


def note_compiled(steps: Iterable[str]) -> None:
    """Note that these steps are compiled."""
    text = json.dumps({"of": _origin(), "steps": sorted({*_noted(), *steps})})
    write_atomically(_file(), text + "\n")


def _noted() -> list[str]:
    try:
        noted = json.loads(_file().read_text(encoding="utf-8"))
        return list(noted["steps"]) if noted["of"] == _origin() else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _origin() -> list[Any]:
    return [*_stamp(), numba.__version__, platform.python_version(), get_host_cpu_name()]


def _file() -> Path:
    """Give the file: it lies with compiled kernels, and goes when they do."""
    kernels: Any = place
    return Path(kernels.stats.cache_path) / NAME


def _stamp() -> tuple[float, int]:
    """Give the newest change and the total size of all sources."""
    folders = [Path(package.__file__ or "").parent for package in PACKAGES]
    stats = [path.stat() for folder in folders for path in folder.rglob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
