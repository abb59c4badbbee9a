"""The one line that says why the first command of an installation takes so long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

NOTE = "compiling once, about a minute; `gpusched warm-up` does it ahead"
_COMPILE = "numba:compile"


class _Listener(event.Listener):
    """Counts the kernels that are compiled, and writes a note at the first."""

    def __init__(self, *, tell: bool) -> None:
        self.tell, self.kernels = tell, 0

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's
        self.kernels += 1
        if self.tell:
            self.tell = False
            sys.stderr.write(f"note: {NOTE}\n")

    def on_end(self, event: Any) -> None:
        """Do nothing when it has been compiled."""


_TELLER = _Listener(tell=True)


def tell_of_compiling() -> None:
    """Write a note to stderr, once, when this process has to compile a kernel: it is not found on the disk.

    Numba reports when it compiles; there is nothing to look up, and nothing to pay for when all is on the disk.
    """
    event.register(_COMPILE, _TELLER)  # type: ignore[no-untyped-call]


@contextmanager
def compiled_kernels() -> Iterator[Callable[[], int]]:
    """Count the kernels that are compiled in the body, and do not say so; gives what gives their number."""
    teller, counter = _TELLER.tell, _Listener(tell=False)
    _TELLER.tell = False
    with event.install_listener(_COMPILE, counter):
        yield lambda: counter.kernels
    _TELLER.tell = teller
