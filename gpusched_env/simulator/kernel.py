"""The decorator of every compiled function."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain loop over arrays with Numba and cache the result on disk.

    Setting `NUMBA_DISABLE_JIT=1` runs the same function as Python; there is no second implementation.
    """
    compiled: Any = numba.njit(cache=True, error_model="numpy")(function)
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
    """Give the newest change and the total size of the sources in `folder` and in the simulator."""
    stats = [p.stat() for where in {folder, str(Path(__file__).parent)} for p in Path(where).glob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
