"""Processes of a test cluster: which there are, by what is in their environment; ports that are free."""

from __future__ import annotations

import os
import random
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PORTS = 20_000, 32_000
"""Where ports are looked for: below those that the kernel gives to outgoing connections."""


def processes(marks: Sequence[Sequence[str]], variables: Sequence[str] = ()) -> set[int]:
    """Return processes with given variables in the environment that they began with, and all that they started.

    Args:
        marks: Of one of these, a process has all: `NAME=value`, or `NAME=` with any value.
        variables: Of these it has one, if there are any: `NAME=value`.
    """
    found, parents = set(), {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        pid = int(entry.name)
        with suppress(OSError, IndexError, ValueError):
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        own = set(_environment(pid).split("\0"))
        names = {variable.partition("=")[0] + "=" for variable in own}
        marked = any(all(mark in own or mark in names for mark in each) for each in marks)
        if marked and (not variables or own.intersection(variables)):
            found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid for pid in found if is_there(pid)}


def free_ports(count: int) -> tuple[socket.socket, ...]:
    """Return sockets at so many ports of 127.0.0.1 that nothing else is bound to.

    While they are open, no other caller gets these ports; a daemon that reuses addresses, as those of Slurm do, can
    listen there.
    """
    found: list[socket.socket] = []
    choice = random.SystemRandom()
    for _ in range(100 * count):
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", choice.randrange(*PORTS)))
        except OSError:
            one.close()
            continue
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.append(one)
        if len(found) == count:
            return tuple(found)
    for one in found:
        one.close()
    raise RunError(f"no {count} free ports from {PORTS[0]} to {PORTS[1]}")


def _environment(pid: int) -> str:
    """Return the variables of a process as it began, with zero bytes between; none if it is gone or not ours."""
    with suppress(OSError):
        return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
    return ""


def is_there(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


def end(pids: Iterable[int]) -> None:
    """End processes at once: all are stopped first, so that none reports how another one ended."""
    there = list(pids)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in there:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def last_line(path: Path) -> str:
    with suppress(OSError):
        return "".join(path.read_text(errors="replace").strip().splitlines()[-1:])
    return ""
