"""The decorator of every compiled function."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba
from numba.core.cpu import CPUTargetOptions

if TYPE_CHECKING:
    from collections.abc import Callable

# Numba's option is private. It is said for every kernel, since one that leaves it open takes it from its first caller.
COUNTING, LEAN = ({"_nrt": True}, {"_nrt": False}) if hasattr(CPUTargetOptions, "_nrt") else ({}, {})

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain loop over arrays with Numba and cache the result on disk.

    Setting `NUMBA_DISABLE_JIT=1` runs the same function as Python; there is no second implementation.
    """
    return _compiled(function, **COUNTING)


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, for a function that makes no array and returns none.

    It counts no references to its arrays, and becomes part of the functions that call it: counting and handing over
    arrays take longer than a small function's own work. What makes an array does not compile so, and copying one row of
    an array to another counts as that; calling a `kernel` that makes arrays does not.
    """
    return _compiled(function, forceinline=True, **LEAN)


def unlocked_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `lean_kernel`, and give up the interpreter's lock during a call, so that threads can share work."""
    return _compiled(function, nogil=True, **LEAN)


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    njit: Any = numba.njit
    compiled: Any = njit(cache=True, error_model="numpy", **options)(function)
    stored = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stored is not None:
        # Numba discards a cached kernel when the file that defines it changes, but not when a constant or a kernel that
        # it takes from another file does: a stale kernel would then compute something else, silently. So every kernel
        # carries the stamp of all sources it can come from.
        stored._source_stamp = _stamp(str(Path(function.__code__.co_filename).parent))  # noqa: SLF001
    typed: Callable[P, R] = compiled
    return typed


@cache
def _stamp(folder: str) -> tuple[float, int]:
    """Give the newest change and the total size of the sources in `folder`, the simulator and the observation."""
    simulator = Path(__file__).parent
    folders = {folder, str(simulator), str(simulator.parent / "observation")}
    stats = [p.stat() for where in folders for p in Path(where).glob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
