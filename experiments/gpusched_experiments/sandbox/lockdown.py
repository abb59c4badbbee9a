"""What a process gives up before it reads anything that nobody trusts: files (Landlock) and system calls (seccomp)."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import sysconfig
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

if sys.platform != "win32":  # there the command says that it cannot; others must not need this
    import resource


CREATE, ADD, RESTRICT = 444, 445, 446  # system calls, the same on all architectures
ASK_VERSION = 1
BENEATH = 1
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
OF_VERSION = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights on files that the kernel knows from a version on."""
TCP = 0b11  # from version 4: binding and connecting
SCOPES = 0b11  # from version 6: sockets and signals of other processes

LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom")
PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents", "gpusched_experiments")


def see_few_files(more: Iterable[Path]) -> bool:
    """Let this process read no files from now on but Python's, packages', and `more`; say whether that is so.

    Nor may it write to any, reach the network, look into another process, or send it a signal, as far as the kernel
    knows how to forbid that.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE, None, 0, ASK_VERSION)
    if version < 1:
        return False
    rights = (1 << max(count for since, count in OF_VERSION.items() if version >= since)) - 1
    ruled = struct.pack("<QQQ", rights, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    length = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(CREATE, ruled, length, 0)
    if ruleset < 0:
        return False
    places = [Path(path) for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))]
    places += [Path(path) for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    found = (find_spec(name) for name in PACKAGES)
    places += [Path(spec.origin).parent for spec in found if spec is not None and spec.origin]
    for path in (*places, *map(Path, LIBRARIES), *more):
        with suppress(OSError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            may = READ_FILE | READ_FOLDER if path.is_dir() else READ_FILE
            libc.syscall(ADD, ruleset, BENEATH, struct.pack("<Qi", may, place), 0)
            os.close(place)
    done = _gives_up_privileges(libc) and libc.syscall(RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return bool(done)


# The numbers of x86-64. What starts a process or a thread, opens a socket, writes to a file, changes one, sends a
# signal or looks at another process is not among them.
ALLOWED = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "readv": 19, "writev": 20, "access": 21, "select": 23, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "dup": 32, "nanosleep": 35, "getpid": 39, "exit": 60, "uname": 63, "getcwd": 79,
    "readlink": 89, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102,
    "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "sigaltstack": 131, "arch_prctl": 158,
    "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "newfstatat": 262,
    "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "getcpu": 309,
    "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334, "faccessat2": 439,
}  # fmt: skip
OPEN, OPENAT, FCNTL = 2, 257, 72
FCNTL_COMMANDS = (0, 1, 2, 3, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL and F_DUPFD_CLOEXEC. With others, such as F_SETOWN and F_SETFL with O_ASYNC, the
kernel sends signals to any process of the user."""
WRITES = 0o3 | 0o100 | 0o1000 | 0o20000000  # O_ACCMODE, O_CREAT, O_TRUNC, O_TMPFILE
X86_64, X32 = 0xC000003E, 0x40000000

# Parts of a filter's program, as the kernel defines them.
LOAD, EQUAL, LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000  # refused calls fail with EPERM
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16

NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2


def allow_few_calls() -> bool:
    """Let this process make no system calls from now on but those above; say whether that is so."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    steps = b"".join(struct.pack("<HBBI", *step) for step in _steps())
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("HP", len(steps) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    return _gives_up_privileges(libc) and bool(libc.prctl(SECCOMP, FILTER, program, 0, 0) == 0)


def _gives_up_privileges(libc: ctypes.CDLL) -> bool:
    return bool(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0)


def _steps() -> list[tuple[int, int, int, int]]:
    """Write the filter: each step is its code, how far it jumps if it holds and if not, and a number."""
    allow, refuse = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)
    steps = [
        *((LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, KILL)),
        *((LOAD, 0, 0, NUMBER), (LEAST, 0, 1, X32), refuse),
    ]
    for number in ALLOWED.values():
        steps += [(EQUAL, 0, 1, number), allow]
    for number, argument in ((OPEN, 1), (OPENAT, 2)):
        flags = ARGUMENTS + 8 * argument
        steps += [(EQUAL, 0, 5, number), (LOAD, 0, 0, flags), (AND, 0, 0, WRITES), (EQUAL, 0, 1, 0), allow, refuse]
    steps += [(EQUAL, 0, 2 * len(FCNTL_COMMANDS) + 1, FCNTL), (LOAD, 0, 0, ARGUMENTS + 8)]
    for command in FCNTL_COMMANDS:
        steps += [(EQUAL, 0, 1, command), allow]
    return [*steps, refuse]


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
    """Return what is not protected, a sentence each; who may open no socket needs no network of its own."""
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
    """Return up capabilities, processes, files but Python's and `more`, and system calls; list what holds."""
    _limit(resource.RLIMIT_NPROC, 0)
    held = [FILES] if see_few_files(more) else []
    if sys.platform.startswith("linux"):
        head, none = struct.pack("<Ii", CAPABILITY_VERSION, 0), bytes(24)
        ctypes.CDLL(None).capset(head, none)
    return [*held, CALLS] if allow_few_calls() else held


def clean_environment(folder: str) -> dict[str, str]:
    """Return the environment of such a process: nothing of ours but what makes Python and Numba run as here."""
    same = ("LD_LIBRARY_PATH", "NUMBA_DISABLE_JIT", CACHE)
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    kept = {name: os.environ[name] for name in same if name in os.environ}
    kept |= {CACHE: str(Path(kept[CACHE]).absolute())} if kept.get(CACHE) else {}  # it starts in another folder
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PREFERRED_NODE": folder, "TMPDIR": folder, **one, **kept}


def _limit(what: int, most: int, more: int = 0) -> None:
    """Limit what it may take, and as a hard limit to `more` than that."""
    hard = resource.getrlimit(what)[1]
    soft, hard = (value if hard == resource.RLIM_INFINITY else min(value, hard) for value in (most, most + more))
    resource.setrlimit(what, (soft, hard))
