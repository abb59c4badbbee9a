"""System calls that a process may make once it decides: to compute, and to read files; no others (seccomp)."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

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


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def allow_few_calls() -> bool:
    """Let this process make no system calls from now on but those above; say whether that is so."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    steps = b"".join(struct.pack("<HBBI", *step) for step in _steps())
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0)


def _steps() -> list[tuple[int, int, int, int]]:
    """Write the filter: each step is its code, how far it jumps if it holds and if not, and a number."""
    steps = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, X86_64),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (LEAST, 0, 1, X32),
        (RETURN, 0, 0, REFUSE),
    ]
    for number in ALLOWED.values():
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    for number, argument in ((OPEN, 1), (OPENAT, 2)):
        flags = ARGUMENTS + 8 * argument
        reads_only = [(LOAD, 0, 0, flags), (AND, 0, 0, WRITES), (EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW)]
        steps += [(EQUAL, 0, 5, number), *reads_only, (RETURN, 0, 0, REFUSE)]
    steps += [(EQUAL, 0, 2 * len(FCNTL_COMMANDS) + 1, FCNTL), (LOAD, 0, 0, ARGUMENTS + 8)]
    for command in FCNTL_COMMANDS:
        steps += [(EQUAL, 0, 1, command), (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, REFUSE)]
