"""The one line that says why the first step of an installation takes so long."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

NOTE = "note: compiling once, 20 seconds to 2 minutes; `gpusched warm-up` compiles ahead what most need\n"
_COMPILE = "numba:compile"
_PACKAGES = tuple(f"gpusched_{each}" for each in ("env", "baselines", "agents", "experiments", "operations"))


class _Listener(event.Listener):
    """Counts the kernels that are compiled, and writes a note at the first of the packages."""

    def __init__(self, *, notes: bool) -> None:
        self.notes, self.kernels = notes, 0

    def on_start(self, event: Any) -> None:
        self.kernels += 1
        own = str(event.data["dispatcher"].py_func.__module__).partition(".")[0] in _PACKAGES
        # A worker leaves it to the process that started it; under pytest it would be read as output of a test.
        if self.notes and own and multiprocessing.parent_process() is None and "pytest" not in sys.modules:
            self.notes = False
            sys.stderr.write(NOTE)
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Do nothing when it has been compiled."""


_NOTER = _Listener(notes=True)


def note_compiling() -> None:
    """Write a note to stderr, once, when this process has to compile a kernel: it is not found on the disk.

    Numba reports when it compiles; there is nothing to look up, and nothing to pay for when all is on the disk.
    """
    event.register(_COMPILE, _NOTER)  # type: ignore[no-untyped-call]


@contextmanager
def compiled_kernels() -> Iterator[Callable[[], int]]:
    """Count the kernels that are compiled in the body, and write no note; gives what gives their number."""
    before, counter = _NOTER.notes, _Listener(notes=False)
    _NOTER.notes = False
    try:
        with event.install_listener(_COMPILE, counter):
            yield lambda: counter.kernels
    finally:
        _NOTER.notes = before
