"""What a process gives up before it reads anything that nobody trusts."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_experiments.untrusted.files_seen import see_few_files
from gpusched_experiments.untrusted.system_calls import allow_few_calls

if sys.platform != "win32":  # there the command says that it cannot; others must not need this
    import resource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

OPEN_FILES = 64
CACHE = "NUMBA_CACHE_DIR"
"""The variable that names the folder in which Numba finds what it has compiled before."""
NEW_USER, NEW_NETWORK, NEW_MESSAGES = 0x10000000, 0x40000000, 0x08000000
END_WITH_PARENT, KILLED = 1, 9
CAPABILITY_VERSION = 0x20080522

NETWORK, FILES, CALLS = "network", "files", "calls"
MISSING = {
    NETWORK: "this system cannot keep it from the network (user namespaces, or seccomp on x86-64)",
    FILES: "this system cannot keep it from reading files that you can read (Landlock)",
    CALLS: "this system cannot forbid it system calls, such as starting processes (seccomp on x86-64)",
}
"""What to say where a protection is not to be had."""


def lacking(held: Collection[str]) -> tuple[str, ...]:
    """Say what is not protected, a sentence each; who may open no socket needs no network of its own."""
    there = {*held, NETWORK} if CALLS in held else set(held)
    return tuple(said for name, said in MISSING.items() if name not in there)


def limit_resources(memory_bytes: int, processor_s: int) -> None:
    """Limit memory and processor time; write no files, keep no core, open few files, outlive nobody."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(END_WITH_PARENT, KILLED, 0, 0, 0)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CPU, processor_s, 1)  # first a signal that says why, then one that cannot be ignored
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)


def leave_network() -> bool:
    """Move to a network in which there is nothing; say whether that is so. The process must have one thread."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).unshare(NEW_USER | NEW_NETWORK | NEW_MESSAGES) == 0)


def lock(more: Iterable[Path]) -> list[str]:
    """Give up capabilities, processes, files but Python's and `more`, and system calls; list what holds."""
    _limit(resource.RLIMIT_NPROC, 0)
    held = [FILES] if see_few_files(more) else []
    if sys.platform.startswith("linux"):
        head, none = struct.pack("<Ii", CAPABILITY_VERSION, 0), bytes(24)
        ctypes.CDLL(None).capset(head, none)
    return [*held, CALLS] if allow_few_calls() else held


def clean_environment(folder: str) -> dict[str, str]:
    """Give the environment of such a process: nothing of ours but what makes Python and Numba run as here."""
    same = ("LD_LIBRARY_PATH", "NUMBA_DISABLE_JIT", CACHE)
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    kept = {name: os.environ[name] for name in same if name in os.environ}
    kept |= {CACHE: str(Path(kept[CACHE]).absolute())} if kept.get(CACHE) else {}  # it starts in another folder
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder, **one, **kept}


def _limit(what: int, most: int, more: int = 0) -> None:
    """Limit what it may take, and as a hard limit to `more` than that."""
    hard = resource.getrlimit(what)[1]
    soft, hard = (value if hard == resource.RLIM_INFINITY else min(value, hard) for value in (most, most + more))
    resource.setrlimit(what, (soft, hard))
