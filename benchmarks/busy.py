"""Artificial load on the machine."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from benchmarks.machine import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator


ENDLESS = """
import os
parent = os.getppid()
while os.getppid() == parent:
    pass
"""


@contextmanager
def busy() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep every core busy with a process that never waits, as long as this one lives; return the processes."""
    endless = [sys.executable, "-c", ENDLESS]
    with ExitStack() as stack:
        processes = []
        for _ in range(usable_cores()):
            processes.append(stack.enter_context(subprocess.Popen(endless)))  # noqa: S603 - this interpreter
            stack.callback(processes[-1].kill)
        yield processes
