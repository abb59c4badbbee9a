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


def free_ports(count: int) -> tuple[int, ...]:
    ports: list[int] = []
    choice = random.SystemRandom()
    for _ in range(100 * count):
        port = choice.randrange(*PORTS)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            if port not in ports:
                ports.append(port)
        if len(ports) == count:
            return tuple(ports)
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
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def last_line(path: Path) -> str:
    with suppress(OSError):
        return "".join(path.read_text(errors="replace").strip().splitlines()[-1:])
    return ""
