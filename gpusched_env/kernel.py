"""The decorator of every compiled function."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba
from numba.core.cpu import CPUTargetOptions
from numba.core.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

# Numba's option is private. It is said for every kernel, since one that leaves it open takes it from its first caller.
COUNTING, LEAN = ({"_nrt": True}, {"_nrt": False}) if hasattr(CPUTargetOptions, "_nrt") else ({}, {})

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain loop over arrays with Numba and cache the result on disk.

    Setting `NUMBA_DISABLE_JIT=1` runs the same function as Python; there is no second implementation. What was typed
    into an interpreter or a notebook, and stands in no file, is kept for the session only.
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


def threaded_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, which may make arrays, and give up the interpreter's lock during a call."""
    return _compiled(function, nogil=True, **COUNTING)


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    njit: Any = numba.njit
    in_a_file = Path(function.__code__.co_filename).is_file()
    compiled: Any = njit(cache=in_a_file, error_model="numpy", **options)(function)
    stored = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stored is not None:
        # Numba discards a cached kernel when the file that defines it changes, but not when a constant or a kernel that
        # it takes from another file does: a stale kernel would then compute something else, silently. So every kernel
        # carries the stamp of all sources it can come from.
        stored._source_stamp = _stamp(_packages(function))  # noqa: SLF001
    typed: Callable[P, R] = compiled
    return typed


def _packages(function: Callable[..., Any]) -> frozenset[Path]:
    """List the packages that a kernel can come from: its own, this one, and those of kernels that its file imports."""
    imported = list(function.__globals__.values())
    imported += [value for module in imported if isinstance(module, ModuleType) for value in vars(module).values()]
    kernels = [value.py_func for value in imported if isinstance(value, Dispatcher)]
    return frozenset({_package(__file__), *(_package(f.__code__.co_filename) for f in (function, *kernels))})


@cache
def _package(file: str) -> Path:
    """Give the folder of the outermost package that holds `file`; of a file in none, its own folder."""
    folder = Path(file).parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


@cache
def _stamp(packages: frozenset[Path]) -> tuple[float, int]:
    """Give the newest change and the total size of all sources in `packages` and below."""
    stats = [path.stat() for package in packages for path in package.rglob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
